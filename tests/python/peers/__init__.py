"""Comparison of ops with another library, which runs in an environment of its own."""
