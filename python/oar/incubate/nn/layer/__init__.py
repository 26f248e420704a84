"""Layers that do several steps at once."""
