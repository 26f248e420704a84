"""Classes of ``torch.nn``."""

from __future__ import annotations

_CONV = "in_channels out_channels kernel_size stride padding dilation groups | bias padding_mode device dtype"
_CONV_TRANSPOSED = ("in_channels out_channels kernel_size stride padding output_padding | groups bias=bias_attr@attribute dilation "
                    "padding_mode?'zeros' device! dtype?")
_BATCH_NORM = ("num_features | eps=epsilon momentum@complement affine?True track_running_stats?True device! dtype?")
_INSTANCE_NORM = ("num_features eps=epsilon | momentum@complement affine?True track_running_stats?False device! dtype?")
_MAX_POOL = "kernel_size stride padding | dilation?1 return_indices=return_mask ceil_mode"
_RECURRENT = ("input_size hidden_size num_layers | `bias~bias_ih_attr={bias@attribute}, bias_hh_attr={bias@attribute}` batch_first=time_major@time_major:True dropout "
              "bidirectional=direction@direction proj_size?0 device! dtype?")
_CELL = "input_size hidden_size | `bias~bias_ih_attr={bias@attribute}, bias_hh_attr={bias@attribute}` device! dtype?"
_LOSS = "| size_average? reduce? reduction"
_WEIGHTED = "weight | size_average? reduce? reduction"
_ONLY_BATCH_FIRST = "PyTorch's layer takes [time, batch, width] here; Oar's takes [batch, time, width]: transpose inputs, or pass batch_first=True before converting"

