"""Messages of Python objects. They are pickled, and unpickling runs code that the sender chose: these are for processes that trust
each other, such as those of one training."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

import oar
from oar._C import Tensor
from oar.distributed.communication import stream
from oar.distributed.communication._calls import Call, peer_in
from oar.distributed.communication.group import Group

__all__ = ["all_gather_object", "broadcast_object_list", "recv_object_list", "scatter_object_list", "send_object_list"]

_TAG = 1  # of messages with objects, so that they do not mix with tensors


def _packed(obj: Any) -> Tensor:
    return oar.to_tensor(np.frombuffer(pickle.dumps(obj, protocol=pickle.HIGHEST_PROTOCOL), np.uint8))


def _unpacked(content: Tensor, length: int) -> Any:
    return pickle.loads(content.numpy()[:length].tobytes())


def _padded(content: Tensor, length: int) -> Tensor:
    blank = oar.zeros([length], "uint8")
    blank[: content.shape[0]] = content
    return blank


def _lengths(contents: list[Tensor]) -> Tensor:
    return oar.to_tensor([content.shape[0] for content in contents], "int64")


def all_gather_object(object_list: list[Any], obj: Any, group: Group | None = None) -> None:
    """Collects objects of all processes in a list. The processes must trust each other: objects are pickled.

    Args:
        object_list: the list; copies of the objects are appended.
        obj: the object of this process.
        group: the processes; None means all.

    Examples:
        >>> import oar
        >>> parts = []
        >>> oar.distributed.all_gather_object(parts, {"loss": 0.5})
        >>> parts
        [{'loss': 0.5}]
    """
    call = Call("all_gather_object", group)
    if not call.is_member:
        return
    content = _packed(obj)
    lengths = oar.zeros([call.group.nranks], "int64")
    stream.all_gather(lengths, _lengths([content]), call.group)
    most = int(lengths.max())
    everything = oar.zeros([call.group.nranks * most], "uint8")
    stream.all_gather(everything, _padded(content, most), call.group)
    for i, length in enumerate(lengths.tolist()):
        object_list.append(_unpacked(everything[i * most : (i + 1) * most], length))


def broadcast_object_list(object_list: list[Any], src: int, group: Group | None = None) -> None:
    """Copies the objects of the process ``src`` into the lists of all. The processes must trust each other: objects are pickled.

    Args:
        object_list: the list; of the same length in all processes.
        src: the number of the process that has the content.
        group: the processes; None means all.

    Examples:
        >>> import oar
        >>> oar.distributed.broadcast_object_list([{"loss": 0.5}], src=0)
    """
    call = Call("broadcast_object_list", group)
    root = peer_in("broadcast_object_list", "src", src, call.group)
    if not call.is_member or call.group.nranks == 1:
        return
    contents = [_packed(obj) for obj in object_list] if call.group.rank == root else []
    lengths = _lengths(contents) if contents else oar.zeros([len(object_list)], "int64")
    stream.broadcast(lengths, src, call.group)
    joined = oar.concat(contents) if contents else oar.zeros([int(lengths.sum())], "uint8")
    stream.broadcast(joined, src, call.group)
    if call.group.rank == root:
        return
    end = 0
    for i, length in enumerate(lengths.tolist()):
        object_list[i] = _unpacked(joined[end : end + length], length)
        end += length


def scatter_object_list(
    out_object_list: list[Any], in_object_list: list[Any] | None = None, src: int = 0, group: Group | None = None
) -> None:
    """Gives each process one object of a list of the process ``src``. The processes must trust each other: objects are pickled.

    Args:
        out_object_list: the list that gets the object.
        in_object_list: one object for each process, in ``src``.
        src: the number of the process that has the list.
        group: the processes; None means all.

    Examples:
        >>> import oar
        >>> parts = []
        >>> oar.distributed.scatter_object_list(parts, [{"loss": 0.5}])
        >>> parts
        [{'loss': 0.5}]
    """
    call = Call("scatter_object_list", group)
    root = peer_in("scatter_object_list", "src", src, call.group)
    count, is_root = call.group.nranks, call.group.rank == root
    if is_root and len(in_object_list or ()) != count:
        raise ValueError(f"[scatter_object_list] in_object_list must have one object for each of the {count} processes, but is "
                         f"{in_object_list}.")
    if not call.is_member:
        return
    contents = [_packed(obj) for obj in in_object_list or ()] if is_root else []
    lengths = _lengths(contents) if is_root else oar.zeros([count], "int64")
    stream.broadcast(lengths, src, call.group)
    most = int(lengths.max())
    own = oar.zeros([most], "uint8")
    stream.scatter(own, [_padded(content, most) for content in contents] or None, src, call.group)
    out_object_list[:] = [_unpacked(own, lengths.tolist()[call.group.rank])]


def _peer(function: str, argument: str, rank: int | None, in_group: int | None, group: Group) -> int | None:
    """The number in the world of a process that is given by that or by its number in the group."""
    if in_group is None:
        return rank
    if not 0 <= in_group < group.nranks:
        raise ValueError(f"[{function}] {argument}_in_group is {in_group}, but the group has {group.nranks} processes.")
    return group.ranks[in_group]


def send_object_list(
    object_list: list[Any], dst: int | None = None, group: Group | None = None, dst_in_group: int | None = None
) -> None:
    """Sends objects to another process, which calls ``recv_object_list``. The processes must trust each other: objects are pickled.

    Args:
        object_list: the objects.
        dst: the number of the other process.
        group: the processes; None means all.
        dst_in_group: its number in the group, instead of ``dst``.

    Examples:
        >>> import oar
        >>> oar.distributed.send_object_list([1], dst=0)
        Traceback (most recent call last):
        ...
        ValueError: [send_object_list] dst is 0, but there is one process. hint: check get_world_size() first.
    """
    call = Call("send_object_list", group)
    peer = _peer("send_object_list", "dst", dst, dst_in_group, call.group)
    if call.group.nranks == 1:
        raise ValueError(f"[send_object_list] dst is {peer}, but there is one process. hint: check get_world_size() first.")
    contents = [_packed(obj) for obj in object_list]
    stream.message("send", _lengths(contents), peer, group, True, tag=_TAG)
    stream.message("send", oar.concat(contents), peer, group, True, tag=_TAG)


def recv_object_list(
    object_list: list[Any], src: int | None = None, group: Group | None = None, src_in_group: int | None = None
) -> None:
    """Receives objects from another process, which calls ``send_object_list``. It must be trusted: objects are pickled.

    Args:
        object_list: the list to write, as long as the one that is sent.
        src: the number of the other process.
        group: the processes; None means all.
        src_in_group: its number in the group, instead of ``src``.

    Examples:
        >>> import oar
        >>> oar.distributed.recv_object_list([None], src=0)
        Traceback (most recent call last):
        ...
        ValueError: [recv_object_list] src is 0, but there is one process. hint: check get_world_size() first.
    """
    call = Call("recv_object_list", group)
    peer = _peer("recv_object_list", "src", src, src_in_group, call.group)
    if call.group.nranks == 1:
        raise ValueError(f"[recv_object_list] src is {peer}, but there is one process. hint: check get_world_size() first.")
    lengths = oar.zeros([len(object_list)], "int64")
    stream.message("recv", lengths, peer, group, True, tag=_TAG)
    joined = oar.zeros([int(lengths.sum())], "uint8")
    stream.message("recv", joined, peer, group, True, tag=_TAG)
    end = 0
    for i, length in enumerate(lengths.tolist()):
        object_list[i] = _unpacked(joined[end : end + length], length)
        end += length
