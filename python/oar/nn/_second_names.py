"""Layers by the names of PyTorch."""

from oar.framework.parameter import Parameter
from oar.nn.layer import AdaptiveAvgPool1D as AdaptiveAvgPool1d
from oar.nn.layer import AdaptiveAvgPool2D as AdaptiveAvgPool2d
from oar.nn.layer import AdaptiveAvgPool3D as AdaptiveAvgPool3d
from oar.nn.layer import AdaptiveMaxPool1D as AdaptiveMaxPool1d
from oar.nn.layer import AdaptiveMaxPool2D as AdaptiveMaxPool2d
from oar.nn.layer import AdaptiveMaxPool3D as AdaptiveMaxPool3d
from oar.nn.layer import CircularPad1D as CircularPad1d
from oar.nn.layer import CircularPad2D as CircularPad2d
from oar.nn.layer import CircularPad3D as CircularPad3d
from oar.nn.layer import ConstantPad1D as ConstantPad1d
from oar.nn.layer import ConstantPad2D as ConstantPad2d
from oar.nn.layer import ConstantPad3D as ConstantPad3d
from oar.nn.layer import Conv1D as Conv1d
from oar.nn.layer import Conv2D as Conv2d
from oar.nn.layer import Conv3D as Conv3d
from oar.nn.layer import Layer as Module
from oar.nn.layer import LayerDict as ModuleDict
from oar.nn.layer import LayerList as ModuleList
from oar.nn.layer import LPPool1D as LPPool1d
from oar.nn.layer import LPPool2D as LPPool2d
from oar.nn.layer import MaxUnPool1D as MaxUnpool1d
from oar.nn.layer import MaxUnPool2D as MaxUnpool2d
from oar.nn.layer import MaxUnPool3D as MaxUnpool3d
from oar.nn.layer import ReflectionPad1D as ReflectionPad1d
from oar.nn.layer import ReflectionPad2D as ReflectionPad2d
from oar.nn.layer import ReflectionPad3D as ReflectionPad3d
from oar.nn.layer import ReplicationPad1D as ReplicationPad1d
from oar.nn.layer import ReplicationPad2D as ReplicationPad2d
from oar.nn.layer import ReplicationPad3D as ReplicationPad3d
from oar.nn.layer import Silu as SiLU
from oar.nn.layer import SmoothL1Loss as HuberLoss
from oar.nn.layer import UpsamplingBilinear2D as UpsamplingBilinear2d
from oar.nn.layer import UpsamplingNearest2D as UpsamplingNearest2d
from oar.nn.layer import ZeroPad1D as ZeroPad1d
from oar.nn.layer import ZeroPad2D as ZeroPad2d
from oar.nn.layer import ZeroPad3D as ZeroPad3d

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d",
    "ConstantPad3d", "Conv1d", "Conv2d", "Conv3d", "HuberLoss", "LPPool1d", "LPPool2d", "MaxUnpool1d", "MaxUnpool2d",
    "MaxUnpool3d", "Module", "ModuleDict", "ModuleList", "Parameter", "ReflectionPad1d", "ReflectionPad2d",
    "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d", "SiLU", "UpsamplingBilinear2d",
    "UpsamplingNearest2d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip
