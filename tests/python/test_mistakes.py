"""A newcomer's mistakes: the message names what was called, the argument and its value, and has a way out.

One row for each: the code, and what the message must hold. What a message must never hold is tested for all.
"""

import re

import numpy as np  # noqa: F401
import pytest

import oar
from oar import nn

F = nn.functional


class Words(oar.io.Dataset):
    """Samples that are as long as their number."""

    def __init__(self, sample):
        super().__init__()
        self.sample = sample

    def __getitem__(self, index):
        return self.sample(index)

    def __len__(self):
        return 4


def x(*shape, dtype="float32"):
    return oar.ones(list(shape) or [2, 3], dtype)


def leaf():
    t = x()
    t.stop_gradient = False
    return t


def loaded(sample):
    return list(oar.io.DataLoader(Words(sample), batch_size=2))


def backward_twice():
    t = leaf()
    loss = (t * t).sum()
    loss.backward()
    loss.backward()


def sgd(*args, **kwargs):
    return oar.optimizer.SGD(*args, **kwargs)


MISTAKES = [
    # shapes
    ("x() + x(4)", ["[add]", "[2, 3]", "[4]", "Reshape"]),
    ("oar.matmul(x(), x())", ["[matmul]", "[2, 3]", "transpose_y"]),
    ("x() @ x(2)", ["[matmul]", "[2]", "last axis"]),
    ("oar.concat([x(), x(2, 4)])", ["[concat]", "[2, 4]"]),
    ("oar.concat([])", ["[concat]", "empty", "at least one"]),
    ("oar.stack([x(), x(3)])", ["[stack]", "[2, 3]", "[3]"]),
    ("x().reshape([4, 2])", ["[reshape]", "6 elements", "[4, 2]", "-1"]),
    ("x().reshape(4, 2)", ["[reshape]", "[4, 2]", "multiply to 6"]),
    ("x().transpose(0, 1, 2)", ["[transpose]", "3 axes"]),
    ("x().view([4, 2])", ["[view]", "6 elements"]),
    ("x().transpose([0])", ["[transpose]", "[0]", "2"]),
    ("x().expand([5, 3])", ["[expand]", "[2, 3]", "[5, 3]"]),
    ("oar.split(x(), 2, axis=1)", ["[split]", "size 3", "tensor_split"]),
    ("oar.split(x(), [1, 1], axis=1)", ["[split]", "[1, 1]", "-1"]),
    ("oar.topk(x(), 9)", ["[topk]", "k is 9", "up to 3"]),
    ("oar.einsum('ij,jk->ik', x(), x())", ["[einsum]", "'j'", "3", "2"]),
    ("F.linear(x(), x(4, 5))", ["[linear]", "[4, 5]", "in_features"]),
    ("nn.Linear(4, 5)(x())", ["[linear]", "[4, 5]", "in_features"]),
    ("nn.Sequential(nn.Linear(2, 3), nn.Linear(2, 2))(x(1, 2))", ["[linear]", "[1, 3]"]),
    ("nn.Conv2D(3, 4, 3)(x(1, 1, 5, 5))", ["[conv2d]", "3 input channels", "[1, 1, 5, 5]"]),
    ("nn.Conv2D(3, 4, 3)(x(3, 5, 5))", ["[conv2d]", "4 axes", "unsqueeze(0)"]),
    ("F.conv2d(x(1, 3, 2, 2), x(4, 3, 5, 5))", ["[conv2d]", "window", "smaller window"]),
    ("F.max_pool2d(x(), 2)", ["[max_pool2d]", "4 axes", "unsqueeze(0)"]),
    ("F.unfold(x(), 2)", ["[unfold]", "4 axes", "[2, 3]"]),
    ("nn.BatchNorm2D(3)(x(2, 4, 5, 5))", ["[batch_norm]", "4 channels"]),
    ("nn.BatchNorm2D(3)(x())", ["BatchNorm2D", "4-D", "[2, 3]"]),
    ("nn.LayerNorm(4)(x())", ["[layer_norm]", "[4]", "last sizes"]),
    ("nn.LSTM(3, 4)(x(2, 5, 4))", ["[linear]", "3 features"]),
    ("F.mse_loss(x(), x(4))", ["[mse_loss]", "[4]"]),
    ("F.cross_entropy(x(), oar.to_tensor([0, 1, 2]))", ["[cross_entropy]", "label"]),
    ("F.scaled_dot_product_attention(x(), x(), x())", ["[scaled_dot_product_attention]", "[batch, length, heads"]),
    ("x().set_value(np.ones(5))", ["[set_value]", "[2, 3]", "[5]"]),
    # axes and indices
    ("x().sum(axis=5)", ["[sum]", "axis 5", "-2 to 1"]),
    ("x().mean(axis=[0, 0])", ["[mean]", "axis 0 twice"]),
    ("F.softmax(x(), axis=4)", ["[softmax]", "axis 4", "-2 to 1"]),
    ("x()[5]", ["[indexing]", "index 5", "size 2"]),
    ("x()[0, 0, 0]", ["[indexing]", "3", "2"]),
    ("x()['a']", ["[indexing]", "str", "slices"]),
    ("x()[1.5]", ["[indexing]", "integers", "float"]),
    ("x()[[0, 5]]", ["[indexing]", "5", "size 2"]),
    ("x()[oar.ones([5], 'bool')]", ["[indexing]", "mask", "[5]"]),
    ("oar.gather(x(), oar.to_tensor([7]))", ["[gather]", "7", "size 2"]),
    ("F.embedding(oar.to_tensor([9]), x())", ["[embedding]", "9", "0 to 1"]),
    ("F.one_hot(oar.to_tensor([5]), 3)", ["[one_hot]", "5", "0 to 2"]),
    ("F.cross_entropy(x(), oar.to_tensor([0, 5]))", ["[cross_entropy]", "class 5", "ignore_index"]),
    # dtypes
    ("oar.zeros([2], 'floot32')", ["[zeros]", "'dtype'", "'floot32'", "float32"]),
    ("x().astype('nonsense')", ["[astype]", "'nonsense'"]),
    ("oar.to_tensor([1.0], dtype='float31')", ["float31", "float32"]),
    ("oar.bitwise_and(x(), x())", ["[bitwise_and]", "float32", "astype"]),
    ("oar.where(x(), x(), x())", ["[where]", "condition", "bool"]),
    ("F.embedding(oar.to_tensor([0.5]), x())", ["[embedding]", "float32", "integers"]),
    ("oar.ones([2], 'int64').divide_(oar.ones([2]))", ["[divide_]", "int64", "without the underscore"]),
    ("oar.set_default_dtype('int32')", ["float32", "int32"]),
    # devices
    ("oar.set_device('gpu')", ["'gpu'", "cpu"]),
    ("x().to('cuda')", ["[to]", "'cuda'", "cpu"]),
    ("oar.to_tensor([1.0], place='gpu:0')", ["[to_tensor]", "gpu:0", "cpu"]),
    ("oar.CUDAPlace(0)", ["CUDAPlace", "CPUPlace()"]),
    # arguments
    ("oar.matmul(x())", ["[matmul]", "'y' is missing", "x: Tensor, y: Tensor"]),
    ("oar.full([2])", ["[full]", "'fill_value' is missing"]),
    ("oar.sum(x(), axs=1)", ["[sum]", "'axs'", "did you mean 'axis'?", "axis: int | list[int] | None"]),
    ("F.softmax(x(), axsi=1)", ["[softmax]", "did you mean 'axis'?"]),
    ("oar.sum(x(), axis='a')", ["[sum]", "'axis'", "'a' (str)", "int"]),
    ("oar.sum(x(), 1, None, False, None, 1)", ["[sum]", "4 arguments", "6 were passed"]),
    ("oar.add(x(), x=x())", ["[add]", "'x'", "twice"]),
    ("oar.matmul([[1.0]], [[2.0]])", ["[matmul]", "'x'", "not list", "oar.to_tensor"]),
    ("F.cross_entropy(x(), [0, 1])", ["[cross_entropy]", "'label'", "oar.to_tensor"]),
    ("nn.Linear(3, 4)(np.ones([2, 3], 'float32'))", ["[linear]", "numpy.ndarray", "oar.to_tensor"]),
    ("oar.concat(x(), x())", ["[concat]", "a list of tensors", "oar.Tensor"]),
    ("oar.concat([x(), None])", ["[concat]", "holds None"]),
    ("F.l1_loss(x(), None)", ["[l1_loss]", "'label'", "None"]),
    ("x() + None", ["Tensor", "NoneType"]),
    ("x() + 'a'", ["Tensor", "str"]),
    ("oar.zeros('a')", ["[zeros]", "a list of ints", "'a'"]),
    ("oar.zeros([2.5])", ["[zeros]", "holds 2.5"]),
    ("oar.zeros([2, -3])", ["[zeros]", "[2, -3]", "negative"]),
    ("oar.arange(0, 10, 0)", ["[arange]", "step", "0"]),
    ("oar.linspace(0, 1, -1)", ["[linspace]", "num", "-1"]),
    ("oar.randint(5, 2, [2])", ["[randint]", "low < high"]),
    ("oar.seed('a')", ["[seed]", "int", "'a'"]),
    ("F.dropout(x(), 1.5)", ["[dropout]", "1.5", "between 0 and 1"]),
    ("F.mse_loss(x(), x(), reduction='most')", ["[mse_loss]", "'most'", "'mean'"]),
    ("F.interpolate(x(1, 1, 2, 2), size=[2, 2], mode='bilnear')", ["[interpolate]", "bilnear", "bilinear"]),
    ("F.conv2d(x(1, 3, 5, 5), x(4, 3, 3, 3), data_format='NCWH')", ["[conv2d]", "'NCWH'", "'NCHW'"]),
    ("F.binary_cross_entropy(x() * 2, x())", ["[binary_cross_entropy]", "sigmoid"]),
    # creating tensors
    ("oar.to_tensor('abc')", ["[to_tensor]", "str", "numbers"]),
    ("oar.to_tensor(None)", ["[to_tensor]", "None", "numbers"]),
    ("oar.to_tensor({'a': 1})", ["[to_tensor]", "dict", "numbers"]),
    ("oar.to_tensor(['a', 'b'])", ["[to_tensor]", "text"]),
    ("oar.to_tensor([[1, 2], [3]])", ["[to_tensor]", "list of 2", "list of 1", "pad"]),
    ("oar.to_tensor([1, [2]])", ["[to_tensor]", "a number", "list of 1"]),
    ("oar.to_tensor([[1, 2], 3])", ["[to_tensor]", "list of 2", "a number"]),
    ("oar.to_tensor([np.ones(2), np.ones(3)])", ["[to_tensor]", "different shapes", "pad"]),
    ("oar.to_tensor([1, None])", ["[to_tensor]", "object", "None"]),
    ("oar.to_tensor(np.array([1, None]))", ["[to_tensor]", "object", "astype"]),
    ("oar.to_tensor(np.array([1], 'longdouble'))", ["[to_tensor]", "float128", "astype('float32')"]),
    # values
    ("x().item()", ["one element", "[2, 3]", "tolist"]),
    ("float(x())", ["one element", "mean"]),
    ("bool(x())", ["[2, 3]", "any()", "all()"]),
    ("f'{x():.2f}'", [".2f", "[2, 3]", "item()"]),
    ("len(oar.ones([]))", ["0-d"]),
    # gradients
    ("backward_twice()", ["retain_graph=True"]),
    ("leaf().add_(x())", ["[add_]", "leaf", "no_grad()", "clone()"]),
    ("leaf().__setitem__(0, 5.0)", ["[indexing]", "leaf", "no_grad()"]),
    ("oar.grad(leaf().sum(), [leaf()])", ["do not depend on input", "allow_unused=True"]),
    ("leaf().sum().backward(3)", ["grad_tensor", "int"]),
    ("x().register_hook(print)", ["stop_gradient"]),
    # layers
    ("nn.Linear(3)", ["out_features"]),
    ("nn.Linear(3, -1)", ["[3, -1]", "negative"]),
    ("nn.Linear('a', 2)", ["'a'", "ints"]),
    ("nn.Linear(2, 2, weight_attr=5)", ["ParamAttr", "int"]),
    ("nn.Conv2D(3, 4, 3, groups=2)", ["in_channels (3)", "groups (2)"]),
    ("nn.MultiHeadAttention(5, 2)", ["embed_dim 5", "num_heads 2"]),
    ("nn.Sequential([nn.Linear(2, 2)])", ["Sequential(*layers)"]),
    ("nn.Layer()(x())", ["forward()"]),
    ("nn.Linear(2, 2).set_state_dict([1])", ["dictionary", "state_dict()", "list"]),
    ("nn.CrossEntropyLoss(reduction='no')(x(), x())", ["reduction", "'mean'", "'no'"]),
    # optimizers
    ("sgd(0.1)", ["parameters=net.parameters()"]),
    ("sgd(0.1, parameters=nn.Linear(2, 2))", ["parameters", "Linear", "parameters()"]),
    ("sgd(0.1, parameters=x())", ["parameters", "Tensor"]),
    ("sgd(nn.Linear(2, 2).parameters(), 0.1)", ["learning rate", "comes first"]),
    ("sgd('a', parameters=[])", ["learning rate", "str"]),
    ("sgd(0.1, parameters=[1])", ["Tensors", "int"]),
    ("sgd(0.1, parameters=[], weight_decay='a')", ["weight_decay", "'a'", "L2Decay"]),
    ("sgd(0.1, parameters=[], grad_clip=1.0)", ["grad_clip", "float"]),
    ("sgd(0.1, parameters=[]).set_state_dict(3)", ["dictionary", "int"]),
    # data
    ("loaded(lambda i: np.ones(i + 1))", ["samples 0 and 1", "shape [1]", "[2]", "collate_fn"]),
    ("loaded(lambda i: oar.ones([i + 1]))", ["samples 0 and 1", "shape [1]", "[2]", "collate_fn"]),
    ("loaded(lambda i: [0] * i)", ["0 fields in the one and 1 in the other", "collate_fn"]),
    ("loaded(lambda i: None)", ["NoneType", "collate_fn"]),
    ("loaded(lambda i: {'a': 1} if i == 0 else {'b': 1})", ["samples 0 and 1", "'a'", "'b'", "collate_fn"]),
    ("oar.io.DataLoader(Words(int), batch_size=0)", ["batch_size", "0"]),
    ("oar.io.DataLoader(5)", ["dataset", "int", "__len__"]),
    ("oar.io.random_split(Words(int), [1, 1])", ["[1, 1]", "2", "4 samples"]),
    # names
    ("oar.zeroes([2])", ["oar.zeroes", "did you mean oar.zeros?"]),
    ("oar.nn.Liner(2, 3)", ["oar.nn.Liner", "did you mean oar.nn.Linear?"]),
    ("oar.one_hot(x(), 3)", ["oar.one_hot", "oar.nn.functional.one_hot"]),
    ("oar.cost_model", ["Oar does not have oar.cost_model yet"]),
    ("oar.set_flags({'memory_limit': 1})", ["'memory_limit'", "memory_limit_mb"]),
    ("oar._C.ops.sofmax", ["'sofmax'", "softmax"]),
]

