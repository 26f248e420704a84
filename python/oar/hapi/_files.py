"""The files of a model: parameters, the optimizer's state, and a program for inference."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any

import oar
from oar.hapi._calls import listed

if TYPE_CHECKING:
    from oar.hapi.model import Model

__all__ = ["load", "save", "save_for_inference"]


def save(model: Model, path: str) -> None:
    """Writes ``.pdparams``, ``.pdopt`` and, with mixed precision, ``.pdscaler``."""
    oar.save(model.network.state_dict(), path + ".pdparams")
    optimizer = model._optimizer.state_dict() if model._optimizer is not None else None
    if optimizer:
        oar.save(optimizer, path + ".pdopt")
    scaler = model._scaler.state_dict() if model._scaler is not None else None
    if scaler:
        oar.save(scaler, path + ".pdscaler")


def load(model: Model, path: str, skip_mismatch: bool, reset_optimizer: bool) -> None:
    """Reads what ``save`` wrote. Nothing changes if a parameter does not fit, unless ``skip_mismatch``."""
    path, extension = os.path.splitext(path) if path.endswith((".pdparams", ".pdopt", ".pdmodel")) else (path, "")
    if not os.path.exists(path + ".pdparams"):
        raise AssertionError(f"[Model.load] failed to load parameters, please check path: there is no {path + '.pdparams'!r}.")
    states = oar.load(path + ".pdparams")
    fitting = []
    for key, parameter in model.network.state_dict().items():
        problem = _mismatch(key, states.get(key), parameter)
        if not problem:
            fitting.append((parameter, states[key]))
        elif not skip_mismatch:
            raise ValueError(f"[Model.load] {problem} Pass skip_mismatch=True to load the others.")
        else:
            warnings.warn(f"[Model.load] skip loading for {key}: {problem}", stacklevel=3)
            reset_optimizer = True
    for parameter, state in fitting:
        parameter.set_value(state)
    if model._scaler is not None and os.path.exists(path + ".pdscaler"):
        model._scaler.load_state_dict(oar.load(path + ".pdscaler"))
    if model._optimizer is not None and not reset_optimizer and os.path.exists(path + ".pdopt"):
        model._optimizer.set_state_dict(oar.load(path + ".pdopt"))


def _mismatch(key: str, state: Any, parameter: Any) -> str:
    if state is None:
        return f"{key} is not found in the providing file."
    if list(state.shape) != list(parameter.shape):
        return f"{key} receives a shape {list(state.shape)}, but the expected shape is {list(parameter.shape)}."
    return ""


def save_for_inference(model: Model, path: str) -> None:
    """Writes the network in ``eval`` mode as a program, ``.pdmodel``, with its states, ``.pdiparams``."""
    if model._input_info is None:
        raise RuntimeError("[Model.save] saving inference model needs 'inputs': pass inputs=[InputSpec(...)] to Model, or run "
                           "a batch before, whose shapes are taken.")
    if model._is_shape_inferred:
        warnings.warn(f"[Model.save] Model has no 'inputs', so the saved program takes the shapes of the last batch, "
                      f"{model._input_info[0]}, and no others. Pass inputs=[InputSpec([None, ...])] to Model for open sizes.",
                      stacklevel=3)
    if not os.path.basename(path):
        raise ValueError(f"[Model.save] path should end in the name of the files, as in 'folder/name', not {path!r}.")
    network, training = model.network, model.network.training
    network.eval()
    oar.enable_static()
    try:
        program, startup = oar.static.Program(), oar.static.Program()
        with oar.static.program_guard(program, startup):
            feeds = [oar.static.data(str(spec.name), [-1 if size is None else size for size in spec.shape], spec.dtype)
                     for spec in model._inputs]
            fetches = listed(network(*feeds))
        oar.static.save_inference_model(path, feeds, fetches, oar.static.Executor(), program=program)
    finally:
        oar.disable_static()
        if training:
            network.train()
