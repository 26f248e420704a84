"""Ops with a public name that cannot be compared with Paddle: functions that it lacks (on the CPU)."""

OURS = frozenset(("var_mean", "einsum", "maxout", "rms_norm", "root_sum_square"))
