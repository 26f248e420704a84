"""Seeds under Paddle's older path."""

from __future__ import annotations

from oar._framework import get_rng_state, set_rng_state

__all__ = ["get_rng_state", "set_rng_state"]


def _manual_program_seed(seed: int) -> None:
    """Fixes the random numbers of the default programs."""
    from oar.static import default_main_program, default_startup_program

    default_main_program().random_seed = seed
    default_startup_program().random_seed = seed
