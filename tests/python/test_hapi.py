"""``Model``: batches, loops, files, against training loops written out."""

import os
import warnings

import numpy as np
import pytest

import oar
from oar import nn


class Rows(oar.io.Dataset):
    """Ten samples of four features and a class of three."""

    def __init__(self, count=10):
        rng = np.random.RandomState(0)
        self.rows = [(rng.randn(4).astype("float32"), np.array([i % 3])) for i in range(count)]

    def __getitem__(self, i):
        return self.rows[i]

    def __len__(self):
        return len(self.rows)


class Stream(oar.io.IterableDataset):
    def __iter__(self):
        return iter(Rows().rows)


class Results(oar.callbacks.Callback):
    """Keeps what a run reports. It does not call ``super().__init__``, as many callbacks do not."""

    def __init__(self):
        self.train, self.eval, self.calls = [], [], []

    def on_train_batch_end(self, step, logs=None):
        self.train.append(dict(logs))

    def on_eval_end(self, logs=None):
        self.eval.append(dict(logs))

    def on_epoch_end(self, epoch, logs=None):
        self.calls.append(epoch)


def network():
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    rng = np.random.RandomState(1)
    for parameter in net.parameters():
        parameter.set_value(rng.randn(*parameter.shape).astype("float32") * 0.3)
    return net


def prepared(net=None, rate=0.05, metrics=True, inputs=None, kind=oar.optimizer.Adam, **options):
    net = net or network()
    model = oar.Model(net, inputs)
    model.prepare(kind(rate, parameters=net.parameters()), nn.CrossEntropyLoss(),
                  oar.metric.Accuracy() if metrics else None, **options)
    return model


def batch(size=5):
    rows = Rows(size).rows
    return np.stack([x for x, _ in rows]), np.stack([y for _, y in rows])


def written_out(steps, rate=0.05, accumulate=1, size=2):
    """The losses of the same training as a loop of its own."""
    net, losses = network(), []
    optimizer = oar.optimizer.Adam(rate, parameters=net.parameters())
    x, y = batch(10)
    for step in range(steps):
        place = step % (10 // size)
        at = place * size
        loss = nn.functional.cross_entropy(net(oar.to_tensor(x[at:at + size])), oar.to_tensor(y[at:at + size]))
        loss.backward()
        if (place + 1) % accumulate == 0 or at + size == 10:
            optimizer.step()
            optimizer.clear_grad()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("data", [Rows, Stream])
def test_fit_trains_as_a_loop_does(data, accumulate):
    kept = Results()
    prepared().fit(data(), batch_size=2, epochs=2, verbose=0, shuffle=False, callbacks=kept,
                   accumulate_grad_batches=accumulate)
    np.testing.assert_allclose([log["loss"][0] for log in kept.train], written_out(10, accumulate=accumulate), rtol=1e-5)
    assert [log["step"] for log in kept.train] == [0, 1, 2, 3, 4] * 2
    assert {log["batch_size"] for log in kept.train} == {2}


def test_metrics_are_those_of_the_epoch_so_far():
    kept = Results()
    prepared(rate=0.0).fit(Rows(), Rows(7), batch_size=[5, 7], epochs=2, verbose=0, shuffle=False, callbacks=kept)
    x, y = batch(10)
    right = network()(oar.to_tensor(x)).numpy().argmax(1) == y[:, 0]
    first, all_of_it = right[:5].mean(), right.mean()
    assert [log["acc"] for log in kept.train] == pytest.approx([first, all_of_it] * 2)
    assert [log["acc"] for log in kept.eval] == pytest.approx([right[:7].mean()] * 2)


def test_num_iters_counts_batches_of_training():
    kept, model = Results(), prepared()
    model.fit(Rows(), Rows(4), batch_size=2, epochs=9, verbose=0, callbacks=kept, num_iters=8)
    assert len(kept.train) == 8 and model.stop_training
    model.fit(Rows(), batch_size=2, epochs=3, verbose=0, callbacks=kept)  # what ended one run does not end the next
    assert len(kept.train) == 8 + 15
    model.fit(Rows(), batch_size=2, epochs=3, verbose=0, callbacks=kept, num_iters=10)  # two whole epochs
    assert len(kept.train) == 23 + 10
    with pytest.raises(AssertionError, match="num_iters"):
        model.fit(Rows(), num_iters=0, verbose=0)


def test_drop_last_shuffle_and_loaders():
    kept, model = Results(), prepared()
    model.fit(Rows(), batch_size=4, verbose=0, drop_last=True, callbacks=kept)
    assert [log["batch_size"] for log in kept.train] == [4, 4]
    model.fit(oar.io.DataLoader(Rows(), batch_size=5), verbose=0, callbacks=kept)
    model.fit([batch(3), batch(6)], verbose=0, callbacks=kept)
    assert [log["batch_size"] for log in kept.train[2:]] == [5, 5, 3, 6]


def test_evaluate_and_predict():
    model = prepared()
    x, y = batch(7)
    results = model.evaluate(Rows(7), batch_size=7, verbose=0)
    logits = network()(oar.to_tensor(x))
    assert results["loss"][0] == pytest.approx(nn.functional.cross_entropy(logits, oar.to_tensor(y)).item(), rel=1e-6)
    assert results["acc"] == pytest.approx((logits.numpy().argmax(1) == y[:, 0]).mean())
    assert list(model.evaluate(Rows(7), batch_size=3, num_iters=1, verbose=0)) == ["loss", "acc"]
    (outputs,) = model.predict(Rows(7), batch_size=3, verbose=0)
    assert isinstance(outputs, tuple) and [part.shape for part in outputs] == [(3, 3), (3, 3), (1, 3)]
    (stacked,) = oar.Model(network()).predict(Rows(7), batch_size=3, stack_outputs=True, verbose=0)  # nothing to prepare
    np.testing.assert_allclose(stacked, logits.numpy(), rtol=1e-6)


def test_what_batches_return():
    x, y = batch()
    losses, metrics = prepared().train_batch([x], [y])
    assert losses[0].shape == () and losses[0].dtype == np.float32 and len(metrics) == 1
    assert isinstance(prepared(metrics=False).train_batch(x, y), list)
    model = prepared()
    before = model.network.state_dict()["0.weight"].numpy().copy()
    model.train_batch([x], [y], update=False)
    np.testing.assert_array_equal(model.network.state_dict()["0.weight"].numpy(), before)
    assert model.network[0].weight.grad is not None
    model.train_batch([x], [y])
    assert (model.network.state_dict()["0.weight"].numpy() != before).any()
    only_metrics = oar.Model(network())
    only_metrics.prepare(metrics=oar.metric.Accuracy())
    assert len(only_metrics.eval_batch([x], [y])) == 1


class TwoInputs(nn.Layer):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 2)

    def forward(self, left, right, scale=1.0):
        out = self.linear(left) + self.linear(right) * scale
        return out, out.sum()


