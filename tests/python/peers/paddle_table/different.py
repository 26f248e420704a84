"""Why a result differs from Paddle's: op -> [(what, where, why)], see peers/samples.py.

docs/conformance.md has the same for users."""

from __future__ import annotations

Reasons = dict[str, list[tuple[str, str, str]]]


def _each(ops: str, what: str, where: str, why: str) -> Reasons:
    return {op: [(what, where, why)] for op in ops.split()}


def _joined(*parts: Reasons) -> Reasons:
    found: Reasons = {}
    for part in parts:
        for op, reasons in part.items():
            found.setdefault(op, []).extend(reasons)
    return found


# On the samples of the registry.
DIFFERENT = _joined(
    # derivatives; expressions.CONSTANT has those that Paddle leaves out
    _each("pow prod", "gradients", "'complex' in x.dtype.name", "Paddle forgets the conjugate"),
    _each("prod", "gradients", "np.any(x.numpy() == 0)", "Paddle divides the product by the element: NaN at 0"),
    _each("index_fill index_put", "gradients", "True", "a value that another one overwrites has no gradient here"),
    _each("put_along_axis", "gradients", "not broadcast and values.ndim > 0 and values.shape != indices.shape",
          "Paddle's gradient of larger values has the shape of the indices"),
    _each("unfold as_strided", "gradients", "True", "Paddle adds only one of the windows that overlap"),
    _each("avg_pool1d avg_pool2d avg_pool3d", "gradients", "ceil_mode and not exclusive",
          "Paddle divides by another count in the gradient than in the value"),
    _each("group_norm", "gradients", "x.ndim == 2", "wrong in Paddle; ours is PyTorch's"),
    _each("cdist", "gradients", "p == float('inf')", "elements that tie share the gradient here"),
    _each("p_norm", "gradients", "porder == float('inf')", "elements that tie share the gradient here"),
    _each("cross_entropy soft_cross_entropy", "gradients", "True",
          "Paddle takes it that the probabilities of a row sum to 1; here the derivative is exact"),
    _each("mode_along crop slice_put", "gradients", "True",
          "Paddle's gradient is not filled for 0-d and empty operands"),
    _each("softsign", "gradients", "'complex' in x.dtype.name", "Paddle has the derivative of real numbers"),
    _each("cholesky_solve", "gradients", "True", "Paddle's gradient depends on the triangle that the value does not read"),
    _each("eigh eigvalsh", "gradients", "UPLO == 'U'", "Paddle's is not Hermitian; ours is PyTorch's"),
    _each("eig", "gradients", "x.ndim > 2", "Paddle's is right for the first matrix only; ours is PyTorch's"),
    _each("eigvals", "gradients", "True", "Paddle has 0"),
    _each("svd", "gradients", "'complex' in x.dtype.name", "Paddle forgets that the phases of both vectors move together"),
    _each("lu_solve", "gradients", "trans != 'N' or 'complex' in b.dtype.name",
          "Paddle takes the factors of a transposed matrix for those of the matrix, and forgets conjugates; ours is PyTorch's"),
    _each("det", "gradients", "np.any(np.linalg.matrix_rank(x.numpy()) == x.shape[-1] - 1)",
          "the cofactors of a singular matrix; Paddle has 0"),
    _each("slogdet_parts", "gradients", "'complex' in x.dtype.name", "Paddle leaves out the direction"),
    _each("triangular_solve", "gradients", "unitriangular", "Paddle has a gradient by the diagonal, which is not read"),
    # values
    _each("cholesky_inverse", "values", "'complex' in x.dtype.name", "Paddle forgets the conjugate"),
    _each("lu_solve", "values", "trans == 'C' and 'complex' in b.dtype.name", "Paddle transposes without the conjugate"),
    _each("pseudo_inverse", "values", "'complex' in x.dtype.name and not hermitian", "Paddle forgets the conjugate"),
    _each("instance_norm", "values", "True", "Paddle ignores data_format and the running statistics"),
    _each("affine_grid", "values", "1 in out_shape", "Paddle divides by 0 along an axis of size 1"),
    _each("gammainc gammaincc", "values", "True", "Paddle does not broadcast, and loses all digits of float32"),
    _each("as_strided", "values", "offset != 0", "Paddle counts the offset in bytes"),
    _each("topk_along", "values", "True", "which of equal elements is meant is nobody's promise"),
    _each("sum", "values", "x.dtype.name in ('float16', 'bfloat16')",
          "Paddle sums 16-bit floats first and then casts; it casts other floats first, as we do"),
    _each("round", "values", "'int' in x.dtype.name", "Paddle does not round integers to tens"),
    _each("scale", "values", "'int' in x.dtype.name",
          "Paddle cuts the fraction off the scale of an integer tensor: 0.5 is 0"),
    # dtypes
    _each("clip", "dtype", "'int' in x.dtype.name", "the public function makes floats of integers before the op"),
    _each("ldexp", "dtype", "True", "16-bit floats stay what they are here"),
    _each("divide", "dtype", "dtype == 'bool'", "a quotient of bools is a float here"),
    _each("bincount", "dtype", "True", "whole weights have whole sums here"),
    _each("eigh eigvalsh", "dtype", "'complex' in x.dtype.name and 0 in x.shape", "eigenvalues of no Hermitian matrix are real, too"),
    _each("reduce_as", "dtype", "x.shape == target.shape", "sums of integers are int64 here, those of one element too"),
)

