"""One batch at a time: the steps that a model takes."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import oar
from oar._C import Tensor
from oar.hapi._calls import call, listed, to_array, to_tensors

if TYPE_CHECKING:
    from oar.hapi.model import Model

__all__ = ["BatchRunner"]

_LEVELS = ("O0", "O1", "O2")
_LISTS = ("custom_white_list", "custom_black_list", "custom_black_varnames")
_SCALING = ("init_loss_scaling", "incr_ratio", "decr_ratio", "incr_every_n_steps", "decr_every_n_nan_or_inf",
            "use_dynamic_loss_scaling")  # fmt: skip


class BatchRunner:
    """Runs the network of a model on batches."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.scaler: Any = None
        self._amp_level = "O0"
        self._amp_lists: dict[str, Any] = {}
        self._amp_scaling: dict[str, Any] = {}

    # mixed precision ---------------------------------------------------------------------------

    def prepare_amp(self, configs: Any) -> None:
        """Reads ``amp_configs`` of ``Model.prepare``."""
        self._amp_lists, self._amp_scaling, self.scaler = {}, {}, None
        if not configs:
            self._amp_level = "O0"
            return
        configs = {"level": configs} if isinstance(configs, str) else dict(configs)
        level = configs.pop("level", "O1")
        if level not in _LEVELS:
            raise ValueError(f"[Model.prepare] the level of amp_configs should be 'O0', 'O1' or 'O2', not {level!r}.")
        self._amp_level = level
        if level == "O0":
            return
        _check_configs(configs)
        self._check_clip()
        self._amp_lists = {key: configs[key] for key in _LISTS[:2] if key in configs}
        self._amp_scaling = {key: configs[key] for key in _SCALING if key in configs}
        if level == "O2" and self.model._optimizer is not None:
            self.model.network, self.model._optimizer = oar.amp.decorate(
                models=self.model.network, optimizers=self.model._optimizer, level="O2")
        self.scaler = oar.amp.GradScaler(**self._amp_scaling)

    def _check_clip(self) -> None:
        clip = getattr(self.model._optimizer, "_grad_clip", None)
        allowed = (oar.nn.ClipGradByGlobalNorm, oar.nn.ClipGradByNorm)
        if self._amp_level == "O2" and clip is not None and not isinstance(clip, allowed):
            raise AssertionError(f"[Model.prepare] level O2 works with ClipGradByNorm and ClipGradByGlobalNorm, but the "
                                 f"optimizer has {type(clip).__name__}. Use one of those, or level O1.")

    def _autocast(self, level: str) -> Any:
        if self._amp_level == "O0":
            return contextlib.nullcontext()
        return oar.amp.auto_cast(level=level, **self._amp_lists)

    # batches -----------------------------------------------------------------------------------

    def train_batch(self, inputs: Any, labels: Any, update: bool) -> Any:
        model = self.model
        if model._optimizer is None or model._loss is None:
            lacking = "optimizer" if model._optimizer is None else "loss"
            raise AssertionError(f"[Model.train_batch] the model has no {lacking}: please call `model.prepare()` first, as "
                                 "model.prepare(optimizer, loss).")
        model.network.train()
        model.mode = "train"
        inputs, labels = to_tensors(inputs), to_tensors(labels)
        with self._autocast(self._amp_level):
            outputs = self._forward("train_batch", inputs, labels)
        with self._autocast("O1"):  # losses are delicate: float32 at every level
            losses = self._losses("train_batch", outputs, inputs, labels)
        total = losses[0] if len(losses) == 1 else oar.add_n(losses)
        if self._amp_level == "O0":
            total.backward()
        else:
            total = self.scaler.scale(total)
            total.backward()
        if update:
            if self._amp_level == "O0":
                model._optimizer.minimize(total)
            else:
                self.scaler.minimize(model._optimizer, total)
            model.network.clear_gradients()
        metrics = self._metrics("train_batch", outputs, labels)
        arrays = [to_array(loss) for loss in losses]
        return (arrays, metrics) if metrics else arrays

    def eval_batch(self, inputs: Any, labels: Any) -> Any:
        model = self.model
        model.network.eval()
        model.mode = "eval"
        inputs, labels = to_tensors(inputs), to_tensors(labels)
        outputs = self._forward("eval_batch", inputs, labels)
        arrays = []
        if model._loss is not None:
            arrays = [to_array(loss) for loss in self._losses("eval_batch", outputs, inputs, labels)]
        metrics = self._metrics("eval_batch", outputs, labels)
        if model._loss is None:
            return metrics
        return (arrays, metrics) if metrics else arrays

    def predict_batch(self, inputs: Any) -> list[Any]:
        self.model.network.eval()
        self.model.mode = "test"
        return [to_array(output) for output in self._forward("predict_batch", to_tensors(inputs), [])]

    # parts of a step ---------------------------------------------------------------------------

    def _forward(self, method: str, inputs: list[Tensor], labels: list[Tensor]) -> list[Any]:
        what = (f"{_count(inputs, 'input')}; the batch has {_count(labels, 'label')} besides. Pass inputs=[InputSpec(...), "
                "...] to Model to say how many tensors of a batch are inputs.")
        outputs = listed(call(f"Model.{method}", self.model.network, inputs, what))
        self.model._note_inputs(inputs)
        return outputs

    def _losses(self, method: str, outputs: list[Any], inputs: list[Any], labels: list[Tensor]) -> list[Tensor]:
        what = (f"{_count(outputs, 'output')} of the network and {_count(labels, 'label')}. Of a batch the first "
                f"{_count(inputs, 'tensor')} went to the network; pass inputs=[InputSpec(...), ...] to Model if it should be "
                "another number, or a loss that takes these.")
        loss: Any = self.model._loss
        losses = listed(call(f"Model.{method}", loss, [*outputs, *labels], what))
        for value in losses:
            if not isinstance(value, Tensor):
                raise TypeError(f"[Model.{method}] the loss should return a Tensor or a list of them, but returned "
                                f"{type(value).__name__}.")
        if not losses:
            raise TypeError(f"[Model.{method}] the loss returned nothing; it should return a Tensor.")
        return losses

    def _metrics(self, method: str, outputs: list[Any], labels: list[Tensor]) -> list[Any]:
        results = []
        for metric in self.model._metrics:
            what = f"{_count(outputs, 'output')} of the network and {_count(labels, 'label')}."
            state = listed(call(f"Model.{method}", metric.compute, [*outputs, *labels], what))
            results.append(metric.update(*(to_array(value) for value in state)))
        return results


def _check_configs(configs: dict[str, Any]) -> None:
    if "use_pure_fp16" in configs:
        raise ValueError("[Model.prepare] amp_configs has 'use_pure_fp16', which does not exist; pass level='O2' instead.")
    if "use_fp16_guard" in configs:
        raise ValueError("[Model.prepare] amp_configs has 'use_fp16_guard', which is supported in static graph mode only; "
                         "remove it.")
    unknown = [key for key in configs if key not in _LISTS + _SCALING]
    if unknown:
        raise ValueError(f"[Model.prepare] amp_configs has keys that could not be recognized: {', '.join(unknown)}. Besides "
                         f"'level' it takes {', '.join(_LISTS + _SCALING)}.")


def _count(values: list[Any], word: str) -> str:
    return f"{len(values)} {word}{'' if len(values) == 1 else 's'}"
