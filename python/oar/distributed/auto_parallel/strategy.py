"""Settings for the parallel execution of a program, in groups, with Paddle's names and defaults."""

from __future__ import annotations

import copy
from typing import Any

__all__ = ["BaseConfig", "Strategy"]

DEFAULTS: dict[str, dict[str, Any]] = {
    "base": {
        "auto_mode": "semi", "gradient_scale": True, "gradient_scale_using_allreduce_avg": False, "use_cache": True,
        "return_numpy": True, "all_ranks": False, "split_data": True, "seed": None, "reinit": False,
    },
    "recompute": {
        "enable": False, "checkpoints": [], "no_recompute_segments": [], "sr": 0, "refined_ops_patterns": [], "enable_tuning": False,
    },
    "amp": {
        "enable": False, "dtype": "float16", "level": "o1", "init_loss_scaling": 32768.0, "incr_every_n_steps": 1000,
        "decr_every_n_nan_or_inf": 2, "incr_ratio": 2.0, "decr_ratio": 0.8, "use_dynamic_loss_scaling": True,
        "custom_white_list": [], "custom_black_list": [], "custom_black_varnames": [], "use_fp16_guard": False,
        "use_bf16_guard": False, "use_master_grad": False, "use_promote": True,
    },
    "sharding": {
        "enable": False, "stage": 1, "degree": 8, "enable_overlap": False, "param_comm_stream_num": 1, "grad_comm_stream_num": 1,
        "param_bucket_size_numel": 1, "grad_bucket_size_numel": 1, "enable_hierarchical_comm": False,
        "partition_algor": "greedy_even", "enable_tuning": False, "tuning_range": [], "release_gradients": False,
        "comm_buffer_size_MB": 256, "enable_tensor_fusion": False, "save_unbalanced_param": True,
    },
    "gradient_merge": {"enable": False, "k_steps": 1, "avg": True},
    "pipeline": {
        "enable": False, "schedule_mode": "1F1B", "pp_degree": 1, "vpp_degree": 1, "vpp_seg_method": "", "micro_batch_size": 1,
        "accumulate_steps": 1, "generation_batch_size": 1, "enable_send_recv_overlap": False, "job_schedule_profiler_start": -1,
        "job_schedule_profiler_stop": -1, "program_runtimes": [61, 72, 71, 34, 3], "memory_limit_times": -1,
        "split_backward": False, "auto_parallel_sync_shared_params": False,
    },
    "qat": {
        "enable": False, "channel_wise_abs_max": True, "weight_bits": 8, "activation_bits": 8, "not_quant_pattern": ["skip_quant"],
        "algo": None, "onnx_format": True,
    },
    "tuning": {"enable": False, "profile_start_step": 1, "profile_end_step": 1, "run_after_tuning": True, "debug": False},
    "dataset": {"enable": False, "num_shards": 1},
    "fused_linear_promotion": {"enable": False},
    "fused_passes": {"enable": False, "fused_passes_list": []},
    "dp_optimization": {
        "enable": False, "fuse_all_reduce_ops": True, "fuse_grad_size_in_MB": 32, "overlap_comm_cacl": True,
        "gradient_sync_after_accumulate": False,
    },
    "mp_optimization": {
        "allreduce_matmul_grad_overlapping": False, "replace_with_c_embedding": False, "replace_with_parallel_cross_entropy": False,
    },
    "sp_optimization": {"enable": True},
}  # fmt: skip


class BaseConfig:
    """One group of settings; each is an attribute.

    Args:
        category: the name of the group.
        config_dict: values that replace defaults; keys that the group does not have are left out.

    Examples:
        >>> from oar.distributed.auto_parallel.strategy import BaseConfig
        >>> BaseConfig("gradient_merge", {"k_steps": 4}).to_dict()
        {'enable': False, 'k_steps': 4, 'avg': True}
    """

    def __init__(self, category: str, config_dict: dict[str, Any] | None = None) -> None:
        if config_dict is not None and not isinstance(config_dict, dict):
            raise ValueError(f"[{type(self).__name__}] the settings of {category} must be a dictionary, not {config_dict!r}.")
        self._category = category
        self._config_dict = config_dict
        for name, default in DEFAULTS[category].items():
            setattr(self, name, copy.deepcopy(default))
        self.from_dict(config_dict or {})

    def from_dict(self, config_dict: dict[str, Any]) -> None:
        """Takes the values of the settings that the group has."""
        for name in DEFAULTS[self._category]:
            if name in config_dict:
                setattr(self, name, config_dict[name])

    def to_dict(self) -> dict[str, Any]:
        """The settings, those of groups inside included."""
        groups = {name: value.to_dict() for name, value in vars(self).items() if isinstance(value, BaseConfig)}
        return {name: getattr(self, name) for name in DEFAULTS[self._category]} | groups

    def get(self, k: str, d: Any = None) -> Any:
        """The setting ``k``; ``d`` if there is none."""
        return self.to_dict().get(k, d)

    def __repr__(self) -> str:
        return "{" + "".join(f'"{name}":"{value}",' for name, value in self.to_dict().items()) + "}"


