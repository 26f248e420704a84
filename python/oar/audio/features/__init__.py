"""Layers that compute features of signals."""

from oar.audio.features.layers import MFCC, LogMelSpectrogram, MelSpectrogram, Spectrogram

__all__ = ["LogMelSpectrogram", "MFCC", "MelSpectrogram", "Spectrogram"]
