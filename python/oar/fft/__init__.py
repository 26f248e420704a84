"""Discrete Fourier transforms along one, two or several axes, of any length."""

from oar.fft.frequencies import fftfreq, fftshift, ifftshift, rfftfreq
from oar.fft.lines import fft, hfft, ifft, ihfft, irfft, rfft
from oar.fft.planes import fft2, hfft2, ifft2, ihfft2, irfft2, rfft2
from oar.fft.volumes import fftn, hfftn, ifftn, ihfftn, irfftn, rfftn

__all__ = ["fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ifftshift",
           "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn"]  # fmt: skip
