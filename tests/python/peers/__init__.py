"""Comparison of ops with another library, which runs in its own environment."""
