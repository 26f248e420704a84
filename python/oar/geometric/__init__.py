"""Operations on graphs: messages between nodes, reductions of segments, neighbors drawn at random."""

from oar.geometric.message_passing import send_u_recv, send_ue_recv, send_uv
from oar.geometric.reindex import reindex_graph, reindex_heter_graph
from oar.geometric.sampling import sample_neighbors, weighted_sample_neighbors
from oar.geometric.segment import segment_max, segment_mean, segment_min, segment_sum

__all__ = [
    "reindex_graph",
    "reindex_heter_graph",
    "sample_neighbors",
    "segment_max",
    "segment_mean",
    "segment_min",
    "segment_sum",
    "send_u_recv",
    "send_ue_recv",
    "send_uv",
    "weighted_sample_neighbors",
]
