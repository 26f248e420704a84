"""A program written first: static.data, static.nn, Executor, a clone for tests, a saved inference model."""

import os
import tempfile

os.environ["FLAGS_enable_pir_api"] = "0"  # static.nn.conv2d needs Paddle's older programs

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import static

from common import arguments, report

CLASSES = 4


def attr(name):
    return paddle.ParamAttr(name=name)


def network(image, label):
    x = static.nn.conv2d(image, 8, 3, padding=1, act="relu", param_attr=attr("conv.w"), bias_attr=attr("conv.b"))
    x = F.max_pool2d(x, 2)
    x = static.nn.batch_norm(x, param_attr=attr("norm.w"), bias_attr=attr("norm.b"), moving_mean_name="norm.mean",
                             moving_variance_name="norm.variance")
    x = static.nn.fc(x, 32, activation="relu", weight_attr=attr("fc1.w"), bias_attr=attr("fc1.b"))
    logits = static.nn.fc(x, CLASSES, weight_attr=attr("fc2.w"), bias_attr=attr("fc2.b"))
    loss = F.cross_entropy(logits, label)
    accuracy = static.accuracy(F.softmax(logits), label, k=1)
    return logits, loss, accuracy


def quadrants(rng, count, dtype):
    """Noise with one bright quadrant, which is the class."""
    labels = rng.randint(0, CLASSES, (count, 1)).astype("int64")
    images = rng.randn(count, 1, 12, 12).astype(dtype) * 0.5
    for image, (label,) in zip(images, labels):
        image[0, 6 * (label // 2):, 6 * (label % 2):][:6, :6] += 0.3
    return {"image": images, "label": labels}


def same_start(path, program):
    """The parameters of a program from a file, or into it."""
    if not path:
        return
    if os.path.exists(path):
        program.set_state_dict(paddle.load(path))
    else:
        paddle.save(program.state_dict("param"), path)


def main():
    args = arguments(__doc__)
    paddle.enable_static()
    train, startup = static.Program(), static.Program()
    with static.program_guard(train, startup):
        image = static.data("image", [None, 1, 12, 12], args.dtype)
        label = static.data("label", [None, 1], "int64")
        logits, loss, accuracy = network(image, label)
        test = train.clone(for_test=True)
        schedule = paddle.optimizer.lr.PiecewiseDecay(boundaries=[10, 40], values=[0.01, 0.005, 0.002])
        paddle.optimizer.Momentum(schedule, momentum=0.9, weight_decay=1e-4).minimize(loss)

    executor = static.Executor(paddle.CPUPlace())
    executor.run(startup)
    same_start(args.weights, train)
    rng = np.random.RandomState(16)
    losses = []
    for _ in range(args.steps):
        (value,) = executor.run(train, feed=quadrants(rng, 16, args.dtype), fetch_list=[loss])
        schedule.step()
        losses.append(value.item())

    held_out = quadrants(rng, 64, args.dtype)
    right, scores = executor.run(test, feed=held_out, fetch_list=[accuracy, logits])
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "classifier")
        static.save_inference_model(path, [image], [logits], executor, program=test)
        program, feeds, fetches = static.load_inference_model(path, executor)
        (again,) = executor.run(program, feed={feeds[0]: held_out["image"]}, fetch_list=fetches)
    assert np.allclose(again, scores, rtol=1e-5, atol=1e-6), "the saved program computes something else"
    report(losses, accuracy=right.item())


if __name__ == "__main__":
    main()
