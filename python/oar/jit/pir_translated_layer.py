"""Loaded models and the endings of their files, under the name of Paddle's newer programs."""

from oar.jit.translated_layer import INFER_PARAMS_SUFFIX as PIR_INFER_PARAMS_SUFFIX
from oar.jit.translated_layer import TranslatedLayer as PirTranslatedLayer

__all__ = ["PIR_INFER_MODEL_SUFFIX", "PIR_INFER_PARAMS_SUFFIX", "PirTranslatedLayer"]

PIR_INFER_MODEL_SUFFIX = ".json"
