"""A small ``fit`` from the same weights, in Oar and in PaddlePaddle: losses, metrics and what is printed."""

import json
import os
import re
import subprocess
import sys

import pytest

PADDLE = os.environ.get("OAR_PADDLE", "")

if not os.access(PADDLE, os.X_OK):
    pytest.skip("needs OAR_PADDLE, a Python that has PaddlePaddle: `make bench-peers`, then set OAR_PADDLE",
                allow_module_level=True)

SCRIPT = """
import json, sys
import numpy as np
library = __import__(sys.argv[1])
nn = library.nn


class Rows(library.io.Dataset):
    def __init__(self, count):
        rng = np.random.RandomState(0)
        self.rows = [(rng.randn(4).astype('float32'), np.array([i % 3])) for i in range(count)]

    def __getitem__(self, i):
        return self.rows[i]

    def __len__(self):
        return len(self.rows)


class Kept(library.callbacks.Callback):
    def __init__(self):
        self.logs = []

    def on_train_batch_end(self, step, logs=None):
        self.logs.append([step, logs['loss'], float(logs['acc']), logs['batch_size']])

    def on_eval_end(self, logs=None):
        self.logs.append([logs['loss'], float(logs['acc'])])


def run(**options):
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    rng = np.random.RandomState(1)
    for parameter in net.parameters():
        parameter.set_value(rng.randn(*parameter.shape).astype('float32') * 0.3)
    model, kept = library.Model(net), Kept()
    model.prepare(library.optimizer.Adam(0.05, parameters=net.parameters()), nn.CrossEntropyLoss(), library.metric.Accuracy())
    model.fit(Rows(10), Rows(7), batch_size=2, epochs=2, log_freq=2, callbacks=kept, **options)
    return kept.logs, model.predict(Rows(7), batch_size=3, stack_outputs=True)[0].tolist()


logs = [run(verbose=2, shuffle=False), run(verbose=1, shuffle=True), run(verbose=0, accumulate_grad_batches=2, drop_last=True)]
info = library.summary(nn.Sequential(nn.Conv2D(1, 6, 3), nn.BatchNorm2D(6), nn.ReLU()), (2, 1, 8, 8))
print('RESULT', json.dumps([logs, {key: int(value) for key, value in info.items()}]))
"""


def _run(python, library):
    done = subprocess.run([python, "-c", SCRIPT, library], capture_output=True, text=True, check=True, timeout=600)
    text, _, result = done.stdout.partition("RESULT")
    text = re.sub(r"[0-9.]+(s|ms|us)/step *", "T/step", text.replace("\b", ""))
    return re.sub(r"ETA: \d+s", "ETA", text), json.loads(result)


def _numbers(value):
    if isinstance(value, dict):
        value = list(value.values())
    return [n for item in value for n in _numbers(item)] if isinstance(value, list) else [value]


def test_fit_as_paddle_does():
    (text, result), (their_text, theirs) = _run(sys.executable, "oar"), _run(PADDLE, "paddle")
    assert _numbers(result) == pytest.approx(_numbers(theirs), rel=1e-4, abs=1e-5)
    assert text == their_text
