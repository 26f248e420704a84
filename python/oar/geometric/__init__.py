"""Operations on graphs: messages between nodes, and reductions of segments."""

from oar.geometric.message_passing import send_u_recv, send_ue_recv, send_uv
from oar.geometric.segment import segment_max, segment_mean, segment_min, segment_sum

__all__ = [
    "segment_max",
    "segment_mean",
    "segment_min",
    "segment_sum",
    "send_u_recv",
    "send_ue_recv",
    "send_uv",
]
