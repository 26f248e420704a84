"""The back ends by name."""

from __future__ import annotations

_ONLY = "wave_backend"


def list_available_backends() -> list[str]:
    """The names of the back ends.

    Returns:
        a list of names.

    Examples:
        >>> import oar
        >>> oar.audio.backends.list_available_backends()
        ['wave_backend']
    """
    return [_ONLY]


def get_current_backend() -> str:
    """The name of the back end that ``oar.audio.load`` uses.

    Returns:
        a name.

    Examples:
        >>> import oar
        >>> oar.audio.backends.get_current_backend()
        'wave_backend'
    """
    return _ONLY


def set_backend(backend_name: str) -> None:
    """Chooses a back end.

    Args:
        backend_name: one of ``list_available_backends()``.

    Examples:
        >>> import oar
        >>> oar.audio.backends.set_backend('wave_backend')
    """
    if backend_name != _ONLY:
        raise NotImplementedError(f"[set_backend] there is no back end {backend_name!r}. Available: {list_available_backends()}.")
