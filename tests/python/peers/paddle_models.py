"""The networks of vision.models that are compared with Paddle, and the side of Paddle, which runs in its environment.

Weights need not travel: both sides compute them from the names and shapes of the state dictionary.
"""

from __future__ import annotations

import json
import sys
import zlib

import numpy as np

# Calls, and the size of the square images.
CASES = {
    "LeNet()": 28,
    "squeezenet1_0()": 64,
    "squeezenet1_1()": 64,
    "squeezenet1_1(with_pool=False)": 64,
    "mobilenet_v1()": 64,
    "mobilenet_v1(scale=0.5, num_classes=7)": 64,
    "mobilenet_v2()": 64,
    "mobilenet_v2(scale=0.35, num_classes=0)": 64,
    "mobilenet_v2(scale=1.4, num_classes=0, with_pool=False)": 64,
    "mobilenet_v3_small()": 64,
    "mobilenet_v3_small(scale=0.75, num_classes=0)": 64,
    "mobilenet_v3_large()": 64,
    "mobilenet_v3_large(scale=1.25, num_classes=7, with_pool=True)": 64,
    "shufflenet_v2_x0_25()": 64,
    "shufflenet_v2_x0_33()": 64,
    "shufflenet_v2_x0_5()": 64,
    "shufflenet_v2_x1_0()": 64,
    "shufflenet_v2_x1_5()": 64,
    "shufflenet_v2_x2_0()": 64,
    "shufflenet_v2_swish()": 64,
    "ShuffleNetV2(0.25, act=None, num_classes=0, with_pool=False)": 64,
    "resnet18()": 64,
    "resnet18(num_classes=0, with_pool=False)": 64,
    "resnet34()": 64,
    "resnet50()": 64,
    "resnet101()": 64,
    "resnet152()": 64,
    "resnext50_32x4d()": 64,
    "resnext50_64x4d()": 64,
    "resnext101_32x4d()": 64,
    "resnext101_64x4d()": 64,
    "resnext152_32x4d()": 64,
    "resnext152_64x4d()": 64,
    "wide_resnet50_2()": 64,
    "wide_resnet101_2()": 64,
    "densenet121()": 64,
    "densenet121(bn_size=2, dropout=0.2, num_classes=7)": 64,
    "densenet161()": 64,
    "densenet169()": 64,
    "densenet201()": 64,
    "densenet264()": 64,
    "inception_v3()": 96,
    "googlenet()": 192,
    "googlenet(num_classes=0, with_pool=False)": 96,
    "alexnet()": 224,
    "alexnet(num_classes=0)": 224,
    "vgg11()": 32,
    "vgg11(batch_norm=True, num_classes=0)": 32,
    "vgg13()": 32,
    "vgg16()": 32,
    "vgg19()": 32,
}
FILES = 30_000_000  # networks with fewer numbers are also written to a file


def image(call: str) -> np.ndarray:
    size = CASES[call]
    return np.random.default_rng(size).normal(size=(1, 1 if call == "LeNet()" else 3, size, size)).astype("float32")


def weights(key: str, shape: list[int]) -> np.ndarray:
    """Numbers that keep the size of what passes, different for every name. Large arrays repeat a few, which is quick."""
    rng = np.random.default_rng(zlib.crc32(key.encode()))
    if len(shape) > 1:
        fan_in = int(np.prod(shape[1:])) if len(shape) == 4 else shape[0]
        few = rng.standard_normal(min(int(np.prod(shape)), 65537), dtype="float32") * np.float32((2 / fan_in) ** 0.5)
        return np.resize(few, shape)
    if key.endswith(("_mean", "bias")):
        return rng.normal(0, 0.1, shape).astype("float32")
    return rng.uniform(0.7, 1.3, shape).astype("float32")


def filled(shapes: dict[str, list[int]]) -> dict[str, np.ndarray]:
    return {key: weights(key, shape) for key, shape in shapes.items()}


def outputs(library, call: str, file: str = "") -> tuple[dict[str, list[int]], list[np.ndarray]]:
    """The shapes in the state dictionary of a network of either library, and its results with the weights above. With a
    path, the state dictionary is written there."""
    net = eval(f"models.{call}", {"models": library.vision.models})  # noqa: S307 - from the table above
    net.eval()
    shapes = {key: list(value.shape) for key, value in net.state_dict().items()}
    net.set_state_dict(filled(shapes))
    if file and sum(np.prod(shape) for shape in shapes.values()) < FILES:
        library.save(net.state_dict(), file)
    return shapes, results(library, net, call)


def results(library, net, call: str) -> list[np.ndarray]:
    with library.no_grad():
        found = net(library.to_tensor(image(call)))
    return [value.numpy() for value in (found if isinstance(found, (list, tuple)) else [found])]


def main() -> None:
    """Answers calls on standard input, each with a path for the results and one for the state dictionary."""
    import paddle

    answers, sys.stdout = sys.stdout, sys.stderr
    constant = paddle.nn.initializer.Constant(0.0)
    paddle.nn.initializer.set_global_initializer(constant, constant)  # quicker than numbers that are replaced
    for line in sys.stdin:
        call, path, file = json.loads(line)
        shapes, found = outputs(paddle, call, file)
        np.savez(path, shapes=json.dumps(shapes), **{f"r{i}": value for i, value in enumerate(found)})
        print("done", file=answers, flush=True)


if __name__ == "__main__":
    main()
