"""The base class of callbacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oar.hapi.model import Model

__all__ = ["Callback"]


class Callback:
    """Methods that a model calls as it trains, evaluates and predicts. Define those that you need.

    ``self.model`` is the model. ``self.params`` has ``epochs``, ``steps``, ``verbose`` and ``metrics``, the names of what
    is reported. ``logs`` of a batch has those names, ``step`` and ``batch_size``; ``logs['loss']`` is a list.

    Examples:
        >>> import oar
        >>> class Losses(oar.callbacks.Callback):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.losses = []
        ...     def on_train_batch_end(self, step, logs=None):
        ...         self.losses += logs['loss']
        ...
        >>> net = oar.nn.Linear(2, 1)
        >>> model = oar.Model(net)
        >>> model.prepare(oar.optimizer.SGD(0.1, parameters=net.parameters()), oar.nn.MSELoss())
        >>> data = oar.io.TensorDataset([oar.ones([4, 2]), oar.ones([4, 1])])
        >>> losses = Losses()
        >>> model.fit(data, batch_size=2, verbose=0, callbacks=[losses])
        >>> len(losses.losses)
        2
    """

    # Subclasses need not call __init__ here.
    model: Model | None = None
    params: dict[str, Any] = {}

    def __init__(self) -> None:
        self.model = None
        self.params = {}

    def set_params(self, params: dict[str, Any]) -> None:
        """Called before a run with its parameters."""
        self.params = params

    def set_model(self, model: Model) -> None:
        """Called before a run with the model."""
        self.model = model

    def on_train_begin(self, logs: dict | None = None) -> None:
        """Called when ``fit`` begins."""

    def on_train_end(self, logs: dict | None = None) -> None:
        """Called when ``fit`` ends."""

    def on_eval_begin(self, logs: dict | None = None) -> None:
        """Called when an evaluation begins; ``logs`` has ``steps`` and ``metrics``."""

    def on_eval_end(self, logs: dict | None = None) -> None:
        """Called when an evaluation ends, with its results."""

    def on_predict_begin(self, logs: dict | None = None) -> None:
        """Called when ``predict`` begins; ``logs`` has ``steps``."""

    def on_predict_end(self, logs: dict | None = None) -> None:
        """Called when ``predict`` ends."""

    def on_epoch_begin(self, epoch: int, logs: dict | None = None) -> None:
        """Called when an epoch begins; they count from 0."""

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        """Called when an epoch ends, with the results of its last batch."""

    def on_train_batch_begin(self, step: int, logs: dict | None = None) -> None:
        """Called before a batch of training."""

    def on_train_batch_end(self, step: int, logs: dict | None = None) -> None:
        """Called after a batch of training, with its results."""

    def on_eval_batch_begin(self, step: int, logs: dict | None = None) -> None:
        """Called before a batch of an evaluation."""

    def on_eval_batch_end(self, step: int, logs: dict | None = None) -> None:
        """Called after a batch of an evaluation, with its results."""

    def on_predict_batch_begin(self, step: int, logs: dict | None = None) -> None:
        """Called before a batch of ``predict``."""

    def on_predict_batch_end(self, step: int, logs: dict | None = None) -> None:
        """Called after a batch of ``predict``."""