def test_several_inputs_outputs_labels_and_losses():
    class Samples(oar.io.Dataset):
        def __getitem__(self, i):
            return {"a": np.ones(4, "float32"), "b": np.full(4, i, "float32")}, np.zeros(2, "float32"), np.float32(i)

        def __len__(self):
            return 4

    def loss(out, total, first, second):
        return [((out - first) ** 2).mean(), (total - second.sum()) ** 2]

    net = TwoInputs()
    specs = {"right": oar.static.InputSpec([None, 4], name="right"), "left": oar.static.InputSpec([None, 4], name="left")}
    model, kept = oar.Model(net, specs), Results()
    model.prepare(oar.optimizer.SGD(1e-3, parameters=net.parameters()), loss)
    model.fit(Samples(), batch_size=2, verbose=0, shuffle=False, callbacks=kept)
    assert len(kept.train[0]["loss"]) == 2
    assert len(model.predict_batch([np.ones((2, 4), "float32")] * 2)) == 2


def test_a_static_network():
    kept, net = Results(), oar.jit.to_static(network())
    prepared(net).fit(Rows(), batch_size=2, epochs=2, verbose=0, shuffle=False, callbacks=kept)
    np.testing.assert_allclose([log["loss"][0] for log in kept.train], written_out(10), rtol=1e-5)


def test_checkpoints_resume(tmp_path, capsys):
    model = prepared(oar.nn.Linear(4, 3))
    model.fit(Rows(), batch_size=5, epochs=3, verbose=0, save_dir=str(tmp_path), save_freq=2)
    names = ["0", "2", "final"]
    assert sorted(os.listdir(tmp_path)) == sorted(f"{name}{kind}" for name in names for kind in (".pdopt", ".pdparams"))
    assert [line.rpartition("/")[2] for line in capsys.readouterr().out.splitlines()] == names
    weight, state = model.network.weight.numpy().copy(), model._optimizer.state_dict()
    model.fit(Rows(), batch_size=5, verbose=0)
    assert (model.network.weight.numpy() != weight).any()
    model.load(str(tmp_path / "final.pdparams"))
    np.testing.assert_array_equal(model.network.weight.numpy(), weight)
    assert model._optimizer.state_dict().keys() == state.keys()


def test_load_tells_what_does_not_fit(tmp_path):
    path = str(tmp_path / "wide")
    oar.Model(nn.Linear(4, 7)).save(path)
    other = oar.Model(nn.Linear(4, 3))
    with pytest.raises(ValueError, match=r"weight receives a shape \[4, 7\], but the expected shape is \[4, 3\]"):
        other.load(path)
    before = other.network.weight.numpy().copy()
    with pytest.warns(UserWarning, match="skip loading for (weight|bias)"):
        other.load(path, skip_mismatch=True)
    np.testing.assert_array_equal(other.network.weight.numpy(), before)
    with pytest.raises(AssertionError, match="please check path"):
        other.load(str(tmp_path / "none"))


