"""Which differences are meant: op -> [(where, why)]. `where` is an expression of the op's arguments, `dtype`, `special`
(extreme numbers among the operands), `wild` (numbers of 1e4 and more), `results` (ours), `fault` (the text of the difference),
the functions of conditions.py, and of what `reason` adds: what holds for all elements that differ."""

from __future__ import annotations

import inspect

import numpy as np

from registry.records import tensors_of

from . import conditions

Reasons = dict[str, list[tuple[str, str]]]


def _each(ops: str, where: str, why: str) -> Reasons:
    return {op: [(where, why)] for op in ops.split()}


def _joined(*parts: Reasons) -> Reasons:
    found: Reasons = {}
    for part in parts:
        for op, reasons in part.items():
            found.setdefault(op, []).extend(reasons)
    return found


# The functions of conditions.py, by their names.
_WORDS = {name: found for name, found in vars(conditions).items() if inspect.isfunction(found)} | {"np": np}

_CONVOLUTIONS = ("conv conv1d conv2d conv3d conv_fused conv_input_grad conv_weight_grad conv1d_transpose conv2d_transpose "
                 "conv3d_transpose")
_NORMS = ("batch_norm_train batch_norm group_norm group_norm_rows instance_norm layer_norm layer_norm_rows "
          "batch_norm_train_grad group_norm_rows_grad layer_norm_rows_grad rms_norm")

