"""Layers of sparse tensors."""