def test_inference_form(tmp_path):
    path = str(tmp_path / "net")
    net = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1D(3), nn.Dropout(0.5))
    model = oar.Model(net)
    with pytest.raises(RuntimeError, match="needs 'inputs'"):
        model.save(path, training=False)
    model = oar.Model(net, oar.static.InputSpec([None, 4], "float32", "x"))
    model.save(path, training=False)
    assert net.training and oar.in_dynamic_mode()
    predictor = oar.inference.create_predictor(oar.inference.Config(path))
    x = batch()[0]
    result = predictor.run([oar.to_tensor(x)])[0]
    np.testing.assert_allclose(np.asarray(result), model.predict_batch([x])[0], rtol=1e-5)


def test_inference_form_after_a_batch(tmp_path):
    model = prepared()
    model.predict_batch([batch()[0]])
    with pytest.warns(UserWarning, match=r"\[\[5, 4\]\]"):
        model.save(str(tmp_path / "net"), training=False)
    assert sorted(os.listdir(tmp_path)) == ["net.pdiparams", "net.pdmodel"]


MISTAKES = {
    "no prepare": (lambda x, y: oar.Model(network()).train_batch([x], [y]), AssertionError, "please call `model.prepare"),
    "no prepare, fit": (lambda x, y: oar.Model(network()).fit(Rows()), AssertionError, "needs an optimizer and a loss"),
    "no prepare, evaluate": (lambda x, y: oar.Model(network()).evaluate(Rows()), AssertionError, "needs a loss or metrics"),
    "no data": (lambda x, y: prepared().fit(), AssertionError, "train_data must be given"),
    "a tensor as data": (lambda x, y: prepared().fit(oar.ones([2])), TypeError, "TensorDataset"),
    "loss": (lambda x, y: oar.Model(network()).prepare(loss=3), TypeError, "received int"),
    "metric": (lambda x, y: oar.Model(network()).prepare(metrics="acc"), AssertionError, "str is not a sub class"),
    "network": (lambda x, y: oar.Model(abs), TypeError, "should be a Layer"),
    "no labels": (lambda x, y: prepared().train_batch([x]), TypeError, "CrossEntropyLoss takes .* 1 output of the network and 0 labels"),
    "too many inputs": (lambda x, y: prepared().predict_batch([x, x]), TypeError, "2 inputs"),
    "batch sizes": (lambda x, y: prepared().fit(Rows(), batch_size=[1, 2, 3]), AssertionError, "batch_size"),
    "amp level": (lambda x, y: prepared(amp_configs="O9"), ValueError, "'O0', 'O1' or 'O2'"),
    "amp key": (lambda x, y: prepared(amp_configs={"foo": 1}), ValueError, "could not be recognized: foo"),
    "amp guard": (lambda x, y: prepared(amp_configs={"use_fp16_guard": True}), ValueError, "static graph mode only"),
    "spec without name": (lambda x, y: oar.Model(network(), oar.static.InputSpec([None, 4])), ValueError, "needs a name"),
    "callback": (lambda x, y: prepared().fit(Rows(), callbacks=print), TypeError, "oar.callbacks.Callback"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes(case):
    call, kind, message = MISTAKES[case]
    with pytest.raises(kind, match=message):
        call(*batch())


def test_loss_of_wrong_kind():
    model = oar.Model(network())
    model.prepare(oar.optimizer.SGD(0.1, parameters=model.parameters()), lambda out, y: 1.0)
    with pytest.raises(TypeError, match="should return a Tensor"):
        model.train_batch(*batch())
    model.prepare(oar.optimizer.SGD(0.1, parameters=model.parameters()), nn.CrossEntropyLoss(reduction="none"))
    with pytest.raises(ValueError, match="reduction='mean'"):
        model.fit(Rows(), batch_size=2, verbose=0)


def test_errors_of_the_user_stay_as_they_are():
    def loss(out, y):
        raise TypeError("mine")

    model = oar.Model(network())
    model.prepare(loss=loss)
    with pytest.raises(TypeError, match="^mine$"):
        model.eval_batch(*batch())


def test_a_loss_that_is_no_number_is_told_once_a_pass():
    rows = [(np.full((1, 4), np.nan, "float32"), np.array([[0]]))] * 3
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        prepared().fit(rows, verbose=0)
    assert ["learning rate" in str(warning.message) for warning in caught] == [True]


def test_mixed_precision(tmp_path):
    for level in ("O1", {"level": "O2", "init_loss_scaling": 64.0, "custom_black_list": ["tanh"]}):
        model, kept = prepared(amp_configs=level), Results()
        model.fit(Rows(), batch_size=2, epochs=2, verbose=0, shuffle=False, callbacks=kept)
        np.testing.assert_allclose([log["loss"][0] for log in kept.train], written_out(10), rtol=0.05)
        model.save(str(tmp_path / "half"))
        assert (tmp_path / "half.pdscaler").exists()
        model.load(str(tmp_path / "half"))


def test_paths():
    from oar.hapi import callbacks, model, model_summary, progressbar

    assert model.Model is oar.Model is oar.hapi.Model and model_summary.summary is oar.summary
    assert model.prepare_distributed_context() is None
    assert callbacks.EarlyStopping is oar.callbacks.EarlyStopping and progressbar.ProgressBar
