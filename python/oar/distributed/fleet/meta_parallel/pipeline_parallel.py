"""Training of a network whose layers stand in different processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import oar
from oar._C import Tensor
from oar.distributed.communication import stream
from oar.distributed.communication.group import Group
from oar.distributed.fleet.meta_parallel.meta_parallel_base import MetaParallelBase
from oar.distributed.fleet.meta_parallel.parallel_layers.pp_layers import PipelineLayer
from oar.distributed.fleet.meta_parallel.pipeline.messages import Form, Messages, tensors_in
from oar.distributed.fleet.meta_parallel.pipeline.schedule import KINDS, Action, Schedule, make_schedule
from oar.distributed.fleet.meta_parallel.pipeline.weight_gradients import WeightGradients
from oar.distributed.fleet.utils.hybrid_parallel_util import (
    broadcast_dp_parameters,
    broadcast_mp_parameters,
    broadcast_sep_parameters,
    broadcast_sharding_parameters,
)
from oar.nn.layer.layers import Layer

__all__ = ["PipelineParallel"]

_RESULT_DTYPES = ("float32", "float64", "float16", "bfloat16")


class _Kept:
    """A micro-batch between its forward and its backward pass in a chunk."""

    def __init__(self, inputs: list[Tensor], outputs: list[Tensor]) -> None:
        self.inputs, self.outputs = inputs, outputs


class PipelineParallel(MetaParallelBase):
    """A network whose layers stand in different processes. A batch is cut into micro-batches, on which the stages work at the same
    time. ``fleet.distributed_model`` makes it from a ``PipelineLayer``.

    ``strategy.pipeline_configs`` has the settings: ``accumulate_steps`` is the number of micro-batches, ``micro_batch_size`` their rows, and
    ``schedule_mode`` the order of the work:

    - ``'1F1B'``: a forward pass follows each backward pass. With ``num_virtual_pipeline_stages``, the interleaved form of it (also ``'VPP'``).
    - ``'F-then-B'``: all forward passes come first.
    - ``'ZBH1'``, and ``'ZBVPP'`` with virtual stages: backward passes of ``nn.Linear`` compute the gradients of inputs first; those of
      weights fill the time in which a stage would wait. Other layers, and all under ``auto_cast``, compute both at once.

    ``p2p_cache_shape``: True if all micro-batches have one shape, so that stages tell each other once what they send.

    Args:
        layers: the network, a ``PipelineLayer``.
        hcg: the groups of this process.
        strategy: the ``DistributedStrategy``.

    Examples:
        >>> from oar.distributed.fleet import meta_parallel
        >>> issubclass(meta_parallel.PipelineParallel, meta_parallel.MetaParallelBase)
        True
    """

    def __init__(self, layers: Layer, hcg: Any, strategy: Any) -> None:
        if not isinstance(layers, PipelineLayer):
            raise TypeError(f"[PipelineParallel] the network must be a PipelineLayer, not {type(layers).__name__}.")
        super().__init__(layers, hcg, strategy)
        settings = strategy.pipeline_configs
        self.micro_batch_size, self.accumulate_steps = int(settings["micro_batch_size"]), int(settings["accumulate_steps"])
        self.num_stages, self.stage_id = layers._num_stages, layers._stage_id
        self.num_chunks = layers.get_num_virtual_stages()
        self.group: Group = hcg.get_pipe_parallel_group()
        if self.group.nranks != self.num_stages:
            raise ValueError(f"[PipelineParallel] the network has {self.num_stages} stages, and the pipeline {self.group.nranks} processes. hint: "
                             "give both the same number.")
        self.schedule = self._schedule(str(settings["schedule_mode"]))
        self._messages = Messages(self.group, bool(settings["p2p_cache_shape"]))
        self._weights = WeightGradients()
        if self._is_split:
            self._weights.split(layers)

    def _prepare_for_model(self) -> None:
        broadcast_mp_parameters(self._layers, self._hcg)
        broadcast_sep_parameters(self._layers, self._hcg)
        broadcast_sharding_parameters(self._layers, self._hcg)
        broadcast_dp_parameters(self._layers, self._hcg)

    def _schedule(self, kind: str) -> Schedule:
        if kind not in KINDS:
            raise ValueError(f"[PipelineParallel] schedule_mode is {kind!r}, but it must be one of {', '.join(KINDS)}.")
        if self.accumulate_steps < 1:
            raise ValueError(f"[PipelineParallel] accumulate_steps is {self.accumulate_steps}, but there must be 1 micro-batch or more.")
        self._is_split = KINDS[kind]
        return make_schedule(kind, self.num_stages, self.accumulate_steps, self.num_chunks)

    def is_pipeline_first_stage(self) -> bool:
        """Whether this process has the first layers."""
        return self.stage_id == 0

    def is_pipeline_last_stage(self) -> bool:
        """Whether this process has the last layers."""
        return self.stage_id == self.num_stages - 1

    # steps -------------------------------------------------------------------------------------

    def train_batch(
        self, data: Any, optimizer: Any, lr_scheduler: Any = None, scaler: Any = None, loss_fn_idx: int = 0,
        return_micro_batch_loss: bool = False,
    ) -> Tensor:  # fmt: skip
        """Trains on a batch.

        Args:
            data: inputs and labels. Each is a tensor, a tuple of tensors, or a list with one for each micro-batch. The first stage uses the
                inputs, the last one the labels.
            optimizer: the optimiser, of ``fleet.distributed_optimizer``.
            lr_scheduler: steps after the optimiser.
            scaler: a scaler, of ``fleet.distributed_scaler``.
            loss_fn_idx: the number of the loss, if the network has several.
            return_micro_batch_loss: whether to return the losses of the micro-batches.

        Returns:
            the mean of their losses, in all processes.
        """
        losses = self.forward_backward_pipeline(data, scaler, return_micro_batch_loss=True, loss_fn_idx=loss_fn_idx)
        if scaler is None:
            optimizer.step()
        else:
            scaler.step(optimizer)
            scaler.update()
        optimizer.clear_grad()
        if lr_scheduler is not None:
            lr_scheduler.step()
        return losses if return_micro_batch_loss else losses.mean()

    def forward_backward_pipeline(
        self, data: Any, scaler: Any = None, return_micro_batch_loss: bool = False, loss_fn_idx: int = 0
    ) -> Tensor:
        """Computes the gradients of a batch: see ``train_batch``."""
        self._layers.train()
        run = _Run(self, data, scaler, self._loss(loss_fn_idx), "train")
        self._weights.is_on = self._is_split
        try:
            run.carry_out(self.schedule.actions[self.stage_id])
        finally:
            self._weights.is_on = False
        self._layers.allreduce_shared_weight_gradients()
        losses = self._told(run.losses)
        return losses if return_micro_batch_loss else losses.mean()

    def eval_batch(self, data: Any, compute_loss: bool = True, loss_fn_idx: int = 0, return_host_tensor: bool = False) -> Any:
        """Runs the network without derivatives.

        Args:
            data: inputs and labels: see ``train_batch``.
            compute_loss: whether to compute the loss. If not, the last stage returns the results of the micro-batches, and the others None.
            loss_fn_idx: the number of the loss, if the network has several.
            return_host_tensor: accepted for compatibility.

        Returns:
            the mean loss, in all processes; or the results.
        """
        was_training = self._layers.training
        self._layers.eval()
        run = _Run(self, data, None, self._loss(loss_fn_idx) if compute_loss else None, "eval")
        places = sorted((micro // self.num_stages, chunk, micro) for chunk in range(self.num_chunks) for micro in range(self.accumulate_steps))
        try:
            with oar.no_grad():
                run.carry_out([Action("F", chunk, micro) for _, chunk, micro in places])
        finally:
            self._layers.train(was_training)
        if compute_loss:
            return self._told(run.losses).mean()
        return run.results if self.is_pipeline_last_stage() else None

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        raise RuntimeError("[PipelineParallel] a stage has a part of the network. hint: call train_batch or eval_batch.")

    def _loss(self, number: int) -> Callable[..., Tensor] | None:
        loss = self._layers._loss_fn
        loss = loss[number] if isinstance(loss, (list, tuple)) else loss
        if loss is None and self.is_pipeline_last_stage():
            raise ValueError("[PipelineParallel] the PipelineLayer has no loss_fn, which training and losses need.")
        return loss

    def _told(self, losses: list[Tensor]) -> Tensor:
        """The losses of the last stage, in all processes."""
        told = oar.zeros([self.accumulate_steps + 1], "float64")
        if self.is_pipeline_last_stage():
            told[:-1] = oar.stack([oar.reshape(loss, []) for loss in losses]).astype("float64")
            told[-1] = float(_RESULT_DTYPES.index(losses[0].dtype.name))
        if self.num_stages > 1:
            stream.broadcast(told, self.group.ranks[-1], self.group)
        return told[:-1].astype(_RESULT_DTYPES[int(told[-1])])


class _Run:
    """One batch in one stage."""

    def __init__(self, owner: PipelineParallel, data: Any, scaler: Any, loss: Callable[..., Tensor] | None, mode: str) -> None:
        self.owner, self.scaler, self.loss, self.mode = owner, scaler, loss, mode
        self.last_place = owner.num_stages * owner.num_chunks - 1
        self.inputs, self.labels = self._divided(data)
        self.losses: list[Tensor] = [None] * owner.accumulate_steps  # type: ignore[list-item]
        self.results: list[Any] = [None] * owner.accumulate_steps
        self._kept: dict[tuple[int, int], _Kept] = {}
        self._later: dict[tuple[int, int], list[Callable[[], None]]] = {}
        self._on_way: dict[Action, Any] = {}
        self._passed: dict[tuple[str, int, int], Any] = {}  # between chunks of one process

    def _divided(self, data: Any) -> tuple[Any, Any]:
        if not isinstance(data, (tuple, list)) or len(data) != 2:
            raise TypeError("[PipelineParallel] data must be a pair of inputs and labels.")
        inputs, labels = data
        first, last = self.owner.is_pipeline_first_stage(), self.owner.is_pipeline_last_stage() and self.loss is not None
        return self._micro_batches("inputs", inputs) if first else None, self._micro_batches("labels", labels) if last else None

    def _micro_batches(self, what: str, value: Any) -> list[Any]:
        count, rows = self.owner.accumulate_steps, self.owner.micro_batch_size
        if isinstance(value, tuple):
            return list(zip(*(self._micro_batches(what, part) for part in value)))
        if isinstance(value, list):
            if len(value) != count:
                raise ValueError(f"[PipelineParallel] the {what} are a list of {len(value)}, but accumulate_steps is {count}.")
            return value
        if not isinstance(value, Tensor):
            raise TypeError(f"[PipelineParallel] the {what} must be a tensor, a tuple or a list of tensors, not {type(value).__name__}.")
        if value.shape[0] != count * rows:
            raise ValueError(f"[PipelineParallel] the {what} have {value.shape[0]} rows, but micro_batch_size * accumulate_steps is {rows} * "
                             f"{count}. hint: pass batches of that size, or a list with a tensor for each micro-batch.")
        return [value[micro * rows : (micro + 1) * rows] for micro in range(count)]

    def carry_out(self, actions: list[Action]) -> None:
        """Carries out actions. What the next one needs is asked for before this one computes."""
        work = {"F": self._forward, "B": self._backward, "W": self._weight}
        for action, following in zip(actions, [*actions[1:], None]):
            self._ask(action, can_wait=True)
            if following is not None:
                self._ask(following, can_wait=False)
            work[action.kind](action)
        self.owner._messages.finish()

    def _place(self, action: Action) -> int:
        return action.chunk * self.owner.num_stages + self.owner.stage_id

    def _ask(self, action: Action, can_wait: bool) -> None:
        """Starts to receive what an action needs, if it comes from another process."""
        owner, place = self.owner, self._place(action)
        if action in self._on_way or action.kind == "W" or owner.num_stages == 1:
            return
        if action.kind == "F" and place > 0:
            if can_wait or ((self.mode, place - 1) in owner._messages._forms and owner._messages._keeps_forms):
                before = (owner.stage_id - 1) % owner.num_stages
                self._on_way[action] = owner._messages.receive_forward(before, place - 1, action.micro, self.mode)
        elif action.kind == "B" and place < self.last_place and (kept := self._kept.get(action[1:])) is not None:
            after = (owner.stage_id + 1) % owner.num_stages
            wanted = [t for t in kept.outputs if not t.stop_gradient]
            self._on_way[action] = owner._messages.receive_backward(wanted, after, place, action.micro)

    # forward -----------------------------------------------------------------------------------

    def _input(self, action: Action) -> Any:
        place = self._place(action)
        if place == 0:
            return self.inputs[action.micro]
        if self.owner.num_stages == 1:
            value = self._passed.pop(("F", place - 1, action.micro))
            return _renewed(Form.of(value), tensors_in("PipelineParallel", value))
        form, arriving = self._on_way.pop(action)
        for task, _ in arriving:
            task.wait()
        return _renewed(form, [tensor for _, tensor in arriving])

    def _forward(self, action: Action) -> None:
        owner, place, key = self.owner, self._place(action), action[1:]
        value = self._input(action)
        output = owner._layers(value, chunk_id=action.chunk)
        if place == self.last_place:
            self.results[action.micro] = output
            if self.loss is None:
                return
            labels = self.labels[action.micro]
            output = self.loss(output, *labels) if isinstance(labels, tuple) else self.loss(output, labels)
            self.losses[action.micro] = output.detach()
            self.results[action.micro] = None if self.mode == "train" else self.results[action.micro]
        elif owner.num_stages == 1:
            self._passed["F", place, action.micro] = output
        else:
            owner._messages.send_forward(output, (owner.stage_id + 1) % owner.num_stages, place, action.micro, self.mode)
        if self.mode == "train":
            inputs = [] if place == 0 else [t for t in tensors_in("PipelineParallel", value) if not t.stop_gradient]
            self._kept[key] = _Kept(inputs, tensors_in("PipelineParallel", output))

    # backward ----------------------------------------------------------------------------------

    def _backward(self, action: Action) -> None:
        owner, place, key = self.owner, self._place(action), action[1:]
        gradients = self._gradients(action)
        kept = self._kept.pop(key)
        if place == self.last_place:
            loss = kept.outputs[0] / owner.accumulate_steps
            (loss if self.scaler is None else self.scaler.scale(loss)).backward()
        else:
            roots = [t for t in kept.outputs if not t.stop_gradient]
            if roots:
                oar.autograd.backward(roots, gradients)
        if owner._is_split:
            self._later[key] = owner._weights.take()
        if place == 0 or not kept.inputs:
            return
        back = [oar.zeros_like(t) if t.grad is None else t.grad for t in kept.inputs]
        if owner.num_stages == 1:
            self._passed["B", place - 1, action.micro] = back
        else:
            owner._messages.send_backward(back, (owner.stage_id - 1) % owner.num_stages, place - 1, action.micro)

    def _gradients(self, action: Action) -> list[Tensor]:
        place = self._place(action)
        if place == self.last_place:
            return []
        if self.owner.num_stages == 1:
            return self._passed.pop(("B", place, action.micro), [])
        arriving = self._on_way.pop(action)
        for task, _ in arriving:
            task.wait()
        return [tensor for _, tensor in arriving]

    def _weight(self, action: Action) -> None:
        with oar.no_grad():
            for work in self._later.pop(action[1:]):
                work()


def _renewed(form: Form, tensors: list[Tensor]) -> Any:
    """What a stage got, as the beginning of its own tape."""
    fresh = []
    for tensor, (_, _, needs) in zip(tensors, form.parts):
        own = tensor.detach()
        own.stop_gradient = not needs
        fresh.append(own)
    return fresh[0] if form.is_single else tuple(fresh)
