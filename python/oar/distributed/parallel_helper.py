"""Whether processes are connected, by the path that Paddle's scripts use."""

from oar.distributed.environment import get_world_size

__all__: list[str] = []


def _is_parallel_ctx_initialized() -> bool:
    """Whether several processes are connected."""
    return get_world_size() > 1


def _is_data_parallel_mode() -> bool:
    """Whether several processes train together."""
    return get_world_size() > 1
