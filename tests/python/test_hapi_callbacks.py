"""Callbacks and the progress bar."""

import re
import sys
import types

import numpy as np
import pytest

import oar
from oar import nn
from oar.board._store import Store
from oar.callbacks import EarlyStopping, LRScheduler, ReduceLROnPlateau
from oar.hapi.callbacks import config_callbacks
from oar.hapi.progressbar import ProgressBar

DATA = oar.io.TensorDataset([oar.ones([5, 2]), oar.ones([5, 1])])


def prepared(rate=0.1):
    net = nn.Linear(2, 1, weight_attr=nn.initializer.Constant(0.0), bias_attr=nn.initializer.Constant(0.0))
    model = oar.Model(net)
    model.prepare(oar.optimizer.SGD(rate, parameters=net.parameters()), nn.MSELoss())
    return model


def text_without_times(capsys):
    return re.sub(r"[0-9.]+(s|ms|us)/step", "T/step", capsys.readouterr().out)


def test_lines_of_fit(capsys):
    prepared(0.0).fit(DATA, DATA, batch_size=2, log_freq=2, shuffle=False)
    assert text_without_times(capsys) == (
        "The loss value printed in the log is the current step, and the metric is the average value of previous steps.\n"
        "Epoch 1/1\n"
        "step 2/3 - loss: 1.0000 - T/step\n"
        "step 3/3 - loss: 1.0000 - T/step\n"
        "Eval begin...\n"
        "step 2/3 - loss: 1.0000 - T/step\n"
        "step 3/3 - loss: 1.0000 - T/step\n"
        "Eval samples: 5\n")


def test_bar_of_predict(capsys):
    prepared().predict(DATA, batch_size=2)
    first, second, last = text_without_times(capsys).replace("\b", "").split("\r")
    assert first == "Predict begin...\n"
    assert second == "step 2/3 [===================>..........] - ETA: 0s - T/step"
    assert re.fullmatch(r"step 3/3 \[={30}\] - T/step *\nPredict samples: 5\n", last)


def test_times_at_the_highest_level(capsys):
    prepared().fit(DATA, batch_size=5, verbose=3)
    assert re.search(r"avg_reader_cost: \d+\.\d{5} sec - avg_batch_cost: \d+\.\d{5} sec - ips: \d+\.\d{5} samples/sec",
                     capsys.readouterr().out)


def test_values_of_the_bar(capsys):
    bar = ProgressBar(num=20, verbose=2)
    bar.update(3, [("loss", [0.25, 1e-5]), ("acc", np.float32(0.5)), ("at", np.array([2.0])), ("n", 3)])
    assert text_without_times(capsys) == "step  3/20 - loss: 0.2500 1.0000e-05 - acc: 0.5000 - at: 2.0000 - n: 3 - T/step\n"
    ProgressBar(verbose=2).update(7)
    assert text_without_times(capsys) == "step   7 - T/step\n"
    with pytest.raises(TypeError, match="positive"):
        ProgressBar(num=0)


def test_bar_covers_a_longer_line(capsys):
    bar = ProgressBar(num=2, verbose=1)
    bar.update(1, [("loss", 0.5), ("text", "long" * 5)])
    bar.update(2, [("loss", 0.5)])
    first, second = capsys.readouterr().out.lstrip("\r").split("\r")
    assert second.endswith("\n") and len(second.rstrip("\n")) >= len(first.rstrip("\b"))


def test_early_stopping(tmp_path, capsys):
    model = prepared(0.0)
    model.fit(DATA, DATA, epochs=9, verbose=0, save_dir=str(tmp_path), callbacks=EarlyStopping(patience=3))
    out = capsys.readouterr().out
    assert "Epoch 4: Early stopping.\n" in out and "best_model" in out and (tmp_path / "best_model.pdparams").exists()
    assert not (tmp_path / "4.pdparams").exists()


@pytest.mark.parametrize("options, values, stops", [
    ({"patience": 2}, [3.0, 2.0, 1.0, 1.0, 1.0], 5),
    ({"patience": 2, "mode": "max"}, [3.0, 2.0, 1.0], 3),
    ({"patience": 1, "min_delta": 0.5}, [3.0, 2.8], 2),
    ({"patience": 1, "baseline": 1.0}, [3.0], 1),
    ({"patience": 1, "monitor": "acc"}, [0.1, 0.2, 0.2], 3),
])
def test_when_early_stopping_stops(options, values, stops):
    stopping, model = EarlyStopping(verbose=0, **options), types.SimpleNamespace(stop_training=False)
    stopping.set_model(model)
    stopping.on_train_begin()
    for i, value in enumerate(values):
        stopping.on_eval_end({stopping.monitor: [value]})
        assert model.stop_training == (i + 1 >= stops)


