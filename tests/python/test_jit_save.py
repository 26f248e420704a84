"""``jit.save`` and ``jit.load``: layers and functions as programs in files."""

import json
import os

import numpy as np
import pytest

import oar
from oar import nn
from oar.static import InputSpec


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2D(3, 4, 3)
        self.norm = nn.BatchNorm2D(4)
        self.drop = nn.Dropout(0.5)
        self.linear = nn.Linear(4, 2)

    def forward(self, x):
        y = self.linear(self.drop(nn.functional.relu(self.norm(self.conv(x)))).mean([2, 3]))
        if y.sum() > 0:
            y = y * 2
        return {"scores": [y, x], "all": y.sum()}

    @oar.jit.to_static(input_spec=[InputSpec([None, 2], "float32", "q")])
    def back(self, q):
        return q @ self.linear.weight.T


@pytest.fixture
def saved(tmp_path):
    oar.seed(3)
    net = Net()
    path = str(tmp_path / "net")
    oar.jit.save(net, path, input_spec=[InputSpec([None, 3, None, None], "float32", "image")])
    return net, path


def close(a, b):
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("size", [5, 9])
def test_a_loaded_layer_computes_the_same(saved, size):
    net, path = saved
    loaded = oar.jit.load(path)
    net.eval(), loaded.eval()
    x = oar.randn([size, 3, size, 7])
    total, scores, image = loaded(x)  # dictionaries by their keys
    expected = net(x)
    close(total, expected["all"]), close(scores, expected["scores"][0]), close(image, x)
    assert net.conv.training is False and net.drop.training is False


def test_saving_leaves_the_layer_for_training(saved):
    net, _ = saved
    assert net.training and net.drop.training
    close(net.norm._mean, oar.zeros([4]))


def test_a_loaded_layer_is_trained_further(saved):
    net, path = saved
    loaded = oar.jit.load(path)
    loaded.train()
    x = oar.randn([4, 3, 6, 6])
    for one in (net, loaded):
        optimizer = oar.optimizer.SGD(0.1, parameters=one.parameters())
        oar.seed(7)
        for _ in range(2):
            made = one(x)
            loss = made["all"] if isinstance(made, dict) else made[0]
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
    assert sorted(net.state_dict()) == sorted(loaded.state_dict())
    for key, value in loaded.state_dict().items():
        close(value, net.state_dict()[key])
    assert float(net.norm._mean.abs().sum()) > 0  # running statistics moved in both


def test_other_methods_are_saved_too(saved):
    net, path = saved
    loaded = oar.jit.load(path)
    q = oar.randn([5, 2])
    close(loaded.back(q), net.back(q))
    assert os.path.isfile(path + ".back.pdmodel")


def test_what_a_loaded_layer_tells(saved):
    loaded = oar.jit.load(saved[1])
    assert isinstance(loaded, oar.jit.TranslatedLayer) and isinstance(loaded.program(), oar.static.Program)
    assert loaded._input_spec() == [InputSpec([None, 3, None, None], "float32", "image")]
    assert [spec.name for spec in loaded._output_spec()] == ["output_0", "output_1", "output_2"]
    assert loaded._output_spec()[1].shape == (None, 2)
    with pytest.raises(ValueError, match="no method 'other'.*forward, back"):
        loaded.program("other")
    with pytest.raises(ValueError, match="0 tensors were passed; the saved program takes 1: image"):
        loaded()
    with pytest.raises(TypeError, match="not a int"):
        loaded(3)


def test_a_predictor_reads_the_files(saved):
    net, path = saved
    net.eval()
    predictor = oar.inference.create_predictor(oar.inference.Config(path + ".pdmodel", path + ".pdiparams"))
    x = np.ones([2, 3, 8, 8], "float32")
    predictor.get_input_handle(predictor.get_input_names()[0]).copy_from_cpu(x)
    predictor.run()
    results = [predictor.get_output_handle(name).copy_to_cpu() for name in predictor.get_output_names()]
    np.testing.assert_allclose(results[1], net(oar.to_tensor(x))["scores"][0].numpy(), rtol=1e-6)


