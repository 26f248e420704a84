"""The path of the layer that runs, in errors, on the tape and in anomaly mode."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import oar
from oar import nn
from oar.nn import _path


class Root(nn.Layer):
    def forward(self, x):
        return oar.sqrt(x)


class Net(nn.Layer):
    def __init__(self, inner=None):
        super().__init__()
        self.blocks = nn.LayerList([nn.Identity(), inner or Root()])

    def forward(self, x):
        return self.blocks[1](self.blocks[0](x))


class Seen(nn.Layer):
    def __init__(self):
        super().__init__()
        self.paths = []

    def forward(self, x):
        self.paths.append((_path.current(), oar._C.current_layer()))
        return x


@pytest.fixture
def check_nan():
    oar.set_flags({"check_nan_inf": True})
    yield
    oar.set_flags({"check_nan_inf": False})


def test_paths_are_kept_only_while_watched():
    seen = Seen()
    net = Net(seen)
    net(oar.ones([1]))
    with _path.watched():
        net(oar.ones([1]))
        nn.Sequential(nn.Identity(), net)(oar.ones([1]))
        seen(oar.ones([1]))
        seen(x=oar.ones([1]))
    net(oar.ones([1]))
    native = [pair[1] for pair in seen.paths]
    assert native == ["", "net.blocks.1", "sequential.1.blocks.1", "seen", "seen", ""]
    assert native == [pair[0] for pair in seen.paths]


def test_layers_that_are_no_parts_are_named_by_their_class():
    seen = Seen()

    class Teacher(nn.Layer):
        def forward(self, x):
            return seen(x)

    with _path.watched():
        Teacher()(oar.ones([1]))
    assert seen.paths[-1][0] == "teacher.seen"


def test_layers_that_were_added_later_are_found():
    net, seen = nn.Sequential(nn.Identity()), Seen()
    with _path.watched():
        net(oar.ones([1]))
        net.add_sublayer("late", seen)
        net(oar.ones([1]))
    assert seen.paths[-1][0] == "sequential.late"


def test_an_error_leaves_the_stack_empty():
    class Fails(nn.Layer):
        def forward(self, x):
            raise KeyError("here")

    with _path.watched():
        with pytest.raises(KeyError):
            Net(Fails())(oar.ones([1]))
        assert _path.current() == "" and oar._C.current_layer() == ""
    with pytest.raises(RuntimeError, match="nothing watches layers"):
        _path.unwatch()


def test_each_thread_has_its_own_stack():
    seen, inside, go_on = Seen(), threading.Event(), threading.Event()

    class Waits(nn.Layer):
        def forward(self, x):
            inside.set()
            assert go_on.wait(30)
            return x

    with _path.watched():
        thread = threading.Thread(target=lambda: Waits()(oar.ones([1])))
        thread.start()
        assert inside.wait(30)
        seen(oar.ones([1]))
        go_on.set()
        thread.join()
    assert seen.paths == [("seen", "seen")]


def test_check_nan_inf_names_the_layer(check_nan):
    with pytest.raises(RuntimeError, match=r"\[sqrt\] There are NAN or INF .*in the layer net.blocks.1,"):
        Net()(oar.to_tensor([-1.0]))
    with pytest.raises(RuntimeError, match=r"\[sqrt\] There are NAN or INF") as error:
        oar.sqrt(oar.to_tensor([-1.0]))
    assert "in the layer" not in str(error.value)


def test_check_nan_inf_names_the_layer_in_a_program(check_nan):
    net = oar.jit.to_static(Net())
    assert net(oar.to_tensor([4.0])).item() == 2.0
    with pytest.raises(RuntimeError, match=r"sqrt.*in the layer net.blocks.1"):
        net(oar.to_tensor([-4.0]))


def test_check_nan_inf_names_the_layer_in_backward(check_nan):
    x = oar.to_tensor([0.0], stop_gradient=False)
    loss = Net()(x)
    with pytest.raises(RuntimeError, match="in the layer net.blocks.1"):
        loss.backward()


def test_the_flag_may_come_from_the_environment():
    code = ("import oar\n"
            "class Net(oar.nn.Layer):\n"
            "    def forward(self, x): return oar.log(x)\n"
            "try: Net()(oar.to_tensor([-1.0]))\n"
            "except RuntimeError as error: print(error)\n")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "FLAGS_check_nan_inf": "1"})
    assert "in the layer net" in done.stdout, done.stderr


# anomaly mode ----------------------------------------------------------------------------------------


def negative_root(x):
    return oar.sqrt(x)  # the line that the error shows


def test_nan_in_backward_shows_the_forward_call():
    x = oar.to_tensor([-1.0, 4.0], stop_gradient=False)
    with oar.autograd.detect_anomaly():
        loss = negative_root(x).sum()
        with pytest.raises(RuntimeError) as caught:
            loss.backward()
    text = str(caught.value)
    assert "the backward of sqrt returned NaN" in text
    assert "return oar.sqrt(x)  # the line that the error shows" in text and "test_layer_paths.py" in text
    negative_root(x).sum().backward()  # outside of the mode it is no error
    assert np.isnan(x.grad.numpy()[0])


def test_without_check_nan_only_errors_are_shown():
    x = oar.to_tensor([-1.0], stop_gradient=False)
    with oar.autograd.set_detect_anomaly(True, check_nan=False):
        assert oar.autograd.is_anomaly_enabled() and not oar.autograd.is_anomaly_check_nan_enabled()
        negative_root(x).backward()
        y = x * 2
        z = y.exp()
        z.add_(oar.ones([1]))
        with pytest.raises(RuntimeError, match="changed in place since") as caught:
            z.sum().backward()
        assert "z = y.exp()" in str(caught.value)
    assert not oar.autograd.is_anomaly_enabled() and not _path.is_watching()


def test_an_error_of_users_code_gets_a_note():
    class Fails(oar.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            raise LookupError("mine")

    x = oar.ones([1])
    x.stop_gradient = False
    with oar.autograd.detect_anomaly():
        y = Fails.apply(x)
        with pytest.raises(LookupError, match="mine") as caught:
            y.backward()
    notes = "\n".join(getattr(caught.value, "__notes__", []))
    assert "y = Fails.apply(x)" in notes


def test_the_layer_is_part_of_the_message():
    x = oar.to_tensor([-1.0], stop_gradient=False)
    with oar.autograd.detect_anomaly():
        loss = Net()(x)
        with pytest.raises(RuntimeError, match="in the layer net.blocks.1"):
            loss.backward()


def test_anomaly_mode_changes_no_gradient():
    def gradients():
        oar.seed(3)
        net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
        net(oar.ones([2, 4])).sum().backward()
        return [p.grad.numpy() for p in net.parameters()]

    plain = gradients()
    with oar.autograd.detect_anomaly():
        watched = gradients()
    for a, b in zip(plain, watched):
        np.testing.assert_array_equal(a, b)


def test_the_mode_may_be_set_for_good_and_nested():
    oar.autograd.set_detect_anomaly(True)
    with oar.autograd.detect_anomaly(check_nan=False):
        assert not oar.autograd.is_anomaly_check_nan_enabled()
    assert oar.autograd.is_anomaly_check_nan_enabled()
    oar.autograd.set_detect_anomaly(False)
    assert not oar.autograd.is_anomaly_enabled() and not _path.is_watching()


# deterministic mode ----------------------------------------------------------------------------------


def test_deterministic_results_do_not_depend_on_threads():
    threads = oar.get_num_threads()
    oar.seed(0)
    x, w = oar.randn([1, 8, 24, 24]), oar.randn([8, 8, 3, 3])
    a, b = oar.randn([64, 3000]), oar.randn([3000, 64])
    oar.set_flags({"FLAGS_cudnn_deterministic": True})
    try:
        assert oar.get_flags("deterministic") == {"deterministic": True}
        results = []
        for count in (1, 2):
            oar.set_num_threads(count)
            results.append((nn.functional.conv2d(x, w).numpy(), (a @ b).numpy()))
        for one, two in zip(*results):
            np.testing.assert_array_equal(one, two)
    finally:
        oar.set_flags({"FLAGS_cudnn_deterministic": False})
        oar.set_num_threads(threads)
    assert oar.get_flags("deterministic") == {"deterministic": False}