def test_watching_what_is_not_there():
    for callback in (EarlyStopping("nothing"), ReduceLROnPlateau("nothing")):
        with pytest.warns(UserWarning, match="loss or metric name"):
            prepared().fit(DATA, DATA, verbose=0, callbacks=callback)
    with pytest.warns(UserWarning, match="pass eval_data"):
        prepared().fit(DATA, verbose=0, callbacks=EarlyStopping())
    with pytest.warns(UserWarning, match="'auto' is used"):
        EarlyStopping(mode="best")


def test_reduce_learning_rate(capsys):
    model = prepared(1e-9)
    lower = ReduceLROnPlateau(factor=0.5, patience=1, cooldown=1, min_lr=4e-10)
    rates = []

    class Watch(oar.callbacks.Callback):
        def on_eval_end(self, logs=None):
            rates.append(self.model._optimizer.get_lr())

    model.fit(DATA, DATA, batch_size=5, epochs=5, verbose=0, callbacks=[lower, Watch()])
    # The first sets the mark, the second lowers, the third ends the cool-down and lowers to the least.
    assert rates == pytest.approx([1e-9, 5e-10, 4e-10, 4e-10, 4e-10], rel=1e-6, abs=0)
    assert "Epoch 2: ReduceLROnPlateau reducing learning rate to 5e-10." in capsys.readouterr().out
    with pytest.raises(ValueError, match="below 1.0"):
        ReduceLROnPlateau(factor=1.0)
    schedule = oar.optimizer.lr.StepDecay(0.1, 1)
    with pytest.warns(UserWarning, match="should be a float"):
        prepared(schedule).fit(DATA, DATA, verbose=0, callbacks=ReduceLROnPlateau())


@pytest.mark.parametrize("callback, steps", [(None, 6), (LRScheduler(by_step=False, by_epoch=True), 2)])
def test_schedules_step(callback, steps):
    rate = oar.optimizer.lr.ExponentialDecay(0.1, 0.5)
    prepared(rate).fit(DATA, batch_size=2, epochs=2, verbose=0, callbacks=callback)
    assert rate() == pytest.approx(0.1 * 0.5**steps)
    with pytest.raises(ValueError, match="exclude"):
        LRScheduler(by_step=True, by_epoch=True)


class _Fake(types.ModuleType):
    """Stands for wandb: keeps what is written."""

    def __init__(self, name):
        super().__init__(name)
        self.run, self.written, self.closed = None, [], 0

    def init(self, **options):
        self.options = options
        return self

    def define_metric(self, *names, **options):
        pass

    def log(self, values):
        step = values.pop("train/step", None)
        step = values.pop("epoch") if step is None else step
        self.written += [(tag, step) for tag in values]

    def finish(self):
        self.closed += 1


def test_wandb(monkeypatch):
    fake = _Fake("wandb")
    monkeypatch.setitem(sys.modules, "wandb", fake)
    prepared().fit(DATA, DATA, batch_size=3, epochs=2, verbose=0, callbacks=oar.callbacks.WandbCallback(project="p", tags=["t"]))
    train = [("train/loss", step) for step in (1, 2, 3, 4)]
    assert fake.written == [*train[:2], ("eval/loss", 0), *train[2:], ("eval/loss", 1)] and fake.closed == 1
    assert fake.options["project"] == "p" and fake.options["tags"] == ["t"]


def test_logs_for_the_dashboard(tmp_path):
    tracker = oar.callbacks.VisualDL(str(tmp_path))
    model = prepared()
    model.fit(DATA, DATA, batch_size=3, epochs=2, verbose=0, callbacks=tracker)
    assert tracker.writer is None  # closed
    store = Store(tmp_path)
    store.refresh()
    series = store.runs["."].series["scalars"]
    assert {tag: [point[0] for point in points] for tag, points in series.items()} == {"train/loss": [1, 2, 3, 4], "eval/loss": [0, 1]}
    assert all(point[2] > 0 for point in series["train/loss"])


def test_order_and_parameters_of_callbacks():
    seen = []

    class Seen(oar.callbacks.Callback):
        def __getattribute__(self, name):
            if name.startswith("on_"):
                seen.append(name)
            return super().__getattribute__(name)

    callback = Seen()
    prepared().fit(DATA, DATA, batch_size=5, verbose=0, callbacks=callback)
    assert seen == ["on_train_begin", "on_epoch_begin", "on_train_batch_begin", "on_train_batch_end", "on_epoch_end",
                    "on_eval_begin", "on_eval_batch_begin", "on_eval_batch_end", "on_eval_end", "on_train_end"]
    assert callback.params == {"batch_size": None, "epochs": 1, "steps": 1, "verbose": 0, "metrics": ["loss"]}
    with pytest.raises(AssertionError, match="mode"):
        config_callbacks().on_begin("test")
