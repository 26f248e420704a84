"""Seeds under Paddle's older path."""

from __future__ import annotations

from oar._framework import get_cuda_rng_state, get_rng_state, set_rng_state
from oar._random import set_cuda_rng_state

__all__ = ["get_cuda_rng_state", "get_rng_state", "set_cuda_rng_state", "set_rng_state"]


def _manual_program_seed(seed: int) -> None:
    """Fixes the random numbers of the default programs and of programs to come."""
    from oar.static import default_main_program, default_startup_program

    for program in (default_main_program(), default_startup_program()):
        program.global_seed(seed)
