"""Operators that ONNX Runtime adds to the standard, against ONNX Runtime: where OAR_ONNXRUNTIME_PYTHON or `make bench-peers` has it."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from onnx_files import field, model, node, port

import oar

PYTHON = os.environ.get("OAR_ONNXRUNTIME_PYTHON", str(Path(__file__).parents[2] / "build" / "bench" / "onnxruntime" / "bin" / "python"))
SIDE = Path(__file__).parent / "peers" / "onnx_side.py"
RANDOM = np.random.default_rng(7)


def f(*shape, scale=1.0):
    return (RANDOM.standard_normal(shape) * scale).astype("float32")


def u8(*shape):
    return RANDOM.integers(0, 256, shape).astype("uint8")


def i8(*shape):
    return RANDOM.integers(-127, 128, shape).astype("int8")


def s(value):
    return np.float32(value)


CASES = {}  # name: (op, inputs, outputs, weights by the places of inputs, attributes, tolerance, domain)


def case(name, op, inputs, outputs=1, weights=(), most=2e-5, domain="com.microsoft", skip_outputs=(), **attributes):
    assert name not in CASES
    CASES[name] = (op, inputs, outputs, set(weights), attributes, most, domain, set(skip_outputs))


X = f(2, 5, 8)
IMAGE = f(1, 4, 7, 6)
LAST = np.ascontiguousarray(IMAGE.transpose(0, 2, 3, 1))

case("fused_matmul", "FusedMatMul", [f(2, 4, 3), f(2, 5, 3)], transB=1, alpha=0.5)
case("fused_matmul_batch", "FusedMatMul", [f(4, 2, 3), f(2, 3, 5)], transBatchA=1)
case("fused_matmul_both", "FusedMatMul", [f(3, 2, 4), f(3, 2, 5)], transBatchA=1, transBatchB=1, transA=1)
case("transpose_matmul", "TransposeMatMul", [f(2, 3, 4), f(2, 3, 5)], transA=1)
case("fused_gemm", "FusedGemm", [f(3, 4), f(5, 4), f(5)], transB=1, alpha=0.5, beta=2.0, activation="Relu")
case("fused_gemm_leaky", "FusedGemm", [f(3, 4), f(4, 5), f(3, 5)], activation="LeakyRelu", activation_alpha=0.2)
case("gelu", "Gelu", [X])
case("fast_gelu", "FastGelu", [X, f(8)])
case("bias_gelu", "BiasGelu", [X, f(8)])
case("quick_gelu", "QuickGelu", [X], alpha=1.5)
case("skip_layer_norm", "SkipLayerNormalization", [X, f(2, 5, 8), f(8), f(8), f(8)], outputs=4, skip_outputs=(1, 2), epsilon=1e-6)
case("skip_simplified", "SkipSimplifiedLayerNormalization", [X, f(2, 5, 8), f(8)], outputs=4, skip_outputs=(1, 2))
case("simplified", "SimplifiedLayerNormalization", [X, f(8)], domain="")
case("embed", "EmbedLayerNormalization",
     [np.int32([[1, 2, 3], [4, 0, 1]]), np.int32([[0, 0, 1], [1, 1, 0]]), f(6, 8), f(4, 8), f(2, 8), f(8), f(8), np.int32([[1, 1, 0], [1, 1, 1]])],
     outputs=2)
case("fused_conv", "FusedConv", [IMAGE, f(6, 2, 3, 3), f(6)], activation="Relu", group=2, pads=[1, 1, 1, 1], weights=(1, 2))
case("fused_conv_sum", "FusedConv", [IMAGE, f(6, 4, 3, 3), f(6), f(1, 6, 5, 4)], activation="Relu", weights=(1, 2))
case("fused_conv_same", "FusedConv", [IMAGE, f(6, 4, 3, 3)], activation="HardSigmoid", activation_params=[0.3, 0.4], auto_pad="SAME_UPPER", weights=(1,))

case("attention", "Attention", [f(2, 5, 6), f(6, 24), f(24)], num_heads=2)
case("attention_mask", "Attention", [f(2, 5, 6), f(6, 24), f(24), np.int32([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])], num_heads=2)
case("attention_lengths", "Attention", [f(2, 5, 6), f(6, 24), f(24), np.int32([3, 5])], num_heads=2)
case("attention_ends", "Attention", [f(2, 5, 6), f(6, 24), f(24), np.int32([4, 5, 1, 0])], num_heads=2)
case("attention_causal", "Attention", [f(2, 5, 6), f(6, 24), f(24)], outputs=2, num_heads=2, unidirectional=1)
case("attention_past", "Attention", [f(2, 3, 6), f(6, 24), f(24), None, f(2, 2, 2, 4, 4)], outputs=2, num_heads=2, unidirectional=1)
case("attention_sizes", "Attention", [f(2, 5, 6), f(6, 20), f(20)], num_heads=2, qkv_hidden_sizes=[8, 8, 4])
case("attention_bias", "Attention", [f(2, 5, 6), f(6, 24), f(24), None, None, f(1, 2, 5, 5)], num_heads=2, scale=0.3)
case("qattention", "QAttention", [u8(2, 5, 6), i8(6, 24), f(24), s(0.02), s(0.01), None, np.uint8(120), np.int8(0)], num_heads=2, weights=(1, 2, 3, 4, 6, 7))
case("multi_head", "MultiHeadAttention", [f(2, 5, 8), f(2, 6, 8), f(2, 6, 8), f(24)], outputs=3, num_heads=2)
case("multi_head_mask", "MultiHeadAttention", [f(2, 5, 8), f(2, 6, 8), f(2, 6, 8), None, np.int32([[1] * 6, [1, 1, 1, 0, 0, 0]])], num_heads=2)
case("multi_head_past", "MultiHeadAttention", [f(2, 3, 8), f(2, 3, 8), f(2, 3, 8), None, None, None, f(2, 2, 4, 4), f(2, 2, 4, 4)], outputs=3,
     num_heads=2, unidirectional=1)
case("multi_head_cross", "MultiHeadAttention", [f(2, 5, 8), f(2, 2, 6, 4), f(2, 2, 6, 4)], num_heads=2)
case("rotary", "RotaryEmbedding", [f(2, 5, 8), np.int64([[0, 1, 2, 3, 4], [3, 4, 5, 6, 7]]), f(9, 2), f(9, 2)], num_heads=2)
case("rotary_one", "RotaryEmbedding", [f(2, 5, 8), np.int64([2]), f(9, 2), f(9, 2)], interleaved=1, num_heads=2)



def grouped(name, batch, steps, lengths, *more, past=0, total=None, outputs=3, head=16, packed=False, **attributes):
    """Four heads, two of keys and values. `more` are the inputs after the total length."""
    q, kv, cache = f(batch, steps, 4 * head), [None, None] if packed else [f(batch, steps, 2 * head), f(batch, steps, 2 * head)], [None, None]
    if packed:
        q = f(batch, steps, 8 * head)
    if past:
        cache = [f(batch, 2, past, head), f(batch, 2, past, head)]
    case(f"grouped_{name}", "GroupQueryAttention", [q, *kv, *cache, np.int32(lengths), np.int32(total or past + steps), *more], outputs=outputs,
         num_heads=4, kv_num_heads=2, weights=(6,), **attributes)


ANGLES = f(12, 8), f(12, 8)
grouped("prompt", 2, 5, [4, 4])
grouped("padded", 2, 5, [4, 2])
grouped("past", 2, 1, [6, 6], past=6)
grouped("uneven", 2, 1, [6, 4], past=6)
grouped("buffer", 2, 1, [4, 2], past=8, total=5)
grouped("rotary", 1, 1, [6], *ANGLES, past=6, do_rotary=1)
grouped("rotary_prompt", 1, 5, [4], *ANGLES, do_rotary=1, rotary_interleaved=1)
grouped("packed", 1, 5, [4], packed=True)
grouped("packed_rotary", 1, 5, [4], *ANGLES, packed=True, do_rotary=1)
grouped("window", 1, 6, [5], local_window_size=3, softcap=2.0)
grouped("window_past", 1, 1, [8], past=8, local_window_size=3)
grouped("smooth", 1, 4, [3], smooth_softmax=1, scale=0.7)
grouped("sink", 1, 4, [3], None, None, None, None, f(4))
grouped("bias", 1, 4, [3], None, None, None, f(1, 4, 4, 4))
grouped("all", 1, 4, [3], causal=0)

ONE = 1.01  # units of the last place of eight bits
case("qlinear_add", "QLinearAdd", [u8(3, 4), s(0.03), np.uint8(100), u8(4), s(0.02), np.uint8(7), s(0.05), np.uint8(90)], most=ONE)
case("qlinear_mul", "QLinearMul", [i8(3, 4), s(0.03), np.int8(10), i8(4), s(0.02), np.int8(7), s(0.05), np.int8(9)], most=ONE)
case("qlinear_sigmoid", "QLinearSigmoid", [u8(3, 4), s(0.03), np.uint8(100), s(1 / 256), np.uint8(0)], most=ONE, weights=(1, 2, 3, 4))
case("qlinear_leaky", "QLinearLeakyRelu", [u8(3, 4), s(0.03), np.uint8(100), s(0.02), np.uint8(50)], most=ONE, alpha=0.2, weights=(1, 2, 3, 4))
case("qlinear_global", "QLinearGlobalAveragePool", [u8(2, 3, 4, 5), s(0.03), np.uint8(100), s(0.02), np.uint8(50)], most=ONE)
case("qlinear_global_last", "QLinearGlobalAveragePool", [u8(2, 4, 5, 3), s(0.03), np.uint8(100), s(0.02), np.uint8(50)], most=ONE, channels_last=1)
case("qlinear_pool", "QLinearAveragePool", [u8(1, 3, 6, 6), s(0.03), np.uint8(100), s(0.02), np.uint8(50)], most=ONE, kernel_shape=[3, 2], strides=[2, 1])
case("qlinear_pool_last", "QLinearAveragePool", [u8(1, 6, 6, 3), s(0.03), np.uint8(100), s(0.02), np.uint8(50)], most=ONE, kernel_shape=[3, 2],
     pads=[1, 0, 1, 0], count_include_pad=1, channels_last=1)
case("qlinear_conv_last", "QLinearConv", [u8(1, 6, 6, 3), s(0.02), np.uint8(120), i8(4, 3, 3, 3), s(0.01), np.int8(0), s(0.3), np.uint8(128),
                                          np.int32([5, -20, 300, 0])], most=ONE, channels_last=1, pads=[1, 1, 1, 1], weights=range(1, 9))
case("qlinear_softmax", "QLinearSoftmax", [u8(3, 8), s(0.05), np.uint8(100), s(1 / 256), np.uint8(0)], most=ONE, opset=13, axis=-1, weights=(1, 2, 3, 4))
case("qlinear_softmax_old", "QLinearSoftmax", [u8(2, 3, 4), s(0.05), np.uint8(100), s(1 / 256), np.uint8(0)], most=ONE, opset=11, axis=1, weights=(1, 2, 3, 4))
case("qlinear_where", "QLinearWhere", [np.array([True, False, True]), u8(2, 3), s(0.05), np.uint8(10), u8(2, 1), s(0.02), np.uint8(3), s(0.06), np.uint8(20)],
     most=ONE)
case("qlinear_concat", "QLinearConcat", [s(0.03), np.uint8(10), u8(2, 3), s(0.02), np.uint8(5), u8(2, 2), s(0.05), np.uint8(8)], most=ONE, axis=1,
     weights=(0, 1, 3, 4, 6, 7))
case("qgemm", "QGemm", [u8(3, 4), s(0.02), np.uint8(120), i8(5, 4), f(5) ** 2 * 0.01 + s(0.01), np.zeros(5, "int8"), np.int32([3, -4, 5, 6, 7])], transB=1,
     alpha=0.5, weights=(3, 4, 5, 6))
case("qgemm_rounded", "QGemm", [u8(3, 4), s(0.02), np.uint8(120), i8(4, 5), s(0.01), np.int8(0), None, s(0.1), np.uint8(128)], most=ONE, weights=(3, 4, 5))
case("dynamic_matmul", "DynamicQuantizeMatMul", [f(3, 8), i8(8, 4), s(0.02), np.int8(0), f(4)], weights=(1, 2, 3, 4), most=1e-4)
case("matmul_integer", "MatMulIntegerToFloat", [u8(3, 8), i8(8, 4), s(0.02), s(0.03), np.uint8(120), np.int8(0), f(4)], weights=(1, 2, 3, 4, 5, 6))
case("nbits", "MatMulNBits", [f(3, 32), u8(8, 2, 8), np.abs(f(16)), u8(8)], K=32, N=8, bits=4, block_size=16, weights=(1, 2, 3), most=1e-4)
case("nbits_bias", "MatMulNBits", [f(3, 40), u8(8, 3, 8), np.abs(f(24)), None, None, f(8)], K=40, N=8, bits=4, block_size=16, weights=(1, 2, 5), most=1e-4)
case("nf4", "MatMulBnb4", [f(3, 32), u8(128), np.abs(f(16))], K=32, N=8, block_size=16, quant_type=1, weights=(1, 2), most=1e-4)
case("fp4", "MatMulBnb4", [f(3, 32), u8(128), np.abs(f(16))], K=32, N=8, block_size=16, quant_type=0, weights=(1, 2), most=1e-4)
case("gather_blocks", "GatherBlockQuantized", [u8(6, 16), np.int64([[1, 5], [0, 1]]), f(6, 2)], bits=4, block_size=16, gather_axis=0, quantize_axis=1,
     weights=(0, 2))
case("gather_bytes", "GatherBlockQuantized", [u8(6, 32), np.int64([1, 5]), f(6, 2), u8(6, 2)], bits=8, block_size=16, gather_axis=0, quantize_axis=1,
     weights=(0, 2, 3))

TREES = dict(n_targets=2, nodes_treeids=[0, 0, 0, 1, 1, 1, 1, 1], nodes_nodeids=[0, 1, 2, 0, 1, 2, 3, 4], nodes_featureids=[0, 0, 0, 1, 2, 0, 0, 0],
             nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_GT", "BRANCH_LT", "LEAF", "LEAF", "LEAF"],
             nodes_values=[0.1, 0.0, 0.0, -0.2, 0.5, 0.0, 0.0, 0.0], nodes_truenodeids=[1, 0, 0, 1, 3, 0, 0, 0], nodes_falsenodeids=[2, 0, 0, 2, 4, 0, 0, 0],
             nodes_missing_value_tracks_true=[1, 0, 0, 0, 1, 0, 0, 0], target_treeids=[0, 0, 0, 1, 1, 1], target_nodeids=[1, 2, 2, 2, 3, 4],
             target_ids=[0, 0, 1, 1, 0, 1], target_weights=[1.5, -2.0, 0.5, 3.0, 0.25, 1.0])
ROWS = f(9, 3)
ROWS[3, 0] = ROWS[5, 2] = np.nan
for way in ("SUM", "AVERAGE", "MIN", "MAX"):
    case(f"trees_{way.lower()}", "TreeEnsembleRegressor", [ROWS], domain="ai.onnx.ml", aggregate_function=way, base_values=[0.5, -1.0], **TREES)
for after in ("LOGISTIC", "SOFTMAX"):
    case(f"trees_{after.lower()}", "TreeEnsembleRegressor", [ROWS], domain="ai.onnx.ml", post_transform=after, **TREES)


def written(name):
    """The model, and its inputs by name."""
    op, inputs, outputs, weights, attributes, _, domain, skipped = CASES[name]
    names = ["" if value is None else f"x{i}" for i, value in enumerate(inputs)]
    given = {f"x{i}": value for i, value in enumerate(inputs) if value is not None and i not in weights}
    held = {f"x{i}": value for i, value in enumerate(inputs) if i in weights and value is not None}
    results = ["" if i in skipped else f"y{i}" for i in range(outputs)]
    ports = [port(n, np.shape(v), np.asarray(v).dtype.name) for n, v in given.items()]
    nodes = [node(op, names, results, domain, **attributes)]
    opsets = field(8, field(1, "com.microsoft") + field(2, 1)) + field(8, field(1, "ai.onnx.ml") + field(2, 3))
    return model(nodes, ports, [r for r in results if r], held, types=False) + opsets, given


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    if not os.access(PYTHON, os.X_OK):
        pytest.skip("`make bench-peers` installs ONNX Runtime; or set OAR_ONNXRUNTIME_PYTHON")
    folder = tmp_path_factory.mktemp("contrib")
    for name in CASES:
        content, given = written(name)
        (folder / f"{name}.onnx").write_bytes(content)
        np.savez(folder / f"{name}.npz", **given)
    subprocess.run([PYTHON, str(SIDE), str(folder)], check=True, timeout=300)
    return folder


@pytest.mark.parametrize("name", CASES)
def test_an_operator(theirs, name):
    error = theirs / f"{name}.error"
    assert not error.exists(), error.read_text()
    wanted = np.load(theirs / f"{name}.out.npz")
    _, given = written(name)
    got = oar.onnx.load(theirs / f"{name}.onnx")(given)
    assert len(got) == len(wanted.files)
    most = CASES[name][5]
    for i, ours in enumerate(got):
        ours, other = ours.numpy(), wanted[str(i)]
        assert ours.shape == other.shape and ours.dtype == other.dtype
        apart = np.abs(ours.astype("float64") - other.astype("float64")).max()
        assert apart <= (most if other.dtype.kind in "iu" else most * max(1.0, np.abs(other).max())), apart
