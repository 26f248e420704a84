"""Puts the ops of the native registry where Paddle's users look for them."""

from __future__ import annotations

from oar import _C


class _Ops:
    """Every op by name: ``oar._C.ops.add``. Also those that have no public place."""

    def __getattr__(self, name: str):
        try:
            function = _C.op(name)
        except RuntimeError as error:
            raise AttributeError(str(error)) from None
        setattr(self, name, function)
        return function

    def __dir__(self):
        return [record["name"] for record in _C.op_records()]


_C.ops = _Ops()

_places: dict[str, dict[str, object]] = {}


def _collect() -> None:
    for record in _C.op_records():
        if not record["python"]:
            continue
        function = getattr(_C.ops, record["name"])
        for place in record["python"].split():
            _places.setdefault(place, {})[record["name"]] = function


_collect()


def functions_of(place: str) -> dict[str, object]:
    """The ops whose record names a place, such as ``oar`` or ``oar.nn.functional``."""
    return dict(_places.get(place, {}))


def attach_tensor_methods(tensor_type: type) -> None:
    for name, function in _places.get("Tensor", {}).items():
        if name not in tensor_type.__dict__:
            setattr(tensor_type, name, function)
