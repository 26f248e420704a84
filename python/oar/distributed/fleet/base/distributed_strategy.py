"""Settings of training in several processes: switches, numbers, and groups of settings with a name each."""

from __future__ import annotations

import copy
from typing import Any

__all__ = ["DistributedStrategy"]

_SETTINGS: dict[str, Any] = {
    "a_sync": True, "adam_d2sum": False, "adaptive_localsgd": False, "amp": False, "asp": False, "auto": False,
    "auto_search": False, "conv_workspace_size_limit": 512, "cudnn_batchnorm_spatial_persistent": False,
    "cudnn_exhaustive_search": False, "dgc": False, "elastic": False, "find_unused_parameters": False,
    "fp16_allreduce": False, "fuse_all_reduce_ops": True, "fuse_grad_merge": False, "fuse_grad_size_in_MB": 32,
    "fuse_grad_size_in_num": 8, "gradient_merge": False, "heter_ccl_mode": False, "hierarchical_allreduce_inter_nranks": 1,
    "is_fl_ps_mode": False, "is_with_coordinator": False, "lamb": False, "lars": False, "last_comm_group_size_MB": 1.0,
    "localsgd": False, "nccl_comm_num": 1, "pipeline": False, "qat": False, "recompute": False, "semi_auto": False,
    "sharding": False, "split_data": True, "sync_batch_norm": False, "sync_nccl_allreduce": True, "tensor_parallel": False,
    "use_hierarchical_allreduce": False, "without_graph_optimization": True, "_calc_comm_same_stream": False,
    "_fuse_grad_size_in_TFLOPS": 50.0,
}  # fmt: skip

_GROUPS: dict[str, dict[str, Any]] = {
    "a_sync_configs": {
        "k_steps": -1, "max_merge_var_num": 1, "send_queue_size": 16, "independent_recv_thread": False,
        "min_send_grad_num_before_recv": 1, "thread_pool_size": 1, "send_wait_times": 1, "runtime_split_send_recv": False,
        "launch_barrier": True, "heter_worker_device_guard": "cpu", "lr_decay_steps": 10, "use_ps_gpu": 0, "use_gpu_graph": 0,
    },
    "adaptive_localsgd_configs": {"init_k_steps": 1, "begin_step": 1},
    "amp_configs": {
        "init_loss_scaling": 32768.0, "incr_every_n_steps": 1000, "decr_every_n_nan_or_inf": 2, "incr_ratio": 2.0,
        "decr_ratio": 0.8, "use_dynamic_loss_scaling": True, "custom_white_list": [], "custom_black_list": [],
        "custom_black_varnames": [], "use_pure_fp16": False, "use_fp16_guard": True, "use_optimizer_fp16": False,
        "use_pure_bf16": False,
    },
    "dgc_configs": {"rampup_begin_step": 0, "rampup_step": 1, "sparsity": []},
    "fs_client_param": {"uri": "", "user": "", "passwd": "", "hadoop_bin": ""},
    "gradient_merge_configs": {"k_steps": 1, "avg": True},
    "gradient_scale_configs": {"scale_strategy": "avg", "scale_gradient": False},
    "hybrid_configs": {
        "dp_degree": -1, "mp_degree": 1, "pp_degree": 1, "sharding_degree": 1, "sep_degree": 1,
        "order": ["dp", "pp", "sharding", "sep", "mp"], "enable_optimizer_timer": False,
        "mp_configs": {
            "sync_param": True, "sync_grad": False, "sync_moment": False, "sync_mode": "broadcast",
            "mp_async_allreduce": False, "mp_skip_c_identity": False, "mp_fused_linear_param_grad_add": False,
            "need_broadcast_data": True, "recompute_allgather": False, "sp_async_reduce_scatter": False,
        },
        "pp_configs": {
            "dp_comm_overlap": False, "delay_scale_loss": False, "enable_timer": False, "sharding_comm_overlap": False,
            "profiling": False, "release_gradients": False, "overlap_p2p_comm": False, "clear_every_step_cache": False,
            "use_batch_p2p_comm": True, "best_unbalanced_scheduler": False,
        },
        "sharding_configs": {
            "tensor_fusion": False, "accumulate_steps": 1, "comm_overlap": False, "split_param": False,
            "fuse_optimizer": True, "use_reduce_avg": True, "comm_buffer_size_MB": 256, "release_gradients": False,
            "free_grads_in_comm": False,
        },
    },
    "lamb_configs": {"lamb_weight_decay": 0.01, "exclude_from_weight_decay": []},
    "lars_configs": {"lars_coeff": 0.001, "lars_weight_decay": 0.0005, "epsilon": 0.0, "exclude_from_weight_decay": []},
    "localsgd_configs": {"k_steps": 1, "begin_step": 1},
    "pipeline_configs": {
        "micro_batch_size": 1, "accumulate_steps": 1, "schedule_mode": "1F1B", "p2p_cache_shape": True,
        "enable_partial_send_recv": True,
    },
    "qat_configs": {
        "channel_wise_abs_max": True, "weight_bits": 8, "activation_bits": 8, "not_quant_pattern": [], "algo": "",
    },
    "recompute_configs": {
        "checkpoints": [], "enable_offload": False, "checkpoint_shape": [], "enable_tuning": False,
        "refined_ops_patterns": [],
    },
    "sharding_configs": {
        "sharding_segment_strategy": "segment_broadcast_MB", "segment_broadcast_MB": 32.0, "segment_anchors": [],
        "sharding_degree": 8, "mp_degree": 1, "dp_degree": 1, "hybrid_dp": False, "gradient_merge_acc_step": 1,
        "optimize_offload": False, "pp_allreduce_in_optimize": False, "pp_degree": 1, "optimize_cast": False,
        "_dp_as_optimizer_sharding": False, "stage": 1, "enable_tuning": False, "use_calc_stream": False,
    },
    "tensor_parallel_configs": {"tensor_parallel_degree": 1, "tensor_init_seed": -1},
    "trainer_desc_configs": {
        "dump_fields_path": "", "dump_fields": [], "dump_param": [], "stat_var_names": [], "trainer": "",
        "device_worker": "", "local_sparse": [], "remote_sparse": [],
    },
}  # fmt: skip


