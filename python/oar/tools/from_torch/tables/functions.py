"""Functions of ``torch``, ``torch.nn.functional`` and small modules."""

from __future__ import annotations

TORCH = """
abs acos acosh add addmm all allclose amax amin any argmax argmin argsort asin asinh atan atan2 atanh baddbmm bernoulli bincount
bitwise_and bitwise_not bitwise_or bitwise_xor bmm broadcast_to bucketize cdist ceil chunk clone complex conj cos cosh count_nonzero
cross cummax cummin cumprod cumsum deg2rad diag diag_embed diagonal diff digamma dist dot einsum empty empty_like eq erf erfinv exp
expm1 eye flatten flip floor floor_divide fmax fmin frac full full_like gather gcd ge gt heaviside hypot imag index_add index_select
inverse is_complex is_floating_point is_tensor isclose isfinite isin isinf isnan kron kthvalue lcm le lerp lgamma linspace log log10
log1p log2 logaddexp logical_and logical_not logical_or logical_xor logit logspace logsumexp lt masked_fill masked_select matmul maximum
mean meshgrid minimum mm mode moveaxis multinomial mv nan_to_num nanmean nansum ne neg nonzero norm normal ones ones_like outer
permute poisson polar pow prod quantile rad2deg rand_like randn_like real reciprocal remainder renorm repeat_interleave reshape roll
rot90 round rsqrt scatter scatter_add searchsorted sgn sigmoid sign sin sinh softmax sqrt square squeeze stack std sum t take tan tanh
tensordot tile topk trace transpose trapezoid tril tril_indices triu triu_indices trunc unbind unflatten unique_consecutive unsqueeze
var view_as_complex view_as_real vstack hstack where zeros zeros_like as_tensor asarray from_numpy swapaxes tensor_split narrow
Size finfo iinfo get_default_dtype set_default_dtype set_num_threads get_num_threads is_grad_enabled enable_grad no_grad
set_grad_enabled Generator device bool bfloat16 float16 float32 float64 int8 int16 int32 int64 uint8 complex64 complex128 inf nan pi e
Tensor[call] -> oar.FloatTensor
Tensor -> oar.Tensor
float -> oar.float32
double -> oar.float64
half -> oar.float16
long -> oar.int64
int -> oar.int32
short -> oar.int16
cfloat -> oar.complex64
cdouble -> oar.complex128
FloatTensor DoubleTensor HalfTensor IntTensor LongTensor BoolTensor
inference_mode(mode!) -> oar.no_grad
manual_seed -> oar.seed
det -> oar.linalg.det
cov -> oar.linalg.cov
tensor(data | dtype device=place requires_grad=stop_gradient@negate pin_memory!) -> oar.to_tensor
rand(* generator?) -> oar.rand
randn(* generator?) -> oar.randn
randperm(* generator? device! dtype) -> oar.randperm
randint[2](| high size=shape generator? dtype device! requires_grad! +low=0) -> oar.randint
randint(low high size=shape generator? | dtype device! requires_grad!) -> oar.randint
arange(* device requires_grad dtype) -> oar.arange
cat -> oar.concat
concat -> oar.concat
concatenate -> oar.concat
clamp -> oar.clip
clip -> oar.clip
mul -> oar.multiply
multiply -> oar.multiply
div -> oar.divide
divide -> oar.divide
sub -> oar.subtract
subtract -> oar.subtract
true_divide -> oar.divide
negative -> oar.neg
ger -> oar.outer
swapdims -> oar.swapaxes
movedim -> oar.moveaxis
take_along_dim -> oar.take_along_axis
relu -> oar.nn.functional.relu
selu -> oar.nn.functional.selu
celu -> oar.nn.functional.celu
log_softmax -> oar.nn.functional.log_softmax
cosine_similarity -> oar.nn.functional.cosine_similarity
dropout -> oar.nn.functional.dropout
max[1] -> oar.max
max -> oar.compat.max
min[1] -> oar.min
min -> oar.compat.min
sort -> oar.compat.sort
split -> oar.compat.split
median -> oar.compat.median
nanmedian -> oar.compat.nanmedian
unique -> oar.compat.unique
equal -> oar.compat.equal
slogdet -> oar.compat.slogdet
numel(input) = {input}.size
save[obj:module](obj f=path | pickle_module! pickle_protocol!) -> oar.save ; Oar saves states, not whole models: save model.state_dict()
save(obj f=path | pickle_module! pickle_protocol! _use_new_zipfile_serialization!) -> oar.save
load(f=path | map_location! weights_only! pickle_module! mmap!) -> oar.load
compile(model=function | fullgraph! dynamic! backend! mode! options! disable!) -> oar.jit.to_static
autocast[device_type='cpu'](device_type! | dtype=dtype:'bfloat16' enabled=enable cache_enabled!) -> oar.amp.auto_cast
autocast(device_type! dtype enabled=enable cache_enabled!) -> oar.amp.auto_cast
vmap(func in_dims=in_axes out_dims=out_axes | randomness! chunk_size?) -> oar.func.vmap
"""