# Names of parts that users never call, types of schemas, and errors that Python or NumPy raise deep inside.
FORBIDDEN = r"slice_view|index_get|index_take|bitcast|im2col|over_steps|\[uniform\]|int\[\]|Tensor\[\]|\bScalar\b" \
            r"|has no attribute 'get'|not enough values to unpack|inhomogeneous|invalid literal"


@pytest.mark.parametrize("code, parts", MISTAKES, ids=[code for code, _ in MISTAKES])
def test_a_mistake_is_explained(code, parts):
    with pytest.raises(Exception) as caught:
        eval(code)
    message = str(caught.value)
    for part in parts:
        assert part in message, f"{part!r} is not in: {message}"
    assert not re.search(FORBIDDEN, message), message


def test_there_are_enough_rows():
    assert len(MISTAKES) >= 100 and len({code for code, _ in MISTAKES}) == len(MISTAKES)


@pytest.mark.parametrize("name, content, part", [
    ("a.pdparams", b"hello world", "begins with b'hello world'"),
    ("a.pdparams", b"", "empty"),
    ("a.pdparams", b"\x80\x04\x95", "cut off"),
    ("a.pdparams", b"\x93NUMPY\x01", "numpy.load"),
    ("model.pt", b"PK\x03\x04 and so on", "PyTorch that is damaged or cut off"),
    ("a.pdparams", b"<html>", "web page"),
    ("a.bin", b"\x08\x00\x00\x00\x00\x00\x00\x00{}      ", ".safetensors"),
    ("a.safetensors", b"xx", "not a safetensors file"),
])
def test_a_file_that_is_no_checkpoint(tmp_path, name, content, part):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(Exception, match=re.escape(part)) as caught:
        oar.load(path)
    assert name in str(caught.value)


def test_paths_that_are_no_files(tmp_path):
    with pytest.raises(ValueError, match="does not exist"):
        oar.load(tmp_path / "nothing.pdparams")
    with pytest.raises(ValueError, match="is a folder"):
        oar.load(tmp_path)
    with pytest.raises(TypeError, match="not int"):
        oar.load(5)


def test_numbers_in_texts():
    loss = oar.to_tensor(0.123456)
    assert f"{loss:.4f}" == "0.1235" and f"{loss}" == f"{loss.item()}" and f"{oar.to_tensor(3)}" == "3"
    assert f"{oar.to_tensor([1.5]):.1f}" == "1.5" and f"{oar.to_tensor([1.5])}" == repr(oar.to_tensor([1.5]))


def test_tensor_is_a_function_too():
    made = oar.tensor([1, 2], dtype="float64", requires_grad=True)
    assert made.tolist() == [1.0, 2.0] and made.dtype == oar.float64 and not made.stop_gradient
    assert oar.tensor.creation is not None
