"""Models that compute with few bits: training that expects it (``QAT``), and calibration of a trained model (``PTQ``)."""

from oar.quantization import observers, quanters
from oar.quantization.base_observer import BaseObserver
from oar.quantization.base_quanter import BaseQuanter
from oar.quantization.config import QuantConfig
from oar.quantization.factory import quanter
from oar.quantization.ptq import PTQ
from oar.quantization.qat import QAT

__all__ = ["PTQ", "QAT", "BaseObserver", "BaseQuanter", "QuantConfig", "observers", "quanter", "quanters"]
