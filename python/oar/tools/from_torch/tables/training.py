"""Optimisers, schedules, mixed precision, data, distributions, the dashboard."""

from __future__ import annotations

_BETAS = "`betas~beta1={betas[0]}, beta2={betas[1]}`"
_END = "foreach! maximize?False capturable! differentiable! fused!"

OPTIMIZERS = f"""
Optimizer
SGD[momentum](| params=parameters lr=learning_rate momentum dampening?0 weight_decay nesterov=use_nesterov {_END}) -> oar.optimizer.Momentum
SGD(| params=parameters lr=learning_rate momentum! dampening?0 weight_decay nesterov! {_END})
Adam(| params=parameters lr=learning_rate {_BETAS} eps=epsilon weight_decay amsgrad {_END})
AdamW(| params=parameters lr=learning_rate {_BETAS} eps=epsilon weight_decay amsgrad {_END})
NAdam(| params=parameters lr=learning_rate {_BETAS} eps=epsilon weight_decay momentum_decay decoupled_weight_decay?False {_END})
RAdam(| params=parameters lr=learning_rate {_BETAS} eps=epsilon weight_decay decoupled_weight_decay?False {_END})
Adamax(| params=parameters lr=learning_rate:0.002 {_BETAS} eps=epsilon weight_decay {_END})
Adagrad(| params=parameters lr=learning_rate:0.01 lr_decay?0 weight_decay initial_accumulator_value eps=epsilon:1e-10 {_END})
Adadelta(| params=parameters lr=learning_rate:1.0 rho=rho:0.9 eps=epsilon:1e-6 weight_decay {_END})
RMSprop(| params=parameters lr=learning_rate:0.01 alpha=rho:0.99 eps=epsilon:1e-8 weight_decay momentum centered {_END}) -> oar.optimizer.RMSProp ; Oar adds epsilon under the root, PyTorch outside: with small gradients the steps differ
Rprop(| params=parameters lr=learning_rate:0.01 etas step_sizes=learning_rate_range {_END})
LBFGS(| params=parameters lr=learning_rate max_iter max_eval tolerance_grad tolerance_change history_size line_search_fn)
"""

_RATE = "optimizer~learning_rate={optimizer}.get_lr() |"
_VERBOSE = "last_epoch verbose"
SCHEDULES = f"""
LRScheduler
_LRScheduler -> oar.optimizer.lr.LRScheduler
StepLR({_RATE} step_size gamma {_VERBOSE}) -> oar.optimizer.lr.StepDecay
MultiStepLR({_RATE} milestones gamma {_VERBOSE}) -> oar.optimizer.lr.MultiStepDecay
ExponentialLR({_RATE} gamma {_VERBOSE}) -> oar.optimizer.lr.ExponentialDecay
CosineAnnealingLR({_RATE} T_max eta_min {_VERBOSE}) -> oar.optimizer.lr.CosineAnnealingDecay
CosineAnnealingWarmRestarts({_RATE} T_0 T_mult eta_min {_VERBOSE})
LambdaLR({_RATE} lr_lambda {_VERBOSE}) -> oar.optimizer.lr.LambdaDecay
MultiplicativeLR({_RATE} lr_lambda {_VERBOSE}) -> oar.optimizer.lr.MultiplicativeDecay
LinearLR({_RATE} start_factor end_factor total_iters=total_steps:5 {_VERBOSE})
PolynomialLR({_RATE} total_iters=decay_steps:5 power {_VERBOSE} +end_lr=0.0) -> oar.optimizer.lr.PolynomialDecay
ReduceLROnPlateau({_RATE} mode factor patience threshold threshold_mode cooldown min_lr eps=epsilon verbose) -> oar.optimizer.lr.ReduceOnPlateau
OneCycleLR(optimizer! | max_lr=max_learning_rate total_steps epochs? steps_per_epoch? pct_start=phase_pct anneal_strategy cycle_momentum! base_momentum! max_momentum! div_factor=divide_factor final_div_factor! three_phase {_VERBOSE} `+end_learning_rate={{max_lr}} / {{div_factor:25.0}} / {{final_div_factor:1e4}}`) ; Oar's schedule does not cycle the momentum, as PyTorch's does unless cycle_momentum=False
CyclicLR(optimizer! | base_lr=base_learning_rate max_lr=max_learning_rate step_size_up=step_size_up:2000 step_size_down mode gamma=exp_gamma scale_fn scale_mode cycle_momentum! base_momentum! max_momentum! {_VERBOSE}) ; Oar's schedule does not cycle the momentum, as PyTorch's does unless cycle_momentum=False
"""