LAYERS = f"""
Module -> oar.nn.Layer
ModuleList -> oar.nn.LayerList
ModuleDict -> oar.nn.LayerDict
Sequential ParameterList ParameterDict
Parameter(data requires_grad)
Linear(in_features out_features bias device dtype) -> oar.compat.nn.Linear
Bilinear(in1_features in2_features out_features | bias=bias_attr@attribute device! dtype?)
Identity Flatten Unflatten Fold PixelShuffle PixelUnshuffle ChannelShuffle CosineSimilarity PairwiseDistance
Unfold -> oar.compat.nn.Unfold
Conv1d({_CONV}) -> oar.nn.Conv1D
Conv2d({_CONV}) -> oar.nn.Conv2D
Conv3d({_CONV}) -> oar.nn.Conv3D
ConvTranspose1d({_CONV_TRANSPOSED}) -> oar.nn.Conv1DTranspose
ConvTranspose2d({_CONV_TRANSPOSED}) -> oar.nn.Conv2DTranspose
ConvTranspose3d({_CONV_TRANSPOSED}) -> oar.nn.Conv3DTranspose
BatchNorm1d({_BATCH_NORM}) -> oar.nn.BatchNorm1D
BatchNorm2d({_BATCH_NORM}) -> oar.nn.BatchNorm2D
BatchNorm3d({_BATCH_NORM}) -> oar.nn.BatchNorm3D
SyncBatchNorm({_BATCH_NORM})
InstanceNorm1d({_INSTANCE_NORM}) -> oar.nn.InstanceNorm1D ; Oar's InstanceNorm has a scale and a shift unless weight_attr=False and bias_attr=False are passed
InstanceNorm2d({_INSTANCE_NORM}) -> oar.nn.InstanceNorm2D ; Oar's InstanceNorm has a scale and a shift unless weight_attr=False and bias_attr=False are passed
LayerNorm(normalized_shape eps=epsilon | elementwise_affine bias device dtype)
GroupNorm(num_groups num_channels eps=epsilon | affine device dtype)
LocalResponseNorm(size alpha beta k)
Embedding(num_embeddings embedding_dim padding_idx max_norm norm_type | scale_grad_by_freq?False sparse device! dtype? _weight?)
LSTM({_RECURRENT})
GRU({_RECURRENT})
RNN(input_size hidden_size num_layers | nonlinearity=activation `bias~bias_ih_attr={{bias@attribute}}, bias_hh_attr={{bias@attribute}}` batch_first=time_major@time_major:True dropout bidirectional=direction@direction device! dtype?) -> oar.nn.SimpleRNN
LSTMCell({_CELL})
GRUCell({_CELL})
MultiheadAttention -> oar.compat.nn.MultiheadAttention
TransformerEncoderLayer[batch_first](d_model nhead dim_feedforward=dim_feedforward:2048 dropout activation | layer_norm_eps batch_first! norm_first=normalize_before bias=bias_attr@attribute device! dtype?)
TransformerEncoderLayer(d_model nhead dim_feedforward=dim_feedforward:2048 dropout activation | layer_norm_eps batch_first! norm_first=normalize_before bias=bias_attr@attribute device! dtype?) ; {_ONLY_BATCH_FIRST}
TransformerDecoderLayer[batch_first](d_model nhead dim_feedforward=dim_feedforward:2048 dropout activation | layer_norm_eps batch_first! norm_first=normalize_before bias=bias_attr@attribute device! dtype?)
TransformerDecoderLayer(d_model nhead dim_feedforward=dim_feedforward:2048 dropout activation | layer_norm_eps batch_first! norm_first=normalize_before bias=bias_attr@attribute device! dtype?) ; {_ONLY_BATCH_FIRST}
TransformerEncoder(encoder_layer num_layers norm | enable_nested_tensor! mask_check!)
TransformerDecoder(decoder_layer num_layers norm)
Transformer.generate_square_subsequent_mask(sz device! dtype!) = oar.triu(oar.full([{{sz}}, {{sz}}], float("-inf")), diagonal=1)
Dropout(p | inplace!)
Dropout1d(p | inplace!) -> oar.nn.Dropout ; Oar has no Dropout1d; Dropout zeroes single elements, not channels
Dropout2d(p | inplace!) -> oar.nn.Dropout2D
Dropout3d(p | inplace!) -> oar.nn.Dropout3D
AlphaDropout(p | inplace!)
ReLU(inplace!)
ReLU6(inplace!)
LeakyReLU(negative_slope | inplace!)
ELU(alpha | inplace!)
CELU(alpha | inplace!)
SELU(inplace!)
SiLU(inplace!) -> oar.nn.Silu
Mish(inplace!)
Hardswish(inplace!)
Hardsigmoid(inplace!)
Hardtanh(min_val=min max_val=max | inplace! min_value? max_value?)
PReLU(num_parameters init | device! dtype?)
Threshold(threshold value | inplace!) -> oar.nn.ThresholdedReLU
GELU GLU Softmax Hardshrink LogSigmoid LogSoftmax Sigmoid Softplus Softshrink Softsign Tanh Tanhshrink
MaxPool1d({_MAX_POOL}) -> oar.nn.MaxPool1D
MaxPool2d({_MAX_POOL}) -> oar.nn.MaxPool2D
MaxPool3d({_MAX_POOL}) -> oar.nn.MaxPool3D
AvgPool1d -> oar.compat.nn.AvgPool1D
AvgPool2d -> oar.compat.nn.AvgPool2D
AvgPool3d -> oar.compat.nn.AvgPool3D
AdaptiveAvgPool1d -> oar.nn.AdaptiveAvgPool1D
AdaptiveAvgPool2d -> oar.nn.AdaptiveAvgPool2D
AdaptiveAvgPool3d -> oar.nn.AdaptiveAvgPool3D
AdaptiveMaxPool1d(output_size | return_indices=return_mask) -> oar.nn.AdaptiveMaxPool1D
AdaptiveMaxPool2d(output_size | return_indices=return_mask) -> oar.nn.AdaptiveMaxPool2D
Upsample(size scale_factor mode align_corners | recompute_scale_factor?)
UpsamplingBilinear2d -> oar.nn.UpsamplingBilinear2D
UpsamplingNearest2d -> oar.nn.UpsamplingNearest2D
ZeroPad2d -> oar.nn.ZeroPad2D
ConstantPad1d -> oar.nn.ConstantPad1d
ConstantPad2d -> oar.nn.ConstantPad2d
ReflectionPad1d -> oar.nn.ReflectionPad1d
ReflectionPad2d -> oar.nn.ReflectionPad2d
ReplicationPad2d -> oar.nn.ReplicationPad2d
CrossEntropyLoss(weight | size_average? ignore_index reduce? reduction label_smoothing +axis=1)
NLLLoss(weight | size_average? ignore_index reduce? reduction)
MSELoss({_LOSS})
L1Loss({_LOSS})
SmoothL1Loss({_LOSS} beta?1.0)
HuberLoss(reduction delta) -> oar.nn.SmoothL1Loss
KLDivLoss({_LOSS} log_target)
BCELoss({_WEIGHTED})
BCEWithLogitsLoss({_WEIGHTED} pos_weight)
CosineEmbeddingLoss(margin | size_average? reduce? reduction)
MarginRankingLoss(margin | size_average? reduce? reduction)
TripletMarginLoss(margin p=p eps=epsilon swap | size_average? reduce? reduction)
CTCLoss(blank reduction | zero_infinity?False)
DataParallel(module) = {{module}}
utils.clip_grad_norm_(parameters max_norm norm_type error_if_nonfinite | foreach!) -> oar.nn.utils.clip_grad_norm_
utils.clip_grad_value_(parameters clip_value | foreach!) -> oar.nn.utils.clip_grad_value_
utils.parameters_to_vector utils.vector_to_parameters utils.remove_weight_norm
utils.weight_norm(module=layer name dim)
utils.spectral_norm(module=layer name n_power_iterations eps dim)
utils.parametrizations.weight_norm(module=layer name dim) -> oar.nn.utils.weight_norm
utils.parametrizations.spectral_norm(module=layer name n_power_iterations eps dim) -> oar.nn.utils.spectral_norm
"""
