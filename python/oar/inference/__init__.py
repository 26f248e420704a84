"""Predictors: models that ``save_inference_model`` wrote, fed and run by name."""

from oar.inference.config import Config, DataType, PlaceType, PrecisionType, XpuConfig
from oar.inference.mixed import convert_to_mixed_precision
from oar.inference.predictor import Predictor, PredictorPool, Tensor, create_predictor, get_num_bytes_of_data_type

__all__ = [
    "Config",
    "DataType",
    "PlaceType",
    "PrecisionType",
    "Predictor",
    "PredictorPool",
    "Tensor",
    "XpuConfig",
    "_get_phi_kernel_name",
    "convert_to_mixed_precision",
    "create_predictor",
    "get_num_bytes_of_data_type",
    "get_trt_compile_version",
    "get_trt_runtime_version",
    "get_version",
]


def get_version() -> str:
    """The version of Oar.

    Returns:
        a string.

    Examples:
        >>> import oar
        >>> isinstance(oar.inference.get_version(), str)
        True
    """
    import oar

    return f"version: {oar.__version__}"


def get_trt_compile_version() -> tuple[int, int, int]:
    """Zeros: Oar is built without TensorRT.

    Examples:
        >>> import oar
        >>> oar.inference.get_trt_compile_version()
        (0, 0, 0)
    """
    return 0, 0, 0


def get_trt_runtime_version() -> tuple[int, int, int]:
    """Zeros: Oar is built without TensorRT.

    Examples:
        >>> import oar
        >>> oar.inference.get_trt_runtime_version()
        (0, 0, 0)
    """
    return 0, 0, 0


def _get_phi_kernel_name(op_name: str) -> str:
    """Paddle's present name of an operator of an older program.

    Args:
        op_name: the name in the older program.

    Returns:
        the present name, or the name itself if it has no other.

    Examples:
        >>> import oar
        >>> oar.inference._get_phi_kernel_name("matmul_v2")
        'matmul'
    """
    from oar.base import operators

    form = operators.find_older(op_name)
    return op_name if form is None else form.name