_SCALER = "init_scale=init_loss_scaling growth_factor=incr_ratio backoff_factor=decr_ratio growth_interval=incr_every_n_steps enabled=enable"
_CAST = "dtype enabled=enable cache_enabled!"
AMP = f"""
autocast[device_type='cpu'](device_type! | dtype=dtype:'bfloat16' enabled=enable cache_enabled!) -> oar.amp.auto_cast
autocast(device_type! {_CAST}) -> oar.amp.auto_cast
GradScaler(device! | {_SCALER})
"""
CUDA_AMP = f"""
autocast(| enabled=enable dtype cache_enabled!) -> oar.amp.auto_cast
GradScaler(| {_SCALER})
"""

_WORKERS = "num_workers collate_fn pin_memory! {drop} timeout worker_init_fn multiprocessing_context! generator! prefetch_factor persistent_workers pin_memory_device! in_order!"
DATA = f"""
Dataset IterableDataset ConcatDataset ChainDataset Subset RandomSampler SubsetRandomSampler WeightedRandomSampler Sampler get_worker_info
SequentialSampler -> oar.io.SequenceSampler
TensorDataset(*tensors=tensors)
random_split(dataset lengths | generator!)
BatchSampler(sampler=sampler | batch_size drop_last)
DataLoader[sampler](dataset | batch_size! shuffle! `sampler~batch_sampler=oar.io.BatchSampler(sampler={{sampler}}, batch_size={{batch_size:1}}, drop_last={{drop_last:False}})` batch_sampler! {_WORKERS.format(drop='drop_last!')})
DataLoader(dataset | batch_size shuffle sampler! batch_sampler {_WORKERS.format(drop='drop_last')})
distributed.DistributedSampler = {{dataset}} ; pass batch_sampler=oar.io.DistributedBatchSampler(dataset, batch_size, shuffle=True) to the DataLoader
"""

DISTRIBUTIONS = """
Normal(loc scale | validate_args!)
Uniform(low high | validate_args!)
Beta(concentration1=alpha concentration0=beta | validate_args!)
Laplace(loc scale | validate_args!)
Exponential(rate | validate_args!)
Gumbel(loc scale | validate_args!)
Dirichlet(concentration | validate_args!)
Categorical[logits](| probs! `logits~logits=oar.nn.functional.softmax({logits}, axis=-1)` validate_args!) ; Oar divides what it is given by its sum; entropy() takes a softmax of it: compute the entropy from the logits yourself
Categorical(| probs=logits logits! validate_args!) ; Oar's entropy() takes a softmax of what it is given: compute the entropy from probs yourself
kl_divergence
"""

BOARD = "SummaryWriter(log_dir=logdir comment | purge_step! max_queue flush_secs filename_suffix) -> oar.board.LogWriter"

_DATA_OF = "root! train=mode@mode:'train' transform target_transform? download"
VISION_DATASETS = f"""
MNIST(| {_DATA_OF}) ; Oar downloads to its cache folder; image_path= and label_path= name files that you have
FashionMNIST(| {_DATA_OF}) ; Oar downloads to its cache folder; image_path= and label_path= name files that you have
CIFAR10(| {_DATA_OF}) -> oar.vision.datasets.Cifar10 ; Oar downloads to its cache folder; data_file= names an archive that you have
CIFAR100(| {_DATA_OF}) -> oar.vision.datasets.Cifar100 ; Oar downloads to its cache folder; data_file= names an archive that you have
ImageFolder(root | transform target_transform? loader is_valid_file) -> oar.vision.datasets.DatasetFolder
DatasetFolder(root | loader extensions transform target_transform? is_valid_file)
"""
VISION_TRANSFORMS = """
Compose ToTensor
CenterCrop(size)
Normalize(mean std | inplace!)
Resize(size | interpolation max_size? antialias!)
RandomCrop(size padding pad_if_needed fill padding_mode)
RandomHorizontalFlip(p=prob)
RandomVerticalFlip(p=prob)
RandomResizedCrop(size scale ratio | interpolation antialias!)
RandomRotation(degrees | interpolation expand center fill)
RandomErasing(p=prob scale ratio value inplace)
ColorJitter(brightness contrast saturation hue)
Grayscale(num_output_channels)
Pad(padding fill padding_mode)
RandomAffine(degrees translate scale shear | interpolation fill center)
"""
VISION_MODELS = "\n".join(f"{name}(| pretrained@truth weights=pretrained@truth progress! num_classes)" for name in (
    "alexnet densenet121 densenet169 googlenet inception_v3 mobilenet_v2 resnet18 resnet34 resnet50 resnet101 resnet152 "
    "resnext50_32x4d squeezenet1_0 squeezenet1_1 vgg11 vgg13 vgg16 vgg19 wide_resnet50_2 wide_resnet101_2").split())