FUNCTIONAL = """
celu conv1d conv2d conv3d elu embedding fold gelu glu hardshrink hardsigmoid hardswish hardtanh logsigmoid mish normalize pixel_shuffle
pixel_unshuffle relu6 selu sigmoid silu softplus softshrink softsign tanh tanhshrink
cosine_similarity pairwise_distance layer_norm group_norm
one_hot(tensor=x num_classes)
log_softmax(input dim | _stacklevel! dtype)
gumbel_softmax(logits=x tau=temperature hard | eps! dim=axis)
relu(input inplace!)
leaky_relu(input negative_slope inplace!)
elu(input alpha inplace!)
silu(input inplace!)
prelu(input weight)
dropout(input p training | inplace!) -> oar.nn.functional.dropout
dropout2d(input p training | inplace!)
linear -> oar.compat.nn.functional.linear
pad -> oar.compat.nn.functional.pad
softmax(input dim | _stacklevel! dtype)
unfold -> oar.compat.nn.functional.unfold
scaled_dot_product_attention -> oar.compat.nn.functional.scaled_dot_product_attention
cross_entropy(input label=label target=label weight | size_average? ignore_index reduce? reduction label_smoothing +axis=1)
nll_loss(input target weight | size_average? ignore_index reduce? reduction)
mse_loss(input target | size_average? reduce? reduction weight?)
l1_loss(input target | size_average? reduce? reduction weight?)
smooth_l1_loss(input target | size_average? reduce? reduction beta?1.0)
huber_loss(input target reduction delta | weight?) -> oar.nn.functional.smooth_l1_loss
kl_div(input target | size_average? reduce? reduction log_target)
binary_cross_entropy(input target weight | size_average? reduce? reduction)
binary_cross_entropy_with_logits(input=logit target=label weight | size_average? reduce? reduction pos_weight)
margin_ranking_loss(input1=input input2=other target=label | margin size_average? reduce? reduction)
cosine_embedding_loss triplet_margin_loss
interpolate(input size scale_factor mode align_corners | recompute_scale_factor? antialias?False)
max_pool1d(input kernel_size stride padding | dilation?1 ceil_mode return_indices=return_mask)
max_pool2d(input kernel_size stride padding | dilation?1 ceil_mode return_indices=return_mask)
max_pool3d(input kernel_size stride padding | dilation?1 ceil_mode return_indices=return_mask)
avg_pool1d(input kernel_size stride padding | ceil_mode count_include_pad=exclusive@negate:False/padding)
avg_pool2d(input kernel_size stride padding ceil_mode | count_include_pad=exclusive@negate:False/padding divisor_override)
avg_pool3d(input kernel_size stride padding ceil_mode | count_include_pad=exclusive@negate:False/padding divisor_override)
adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d
adaptive_max_pool1d(input output_size | return_indices=return_mask)
adaptive_max_pool2d(input output_size | return_indices=return_mask)
batch_norm(input running_mean running_var weight bias training momentum@complement eps)
grid_sample(input grid mode padding_mode align_corners=align_corners:False)
affine_grid(theta size=out_shape align_corners=align_corners:False)
"""

LINALG = """
cholesky cond cross det eig eigh eigvals eigvalsh inv lstsq matrix_norm matrix_power matrix_rank multi_dot norm pinv qr solve svd svdvals
vector_norm
slogdet -> oar.compat.slogdet
"""
FFT = "fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn fftfreq rfftfreq fftshift ifftshift"
CUDA = """
is_available device_count current_device get_device_name empty_cache synchronize manual_seed manual_seed_all max_memory_allocated
memory_allocated
"""
FUNC = """
vmap(func in_dims=in_axes out_dims=out_axes | randomness! chunk_size?)
grad jvp vjp
"""
AUTOGRAD = """
grad(outputs inputs grad_outputs retain_graph create_graph | only_inputs allow_unused is_grads_batched?False materialize_grads?False) -> oar.grad
Function -> oar.autograd.PyLayer
set_detect_anomaly -> oar.autograd.detect_anomaly
detect_anomaly
Variable(data | requires_grad=stop_gradient@negate volatile!) -> oar.to_tensor
"""
INIT = """
calculate_gain constant_ dirac_ eye_ normal_ ones_ orthogonal_ trunc_normal_ uniform_ zeros_
xavier_normal_(tensor gain | generator?)
xavier_uniform_(tensor gain | generator?)
kaiming_normal_(tensor a mode nonlinearity | generator?)
kaiming_uniform_(tensor a mode nonlinearity | generator?)
xavier_normal -> oar.nn.init.xavier_normal_
xavier_uniform -> oar.nn.init.xavier_uniform_
kaiming_normal -> oar.nn.init.kaiming_normal_
kaiming_uniform -> oar.nn.init.kaiming_uniform_
"""