class _Settings(dict):  # type: ignore[type-arg]
    """Settings with a name each, as keys and as attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"there is no setting '{name}'; there are {sorted(self)}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __deepcopy__(self, memo: Any) -> _Settings:
        return _Settings({name: copy.deepcopy(value, memo) for name, value in self.items()})


def _settings(defaults: dict[str, Any]) -> _Settings:
    return _Settings({name: _settings(value) if isinstance(value, dict) else copy.copy(value) for name, value in defaults.items()})


def _update(group: str, settings: _Settings, given: Any) -> None:
    if not isinstance(given, dict):
        raise TypeError(f"[DistributedStrategy] {group} must be a dict, not {type(given).__name__}.")
    unknown = sorted(set(given) - set(settings))
    if unknown:
        raise ValueError(f"[DistributedStrategy] {group} has no {', '.join(unknown)}. hint: it has {', '.join(sorted(settings))}.")
    for name, value in given.items():
        if isinstance(settings[name], _Settings):
            _update(f"{group}['{name}']", settings[name], value)
        else:
            settings[name] = value


class DistributedStrategy:
    """How training is divided among processes. A single process reads nothing of it; the settings are checked and kept.

    Examples:
        >>> from oar.distributed import fleet
        >>> strategy = fleet.DistributedStrategy()
        >>> strategy.find_unused_parameters = True
        >>> strategy.hybrid_configs = {"mp_degree": 1}
        >>> strategy.hybrid_configs["dp_degree"], strategy.hybrid_configs["pp_configs"].enable_timer
        (-1, False)
    """

    def __init__(self) -> None:
        from oar.static import BuildStrategy

        own = self.__dict__
        own["_settings"] = copy.copy(_SETTINGS)
        own["_groups"] = {name: _settings(defaults) for name, defaults in _GROUPS.items()}
        own["build_strategy"] = BuildStrategy()

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        if name in own.get("_settings", ()):
            return own["_settings"][name]
        if name in own.get("_groups", ()):
            return own["_groups"][name]
        raise AttributeError(f"DistributedStrategy has no setting '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._groups:
            _update(name, self._groups[name], value)
        elif name in self._settings:
            self._settings[name] = self._checked(name, value)
        elif name == "build_strategy":
            self.__dict__[name] = value
        else:
            raise TypeError(f"[DistributedStrategy] there is no setting '{name}'. hint: the settings are "
                            f"{', '.join(sorted([*self._settings, *self._groups]))}.")

    def _checked(self, name: str, value: Any) -> Any:
        wanted = type(_SETTINGS[name])
        if wanted is bool and name == "auto_search" or isinstance(value, wanted):
            return value
        if wanted is float and isinstance(value, int):
            return float(value)
        raise TypeError(f"[DistributedStrategy] {name} must be of type {wanted.__name__}, not {type(value).__name__}.")

    def __deepcopy__(self, memo: Any) -> DistributedStrategy:
        twin = DistributedStrategy()
        twin.__dict__.update({name: copy.deepcopy(value, memo) for name, value in self.__dict__.items()})
        return twin

    def __repr__(self) -> str:
        rows = [f"    {name}: {value}" for name, value in sorted({**self._settings, **self._groups}.items())]
        return "\n".join(["DistributedStrategy:", *rows])