_GROUPS = [name for name in DEFAULTS if name != "base"]


def _copied(config: Any) -> dict[str, Any]:
    if config is not None and not isinstance(config, dict):
        raise ValueError(f"[Strategy] config must be a dictionary of settings, not {config!r}.")
    return copy.deepcopy(config) if config else {}


class Strategy(BaseConfig):
    """All settings for the parallel execution of a program: ``strategy.amp.enable``, ``strategy.sharding.degree``.

    Args:
        config: values that replace defaults, by group.

    Examples:
        >>> from oar.distributed.fleet import auto
        >>> strategy = auto.Strategy({"sharding": {"enable": True}})
        >>> strategy.sharding.enable, strategy.sharding.degree
        (True, 8)
    """

    amp: BaseConfig
    recompute: BaseConfig
    sharding: BaseConfig
    gradient_merge: BaseConfig
    pipeline: BaseConfig
    qat: BaseConfig
    tuning: BaseConfig
    dataset: BaseConfig
    fused_linear_promotion: BaseConfig
    fused_passes: BaseConfig
    dp_optimization: BaseConfig
    mp_optimization: BaseConfig
    sp_optimization: BaseConfig

    def __init__(self, config: dict[str, Any] | None = None) -> None:
        settings = _copied(config)
        super().__init__("base", settings)
        for group in _GROUPS:
            setattr(self, group, BaseConfig(group, settings.get(group)))


class FusePasses:
    """Which calls are joined to one.

    Args:
        config_dict: values that replace defaults.

    Examples:
        >>> from oar.distributed.auto_parallel.strategy import FusePasses
        >>> FusePasses({"enable": True}).enable
        True
    """

    def __init__(self, config_dict: dict[str, Any] | None = None) -> None:
        self.enable = self.gemm_epilogue = self.dropout_add = False
        for name, value in (config_dict or {}).items():
            if not hasattr(self, name):
                raise ValueError(f"[Strategy] fused_passes has no {name!r}; it has {', '.join(vars(self))}.")
            setattr(self, name, value)


class ProgramStrategy(BaseConfig):
    """Settings for ``oar.distributed.to_static``: ``strategy.sharding``, ``gradient_merge``, ``pipeline``, ``amp``, ``fused_passes``.

    Args:
        config: values that replace defaults, by group.

    Examples:
        >>> import oar
        >>> strategy = oar.distributed.Strategy({"pipeline": {"enable": True}})
        >>> strategy.pipeline.enable, strategy.pipeline.schedule_mode
        (True, '1F1B')
    """

    _GROUPS = ("sharding", "gradient_merge", "pipeline", "amp", "recompute", "mp_optimization", "dp_optimization", "sp_optimization")

    def __init__(self, config: dict[str, Any] | None = None) -> None:
        settings = _copied(config)
        super().__init__("base", settings)
        for group in self._GROUPS:
            setattr(self, f"_{group}", BaseConfig(group, settings.get(group)))
        self._fused_passes = FusePasses(settings.get("fused_passes"))
        self._full_graph = settings.get("full_graph", True)

    full_graph = property(lambda self: self._full_graph, doc="Whether functions are captured whole.")
    sharding = property(lambda self: self._sharding, doc="How the state of the optimizer is cut.")
    gradient_merge = property(lambda self: self._gradient_merge, doc="Over how many steps gradients are added up.")
    fused_passes = property(lambda self: self._fused_passes, doc="Which calls are joined to one.")
    pipeline = property(lambda self: self._pipeline, doc="How the layers are cut into stages.")
    amp = property(lambda self: self._amp, doc="Mixed precision.")


ProgramStrategy.__name__ = ProgramStrategy.__qualname__ = "Strategy"
