"""``Model``: a network with loops for training, evaluation and prediction."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import oar
from oar._C import Tensor
from oar.distributed.environment import ParallelEnv
from oar.hapi import _files
from oar.hapi._calls import forward_names, listed
from oar.hapi._data import batch_sizes, check_count, length_of, loader_of, steps_of
from oar.hapi._eager import BatchRunner
from oar.hapi.callbacks import CallbackList, EarlyStopping, config_callbacks

if TYPE_CHECKING:
    from oar.metric import Metric
    from oar.static import InputSpec

__all__ = ["Model", "prepare_distributed_context"]


class Model:
    """A network with its loss, its optimizer and its metrics, and loops over data.

    Args:
        network: the network.
        inputs: an ``InputSpec``, a list of them, or a dict by the names of ``forward``'s arguments: what of a batch goes to
            the network. None takes as many tensors as ``forward`` has arguments.
        labels: an ``InputSpec`` or a list of them for what goes to the loss and the metrics; the rest of a batch does.

    Examples:
        >>> import oar
        >>> _ = oar.seed(1)
        >>> net = oar.nn.Linear(2, 1)
        >>> model = oar.Model(net)
        >>> model.prepare(oar.optimizer.Adam(0.1, parameters=net.parameters()), oar.nn.MSELoss())
        >>> x = oar.randn([64, 2])
        >>> data = oar.io.TensorDataset([x, x.sum(axis=1, keepdim=True)])
        >>> model.fit(data, batch_size=16, epochs=40, verbose=0)
        >>> model.evaluate(data, batch_size=64, verbose=0)['loss'][0] < 0.01
        True
    """

    def __init__(self, network: Any, inputs: Any = None, labels: Any = None) -> None:
        if not isinstance(network, oar.nn.Layer):
            raise TypeError(f"[Model] network should be a Layer, but received {type(network).__name__}.")
        if not oar.in_dynamic_mode():
            raise RuntimeError("[Model] works in dynamic mode: call oar.disable_static() before. A network that "
                               "oar.jit.to_static captured runs as a program there, too.")
        self.mode = "train"
        self.network = network
        self.stop_training = False
        self._loss: Any = None
        self._optimizer: Any = None
        self._metrics: list[Metric] = []
        self._runner = BatchRunner(self)
        self._is_shape_inferred = False
        names, self._takes_any = forward_names(network)
        given = self._specs(inputs, "inputs", names)
        self._input_info = _shapes_and_dtypes(given) if given is not None else None
        self._inputs: list[InputSpec] = given if given is not None else [
            oar.static.InputSpec([None], name=name) for name in names]
        self._labels = self._specs(labels, "labels", names)

    def _specs(self, specs: Any, what: str, names: list[str]) -> list[InputSpec] | None:
        """A list of named specs of what the user passed; None for None."""
        if specs is None:
            return None
        result = [specs[name] for name in names if name in specs] if isinstance(specs, dict) else listed(specs)
        for i, spec in enumerate(result):
            if not isinstance(spec, oar.static.InputSpec):
                raise AssertionError(f"[Model] {what}[{i}] should be an InputSpec, but received {type(spec).__name__}.")
            if spec.name is None:
                raise ValueError(f"[Model] {what}[{i}] needs a name, as in InputSpec({list(spec.shape)}, name='x').")
        return result

    def _note_inputs(self, inputs: list[Tensor]) -> None:
        """Without specs, those of the first batch are used from then on."""
        if self._input_info is None and inputs:
            names = forward_names(self.network)[0]
            names += [f"input_{i}" for i in range(len(names), len(inputs))]
            self._inputs = [oar.static.InputSpec(x.shape, x.dtype, name) for name, x in zip(names, inputs)]
            self._input_info = _shapes_and_dtypes(self._inputs)
            self._is_shape_inferred = True

    @property
    def _scaler(self) -> Any:
        return self._runner.scaler

    # one batch ---------------------------------------------------------------------------------

    def train_batch(self, inputs: Any, labels: Any = None, update: bool = True) -> Any:
        """One step of training.

        Args:
            inputs: a tensor or array, or a list of them.
            labels: the same for the loss and the metrics.
            update: whether the optimizer updates the parameters; False keeps adding up gradients.

        Returns:
            a list of the losses as arrays; with metrics a tuple of that and a list of what they returned.

        Examples:
            >>> import oar
            >>> net = oar.nn.Linear(2, 1)
            >>> model = oar.Model(net)
            >>> model.prepare(oar.optimizer.SGD(0.1, parameters=net.parameters()), oar.nn.MSELoss())
            >>> losses = [model.train_batch([oar.ones([4, 2])], [oar.ones([4, 1])])[0] for _ in range(2)]
            >>> bool(losses[1] <= losses[0])
            True
        """
        return self._runner.train_batch(inputs, labels, update)

    def eval_batch(self, inputs: Any, labels: Any = None) -> Any:
        """The losses and metrics of a batch, without training.

        Args:
            inputs: a tensor or array, or a list of them.
            labels: the same for the loss and the metrics.

        Returns:
            as ``train_batch``; without a loss the list of what the metrics returned.

        Examples:
            >>> import oar
            >>> model = oar.Model(oar.nn.Identity())
            >>> model.prepare(loss=oar.nn.MSELoss())
            >>> model.eval_batch([oar.ones([2, 1])], [oar.zeros([2, 1])])[0].item()
            1.0
        """
        with oar.no_grad():
            return self._runner.eval_batch(inputs, labels)

    def predict_batch(self, inputs: Any) -> list[Any]:
        """The outputs of the network for a batch.

        Args:
            inputs: a tensor or array, or a list of them.

        Returns:
            a list of arrays.

        Examples:
            >>> import oar
            >>> oar.Model(oar.nn.ReLU()).predict_batch([oar.to_tensor([-1.0, 2.0])])[0].tolist()
            [0.0, 2.0]
        """
        with oar.no_grad():
            return self._runner.predict_batch(inputs)

    # set-up and files --------------------------------------------------------------------------

    def prepare(self, optimizer: Any = None, loss: Any = None, metrics: Any = None, amp_configs: Any = None) -> None:
        """Sets what training and evaluation need.

        Args:
            optimizer: the optimizer; needed for training.
            loss: a layer or a function of the network's outputs and the labels, which returns a tensor or a list of them.
            metrics: a ``Metric`` or a list of them.
            amp_configs: the level of mixed precision, ``'O0'``, ``'O1'`` or ``'O2'``, or a dict with ``level``, the lists of
                ``amp.auto_cast`` and arguments of ``amp.GradScaler``.

        Examples:
            >>> import oar
            >>> net = oar.nn.Linear(2, 3)
            >>> model = oar.Model(net)
            >>> model.prepare(oar.optimizer.SGD(0.1, parameters=net.parameters()), oar.nn.CrossEntropyLoss(),
            ...               oar.metric.Accuracy())
        """
        if loss is not None and not callable(loss):
            raise TypeError(f"[Model.prepare] loss should be a Layer or a callable, such as oar.nn.CrossEntropyLoss(), but "
                            f"received {type(loss).__name__}.")
        if optimizer is not None and not hasattr(optimizer, "minimize"):
            raise TypeError(f"[Model.prepare] optimizer should be an Optimizer, but received {type(optimizer).__name__}.")
        for metric in listed(metrics):
            if not isinstance(metric, oar.metric.Metric):
                raise AssertionError(f"[Model.prepare] {type(metric).__name__} is not a sub class of oar.metric.Metric.")
        self._optimizer = optimizer
        self._loss = loss
        self._metrics = listed(metrics)
        self._runner.prepare_amp(amp_configs)

    def save(self, path: str, training: bool = True) -> None:
        """Writes the model to files.

        Args:
            path: the path of the files without their extension.
            training: True writes the parameters (``.pdparams``) and the optimizer's state (``.pdopt``), for ``load``; False a
                program (``.pdmodel``) and its states (``.pdiparams``), for ``oar.inference`` and the runtime library.

        Examples:
            >>> import os, tempfile
            >>> import oar
            >>> model = oar.Model(oar.nn.Linear(2, 1), oar.static.InputSpec([None, 2], name='x'))
            >>> folder = tempfile.mkdtemp()
            >>> model.save(folder + '/checkpoint')
            >>> model.save(folder + '/net', training=False)
            >>> sorted(os.listdir(folder))
            ['checkpoint.pdparams', 'net.pdiparams', 'net.pdmodel']
        """
        if ParallelEnv().local_rank != 0:
            return
        if training:
            _files.save(self, path)
        else:
            _files.save_for_inference(self, path)

    def load(self, path: str, skip_mismatch: bool = False, reset_optimizer: bool = False) -> None:
        """Reads what ``save`` wrote for training.

        Args:
            path: the path of the files, with or without an extension.
            skip_mismatch: leave out, with a warning, parameters that the file lacks or has in another shape.
            reset_optimizer: do not read the optimizer's state.

        Examples:
            >>> import tempfile
            >>> import oar
            >>> path = tempfile.mkdtemp() + '/checkpoint'
            >>> first, second = oar.Model(oar.nn.Linear(2, 1)), oar.Model(oar.nn.Linear(2, 1))
            >>> first.save(path)
            >>> second.load(path)
            >>> bool((first.network.weight == second.network.weight).all())
            True
        """
        _files.load(self, path, skip_mismatch, reset_optimizer)

    def parameters(self, *args: Any, **kwargs: Any) -> list[Tensor]:
        """The parameters of the network.

        Examples:
            >>> import oar
            >>> len(oar.Model(oar.nn.Linear(2, 1)).parameters())
            2
        """
        return [*self.network.parameters(*args, **kwargs)]

    def summary(self, input_size: Any = None, dtype: Any = None) -> dict[str, int]:
        """Prints the layers of the network, as ``oar.summary`` does.

        Args:
            input_size: a shape or a list of them; None takes the ``inputs`` of the model.
            dtype: the dtype of the inputs.

        Returns:
            a dict with ``total_params`` and ``trainable_params``.

        Examples:
            >>> import oar
            >>> info = oar.Model(oar.nn.Linear(2, 1)).summary((4, 2))  # doctest: +ELLIPSIS
            ---...
            >>> info
            {'total_params': 3, 'trainable_params': 3}
        """
        if input_size is None and self._input_info is None:
            raise AssertionError("[Model.summary] 'input_size' must be given, or inputs=[InputSpec(...)] to Model.")
        return oar.summary(self.network, self._inputs if input_size is None else input_size, dtypes=dtype)

    # loops -------------------------------------------------------------------------------------

    def fit(self, train_data: Any = None, eval_data: Any = None, batch_size: Any = 1, epochs: int = 1, eval_freq: int = 1,
            log_freq: int = 10, save_dir: str | None = None, save_freq: int = 1, verbose: int = 2, drop_last: bool = False,
            shuffle: bool = True, num_workers: int = 0, callbacks: Any = None, accumulate_grad_batches: int = 1,
            num_iters: int | None = None) -> None:
        """Trains the network.

        Args:
            train_data: a ``Dataset``, a ``DataLoader``, or anything that iterates over batches.
            eval_data: the same, evaluated between epochs.
            batch_size: samples in a batch of a ``Dataset``; two numbers for training and evaluation.
            epochs: how often to go through the data.
            eval_freq: the epochs from one evaluation to the next.
            log_freq: the steps from one report to the next.
            save_dir: a folder for checkpoints; None saves none.
            save_freq: the epochs from one checkpoint to the next.
            verbose: 0 prints nothing, 1 a progress bar, 2 a line for each report, 3 times besides.
            drop_last: leave out a last batch that is not full.
            shuffle: random order, another in each epoch.
            num_workers: processes that fetch ahead.
            callbacks: a callback or a list of them; see ``oar.callbacks``.
            accumulate_grad_batches: batches whose gradients add up to one update.
            num_iters: end after this many batches, whatever ``epochs`` says.

        Examples:
            >>> import oar
            >>> net = oar.nn.Linear(2, 1)
            >>> model = oar.Model(net)
            >>> model.prepare(oar.optimizer.SGD(0.1, parameters=net.parameters()), oar.nn.MSELoss())
            >>> data = oar.io.TensorDataset([oar.ones([4, 2]), oar.ones([4, 1])])
            >>> model.fit(data, batch_size=2)  # doctest: +ELLIPSIS
            The loss value printed in the log is the current step, and the metric is the average value of previous steps.
            Epoch 1/1
            step 2/2 - loss: ... - ...s/step
        """
        if train_data is None:
            raise AssertionError("[Model.fit] train_data must be given.")
        if self._optimizer is None or self._loss is None:
            raise AssertionError("[Model.fit] needs an optimizer and a loss: please call `model.prepare(optimizer, loss)` first.")
        sizes = batch_sizes(batch_size)
        loader = loader_of("fit", train_data, sizes[0], shuffle, drop_last, num_workers)
        checks = None if eval_data is None else loader_of("fit", eval_data, sizes[1], False, False, num_workers)
        steps = length_of(loader)
        if num_iters is not None:
            check_count("fit", num_iters)
            if steps is not None:
                epochs = num_iters // steps + 1
                steps = min(num_iters, steps)
        run = config_callbacks(callbacks, model=self, epochs=epochs, steps=steps, log_freq=log_freq, save_freq=save_freq,
                               save_dir=save_dir, verbose=verbose, metrics=self._metrics_name())
        if checks is None and any(isinstance(callback, EarlyStopping) for callback in run):
            warnings.warn("[Model.fit] EarlyStopping needs validation data: pass eval_data.", stacklevel=2)
        self.stop_training = False
        left = math.inf if num_iters is None else num_iters
        logs: dict[str, Any] = {}
        run.on_begin("train")
        for epoch in range(epochs):
            run.on_epoch_begin(epoch)
            logs = self._run_one_epoch(loader, run, "train", left, accumulate_grad_batches)[0]
            left -= logs.get("step", -1) + 1
            self.stop_training = self.stop_training or left <= 0
            run.on_epoch_end(epoch, logs)
            if checks is not None and epoch % eval_freq == 0:
                run.on_begin("eval", {"steps": length_of(checks), "metrics": self._metrics_name()})
                run.on_end("eval", self._run_one_epoch(checks, run, "eval")[0])
            if self.stop_training:
                break
        run.on_end("train", logs)

    def evaluate(self, eval_data: Any, batch_size: int = 1, log_freq: int = 10, verbose: int = 2, num_workers: int = 0,
                 callbacks: Any = None, num_iters: int | None = None) -> dict[str, Any]:
        """The loss and the metrics of data.

        Args:
            eval_data: a ``Dataset``, a ``DataLoader``, or anything that iterates over batches.
            batch_size: samples in a batch of a ``Dataset``.
            log_freq: the steps from one report to the next.
            verbose: as in ``fit``.
            num_workers: processes that fetch ahead.
            callbacks: a callback or a list of them.
            num_iters: end after this many batches.

        Returns:
            a dict of results by name: the loss of the last batch, as a list, and the metrics of all of them.

        Examples:
            >>> import oar
            >>> model = oar.Model(oar.nn.Identity())
            >>> model.prepare(loss=oar.nn.MSELoss())
            >>> data = oar.io.TensorDataset([oar.ones([4, 1]), oar.zeros([4, 1])])
            >>> model.evaluate(data, batch_size=2, verbose=0)
            {'loss': [1.0]}
        """
        if self._loss is None and not self._metrics:
            raise AssertionError("[Model.evaluate] needs a loss or metrics: please call `model.prepare()` first, as "
                                 "model.prepare(loss=..., metrics=...).")
        loader = loader_of("evaluate", eval_data, batch_size, False, False, num_workers)
        run = config_callbacks(callbacks, model=self, log_freq=log_freq, verbose=verbose, metrics=self._metrics_name())
        steps = length_of(loader)
        if num_iters is not None:
            check_count("evaluate", num_iters)
            steps = num_iters = num_iters if steps is None else min(num_iters, steps)
        run.on_begin("eval", {"steps": steps, "metrics": self._metrics_name()})
        logs = self._run_one_epoch(loader, run, "eval", math.inf if num_iters is None else num_iters)[0]
        run.on_end("eval", logs)
        return {name: logs[name] for name in self._metrics_name() if name in logs}

    def predict(self, test_data: Any, batch_size: int = 1, num_workers: int = 0, stack_outputs: bool = False,
                verbose: int = 1, callbacks: Any = None) -> list[Any]:
        """The outputs of the network for data.

        Args:
            test_data: a ``Dataset``, a ``DataLoader``, or anything that iterates over batches; labels are left out.
            batch_size: samples in a batch of a ``Dataset``.
            num_workers: processes that fetch ahead.
            stack_outputs: join the batches of an output to one array.
            verbose: as in ``fit``.
            callbacks: a callback or a list of them.

        Returns:
            a list with an entry for each output: a tuple of the arrays of the batches, or one array.

        Examples:
            >>> import oar
            >>> data = oar.io.TensorDataset([oar.ones([4, 1])])
            >>> outputs = oar.Model(oar.nn.Identity()).predict(data, batch_size=2, stack_outputs=True, verbose=0)
            >>> outputs[0].shape
            (4, 1)
        """
        loader = loader_of("predict", test_data, batch_size, False, False, num_workers)
        run = config_callbacks(callbacks, model=self, verbose=verbose)
        run.on_begin("predict", {"steps": length_of(loader)})
        logs, batches = self._run_one_epoch(loader, run, "predict")
        outputs: list[Any] = list(zip(*batches))
        if stack_outputs:
            import numpy as np

            outputs = [np.vstack(arrays) for arrays in outputs]
        run.on_end("predict", logs)
        return outputs

    def _run_one_epoch(self, loader: Any, run: CallbackList, mode: str, limit: float = math.inf,
                       accumulate: int = 1) -> tuple[dict[str, Any], list[Any]]:
        """Goes through the data once: the results of the last batch, and in ``predict`` the outputs."""
        logs: dict[str, Any] = {}
        outputs: list[Any] = []
        for step, data, last in steps_of(loader, look_ahead=accumulate > 1):
            run.on_batch_begin(mode, step, logs)
            count = self._input_count(mode, len(data))
            if mode == "predict":
                outputs.append(self.predict_batch(data[:count]))
            elif mode == "train":
                results = self.train_batch(data[:count], data[count:], update=(step + 1) % accumulate == 0 or last)
                logs.update(self._results(results, step, logs))
            else:
                logs.update(self._results(self.eval_batch(data[:count], data[count:]), step, logs))
            shape: Any = getattr(data[0], "shape", ())
            logs["step"] = step
            logs["batch_size"] = (shape[0] if len(shape) else 1) * ParallelEnv().nranks
            run.on_batch_end(mode, step, logs)
            if step + 1 >= limit:
                break
        for metric in self._metrics:
            metric.reset()
        return logs, outputs

    def _input_count(self, mode: str, available: int) -> int:
        if self._takes_any and not self._inputs:
            if mode != "predict":
                raise ValueError("[Model] forward takes any number of inputs; pass inputs=[InputSpec(...), ...] to Model to say "
                                 f"how many of the {available} tensors of a batch are inputs.")
            return available
        return len(self._inputs)

    def _results(self, results: Any, step: int, before: dict[str, Any]) -> dict[str, Any]:
        """The losses as numbers, and the metrics of all batches so far, by name."""
        values: list[Any] = []
        if self._loss is not None:
            losses = results[0] if self._metrics else results
            for loss in losses:
                if loss.size != 1:
                    raise ValueError(f"[Model] the loss has shape {list(loss.shape)}; it should be one number. Reduce it, for "
                                     "example with reduction='mean'.")
            values.append([float(loss.item()) for loss in losses])
            # Once: the losses after it are no numbers either.
            if not all(map(math.isfinite, values[0])) and all(map(math.isfinite, before.get("loss", ()))):
                warnings.warn(f"[Model] the loss is {values[0]} at step {step} of a pass over the data: look for such values "
                              "in the data, lower the learning rate, or clip gradients.", stacklevel=5)
        for metric in self._metrics:
            values += listed(metric.accumulate())
        names = self._metrics_name()
        if len(names) != len(values):
            raise AssertionError(f"[Model] there are {len(values)} results for the names {names}: name() of a metric should "
                                 "return as many as accumulate().")
        return dict(zip(names, values))

    def _metrics_name(self) -> list[str]:
        names = ["loss"] if self._loss is not None else []
        for metric in self._metrics:
            names += listed(metric.name())
        return names


def _shapes_and_dtypes(specs: Sequence[InputSpec]) -> tuple[list, list]:
    return [list(spec.shape) for spec in specs], [spec.dtype for spec in specs]


def prepare_distributed_context(place: Any = None) -> None:
    """Lets the processes of a run find each other. A single one needs nothing.

    Args:
        place: the place of this process.

    Examples:
        >>> from oar.hapi.model import prepare_distributed_context
        >>> prepare_distributed_context()
    """
    if ParallelEnv().nranks > 1:
        raise NotImplementedError(f"[prepare_distributed_context] there are {ParallelEnv().nranks} processes, but they cannot talk "
                                  "to each other yet; start a single one.")