_LIMIT = "Paddle's formula gives another number, or NaN, at NaN or infinity"
_EMPTY = "0 in x.shape"

# At the edges.
DIFFERENT_AT_EDGES = _joined(
    _each("*", "refused", "'complex' in dtype or '2j' in call", "the function is not defined for complex numbers here"),
    # NaN and infinities
    _each("relu log_sigmoid softshrink thresholded_relu sinc frexp clip sgn hypot logaddexp heaviside logsumexp "
          "logcumsumexp mode unique argmax argmin quantile nanquantile", "values", "special", _LIMIT),
    _each("leaky_relu hardswish mish abs hardshrink digamma celu selu remainder mod floor_mod prod nanquantile pow "
          "copysign", "gradients", "special", _LIMIT),
    # points without a derivative, or outside the domain
    _each("erfinv", "values", "True", "outside of [-1, 1] there is no value: NaN here, infinity in Paddle"),
    _each("acosh i0e sqrt celu frexp", "gradients", "True",
          "Paddle's formula is wrong at 0, for large numbers or outside of the domain"),
    _each("hypot", "gradients", "True", "at (0, 0) Paddle divides 0 by 0; the gradient is 0 here"),
    _each("pow", "values", "'complex' in dtype", "0 to the power of 0 is 1 here, NaN for Paddle's complex numbers"),
    _each("logaddexp", "values", "'0-d' in dtype", "Paddle computes in float32 and then widens"),
    _each("polar", "values", "'float16' in dtype", "Paddle computes 16-bit floats beside integers in float32"),
    _each("hardshrink", "values", "True",
          "Paddle's documentation leaves the threshold itself out, as we do"),
    _each("isclose", "values", "special", "no number is close to infinity here"),
    _each("median nanmedian", "gradients", "True", "of elements that tie, one gets the gradient here"),
    _each("topk kthvalue", "values", "True", "which of equal elements is meant is nobody's promise"),
    # dtypes
    _each("rad2deg deg2rad", "values", "dtype in ('bool', 'uint8', 'int8', 'int16')",
          "small integers become floats here; Paddle multiplies them as they are, and they overflow"),
    _each("sum", "dtype", "dtype in ('uint8', 'int8', 'int16')",
          "small integers are summed as int64 here; Paddle's overflow"),
    _each("var std", "values", "'int' in dtype", "Paddle rounds the mean of integers first"),
    _each("nanmedian", "values", "'int' in dtype", "the median of integers is a float here, as median's is"),
    _each("atan2", "dtype", "'int' in dtype", "integers become the default float in every function of floats"),
    _each("polar", "dtype", "'0-d' in dtype", "a 0-d float64 radius or angle widens the result here"),
    _each("ldexp", "dtype", "True", "float16 and bfloat16 stay what they are here"),
    _each("divide /", "dtype", "'bool' in dtype", "a quotient of bools is a float here"),
    _each("& | ^", "values", "dtype == 'bool'",
          "a number makes integers of bools here; Paddle makes a bool of the number"),
    _each("neg scale mean copysign", "refused", "'bool' in dtype",
          "bools have no arithmetic of signs here: cast them first"),
    _each("gcd lcm", "refused", "True", "only integers have a greatest common divisor here"),
    _each("pow", "refused", "True", "0 to a negative power is an error for integers"),
    # 0-d and empty
    _each("// / **", "values", "x.ndim == 0", "Paddle makes [1] of a 0-d tensor here"),
    _each("argmax argmin normalize", "values", "x.ndim == 0", "Paddle makes [1] of a 0-d tensor here"),
    _each("amax amin argmax argmin mode mean", "refused", _EMPTY,
          "of no elements there is none; Paddle's result is not filled"),
    _each("quantile nanquantile", "refused", _EMPTY, "of no elements there is none; Paddle gives 0"),
    _each("unique", "values", _EMPTY, "Paddle gives the shape of x instead of [0]"),
    # scripts
    _each("overlapping", "values", "any(w in call for w in ('add_', 'subtract_', 'multiply_', '+='))",
          "Paddle overwrites what it still has to read"),
    # writes before a gradient
    _each("nan_to_num sinc var std", "refused", "True", "the gradient is computed from the operand itself here"),
    _each("conj", "values", "True", "the conjugate of a real tensor is the tensor itself here"),
    _each("gammainc gammaincc", "gradients", "True", "Paddle has no gradient by x"),
)

# Paddle keeps the numbers of these ops, or computes them, in float32.
SINGLE = frozenset((
    "adaptive_avg_pool2d", "adaptive_avg_pool3d", "cdist", "celu", "cross_entropy", "dist", "elu", "exp", "hardsigmoid",
    "hsigmoid_loss", "label_smooth", "local_response_norm", "log_sigmoid", "lp_pool", "multi_margin_loss", "normalize", "p_norm",
    "pairwise_distance", "polar", "renorm", "resample", "selu", "sigmoid", "silu", "softplus", "softshrink", "stanh",
    "swish", "gated_silu",
))
