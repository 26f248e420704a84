"""Scales of frequencies, filter banks, decibels, windows."""

from oar.audio.functional.scales import (
    compute_fbank_matrix, create_dct, fft_frequencies, hz_to_mel, mel_frequencies, mel_to_hz, power_to_db)
from oar.audio.functional.window import get_window

__all__ = ["compute_fbank_matrix", "create_dct", "fft_frequencies", "get_window", "hz_to_mel", "mel_frequencies", "mel_to_hz",
           "power_to_db"]  # fmt: skip
