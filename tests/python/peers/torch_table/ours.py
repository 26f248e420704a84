"""Ops that PyTorch has no public function for: functions that only Paddle has, and steps of ours whose gradients and
values are compared as part of the ops that use them."""

OURS = frozenset((
    # only Paddle has them, or PyTorch has them in other packages
    "deform_conv2d", "dequantize", "dice_loss", "fractional_max_pool", "hsigmoid_loss", "log_loss", "margin_softmax", "multiplex",
    "npair_loss", "rnnt", "shard_index", "sigmoid_focal_loss", "temporal_shift", "viterbi_decode",
    "box_coder", "fpn_levels", "generate_proposals", "matrix_nms", "multiclass_nms3", "nms", "prior_box", "psroi_pool", "roi_align",
    "roi_pool", "yolo_box", "yolo_loss",
    # steps forward
    "channel_affine", "conv_fused", "copy_to_device", "embedding_lookup", "gammainc_order", "last_writes", "last_writes_along",
    "linear_recurrence", "matmul_fused", "max_pool_gather", "max_pool_scatter", "pick_class", "product_of", "selected_rows_rows",
    "selected_rows_to_dense", "selected_rows_values", "shift_along",
    "difference_along", "in_backward", "mean_of_picked", "pivot_permutation", "product_of_others", "soft_cross_entropy", "with_shape", "without_gradient",
    "conv_rules", "reindex_nodes", "roi_largest", "yolo_targets",
    # programs among their arguments: their own tests
    "fused", "scan", "switch_case", "while_loop", "with_derivative",
    # steps back
    "attention_grad", "batch_norm_train_grad", "channel_affine_grad", "ctc_grad", "gated_silu_grad",
    "group_norm_rows_grad", "layer_norm_rows_grad", "pad_edges_grad", "pointwise_loss_grad", "recurrent_grad",
    "resample_grad", "rnnt_grad", "sloped_grad", "softmax_cross_entropy_grad",
    "pick_class_grad", "rsqrt_grad", "soft_cross_entropy_grad",
    "psroi_pool_grad", "roi_align_grad",
))