KNOWN = _joined(
    # what is promised for other operands only
    _each("searchsorted bucketize", "not is_sorted(sorted_sequence)", "a sequence that is not sorted"),
    _each("merge_sorted", "not (is_sorted(x, True) and is_sorted(y, True))", "keys that do not rise"),
    _each("generate_proposals", "np.any(values(im_shape) < 1)", "an image without a pixel"),
    _each("roi_align roi_align_grad roi_pool roi_largest psroi_pool psroi_pool_grad",
          "not is_finite(boxes) or not np.isfinite(spatial_scale)", "a box that is nowhere"),
    _each("clip_grad", "x.shape != grad.shape", "a gradient of another shape than the result has"),
    _each("gated_silu_grad", "tuple(grad.shape) != np.broadcast_shapes(x.shape, y.shape)",
          "a gradient of another shape than the result has"),
    _each("grid_sample", "(mode == 'nearest' or padding_mode == 'reflection') and are_nowhere",
          "no pixel is the nearest of NaN, infinity has no reflection"),
    _each("grid_sample_grad_grid", "special and are_nowhere", "the same"),
    _each("batch_norm_train_grad", "x.size == 0 and np.any(values(var) < 0)", "a negative variance"),
    _each("sigmoid_focal_loss binary_cross_entropy", "np.any((values(label) < 0) | (values(label) > 1))", "a label that is no probability"),
    _each("attention", "special and not is_finite(query, key) and see_nothing(results, wrong)",
          "scores that are all -infinity are those of a query that sees nothing, whose result is 0 or a mean of hidden values"),
    _each("log_softmax_grad", "np.any(values(out) > 0)", "a logarithm of a probability above 1"),
    _each("ctc", "np.any(values(log_probs) > 0)", "a logarithm of a probability above 1"),
    _each("attention_grad", "total_is_below_scores(query, key, mask, lse, scale, causal)",
          "a logarithm of a sum that is less than one of the scores"),
    _each("softmax_cross_entropy_grad", "np.any(values(logits) - values(log_total) > 80) or not is_finite(logits, log_total)",
          "the same"),
    _each("attention attention_grad", "not np.isfinite(scale)", "scores that are all infinite or NaN"),
    _each("margin_softmax", "not np.isfinite(scale)", "scores that are all infinite or NaN"),
    _each("attention attention_grad", "keep is not None and dropout == 1", "elements that are kept though none is"),
    _each("rnnt rnnt_grad", "np.any(labels.numpy() == blank)", "a label that is the blank"),
    _each("viterbi_decode", "np.any(lengths.numpy() == 0)", "a sequence without an element"),
    _each("matrix_nms multiclass_nms3", "np.any(values(bboxes)[..., 2:] < values(bboxes)[..., :2])", "boxes inside out have no area"),
    _each("nms", "np.any(values(boxes)[:, 2:] < values(boxes)[:, :2])", "boxes inside out have no area"),
    _each("hsigmoid_loss", "path_table is None and np.any((label.numpy() < 0) | (label.numpy() >= num_classes))",
          "a class that is not there"),
    # calls that are errors here; their NumPy expressions do not look, and wrap around or read nothing
    _each("*", "is_wrong_axis(fault)", "an axis that is not there"),
    _each("index_select", "'is out of range' in fault and x.size == 0", "an index is checked, even if nothing is read"),
    _each("max_unpool", "'is out of range' in fault and 'of size 0' in fault", "an index is checked, even if nothing is written"),
    _each("as_strided", "'is outside the tensor' in fault and 0 in shape", "an offset is checked, even if nothing is read"),
    _each("pad_constant", "len(paddings) != 2 * x.ndim", "a number too many or too few"),
    _each("crop", "len(shape) != x.ndim or x.size == 0", "a number too many or too few; elements that an empty tensor does not have"),
    _each("conv1d_transpose conv2d_transpose conv3d_transpose", "'output_padding' in fault and 'must be between' in fault",
          "an output_padding that is not less than stride or dilation: an error of PyTorch's, too, whose word here pads itself"),
    _each("conv1d_transpose conv2d_transpose conv3d_transpose", "bias is not None and bias.shape[0] != weight.shape[1] * groups",
          "a bias for another number of channels"),
    _each("maxout", "groups < 2", "Paddle refuses it, too, but takes images only"),
    _each("cross_entropy", "not 0 <= label_smoothing <= 1", "a mixture with negative shares"),
    _each("unstack", "num == 0", "Paddle takes 0 of any number of slices, and gives none"),
    _each("logit", "eps is not None and not 0 <= eps <= 0.5", "bounds that are exchanged"),
    _each("softplus", "beta == 0", "a division by 0"),
    _each("gaussian_nll_loss", "epsilon <= 0", "a least variance that is none"),
    _each("slice strided_slice", "len({a % arguments[0].ndim for a in axes}) < len(axes)", "an axis that is there twice"),
    _each("slice_scatter", "len({len(axes), len(starts), len(ends), len(strides)}) > 1", "a number too many or too few"),
    # results of nothing
    _each("embedding_lookup", "x.ndim == 0", "the expression makes a row of one index"),
    _each("max_pool max_pool1d max_pool2d max_pool3d", "max(padding, default=0) >= min(kernel_size)",
          "a window without a pixel; the slices of the expression wrap around"),
    _each("hsigmoid_loss", "input.size == 0", "the expression gives up an axis"),
    _each("temporal_shift", "x.size == 0", "the expression gives up the number of images"),
    _each("batch_norm_train", "x.size == 0", "the mean and deviation of no elements"),
    # several results are right
    _each("psroi_pool psroi_pool_grad", "'Paddle' not in fault and touches_pixels(boxes, output_size, spatial_scale)",
          "a bin that ends where a pixel begins may round to either side"),
    _each("viterbi_decode", "'result 1' in fault and is_best_path(potentials, transition_params, lengths, include_bos_eos_tag, "
          "results)", "one of several best paths"),
    _each("svd", "is_svd(x, results)", "vectors of values that are close turn in their plane"),
    _each("eigh", "is_hermitian_spectrum(x, UPLO, results)", "vectors of values that are close turn in their plane"),
    _each("eig eigvals", "is_spectrum(x, results, special)", "the order of eigenvalues, and the phase of vectors where several have one value"),
    _each("max_pool max_pool1d max_pool2d max_pool3d max_pool_with_mask adaptive_max_pool adaptive_max_pool_with_mask", "not is_finite(x) and not wrong[0].any()",
          "the place of one of several NaN"),
    _each("prior_box", "aspect_ratios and len({*aspect_ratios, 1.0}) <= len(aspect_ratios)",
          "a ratio that is there twice counts once, as in Paddle"),
    # integers and floats
    _each("scale clip mean", "'int' in dtype and np.any(np.abs(x.numpy().astype('float64')) > 2.0 ** 50)",
          "integers that a double does not hold, or whose sum an integer does not"),
    _each("round", "'int' in dtype and decimals < 0 and largest(arguments) > 2.0 ** 53", "integers that a double, in which the expression rounds, does not hold"),
    _each("*", "'int' in dtype and 'ours np.float32' in fault and largest(arguments) > 2.0 ** 24",
          "integers become float32 first; in double by the expression"),
    _each("*", "'ours np.float16' in fault and largest(arguments) > 65504",
          "integers beside float16 become float16 first, which may be infinite"),
    _each("csr_dots csr_matmul coo_matmul conv_input_grad conv_weight_grad", "mixed and 'complex' in fault",
          "the expression has the dtype of one operand"),
    _each(_CONVOLUTIONS, "largest(arguments) > (65504 if 'float16' in fault else 2.0 ** 53)",
          "integers beside floats become floats first, infinite in float16; by the expression they wrap before"),
    _each("scale", "'int' in dtype and abs(scale) * largest(arguments) + abs(bias) > np.iinfo(dtype).max", "an integer that the dtype does not hold"),
    _each("scale", "'int' in dtype and not (np.isfinite(scale) and np.isfinite(bias))", "an integer that is infinite"),
    # rounding
    _each("least_squares pseudo_inverse", "is_conditioned(x)", "the error that the condition of the matrix allows"),
    _each("recurrent_grad", "are_beside", "the slope of a gate near 1"),
    _each("cross_entropy", "dtype == 'float32' and is_rounded(reach(input))", "a loss is a difference of scores"),
    _each("roi_align", "aligned and sampling_ratio <= 0 and loses_sizes(boxes, spatial_scale)",
          "the size of a box that is lost in float32 decides how many samples there are"),
    _each("sinc", "'complex' not in dtype and np.all(values(x)[wrong[0]] % 1 == 0) and not results[0][wrong[0]].any()",
          "the sine of half turns is 0; by the expressions that of a rounded pi"),
    # references that are differences or overflow on the way
    _each("grid_sample_grad_x", "mode == 'nearest' and has_halves(grid, x_shape, align_corners)",
          "half way between pixels the even one is the nearest here, in PyTorch and in Paddle; the expression rounds up"),
    _each("grid_sample", "mode == 'nearest' and 'PyTorch' not in fault and 'Paddle' not in fault and has_halves(grid, x.shape, align_corners)",
          "the same"),
    _each("grid_sample_grad_grid", "mode == 'nearest' and not np.any(results[0])", "a difference over the middle between pixels"),
    _each("grid_sample_grad_grid", "are_on_edges", "on the edge of a pixel or image, where both sides differ; ours has Paddle's"),
    _each("conv_fused", "dtype == 'float16' and ours_overflows and reach(x) * reach(weight) > 65504 / weight[0].size",
          "the convolution alone is no float16, as where its parts are called one by one"),
    _each("embedding_renorm_ lp_pool", "norm_type == float('inf')", "the expression sums powers"),
    _each("gammainc_order", "order > 1 or (order and np.any(values(x) < 0.05))",
          "the reference is a first difference, whose points may be below 0"),
    _each("gammainc_order", "order == 1 and are_close", "the digits of a difference"),
    _each("gammainc gammaincc", "np.any((x.numpy() < 1e-300) & (x.numpy() > 0))", "SciPy takes a subnormal number for 0"),
    _each("matrix_exp", "ours_overflows and reach(x) * x.shape[-1] > 88",
          "the exponential is infinite; in the expression and in PyTorch infinities of both signs meet on the way"),
    _each("prod", "special and overflows_on_the_way(x)", "the order of the products decides what overflows"),
    _each("tanhshrink_grad", "reference_is_nan and not is_finite(grad)", "an infinite gradient times a square that underflows"),
    _each("p_norm", "porder not in (1, 2) and ours_overflows and max(reach(x), 1.0) ** porder * x.size > largest_of(x)",
          "a power that is no number of the dtype"),
    _each("pairwise_distance", "p == 2 and is_euclidean_norm(values(x).astype(np.longdouble) - values(y) + epsilon, [-1], keepdim, results)",
          "squares that leave the range of the references"),
    _each("root_sum_square", "is_euclidean_norm(x, axis, keepdim, results)", "squares that leave the range of the references"),
    _each("rnnt_grad", "not np.isfinite(fastemit_lambda)", "an infinite weight of paths"),
    _each("quantile_along", "reference_is_nan and not is_finite(x) and np.isinf(results[0][wrong[0]]).all()",
          "the limit beside an infinite element; the formulas have infinity - infinity"),
    _each("ldexp", "reference_is_nan and reach(y) > 1000", "2 ** y overflows in the expression, and times 0 is NaN"),
    _each("log_sigmoid", "'complex' in dtype and is_rounded(1.0)", "the expression adds 1 and loses all digits"),
    _each("i0 i1", "np.any((np.abs(values(x)) > 700) & (np.abs(values(x)) < 714))", "SciPy's and PyTorch's exponential overflows before it is divided by the root"),
    _each("*", "wild and 'PyTorch' not in fault and 'Paddle' not in fault and reference_overflows", "the formula overflows on the way"),
    # 0 * infinity, which is NaN: whether it is part of a sum depends on how the sum is computed
    _each(_CONVOLUTIONS, "special and (reference_is_nan or ours_is_nan) and not is_finite(*tensors)",
          "padding is left out, or is a zero that is multiplied"),
    _each("resample grid_sample grid_sample_grad_x grid_sample_grad_grid roi_align roi_align_grad", "special and (reference_overflows or ours_is_nan)",
          "a pixel of weight 0 is left out"),
    _each("deform_conv2d", "special and neither_is_finite and not is_finite(weight)", "a pixel of weight 0 is left out"),
    _each("csr_dots csr_matmul csr_product coo_matmul", "special and reference_is_nan", "what is not stored is not multiplied"),
    _each("least_squares", "special and (neither_is_finite or reach(y) > 1e37)", "infinities cancel in some orders of the products"),
    _each("least_squares", "special and rcond >= 1 and reference_is_nan and not is_finite(y)", "what is cut is not multiplied"),
    _each("householder_product", "special and (reference_is_nan or ours_is_nan) and not is_finite(x)", "a zero of a reflection is left out"),
    _each("recurrent", "special and reference_is_nan and not is_finite(weight, hidden, cell)",
          "a gate that is 0 but for the smallest float32, times infinity"),
    _each("attention", "special and not wrong[0].any() and neither_is_finite", "the logarithm of a sum that is NaN or infinite"),
    _each("ctc", "special and not is_finite(log_probs) and neither_is_finite", "a sum over paths that are NaN or infinite"),
    # the limit at infinity, where the formulas have inf - inf or inf / inf
    _each("mish mish_grad silu swish silu_grad sigmoid softplus stanh", "reference_is_nan and not is_finite(x)", "the limit at infinity"),
    _each("dice_loss", "reference_is_nan and not is_finite(input)", "the limit at infinity; the expression has 0 * infinity"),
    _each("pow_grad", "reference_is_nan and np.any(values(x) == 0) and np.any(values(y) == 0)", "x ** 0 is 1 everywhere"),
    _each("reciprocal rsqrt", "reference_is_nan and not is_finite(x)", "the limit at infinity, which complex division misses"),
    _each("divide", "'complex' in fault and reference_is_nan and not is_finite(y) and not results[0][wrong[0]].any()",
          "the limit at infinity, which complex division misses"),
    _each("gelu_grad", "approximate and reference_is_nan and not is_finite(grad)",
          "the slope far below 0, where 1 + tanh of the expression is 0, times infinity"),
    _each("cross_entropy", "reference_is_nan and not is_finite(input)", "the limit at infinity; the expression has 0 * infinity"),
    _each("logaddexp_grad", "reference_is_nan and not is_finite(x, y)", "the limit at infinity"),
    # statistics of float32 whose squares or scales overflow
    _each("solve_core solve triangular_solve triangular_solve_core lu_solve cholesky_solve", "special and reach(y) > 1e30",
          "a product on the way is no float32"),
    _each("attention", "special and reach(query) * reach(key) > 1e37", "a score beyond the numbers that the search for the largest one starts with"),
    _each(f"mm linear einsum adaptive_avg_pool adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d avg_pool1d avg_pool2d avg_pool3d {_CONVOLUTIONS}", "special and ours_overflows and max(reach(t) for t in tensors) > 1e36",
          "a partial sum that is no float32; which of them are depends on their order"),
    _each("cosine_embedding_loss", "squares_overflow(input1, input2)", "the square is no float32"),
    _each("rule_outer rule_matmul sampled_matmul", "special and max(reach(t) for t in tensors) > 1e36", "a sum that is no float32"),
    _each("softsign softsign_grad", "'complex64' in dtype and squares_overflow(x)", "the square of the modulus is no float32"),
    _each("std var var_mean", "ours_overflows and squares_overflow(x)", "the squares are no numbers of the dtype"),
    _each(_NORMS, "squares_overflow(x)", "the same"),
    _each(_NORMS, "special and reach(weight) > 1e35", "the weight times the inverse deviation is no float32"),
    _each("fft_c2c fft_r2c fft_c2r", "is_rounded(reach(x))", "small results beside large elements"),
    _each("cosine_similarity", "dtype == 'float64' and (squares_overflow(x1) or squares_overflow(x2))", "squares that leave the range of the references"),
    _each("fft_c2c fft_r2c fft_c2r", "special and reach(x) > 1e36", "the sum of a line is no float32"),
    _each("fft_c2c fft_r2c fft_c2r", "special and not is_finite(x) and neither_is_finite", "which part is infinite and which NaN"),
    _each("label_smooth", "special and reach(label) > 1e36", "the number of classes times a label is no float32"),
    _each("euclidean_pairs", "squares_overflow(x, y) or not is_finite(x, y)",
          "the squares are no float32; their sums are part of a product of matrices"),
    # PyTorch alone has a result there
    _each("max_pool1d max_pool2d max_pool3d", "ceil_mode and fault.startswith('PyTorch differs: shape')",
          "windows that begin in the padding at the end, which PyTorch leaves out and Paddle does not"),
    _each("conv conv1d conv2d conv3d", "weight.shape[1] == 0", "without channels the bias is left; PyTorch has no result then"),
)


