"""``summary`` and ``flops`` against counts by hand."""

import numpy as np
import pytest

import oar
from oar import nn


class Images(nn.Layer):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2D(1, 6, 3, padding=1), nn.BatchNorm2D(6), nn.LeakyReLU(), nn.MaxPool2D(2, 2),
                                      nn.Conv2D(6, 16, 5), nn.AvgPool2D(2, 2))
        self.last = nn.Linear(400, 10)

    def forward(self, images):
        return self.last(oar.flatten(self.features(images), 1))


PARAMS = 60 + 24 + 2416 + 4010


def test_summary(capsys):
    with oar.utils.unique_name.guard():  # the numbers of layers of other tests would make columns wider
        net = Images()
    net.last.weight.stop_gradient = True
    info = oar.summary(net, (None, 1, 28, 28))
    assert info == {"total_params": PARAMS, "trainable_params": PARAMS - 12 - 4000}
    assert net.training and not net.last._forward_post_hooks
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "-" * 75
    assert lines[1] == " Layer (type)       Input Shape          Output Shape         Param #    "
    rows = [line.split()[0].partition("-")[0] for line in lines[3:10]]
    assert rows == ["Conv2D", "BatchNorm2D", "LeakyReLU", "MaxPool2D", "Conv2D", "AvgPool2D", "Linear"]
    assert "[[1, 6, 14, 14]]     [1, 16, 10, 10]         2,416     " in lines[7]
    numbers = 2 * (3 * 6 * 784 + 6 * 196 + 1600 + 400 + 10) * 4 / 1024**2
    assert lines[11:] == [f"Total params: {PARAMS:,}", f"Trainable params: {PARAMS - 4012:,}", "Non-trainable params: 4,012",
                          "-" * 75, "Input size (MB): 0.00", f"Forward/backward pass size (MB): {numbers:0.2f}",
                          "Params size (MB): 0.02", f"Estimated Total Size (MB): {numbers + (784 + PARAMS) * 4 / 1024**2:0.2f}",
                          "-" * 75, ""]


class TwoInputs(nn.Layer):
    def __init__(self):
        super().__init__()
        self.names = nn.Embedding(10, 8)
        self.steps = nn.LSTM(8, 16)

    def forward(self, numbers, start):
        return self.steps(self.names(numbers) + start)


def test_summary_of_several_inputs(capsys):
    count = 80 + 4 * (8 * 16 + 16 * 16 + 2 * 16)
    assert oar.summary(TwoInputs(), [(2, 3), (2, 3, 8)], dtypes=["int64", "float32"])["total_params"] == count
    assert "[[2, 3, 16], [[1, 2, 16], [1, 2, 16]]]" in capsys.readouterr().out
    with pytest.raises(ValueError, match="2 shapes, but 1 dtypes"):
        oar.summary(TwoInputs(), [(2, 3), (2, 3, 8)], dtypes=["int64"])


def test_other_ways_to_give_the_input(capsys):
    spec = oar.static.InputSpec([None, 1, 28, 28], "float32", "x")
    for call in (lambda: oar.summary(Images(), spec), lambda: oar.summary(Images(), [spec]),
                 lambda: oar.summary(Images(), input=oar.ones([2, 1, 28, 28])), lambda: oar.Model(Images(), spec).summary(),
                 lambda: oar.Model(Images()).summary((1, 1, 28, 28)),
                 lambda: oar.summary(oar.jit.to_static(Images()), (1, 1, 28, 28))):
        assert call()["total_params"] == PARAMS
        assert capsys.readouterr().out.count("Conv2D-") == 2
    assert oar.summary(nn.Linear(3, 2), 3)["total_params"] == 8


@pytest.mark.parametrize("given, message", [
    ({}, "cannot be None at the same time"), ({"input_size": (None, None, 2)}, "only the batch size"),
    ({"input_size": (0, 2)}, "greater than zero"), ({"input_size": ["a"]}, "a tuple or an InputSpec"),
    ({"input": 3}, "list or dict")])
def test_mistakes_of_summary(given, message):
    with pytest.raises((ValueError, AssertionError), match=message):
        oar.summary(nn.Linear(2, 1), **given)
    with pytest.raises(AssertionError, match="input_size"):
        oar.Model(nn.Linear(2, 1)).summary()


def test_flops(capsys):
    net = Images()
    first, second = 6 * 784 * (9 + 1), 1600 * (6 * 25 + 1)
    want = first + 2 * 6 * 784 + 6 * 784 + second + 400 + 4000
    assert oar.flops(net, [1, 1, 28, 28], print_detail=True) == want
    out = capsys.readouterr().out
    assert "Cannot find suitable count function for" in out and "MaxPool2D" in out
    assert f"Total Flops: {want}     Total Params: {PARAMS}" in out
    row = next(line for line in out.splitlines() if str(first) in line)
    assert [cell.strip() for cell in row.strip("|").split("|")][1:] == ["[1, 1, 28, 28]", "[1, 6, 28, 28]", "60", str(first)]
    assert net.training and "total_ops" not in net.last._buffers and not net.last._forward_post_hooks


def test_flops_of_own_layers(capsys):
    def count(layer, inputs, output):
        layer.total_ops += int(inputs[0].numel()) * 3

    got = oar.flops(Images(), [1, 1, 28, 28], custom_ops={nn.LeakyReLU: count})
    assert got - oar.flops(oar.jit.to_static(Images()), [1, 1, 28, 28]) == 2 * 6 * 784
    assert "Customize Function has been applied to" in capsys.readouterr().out
    with pytest.warns(UserWarning, match="should be a Layer"):
        assert oar.flops(np.ones(2), [1]) == -1


def test_flops_of_grouped_convolutions_and_adaptive_pools(capsys):
    net = nn.Sequential(nn.Conv2D(4, 8, 3, groups=2, bias_attr=False), nn.AdaptiveAvgPool2D(2))
    assert oar.flops(net, [1, 4, 8, 8]) == 8 * 36 * 2 * 9 + (9 + 1) * 32
