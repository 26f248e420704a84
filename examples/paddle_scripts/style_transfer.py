"""Style transfer: the image is the parameter; features of a fixed network, Gram matrices, total variation."""

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn

from common import arguments, report, same_start


class Features(nn.Layer):
    """A fixed convolutional network; hooks collect the activations of the layers that are named."""

    def __init__(self, wanted):
        super().__init__()
        self.net = nn.Sequential()
        channels = 3
        for number, width in enumerate((8, 16, 16)):
            self.net.add_sublayer(f"conv{number}", nn.Conv2D(channels, width, 3, padding=1, padding_mode="reflect"))
            self.net.add_sublayer(f"act{number}", nn.Softplus())
            self.net.add_sublayer(f"pool{number}", nn.AvgPool2D(2, 2))
            channels = width
        self.found = {}
        for name, layer in self.net.named_children():
            if name in wanted:
                layer.register_forward_post_hook(self.keep(name))
        for parameter in self.parameters():
            parameter.stop_gradient = True

    def keep(self, name):
        def hook(layer, inputs, output):
            self.found[name] = output
        return hook

    def forward(self, image):
        self.net(image)
        return dict(self.found)


class Canvas(nn.Layer):
    def __init__(self, shape):
        super().__init__()
        self.pixels = paddle.create_parameter(shape, dtype=paddle.get_default_dtype(),
                                              default_initializer=nn.initializer.Normal(0.5, 0.1))

    def forward(self):
        return self.pixels


def gram(features):
    batch, channels, height, width = features.shape
    flat = features.reshape([batch, channels, height * width])
    return paddle.bmm(flat, flat.transpose([0, 2, 1])) / (channels * height * width)


def total_variation(image):
    return (image[:, :, 1:] - image[:, :, :-1]).abs().mean() + (image[..., 1:] - image[..., :-1]).square().mean()


def main():
    args = arguments(__doc__)
    y, x = np.mgrid[0:32, 0:32] / 32
    content = np.stack([y, x, (np.hypot(y - 0.5, x - 0.5) < 0.3)])[None].astype(args.dtype)
    style = np.stack([np.sin(20 * x), np.cos(15 * y), np.sin(9 * (x + y))])[None].astype(args.dtype) / 2 + 0.5
    layers = ["act0", "act1", "act2"]
    features, canvas = Features(layers), Canvas([1, 3, 32, 32])
    same_start(args.weights, features=features, canvas=canvas)
    with paddle.no_grad():
        wanted = features(paddle.to_tensor(content))["act1"]
        grams = {name: gram(found) for name, found in features(paddle.to_tensor(style)).items()}

    optimizer = paddle.optimizer.Adam(
        learning_rate=paddle.optimizer.lr.MultiStepDecay(0.02, milestones=[30, 60], gamma=0.5),
        parameters=[canvas.pixels])
    losses = []
    for _ in range(args.steps):
        image = canvas()
        found = features(image)
        style_loss = sum(F.mse_loss(gram(found[name]), grams[name]) for name in layers)
        loss = F.mse_loss(found["act1"], wanted) + 100 * style_loss + 0.1 * total_variation(image)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        optimizer._learning_rate.step()
        with paddle.no_grad():
            canvas.pixels.clip_(0.0, 1.0)
        losses.append(loss.item())
    report(losses, mean=canvas.pixels.mean())


if __name__ == "__main__":
    main()