def reason(judged, fault: str) -> str | None:
    """Why the difference is meant, if it is."""
    call = judged.call
    names = {**dict(zip(call.record.parameters, judged.args)), **_WORDS, "dtype": call.dtype, "special": call.special,
             "wild": call.wild, "results": judged.results or [],
             "fault": fault, "arguments": judged.args, "tensors": tensors_of(judged.args),
             "wrong": judged.wrong, "mixed": call.mixed,
             "are_close": conditions.all_wrong(judged, lambda ours, w: np.isclose(ours, w, rtol=1e-5)),
             "are_beside": call.record.name == "recurrent_grad" and conditions.are_beside(judged),
             "are_nowhere": call.record.name in ("grid_sample", "grid_sample_grad_grid") and conditions.are_nowhere(judged),
             "are_on_edges": call.record.name == "grid_sample_grad_grid" and conditions.are_on_edges(judged),
             "is_conditioned": lambda matrix: conditions.is_conditioned(judged, matrix),
             "is_rounded": lambda size: conditions.all_wrong(
                 judged, lambda ours, w: np.abs(ours - w) <= 4 * conditions.EPSILON[ours.dtype.name] * size),
             "reference_is_nan": conditions.all_wrong(judged, lambda _, w: np.isnan(w)),
             "reference_overflows": conditions.all_wrong(judged, lambda _, w: ~np.isfinite(w)),
             "ours_overflows": conditions.all_wrong(judged, lambda ours, _: ~np.isfinite(ours)),
             "ours_is_nan": conditions.all_wrong(judged, lambda ours, _: np.isnan(ours)),
             "neither_is_finite": conditions.all_wrong(judged, lambda ours, w: ~np.isfinite(ours) & ~np.isfinite(w))}
    for name in (call.record.inplace_of or call.record.name, "*"):
        for where, why in KNOWN.get(name, ()):
            if eval(where, names):  # the table is ours
                return why
    return None
