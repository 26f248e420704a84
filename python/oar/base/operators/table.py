"""The ops of Paddle's inner interfaces that Oar does: names, order, older names and defaults of their arguments.

``Form`` in ``oar.base.operators`` says how a line is read; a line that begins with a space continues the one before.
Ops whose name is ``-`` are there under their older name only. A line replaces an earlier one of the same older name.
"""

LINES = """
abs | x:X -> Out
accuracy | x:Out indices:Indices label:Label -> Accuracy Correct Total
acos | x:X -> Out
acosh | x:X -> Out
adadelta_ adadelta | param:Param grad:Grad avg_squared_grad:AvgSquaredGrad avg_squared_update:AvgSquaredUpdate
    learning_rate:LearningRate master_param:MasterParam rho=0.95 epsilon=1e-06 multi_precision=False -> ParamOut
    AvgSquaredGradOut AvgSquaredUpdateOut MasterParamOut
adagrad_ adagrad | param:Param grad:Grad moment:Moment learning_rate:LearningRate master_param:MasterParam
    epsilon=1e-06 multi_precision=False -> ParamOut MomentOut MasterParamOut
adam_ adam | param:Param grad:Grad learning_rate:LearningRate moment1:Moment1 moment2:Moment2 beta1_pow:Beta1Pow
    beta2_pow:Beta2Pow master_param:MasterParam skip_update:SkipUpdate beta1:beta1|Beta1Tensor=0.9
    beta2:beta2|Beta2Tensor=0.999 epsilon:epsilon|EpsilonTensor=1e-08 lazy_mode=False
    min_row_size_to_use_multithread=1000 multi_precision=False use_global_beta_pow=False -> ParamOut Moment1Out
    Moment2Out Beta1PowOut Beta2PowOut MasterParamOut
adamw_ adamw | param:Param grad:Grad learning_rate:LearningRate moment1:Moment1 moment2:Moment2 beta1_pow:Beta1Pow
    beta2_pow:Beta2Pow master_param:MasterParam skip_update:SkipUpdate beta1:beta1|Beta1Tensor=0.9
    beta2:beta2|Beta2Tensor=0.999 epsilon:epsilon|EpsilonTensor=1e-08 lr_ratio=1.0 coeff=0.01 with_decay=False
    lazy_mode=False min_row_size_to_use_multithread=1000 multi_precision=False use_global_beta_pow=False ->
    ParamOut Moment1Out Moment2Out Beta1PowOut Beta2PowOut MasterParamOut
adamax_ adamax | param:Param grad:Grad learning_rate:LearningRate moment:Moment inf_norm:InfNorm beta1_pow:Beta1Pow
    master_param:MasterParam beta1=0.9 beta2=0.999 epsilon=1e-08 multi_precision=False -> ParamOut MomentOut
    InfNormOut MasterParamOut
add elementwise_add | x:X y:Y -> Out
add_n sum | inputs[]:X -> Out
addmm | input:Input x:X y:Y beta:Beta=1.0 alpha:Alpha=1.0 -> Out
affine_grid | input:Theta>theta output_shape:output_shape|OutputShape=[]>out_shape align_corners=True -> Output
all reduce_all | x:X axis:dim=[]? keepdim:keep_dim=False -> Out
allclose | x:Input y:Other rtol:rtol|Rtol=1e-05 atol:atol|Atol=1e-08 equal_nan=False -> Out
amax reduce_amax | x:X axis:dim=[]? keepdim:keep_dim=False -> Out
amin reduce_amin | x:X axis:dim=[]? keepdim:keep_dim=False -> Out
angle | x:X -> Out
any reduce_any | x:X axis:dim=[]? keepdim:keep_dim=False -> Out
arange range | start:Start end:End step:Step dtype place=None> -> Out
argmax arg_max | x:X axis keepdims=False flatten=False dtype='int64' -> Out
argmin arg_min | x:X axis keepdims=False flatten=False dtype='int64' -> Out
argsort | x:X axis=-1 descending=False stable=False -> Out Indices
as_complex | x:X -> Out
as_real | x:X -> Out
as_strided | input>x dims=[]>shape stride=[] offset=0 -> out
asgd_ | param grad learning_rate d y n master_param multi_precision=False -> param_out d_out y_out master_param_out
asin | x:X -> Out
asinh | x:X -> Out
assign | x:X -> Out
assign_out_ | x output -> out
assign_value | shape dtype='float32' values=[] place=None> -> Out
assign_value_ | output shape dtype values place=None> -> out
atan | x:X -> Out
atan2 | x:X1 y:X2 -> Out
atanh | x:X -> Out
batch_norm | x:X mean:Mean variance:Variance scale:Scale bias:Bias is_test=False momentum=0.9 epsilon=1e-05
    data_format:data_layout='NCHW' use_global_stats=False trainable_statistics=False -> Y MeanOut VarianceOut
    SavedMean SavedVariance ReserveSpace
bce_loss | input:X label:Label -> Out
bernoulli | x:X -> Out
bicubic_interp bicubic_interp_v2 | x:X out_size:OutSize size_tensor[]:SizeTensor scale_tensor:Scale
    data_format:data_layout='NCHW' out_d=0 out_h=0 out_w=0 scale=[] interp_method='bilinear' align_corners=True
    align_mode=1 -> Out
bilinear bilinear_tensor_product | x:X>x1 y:Y>x2 weight:Weight bias:Bias -> Out
bilinear_interp bilinear_interp_v2 | x:X out_size:OutSize size_tensor[]:SizeTensor scale_tensor:Scale
    data_format:data_layout='NCHW' out_d=0 out_h=0 out_w=0 scale=[] interp_method='bilinear' align_corners=True
    align_mode=1 -> Out
bincount | x:X weights:Weights minlength=0 -> Out
binomial | count prob -> out
bitwise_and | x:X y:Y -> Out
bitwise_left_shift | x y is_arithmetic=True -> out
bitwise_not | x:X -> Out
bitwise_or | x:X y:Y -> Out
bitwise_right_shift | x y is_arithmetic=True -> out
bitwise_xor | x:X y:Y -> Out
bmm | x:X y:Y -> Out
box_coder | prior_box:PriorBox prior_box_var:PriorBoxVar=None target_box:TargetBox code_type='encode_center_size'
    box_normalized=True axis=0 variance=[] -> OutputBox
broadcast_tensors | input[]:X -> Out[]
cast | x:X dtype:out_dtype -> Out
ceil | x:X -> Out
celu | x:X alpha=1.0 -> Out
channel_shuffle | x:X groups data_format='NCHW' -> Out
check_finite_and_unscale_ check_finite_and_unscale | x[]:X scale:Scale -> Out[] FoundInfinite
clip | x:X min:min|Min max:max|Max -> Out
clip_by_norm | x:X max_norm -> Out
complex | real:X imag:Y -> Out
concat | x[]:X axis:axis|AxisTensor=0 -> Out
conj | x:X -> Out
conv2d | input:Input>x filter:Filter>weight strides=[1,1]>stride paddings=[0,0]>padding padding_algorithm='EXPLICIT'
    dilations=[1,1]>dilation groups=1 data_format='NCHW' -> Output @ conv2d
conv2d_transpose | x:Input filter:Filter>weight strides=[1,1]>stride paddings=[0,0]>padding output_padding=[]
    output_size=[]? padding_algorithm='EXPLICIT' groups=1 dilations=[1,1]>dilation data_format='NCHW' -> Output @
    conv2d_transpose
conv3d | input:Input>x filter:Filter>weight strides=[1,1,1]>stride paddings=[0,0,0]>padding
    padding_algorithm='EXPLICIT' groups=1 dilations=[1,1,1]>dilation data_format='NCDHW' -> Output @ conv3d
conv3d_transpose | x:Input filter:Filter>weight strides=[1,1,1]>stride paddings=[0,0,0]>padding output_padding=[]
    output_size=[]? padding_algorithm='EXPLICIT' groups=1 dilations=[1,1,1]>dilation data_format='NCHW' -> Output @
    conv3d_transpose
copysign | x y -> out
cos | x:X -> Out
cosh | x:X -> Out
crop crop_tensor | x:X shape:shape|Shape|ShapeTensor=[]? offsets:offsets|Offsets|OffsetsTensor=[]? -> Out
cross | x:X y:Y axis:dim=9 -> Out
cross_entropy_with_softmax softmax_with_cross_entropy | input:Logits label:Label soft_label=False use_softmax=True
    numeric_stable_mode=True ignore_index=-100 axis=-1 -> Softmax Loss
cummax | x axis=-1 dtype='int64' -> out indices
cummin | x axis=-1 dtype='int64' -> out indices
cumprod | x:X dim exclusive=False reverse=False -> Out
cumsum | x:X axis=-1 flatten=False exclusive=False reverse=False -> Out
decayed_adagrad | param:Param grad:Grad moment:Moment learning_rate:LearningRate decay=0.95 epsilon=1e-06 ->
    ParamOut MomentOut
deformable_conv | x:Input offset:Offset filter:Filter>weight mask:Mask strides=[1,1]>stride paddings=[0,0]>padding
    dilations=[1,1]>dilation deformable_groups=1 groups=1 im2col_step=64> -> Output @ deform_conv2d
- deformable_conv_v1 | x:Input offset:Offset filter:Filter>weight strides=[1,1]>stride paddings=[0,0]>padding
    dilations=[1,1]>dilation deformable_groups=1 groups=1 im2col_step=64> -> Output @ deform_conv2d
depthwise_conv2d | input:Input>x filter:Filter>weight strides=[1,1]>stride paddings=[0,0]>padding
    padding_algorithm='EXPLICIT' groups=1 dilations=[1,1]>dilation data_format='NCHW' -> Output @ conv2d
depthwise_conv2d_transpose | x:Input filter:Filter>weight strides=[1,1]>stride paddings=[0,0]>padding
    output_padding=[] output_size=[]? padding_algorithm='EXPLICIT' groups=1 dilations=[1,1]>dilation
    data_format='NCHW' -> Output @ conv2d_transpose
diag diag_v2 | x:X offset=0 padding_value=0.0 -> Out
diag_embed | input:Input offset=0 dim1=-2 dim2=-1 -> Out
diagonal | x:Input offset=0 axis1=0 axis2=1 -> Out
digamma | x:X -> Out
dirichlet | alpha:Alpha -> Out
dist | x:X y:Y p=2.0 -> Out
distribute_fpn_proposals | fpn_rois:FpnRois rois_num:RoisNum=None min_level max_level refer_level refer_scale
    pixel_offset=True -> MultiFpnRois[] MultiLevelRoIsNum[] RestoreIndex
- distribute_fpn_proposals | fpn_rois:FpnRois rois_num:RoisNum=None min_level max_level refer_level refer_scale
    pixel_offset=True -> MultiFpnRois[] RestoreIndex MultiLevelRoIsNum[] @ vision.ops.distribute_fpn_proposals
divide elementwise_div | x:X y:Y -> Out
dot | x:X y:Y -> Out
dpsgd | param:Param grad:Grad learning_rate:LearningRate clip=10.0 batch_size=16.0 sigma=1.0 seed=0 -> ParamOut
dropout | x:X seed_tensor:Seed=None p:dropout_prob=0.5 is_test=False
    mode:dropout_implementation='downgrade_in_infer' seed=0 fix_seed=False -> Out Mask
einsum | x[]:Operands equation -> Out InnerCache[] XShape[]
elementwise_pow | x:X y:Y -> Out @ pow
elu | x:X alpha=1.0 -> Out
embedding lookup_table_v2 | x:Ids weight:W padding_idx=-1 sparse:is_sparse=False -> Out
empty | shape:shape|ShapeTensor|ShapeTensorList dtype='float32' place=None> -> Out
empty_like | x dtype=None place=None> -> out
equal | x:X y:Y -> Out
equal_all | x:X y:Y -> Out
erf | x:X -> Out
erfinv | x:X -> Out
exp | x:X -> Out
expand expand_v2 | x:X shape:shape|Shape|expand_shapes_tensor=[] -> Out
expand_as expand_as_v2 | x:X y:Y target_shape=[] -> Out
expm1 | x:X -> Out
exponential_ exponential | x:X lam:lambda -> Out
eye | num_rows num_columns dtype='float32' place=None> -> Out
fill fill_any | x:X value=0.0 -> Out
fill_diagonal | x:X value=0.0 offset=0 wrap=False -> Out
fill_diagonal_tensor | x:X y:Y offset=0 dim1=0 dim2=1 -> Out @ tensor.fill_diagonal_tensor
flatten flatten_contiguous_range | x:X start_axis=1 stop_axis=1 -> Out XShape
flip | x:X axis -> Out
floor | x:X -> Out
floor_divide elementwise_floordiv | x:X y:Y -> Out
fmax elementwise_fmax | x:X y:Y -> Out
fmin elementwise_fmin | x:X y:Y -> Out
fold | x:X output_sizes kernel_sizes strides paddings dilations -> Y
fractional_max_pool2d | x output_size kernel_size=[0,0] random_u=0.0 return_mask=True -> out mask
fractional_max_pool3d | x output_size kernel_size=[0,0,0] random_u=0.0 return_mask=True -> out mask
frobenius_norm | x:X axis:dim=[] keep_dim=False reduce_all=False -> Out
ftrl | param:Param squared_accumulator:SquaredAccumulator linear_accumulator:LinearAccumulator grad:Grad
    learning_rate:LearningRate l1=0.0 l2=0.0 lr_power=-0.5 -> ParamOut SquaredAccumOut LinearAccumOut
full fill_constant | shape:shape|ShapeTensor|ShapeTensorList value:value|ValueTensor>fill_value dtype='float32'
    place=None> -> Out
full_ | output shape value dtype='float32' place=None> -> out
full_batch_size_like fill_constant_batch_size_like | input:Input shape dtype value input_dim_idx output_dim_idx
    place=None> -> Out
full_int_array | value dtype='float32' place=None> -> out
full_like fill_any_like | x:X value>fill_value dtype=None place=None> -> Out
full_with_tensor | value>fill_value shape dtype='float32' -> out @ full
gammaincc | x y -> out
gammaln | x -> out
gather | x:X index:Index axis:axis|Axis=0 -> Out
gather_nd | x:X index:Index -> Out
gather_tree | ids:Ids parents:Parents -> Out
gaussian gaussian_random | shape:shape|ShapeTensor|ShapeTensorList mean=0.0 std=1.0 seed=0 dtype='float32'
    place=None> -> Out
gaussian_inplace | x mean=0.0 std=1.0 seed=0 -> out
gelu | x:X approximate=False -> Out
generate_proposals generate_proposals_v2 | scores:Scores bbox_deltas:BboxDeltas im_shape:ImShape anchors:Anchors
    variances:Variances pre_nms_top_n:pre_nms_topN=6000 post_nms_top_n:post_nms_topN=1000 nms_thresh=0.5 min_size=0.1
    eta=1.0 pixel_offset=True -> RpnRois RpnRoiProbs RpnRoisNum
greater_equal | x:X y:Y -> Out
greater_than | x:X y:Y -> Out
grid_sample grid_sampler | x:X grid:Grid mode='bilinear' padding_mode='zeros' align_corners=True -> Output
group_norm | x:X scale:Scale>weight bias:Bias epsilon=1e-05 groups=-1>num_groups data_format:data_layout='NCHW' -> Y
    Mean Variance
gumbel_softmax | x:X temperature=1.0 hard=False axis=-1 -> Out
hardshrink hard_shrink | x:X threshold=0.5 -> Out
hardsigmoid hard_sigmoid | x:X slope=0.2 offset=0.5 -> Out
hardswish hard_swish | x:X -> Out
hardtanh brelu | x:X t_min=0.0>min t_max=24.0>max -> Out
heaviside elementwise_heaviside | x:X y:Y -> Out
hinge_loss | logits:Logits labels:Labels -> Loss
histogram | input:X weight:Weight bins=100 min=0 max=0 density=False -> Out
hsigmoid_loss hierarchical_sigmoid | x:X>input label:Label w:W>weight bias:Bias path:PathTable>path_table
    code:PathCode>path_code num_classes=2 is_sparse=False -> Out PreOut W_Out
huber_loss | input:X label:Y delta -> Out Residual
i0 | x -> out
i0e | x -> out
i1 | x -> out
i1e | x -> out
identity_loss | x:X reduction=1 -> Out
imag | x:X -> Out
increment | x:X value=1.0 -> Out
index_add | x:X index:Index add_value:AddValue>value axis=0 -> Out
index_put | x indices[] value accumulate=False -> out
index_sample | x:X index:Index -> Out
index_select | x:X index:Index axis:dim=0 -> Out
index_select_strided | x index axis=0 -> out
instance_norm | x:X scale:Scale>weight bias:Bias epsilon=1e-05>eps -> Y SavedMean SavedVariance
is_empty | x:X -> Out
isclose | x:Input y:Other rtol:rtol|Rtol=1e-05 atol:atol|Atol=1e-08 equal_nan=False -> Out
isfinite isfinite_v2 | x:X -> Out
isinf isinf_v2 | x:X -> Out
isnan isnan_v2 | x:X -> Out
kldiv_loss | x:X>input label:Target reduction='mean' log_target=False -> Loss @ kl_div
kron | x:X y:Y -> Out
kthvalue | x:X k=1 axis=-1 keepdim=False -> Out Indices
l1_norm | x:X -> Out
label_smooth | label:X prior_dist:PriorDist epsilon=0.0 -> Out
lamb_ lamb | param:Param grad:Grad learning_rate:LearningRate moment1:Moment1 moment2:Moment2 beta1_pow:Beta1Pow
    beta2_pow:Beta2Pow master_param:MasterParam skip_update:SkipUpdate weight_decay beta1=0.9 beta2=0.999
    epsilon=1e-06 always_adapt=False multi_precision=False -> ParamOut Moment1Out Moment2Out Beta1PowOut Beta2PowOut
    MasterParamOut
layer_norm | x:X scale:Scale bias:Bias epsilon=1e-05 begin_norm_axis=1 -> Y Mean Variance
leaky_relu | x:X negative_slope:alpha=0.02 -> Out
legacy_matmul matmul | x:X y:Y transpose_x:transpose_X=False transpose_y:transpose_Y=False alpha=1.0 -> Out
legacy_reshape reshape | x:X shape:shape|Shape|ShapeTensor -> Out
lerp | x:X y:Y weight:Weight -> Out
less_equal | x:X y:Y -> Out
less_than | x:X y:Y -> Out
lgamma | x:X -> Out
linear_interp linear_interp_v2 | x:X out_size:OutSize size_tensor[]:SizeTensor scale_tensor:Scale
    data_format:data_layout='NCHW' out_d=0 out_h=0 out_w=0 scale=[] interp_method='bilinear' align_corners=True
    align_mode=1 -> Out
linspace | start:Start stop:Stop number:Num>num dtype place> -> Out
log | x:X -> Out
log10 | x:X -> Out
log1p | x:X -> Out
log2 | x:X -> Out
log_loss | input:Predicted label:Labels epsilon -> Loss
log_softmax | x:X axis=-1 -> Out
logcumsumexp | x:X axis=-1 flatten=False exclusive=False reverse=False -> Out
logical_and | x:X y:Y -> Out
logical_not | x:X -> Out
logical_or | x:X y:Y -> Out
logical_xor | x:X y:Y -> Out
logit | x:X eps=1e-06 -> Out
logsigmoid | x:X -> Out @ log_sigmoid
logspace | start:Start stop:Stop num:Num base:Base dtype place=None> -> Out
logsumexp | x:X axis=[0] keepdim=False reduce_all=False -> Out
lp_pool2d | x kernel_size strides=[1,1] paddings=[0,0] ceil_mode=False exclusive=True data_format='NCHW'
    pooling_type='' global_pooling=False adaptive=False padding_algorithm='EXPLICIT' norm_type=0.0 -> out
margin_cross_entropy | logits:Logits label:Label return_softmax=False ring_id=0 rank=0 nranks=1 margin1=1.0
    margin2=0.5 margin3=0.0 scale=64.0 -> Softmax Loss
masked_select | x:X mask:Mask -> Y
matmul matmul_v2 | x:X y:Y transpose_x:trans_x=False transpose_y:trans_y=False -> Out
matmul_with_flatten mul | x:X y:Y x_num_col_dims=1 y_num_col_dims=1 -> Out
matrix_nms | bboxes:BBoxes scores:Scores score_threshold nms_top_k keep_top_k post_threshold=0.0 use_gaussian=False
    gaussian_sigma=2.0 background_label=0 normalized=True -> Out Index RoisNum
matrix_power | x:X n -> Out
max reduce_max | x:X axis:dim=[]? keepdim:keep_dim=False -> Out
max_pool2d_with_index | x:X kernel_size:ksize strides=[1,1] paddings=[0,0] global_pooling=False adaptive=False
    ceil_mode=False -> Out Mask
max_pool3d_with_index | x:X kernel_size:ksize strides=[1,1,1] paddings=[0,0,0] global_pooling=False adaptive=False
    ceil_mode=False -> Out Mask
maximum elementwise_max | x:X y:Y -> Out
maxout | x:X groups axis=1 -> Out
mean reduce_mean | x:X axis:dim=[]? keepdim:keep_dim=False -> Out
mean_all mean | x:X -> Out @ mean
memcpy | x:X dst_place_type=0> -> Out @ assign
merged_adam_ | param[]:Param grad[]:Grad learning_rate[]:LearningRate moment1[]:Moment1 moment2[]:Moment2
    beta1_pow[]:Beta1Pow beta2_pow[]:Beta2Pow master_param[]:MasterParam beta1=0.9 beta2=0.999 epsilon=1e-08
    multi_precision=False use_global_beta_pow=False -> ParamOut[] Moment1Out[] Moment2Out[] Beta1PowOut[]
    Beta2PowOut[] MasterParamOut[]
merged_momentum_ merged_momentum | param[]:Param grad[]:Grad velocity[]:Velocity learning_rate[]:LearningRate
    master_param[]:MasterParam mu use_nesterov=False regularization_method=[] regularization_coeff=[]
    multi_precision=False rescale_grad=1.0 -> ParamOut[] VelocityOut[] MasterParamOut[]
meshgrid | inputs[]:X -> Out[]
min reduce_min | x:X axis:dim=[]? keepdim:keep_dim=False -> Out
minimum elementwise_min | x:X y:Y -> Out
mish | x:X lambda> -> Out
mode | x:X axis=-1 keepdim=False -> Out Indices
momentum_ momentum | param:Param grad:Grad velocity:Velocity learning_rate:LearningRate master_param:MasterParam mu
    use_nesterov=False regularization_method='' regularization_coeff=0.0 multi_precision=False rescale_grad=1.0 ->
    ParamOut VelocityOut MasterParamOut
multiclass_nms3 | bboxes:BBoxes scores:Scores rois_num:RoisNum=None score_threshold nms_top_k keep_top_k
    nms_threshold=0.3 normalized=True nms_eta=1.0 background_label=0 -> Out Index NmsRoisNum
multinomial | x:X num_samples=1 replacement=False -> Out
multiplex | inputs[]:X index:Ids -> Out
multiply elementwise_mul | x:X y:Y -> Out
mv | x:X vec:Vec -> Out
nadam_ | param grad learning_rate momentum_decay_pow beta2_pow mu_product moment1 moment2 master_param beta1=0.9
    beta2=0.999 epsilon=1e-08 momentum_decay=0.004 multi_precision=False -> param_out momentum_decay_pow_out
    beta2_pow_out mu_product_out moment1_out moment2_out master_param_out
nanmedian | x:X axis=[]? keepdim=True mode='avg' -> Out MedianIndex
nearest_interp nearest_interp_v2 | x:X out_size:OutSize size_tensor[]:SizeTensor scale_tensor:Scale
    data_format:data_layout='NCHW' out_d=0 out_h=0 out_w=0 scale=[] interp_method='bilinear' align_corners=True
    align_mode=1 -> Out
nextafter | x y -> out
nll_loss | input:X label:Label weight:Weight ignore_index=-100 reduction='mean' -> Out Total_weight
nms | x:Boxes>boxes threshold:iou_threshold=1.0>iou_threshold -> KeepBoxesIdxs @ vision.ops.nms
nonzero where_index | condition:Condition>x -> Out
norm | x:X axis epsilon is_test -> Out Norm
not_equal | x:X y:Y -> Out
numel size | x:Input -> Out
one_hot one_hot_v2 | x:X num_classes:depth|depth_tensor -> Out
ones | shape dtype='float32' place=None> -> out
ones_like | x dtype=None place=None> -> out
p_norm | x:X porder=2.0 axis=-1 epsilon=1e-12 keepdim=False asvector=False -> Out
pad | x:X paddings pad_value>value -> Out @ pad_constant
pad3d | x:X paddings:paddings|Paddings mode='constant' pad_value:value=0.0 data_format='NCDHW' -> Out
partial_concat | x[]:X start_index=0 length=-1 -> Out
partial_sum | x[]:X start_index=0 length=-1 -> Out
pixel_shuffle | x:X upscale_factor=1 data_format='NCHW' -> Out
pixel_unshuffle | x:X downscale_factor=1 data_format='NCHW' -> Out
poisson | x:X -> Out
polygamma | x n -> out
pool2d | x:X kernel_size:ksize strides=[1,1] paddings=[0,0] ceil_mode=False exclusive=True data_format='NCHW'
    pooling_type='max' global_pooling=False adaptive=False padding_algorithm='EXPLICIT' -> Out
pool3d | x:X kernel_size:ksize strides=[1,1,1] paddings=[0,0,0] ceil_mode=False exclusive=True data_format='NCDHW'
    pooling_type='max' global_pooling=False adaptive=False padding_algorithm='EXPLICIT' -> Out
pow | x:X y:factor|FactorTensor=1.0 -> Out
prelu | x:X alpha:Alpha>weight data_format='NCHW' mode='all'> -> Out
prior_box | input:Input image:Image min_sizes max_sizes=[]? aspect_ratios=[]? variances=[]>variance? flip=True clip=True
    step_w=0.0 step_h=0.0 offset=0.5 min_max_aspect_ratios_order=False -> Boxes Variances
prod reduce_prod | x:X axis:dim=[] keepdim:keep_dim=False reduce_all=False -> Out
psroi_pool | x:X boxes:ROIs boxes_num:RoisNum=None pooled_height=1 pooled_width=1 output_channels=1 spatial_scale=1.0
    -> Out
put_along_axis | arr:Input indices:Index values:Value axis:Axis reduce:Reduce='assign'
    include_self:Include_self=True -> Result
radam_ | param grad learning_rate beta1_pow beta2_pow rho moment1 moment2 master_param beta1=0.9 beta2=0.999
    epsilon=1e-08 multi_precision=False -> param_out beta1_pow_out beta2_pow_out rho_out moment1_out moment2_out
    master_param_out
randint | low high shape:shape|ShapeTensor|ShapeTensorList dtype='int64' place=None> -> Out
randperm | n dtype place=None> -> Out
real | x:X -> Out
reciprocal | x:X -> Out
reduce_as | x target -> out
relu | x:X -> Out
relu6 | x:X -> Out
remainder elementwise_mod | x:X y:Y -> Out
renorm | x:X p axis max_norm -> Out
repeat_interleave | x:X repeats:Repeats|RepeatsTensor axis:dim? -> Out
repeat_interleave_with_tensor_index | x:X repeats:RepeatTensor axis:dim -> Out @ repeat_interleave
reshape reshape2 | x:X shape:shape|Shape|ShapeTensor -> Out XShape
reverse | x:X axis -> Out
rmsprop_ rmsprop | param:Param mean_square:MeanSquare grad:Grad moment:Moment learning_rate:LearningRate
    mean_grad:MeanGrad master_param:MasterParam epsilon=1e-10 decay=0.9 momentum=0.0 centered=False
    multi_precision=False -> ParamOut MomentOut MeanSquareOut MeanGradOut MasterParamOut
rnn | x:Input pre_state[]:PreState weight_list[]:WeightList sequence_length:SequenceLength dropout_state_in
    dropout_prob=0.0 is_bidirec=False input_size=10 hidden_size=100 num_layers=1 mode='RNN_TANH' seed=0
    is_test=False -> Out DropoutState State[] Reserve
roi_align | x:X boxes:ROIs boxes_num:RoisNum=None pooled_height=1 pooled_width=1 spatial_scale=1.0 sampling_ratio=-1
    aligned=False -> Out
roi_pool | x:X boxes:ROIs boxes_num:RoisNum=None pooled_height=1 pooled_width=1 spatial_scale=1.0 -> Out
roll | x:X shifts:shifts|ShiftsTensor=[] axis=[]? -> Out
round | x:X decimals=0 -> Out
rprop_ | param grad prev learning_rate master_param learning_rate_range etas multi_precision=False -> param_out
    prev_out learning_rate_out master_param_out
rrelu | x:X lower=0.125 upper=0.3333333333333333 is_test=False -> Out Noise
rsqrt | x:X -> Out
scale | x:X scale:scale|ScaleTensor=1.0 bias=0.0 bias_after_scale=True -> Out
scatter | x:X index:Ids updates:Updates overwrite=True -> Out
scatter_nd_add | x:X index:Index updates:Updates -> Out
searchsorted | sorted_sequence:SortedSequence values:Values out_int32=False right=False -> Out
segment_pool | x:X segment_ids:SegmentIds pooltype='SUM' -> Out SummedIds
selu | x:X scale=1.0507009873554805 alpha=1.6732632423543772 -> Out
send_u_recv graph_send_recv | x:X src_index:Src_index dst_index:Dst_index reduce_op='SUM'
    out_size:out_size|Out_size=[0] -> Out Dst_count
send_ue_recv graph_send_ue_recv | x:X y:Y src_index:Src_index dst_index:Dst_index message_op='ADD' reduce_op='SUM'
    out_size:out_size|Out_size=[0] -> Out Dst_count
send_uv graph_send_uv | x y src_index dst_index message_op='ADD' -> out @ geometric.send_uv
sequence_mask | x:X max_len:maxlen|MaxLenTensor>maxlen out_dtype>dtype -> Y
set_value | x:Input starts:starts|StartsTensorList ends:ends|EndsTensorList steps:steps|StepsTensorList axes
    decrease_axes none_axes shape values -> Out
set_value_with_tensor | x:Input values starts:starts|StartsTensorList ends:ends|EndsTensorList
    steps:steps|StepsTensorList axes decrease_axes none_axes -> Out
sgd_ sgd | param:Param learning_rate:LearningRate grad:Grad master_param:MasterParam multi_precision=False ->
    ParamOut MasterParamOut
shape | input:Input -> Out
shard_index | input:X index_num nshards shard_id ignore_value=-1 -> Out
share_data | x:X -> Out @ assign
shuffle_channel | x:X group=1>groups -> Out @ channel_shuffle
sigmoid | x:X -> Out
sigmoid_cross_entropy_with_logits | x:X label:Label pos_weight normalize=False ignore_index=-100 -> Out
sign | x:X -> Out
silu | x:X -> Out
sin | x:X -> Out
sinh | x:X -> Out
slice | input:Input axes starts:starts|StartsTensor|StartsTensorList ends:ends|EndsTensor|EndsTensorList
    infer_flags=None> decrease_axis=[] -> Out
softmax | x:X axis=-1 -> Out @ nn.functional.softmax
softplus | x:X beta=1.0 threshold=20.0 -> Out
softshrink | x:X threshold:lambda=0.5 -> Out
softsign | x:X -> Out
spectral_norm | weight:Weight u:U v:V dim=0 power_iters=1 eps=1e-12 -> Out
split | x:X sections:sections|SectionsTensorList>num_or_sections axis:axis|AxisTensor=0 -> Out[]
split_with_num | x:X num>num_or_sections axis:axis|AxisTensor=0 -> Out[] @ split
sqrt | x:X -> Out
square | x:X -> Out
squared_l2_norm | x:X -> Out
squeeze squeeze2 | x:X axis:axes=[]? -> Out XShape
stack | x[]:X axis=0 -> Y
standard_gamma | x -> out
stanh | x:X scale_a=0.67 scale_b=1.7159 -> Out
strided_slice | x:Input axes starts:starts|StartsTensor|StartsTensorList ends:ends|EndsTensor|EndsTensorList
    strides:strides|StridesTensor|StridesTensorList -> Out
subtract elementwise_sub | x:X y:Y -> Out
sum reduce_sum | x:X axis:dim=[]? dtype:out_dtype=None keepdim:keep_dim=False -> Out
swiglu | x y -> out
swish | x:X -> Out
take_along_axis | arr:Input indices:Index axis:Axis -> Result
tan | x:X -> Out
tanh | x:X -> Out
tanh_shrink | x:X -> Out @ tanhshrink
temporal_shift | x:X seg_num shift_ratio=0.25 data_format='NCHW' -> Out
tensor_unfold | input>x axis size step -> out @ ops.unfold
thresholded_relu | x:X threshold=1.0 value=0.0 -> Out
tile | x:X repeat_times:repeat_times|RepeatTimes|repeat_times_tensor=[] -> Out
topk top_k_v2 | x:X k:k|K=1 axis=-1 largest=True sorted=True -> Out Indices
trace | x:Input offset=0 axis1=0 axis2=1 -> Out
transpose transpose2 | x:X perm:axis -> Out XShape
tril | x:X diagonal=0 -> Out
tril_indices | rows>row cols>col offset dtype place=None> -> out
trilinear_interp trilinear_interp_v2 | x:X out_size:OutSize size_tensor[]:SizeTensor scale_tensor:Scale
    data_format:data_layout='NCHW' out_d=0 out_h=0 out_w=0 scale=[] interp_method='bilinear' align_corners=True
    align_mode=1 -> Out
triu | x:X diagonal=0 -> Out
triu_indices | row col offset dtype place=None> -> out
trunc | input:X -> Out
truncated_gaussian_random | shape mean std seed=0> a b dtype='float32' place=None> -> Out @ ops.truncated_normal
unbind | input:X axis=0 -> Out[]
unfold | x:X kernel_sizes strides paddings dilations -> Y @ nn.functional.unfold
uniform uniform_random | shape:shape|ShapeTensor|ShapeTensorList dtype='float32' min=-1.0 max=1.0 seed=0 place=None>
    -> Out
uniform_inplace uniform_random_inplace | x:X min=-1.0 max=1.0 seed=0 diag_num=0 diag_step=0 diag_val=1.0 -> Out
unique | x:X return_index return_inverse return_counts axis? dtype='int64' -> Out Indices Index Counts
unique_consecutive | x:X return_inverse=False return_counts=False axis=[]? dtype='float32' -> Out Index Counts
unpool | x:X indices:Indices ksize strides padding:paddings output_size data_format -> Out
unpool3d | x:X indices:Indices ksize strides=[1,1,1] paddings=[0,0,0] output_size=[0,0,0] data_format='NCDHW' -> Out
unsqueeze unsqueeze2 | x:X axis:axes|AxesTensor|AxesTensorList=[] -> Out XShape
unstack | x:X axis=0 num=0> -> Y[]
update_loss_scaling_ update_loss_scaling | x[]:X found_infinite:FoundInfinite prev_loss_scaling:PrevLossScaling
    in_good_steps:InGoodSteps in_bad_steps:InBadSteps incr_every_n_steps decr_every_n_nan_or_inf incr_ratio
    decr_ratio stop_update:stop_update|StopUpdate=False -> Out[] LossScaling OutGoodSteps OutBadSteps
view_dtype | input>x dtype -> out @ bitcast
view_shape | input>x dims=[]>shape -> out @ reshape
warpctc | logits:Logits label:Label logits_length:LogitsLength labels_length:LabelLength blank=0 norm_by_times=False
    -> Loss WarpCTCGrad
warprnnt | input label input_lengths label_lengths blank=0 fastemit_lambda=0.0 num_threads=1 -> loss warprnntgrad
where | condition:Condition x:X y:Y -> Out
yolo_box | x:X img_size:ImgSize anchors=[] class_num=1 conf_thresh=0.01 downsample_ratio=32 clip_bbox=True scale_x_y=1.0
    iou_aware=False iou_aware_factor=0.5 -> Boxes Scores
yolo_loss yolov3_loss | x:X gt_box:GTBox gt_label:GTLabel gt_score:GTScore=None anchors=[] anchor_mask=[] class_num=1
    ignore_thresh=0.7 downsample_ratio=32 use_label_smooth=True scale_x_y=1.0 -> Loss
zeros | shape dtype='float32' place=None> -> out
zeros_like | x dtype=None place=None> -> out
- elementwise_add | x:X y:Y axis=-1 -> Out @ tensor.math._add_with_axis
- elementwise_sub | x:X y:Y axis=-1 -> Out @ tensor.math._subtract_with_axis
- elementwise_mul | x:X y:Y axis=-1 -> Out @ tensor.math._multiply_with_axis
- elementwise_div | x:X y:Y axis=-1 -> Out @ tensor.math._divide_with_axis
- elementwise_max | x:X y:Y axis=-1 -> Out @ maximum_with_axis
- elementwise_min | x:X y:Y axis=-1 -> Out @ minimum_with_axis
- elementwise_mod | x:X y:Y axis=-1 -> Out @ remainder_with_axis
- elementwise_floordiv | x:X y:Y axis=-1 -> Out @ floor_divide_with_axis
- elementwise_pow | x:X y:Y axis=-1 -> Out @ pow_with_axis
- fill_zeros_like | x:X -> Out @ zeros_like
- flatten2 | x:X axis=1 -> Out XShape @ flatten_to_matrix
- top_k | x:X k:k|K=1 -> Out Indices @ topk
- squeeze | x:X axis:axes=[]? -> Out
- unsqueeze | x:X axis:axes=[] -> Out
- transpose | x:X perm:axis -> Out
- lookup_table | weight:W x:Ids padding_idx=-1 sparse:is_sparse=False -> Out @ lookup_table
"""
