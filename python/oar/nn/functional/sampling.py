"""Functions around choosing: paths of a beam search, classes to train on."""

from __future__ import annotations

import oar
from oar._C import Tensor

__all__ = ["class_center_sample", "gather_tree"]


def gather_tree(ids: Tensor, parents: Tensor) -> Tensor:
    """The full sequences of a beam search, traced back from the last step: the ``ids`` at each step of
    the path that leads to a beam. Both tensors are ``[steps, batch, beams]``; ``parents`` says which beam of the step
    before each one came from.

    Args:
        ids: the chosen token of each beam at each step.
        parents: the beam that each one continues.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> import oar.nn.functional as F
        >>> ids, parents = oar.to_tensor([[[1, 2]], [[3, 4]]]), oar.to_tensor([[[0, 0]], [[1, 0]]])
        >>> F.gather_tree(ids, parents)[:, 0]
        Tensor(shape=[2, 2], dtype=int64, place=Place(cpu), stop_gradient=True,
               [[2, 1],
                [3, 4]])
    """
    if ids.ndim != 3:
        raise ValueError(f"[gather_tree] ids must have the shape [steps, batch, beams], not {list(ids.shape)}.")
    if list(ids.shape) != list(parents.shape):
        raise ValueError(f"[gather_tree] ids has shape {list(ids.shape)} and parents {list(parents.shape)}; they must "
                         "be the same.")
    for what, x in (("ids", ids), ("parents", parents)):
        if x.dtype.name not in ("int32", "int64"):
            raise TypeError(f"[gather_tree] {what} must be int32 or int64, not {x.dtype.name}.")
    steps = ids.shape[0]
    if steps < 2:
        return oar.assign(ids)
    path, beam = [ids[steps - 1]], parents[steps - 1]
    for step in range(steps - 2, -1, -1):
        path.append(oar.take_along_axis(ids[step], beam, 1))
        beam = oar.take_along_axis(parents[step], beam, 1)
    return oar.stack(path[::-1])


def class_center_sample(label: Tensor, num_classes: int, num_samples: int, group=None) -> tuple[Tensor, Tensor]:
    """The labels as numbers of sampled classes, and those classes: all that occur in ``label``, in order, and as many
    others at random as are missing to ``num_samples``. There are more if more occur.

    Args:
        label: the expected classes.
        num_classes: the number of classes.
        num_samples: how many classes to keep.
        group: accepted for compatibility.

    Returns:
        two tensors, as described above.

    Examples:
        >>> import oar
        >>> import oar.nn.functional as F
        >>> labels, classes = F.class_center_sample(oar.to_tensor([7, 3, 7]), num_classes=10, num_samples=2)
        >>> labels.tolist(), classes.tolist()
        ([1, 0, 1], [3, 7])
    """
    if not (group is False or group is None):
        raise ValueError(f"[class_center_sample] group must be None or False, not {group!r}: there is one process.")
    if num_samples > num_classes:
        raise ValueError(f"[class_center_sample] num_samples is {num_samples}; it must not be more than num_classes, "
                         f"{num_classes}.")
    if label.ndim != 1 or label.dtype.name not in ("int32", "int64"):
        raise ValueError(f"[class_center_sample] label must be a vector of int32 or int64, not {label.dtype.name} of "
                         f"shape {list(label.shape)}.")
    present, numbers = oar.unique(label, return_inverse=True)
    if present.size and not 0 <= present[0].item() <= present[-1].item() < num_classes:
        raise ValueError(f"[class_center_sample] labels must be from 0 to {num_classes - 1}.")
    missing = max(num_samples - present.shape[0], 0)
    order = oar.randperm(num_classes, dtype=label.dtype)
    others = oar.masked_select(order, oar.logical_not(oar.isin(order, present)))
    return oar.cast(numbers, label.dtype), oar.concat([present, others[:missing]])
