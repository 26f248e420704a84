"""An optimizer that keeps the zeros of pruned weights."""

from __future__ import annotations

from typing import Any

from oar._C import Tensor, ops
from oar._grad_mode import no_grad
from oar.incubate.asp.prune import masks, pruning_of

__all__ = ["decorate"]


class OptimizerWithSparsityGuarantee:
    """An optimizer that sets pruned weights to 0 again after each step; all else is that of the optimizer inside."""

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer
        every = [p for group in optimizer._groups for p in group["params"]]
        if not every:
            raise ValueError("[decorate] the optimizer has no parameters. Create it with parameters=model.parameters().")
        self._parameters = [p for p in every if pruning_of(p.name) is not None]
        for parameter in self._parameters:
            masks[parameter.name] = ops.ones_like(parameter)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_optimizer"], name)

    def _mask(self) -> None:
        with no_grad():
            for parameter in self._parameters:
                parameter.set_value(parameter * masks[parameter.name])

    def step(self) -> None:
        """A step of the optimizer; then the pruned weights are 0 again."""
        self._optimizer.step()
        self._mask()

    def minimize(self, loss: Tensor, startup_program: Any = None, parameter_list: Any = None,
                 no_grad_set: Any = None) -> Any:
        """``minimize`` of the optimizer; then the pruned weights are 0 again.

        Args:
            loss: the value to minimise.
            startup_program: not used.
            parameter_list: the parameters to change; all if None.
            no_grad_set: the parameters to leave.
        """
        result = self._optimizer.minimize(loss, startup_program, parameter_list, no_grad_set)
        self._mask()
        return result

    def state_dict(self) -> dict[str, Any]:
        """The state of the optimizer, with the masks."""
        return {**self._optimizer.state_dict(), **{f"{p.name}.asp_mask": masks[p.name] for p in self._parameters}}

    def set_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads a state with its masks.

        Args:
            state_dict: what ``state_dict`` returned.
        """
        rest = dict(state_dict)
        for parameter in self._parameters:
            key = f"{parameter.name}.asp_mask"
            if key not in rest:
                raise ValueError(f"the state has no {key!r}; it must be the state of an optimizer from asp.decorate.")
            masks[parameter.name] = rest.pop(key)
        self._optimizer.set_state_dict(rest)


def decorate(optimizer: Any) -> OptimizerWithSparsityGuarantee:
    """An optimizer that keeps the zeros which ``prune_model`` makes later.

    Args:
        optimizer: any optimizer.

    Returns:
        an optimizer with the same methods.

    Examples:
        >>> import oar
        >>> layer = oar.nn.Linear(8, 4)
        >>> optimizer = oar.incubate.asp.decorate(oar.optimizer.SGD(0.1, parameters=layer.parameters()))
        >>> _ = oar.incubate.asp.prune_model(layer)
        >>> layer(oar.ones([2, 8])).sum().backward()
        >>> optimizer.step()
        >>> oar.incubate.asp.calculate_density(layer.weight)
        0.5
    """
    return OptimizerWithSparsityGuarantee(optimizer)
