"""Losses and distances."""

TORCH = {
    # class_loss
    "label_smooth": "(1 - epsilon) * label + epsilon * (1 / label.shape[-1] if prior_dist is None else prior_dist)",
    # cross_entropy
    "softmax_cross_entropy": "(lambda z: (F.cross_entropy(class_axis(logits, axis), label.long().squeeze(axis), "
                             "ignore_index=ignore_index, reduction='none').unsqueeze(axis), z))"
                             "(logits.logsumexp(axis, True))",
    "cross_entropy": "cross_entropy(input, label, weight, ignore_index, reduction, soft_label, axis, use_softmax, "
                     "label_smoothing)",
    "nll_loss": "F.nll_loss(input, label, weight, ignore_index=ignore_index, reduction=reduction)",
    # ctc
    "ctc": "F.ctc_loss(log_probs, labels.long(), input_lengths, label_lengths, blank, 'none', True)",
    # distance
    "pairwise_distance": "F.pairwise_distance(x, y, p, epsilon, keepdim)",
    "cosine_similarity": "F.cosine_similarity(x1, x2, axis, eps)",
    "cosine_embedding_loss": "F.cosine_embedding_loss(input1, input2, label if input1.ndim > 1 else label[0], margin, "
                             "reduction=reduction)",
    "triplet_margin_loss": "F.triplet_margin_loss(input, positive, negative, margin, p, epsilon, swap, "
                           "reduction=reduction)",
    # loss
    "square_error_cost": "F.mse_loss(input, label, reduction='none')",
    "mse_loss": "F.mse_loss(*torch.broadcast_tensors(input, label), reduction=reduction)",
    "l1_loss": "F.l1_loss(*torch.broadcast_tensors(input, label), reduction=reduction)",
    "smooth_l1_loss": "F.huber_loss(*torch.broadcast_tensors(input, label), reduction=reduction, delta=delta)",
    "binary_cross_entropy": "F.binary_cross_entropy(input, label, weight, reduction=reduction)",
    "binary_cross_entropy_with_logits": "F.binary_cross_entropy_with_logits(logit, label, weight, "
                                        "reduction=reduction, pos_weight=pos_weight)",
    "kl_div": "F.kl_div(input, label, reduction=reduction, log_target=log_target)",
    "margin_ranking_loss": "F.margin_ranking_loss(input, other, label, margin, reduction=reduction)",
    "soft_margin_loss": "F.soft_margin_loss(*torch.broadcast_tensors(input, label), reduction=reduction)",
    # margin_loss
    "hinge_embedding_loss": "F.hinge_embedding_loss(input, label, margin, reduction=reduction)",
    "multi_label_soft_margin_loss": "F.multilabel_soft_margin_loss(input, label, weight, reduction=reduction)",
    "multi_margin_loss": "F.multi_margin_loss(input, label.long(), p, margin, weight, reduction=reduction)",
    "poisson_nll_loss": "F.poisson_nll_loss(input, label, log_input, full, eps=epsilon, reduction=reduction)",
    "gaussian_nll_loss": "F.gaussian_nll_loss(input, label, variance, full, epsilon, reduction)",
    # pointwise_loss
    "pointwise_loss": "{'square': lambda x, y: F.mse_loss(x, y, reduction=reduction), "
                      "'absolute': lambda x, y: F.l1_loss(x, y, reduction=reduction), "
                      "'huber': lambda x, y: F.huber_loss(x, y, reduction=reduction, delta=a), "
                      "'divergence': lambda x, y: F.kl_div(x, y, reduction=reduction), "
                      "'divergence_of_log': lambda x, y: F.kl_div(x, y, reduction=reduction, log_target=True), "
                      "'hinge_embedding': lambda x, y: F.hinge_embedding_loss(x, y, a, reduction=reduction), "
                      "}.get(kind, lambda x, y: None)(*torch.broadcast_tensors(input, label))",
}

CONSTANT = {
    "binary_cross_entropy": ("label", "weight"),
    "binary_cross_entropy_with_logits": ("label", "weight", "pos_weight"),
    "cross_entropy": ("label", "weight"),
    "gaussian_nll_loss": ("variance",),
    "kl_div": ("label",),
    "label_smooth": ("prior_dist",),
    "nll_loss": ("weight",),
    "soft_margin_loss": ("label",),
    "multi_margin_loss": ("weight",),
}

_OTHER_LABELS = "not np.all(np.abs(label.numpy()) == 1)"

# op -> ("values" or "gradients", for which arguments, why)
DIFFERENT = {
    "ctc": ("gradients", "True", "is the gradient by what log_softmax takes there"),
    "cross_entropy": ("values", "weight is not None and (soft_label or label_smoothing) and reduction == 'mean'",
                      "a weighted mean is divided by the number of rows there, by the sum of the weights here"),
    "kl_div": ("values", "not log_target and np.any(label.numpy() < 0)", "a negative label gives NaN there"),
    "hinge_embedding_loss": ("values", _OTHER_LABELS, "a label of 0 counts as both 1 and -1 there"),
    "pointwise_loss": ("values", f"kind == 'hinge_embedding' and {_OTHER_LABELS}", "as hinge_embedding_loss"),
}