def test_functions_and_last_calls(tmp_path):
    @oar.jit.to_static
    def scaled(pair, factor=2):
        return pair[0] * factor + pair[1]

    a, b = oar.to_tensor([1.0, 2.0]), oar.to_tensor([3.0, 4.0])
    path = str(tmp_path / "scaled")
    with pytest.raises(RuntimeError, match="inputs of scaled are not known.*input_spec"):
        oar.jit.save(scaled, path)
    scaled([a, b], 3)
    oar.jit.save(scaled, path)  # with the inputs of the last call
    close(oar.jit.load(path)([a, b]), a * 3 + b)
    oar.jit.save(scaled, path, input_spec=[[InputSpec(["n"]), InputSpec(["n"])], 5])
    close(oar.jit.load(path)(oar.ones([7]), oar.ones([7])), oar.full([7], 6.0))


def test_only_some_results(tmp_path):
    path = str(tmp_path / "some")
    oar.jit.save(lambda x: (x, x + 1, x + 2), path, input_spec=[InputSpec([2], "float32", "x")], output_spec=[2])
    close(oar.jit.load(path)(oar.zeros([2])), oar.full([2], 2.0))
    with pytest.raises(ValueError, match="output_spec.*places of results"):
        oar.jit.save(lambda x: x, path, input_spec=[InputSpec([2])], output_spec=["x"])


def test_what_cannot_be_saved(tmp_path):
    path = str(tmp_path / "net")
    with pytest.raises(TypeError, match=r"\[jit.save\] layer should be a Layer or a function, but received int"):
        oar.jit.save(3, path)
    with pytest.raises(ValueError, match="no option 'speed'"):
        oar.jit.save(nn.Linear(2, 2), path, speed=9)
    with pytest.raises(RuntimeError, match="cannot be written as one program.*values of float32"):
        oar.jit.save(lambda x: x * x.numpy().sum(), path, input_spec=[InputSpec([2])])
    assert not os.listdir(tmp_path)


def test_files_that_are_no_layers(saved, tmp_path):
    _, path = saved
    with pytest.raises(ValueError, match="there is no file .*nothing.pdiparams.info"):
        oar.jit.load(str(tmp_path / "nothing"))
    info = json.loads((tmp_path / "net.pdiparams.info").read_text())
    for wrong, text in ((b"\x80\x04", "was not written by oar.jit.save"), (b"{}", "was not written by"),
                        (json.dumps({**info, "version": 9}).encode(), "has version 9"),
                        (json.dumps({**info, "methods": {"forward": {"inputs": []}}}).encode(), "the file is damaged")):
        (tmp_path / "net.pdiparams.info").write_bytes(wrong)
        with pytest.raises(ValueError, match=text):
            oar.jit.load(path)
    (tmp_path / "net.pdiparams.info").write_text(json.dumps(info))
    oar.jit.load(path)
    os.remove(path + ".pdiparams")
    with pytest.raises(ValueError, match="there is no file .*net.pdiparams"):
        oar.jit.load(path)


def test_inference_runs_as_a_program_without_gradients():
    net = nn.Linear(3, 2)
    x = oar.randn([4, 3])
    expected = net(x)
    assert not oar.incubate.jit.is_inference_mode(net)
    assert oar.incubate.jit.inference(oar.incubate.jit.inference(net)) is net
    made = net(x)
    close(made, expected)
    assert made.stop_gradient and oar.incubate.jit.is_inference_mode(net)
    low = oar.incubate.jit.inference(lambda a: a @ a, precision_mode="bfloat16")(oar.ones([2, 2]))
    assert low.dtype == oar.bfloat16
    with pytest.raises(ValueError, match="precision_mode is 'int8'"):
        oar.incubate.inference(net, precision_mode="int8")
