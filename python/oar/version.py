"""Which version this is, and with which libraries it was built."""

from __future__ import annotations

from oar import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["cuda", "cuda_archs", "cudnn", "hip", "nccl", "show", "tensorrt", "xpu", "xpu_xccl", "xpu_xhpc", "xpu_xre"]


def _numbers(version: str) -> tuple[str, str, str, str]:
    """Major, minor, patch and number of the candidate, of a version such as ``1.2.3`` or ``1.2.3rc1``."""
    numbers, _, candidate = version.partition("rc")
    first, second, third = [*numbers.split("."), "0", "0"][:3]
    return first, second, third, candidate or "0"


full_version = _C.version
major, minor, patch, rc = _numbers(full_version)
commit = "Unknown"
is_tagged = False
hip = None
with_mkl = "OFF"
with_pip_cuda_libraries = "OFF"


def stand_for(version: str, tagged_commit: str) -> None:
    """Makes the module tell another version, a release with this commit."""
    global full_version, major, minor, patch, rc, commit, is_tagged
    full_version, commit, is_tagged = version, tagged_commit, True
    major, minor, patch, rc = _numbers(version)


def _without(library: str, name: str, answer: Any) -> Any:
    def function() -> Any:
        return list(answer) if isinstance(answer, list) else answer

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{answer!r}: it was built without {library}.

    Returns:
        {"a list" if isinstance(answer, list) else "a string"}.

    Examples:
        >>> import oar
        >>> oar.version.{name}()
        {answer!r}
    """
    return function


cuda = _without("CUDA", "cuda", "False")
cudnn = _without("cuDNN", "cudnn", "False")
cuda_archs = _without("CUDA", "cuda_archs", [])
nccl = _without("NCCL", "nccl", "0")
tensorrt = _without("TensorRT", "tensorrt", "None")
xpu = _without("XPUs", "xpu", "False")
xpu_xre = _without("XPUs", "xpu_xre", "False")
xpu_xccl = _without("XPUs", "xpu_xccl", "False")
xpu_xhpc = _without("XPUs", "xpu_xhpc", "False")
cinn = _without("CINN: the compiler is Oar's own", "cinn", "False")
mkl = _without("MKL: products are oneDNN's", "mkl", "OFF")


def show() -> None:
    """Prints the version and the libraries.

    Examples:
        >>> import oar
        >>> oar.version.show()  # doctest: +ELLIPSIS
        full_version: ...
        cuda_archs: []
    """
    rows = {"full_version": full_version, "major": major, "minor": minor, "patch": patch, "rc": rc, "cuda": cuda(),
            "cudnn": cudnn(), "hip": hip, "nccl": nccl(), "xpu_xre": xpu_xre(), "xpu_xccl": xpu_xccl(),
            "xpu_xhpc": xpu_xhpc(), "cinn": cinn(), "tensorrt_version": tensorrt(), "cuda_archs": cuda_archs()}  # fmt: skip
    for name, value in rows.items():
        print(f"{name}: {value}")
