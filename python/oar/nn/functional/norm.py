"""Normalisations, in the module where Paddle's programs look for them too."""

from __future__ import annotations

from oar._C import ops

__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "normalize"]

batch_norm = ops.batch_norm
group_norm = ops.group_norm
instance_norm = ops.instance_norm
layer_norm = ops.layer_norm
local_response_norm = ops.local_response_norm
normalize = ops.normalize
