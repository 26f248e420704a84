"""Programs: captured functions."""

__all__: list[str] = []
