"""The networks of vision.models: names, parameters, shapes, gradients and trained weights; images from files.

`peers/test_paddle_models.py` compares state dictionaries and results with Paddle's.
"""

import hashlib
import inspect

import numpy as np
import pytest

import oar
from oar import nn
from oar._missing import paddle_names
from oar.utils import download
from oar.vision import models
from oar.vision.models import _utils

# Numbers that are trained (those of the papers, of Paddle and of torchvision, where it has the network), and entries of the
# state dictionary.
NETWORKS = {
    "LeNet": (61_610, 10),
    "alexnet": (61_100_840, 16),
    "densenet121": (7_978_856, 606),
    "densenet161": (28_681_000, 806),
    "densenet169": (14_149_480, 846),
    "densenet201": (20_013_928, 1006),
    "densenet264": (33_337_704, 1326),
    "googlenet": (11_535_736, 69),
    "inception_v3": (23_834_568, 472),
    "mobilenet_v1": (4_231_976, 137),
    "mobilenet_v2": (3_504_872, 262),
    "mobilenet_v3_large": (5_483_032, 266),
    "mobilenet_v3_small": (2_542_856, 210),
    "resnet101": (44_549_160, 522),
    "resnet152": (60_192_808, 777),
    "resnet18": (11_689_512, 102),
    "resnet34": (21_797_672, 182),
    "resnet50": (25_557_032, 267),
    "resnext101_32x4d": (44_177_704, 522),
    "resnext101_64x4d": (83_455_272, 522),
    "resnext152_32x4d": (59_951_400, 777),
    "resnext152_64x4d": (114_971_944, 777),
    "resnext50_32x4d": (25_028_904, 267),
    "resnext50_64x4d": (45_192_488, 267),
    "shufflenet_v2_swish": (2_278_604, 282),
    "shufflenet_v2_x0_25": (603_688, 282),
    "shufflenet_v2_x0_33": (647_272, 282),
    "shufflenet_v2_x0_5": (1_366_792, 282),
    "shufflenet_v2_x1_0": (2_278_604, 282),
    "shufflenet_v2_x1_5": (3_503_624, 282),
    "shufflenet_v2_x2_0": (7_366_536, 282),
    "squeezenet1_0": (1_248_424, 52),
    "squeezenet1_1": (1_235_496, 52),
    "vgg11": (132_863_336, 22),
    "vgg13": (133_047_848, 26),
    "vgg16": (138_357_544, 32),
    "vgg19": (143_667_240, 38),
    "wide_resnet101_2": (126_886_696, 522),
    "wide_resnet50_2": (68_883_240, 267),
}
CLASSES = {
    "AlexNet": "(num_classes=1000)",
    "DenseNet": "(layers=121, bn_size=4, dropout=0.0, num_classes=1000, with_pool=True)",
    "GoogLeNet": "(num_classes=1000, with_pool=True)",
    "InceptionV3": "(num_classes=1000, with_pool=True)",
    "LeNet": "(num_classes=10)",
    "MobileNetV1": "(scale=1.0, num_classes=1000, with_pool=True)",
    "MobileNetV2": "(scale=1.0, num_classes=1000, with_pool=True)",
    "MobileNetV3Large": "(scale=1.0, num_classes=1000, with_pool=True)",
    "MobileNetV3Small": "(scale=1.0, num_classes=1000, with_pool=True)",
    "ResNet": "(block, depth=50, width=64, num_classes=1000, with_pool=True, groups=1)",
    "ShuffleNetV2": "(scale=1.0, act='relu', num_classes=1000, with_pool=True)",
    "SqueezeNet": "(version, num_classes=1000, with_pool=True)",
    "VGG": "(features, num_classes=1000, with_pool=True)",
}


def test_all_of_paddles_names_are_there():
    wanted = paddle_names()["paddle.vision.models"]
    assert len(wanted) == 51 and sorted(wanted) == models.__all__
    assert set(models.__all__) == set(NETWORKS) | set(CLASSES)
    assert oar.vision.LeNet is models.LeNet and callable(models.alexnet) and callable(models.googlenet)


@pytest.mark.parametrize("name", NETWORKS)
def test_sizes(name):
    with oar.LazyGuard():
        net = getattr(models, name)()
    trained = sum(p.size for p in net.parameters() if not p.stop_gradient)
    assert (trained, len(net.state_dict())) == NETWORKS[name]


def _plain(signature: inspect.Signature) -> str:
    parameters = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=parameters, return_annotation=signature.empty))


def test_signatures():
    assert {name: _plain(inspect.signature(getattr(models, name))) for name in CLASSES} == CLASSES
    extra = {"vgg": "batch_norm=False, ", "mobilenet": "scale=1.0, "}
    for name in set(NETWORKS) - set(CLASSES):
        more = next((text for family, text in extra.items() if name.startswith(family)), "")
        assert _plain(inspect.signature(getattr(models, name))) == f"(pretrained=False, {more}**kwargs)"


SMALL = {
    "LeNet": ({}, [2, 1, 28, 28]),
    "mobilenet_v1": ({"scale": 0.25}, [2, 3, 64, 64]),
    "mobilenet_v2": ({"scale": 0.25}, [2, 3, 64, 64]),
    "mobilenet_v3_small": ({"scale": 0.35}, [2, 3, 64, 64]),
    "shufflenet_v2_x0_25": ({}, [2, 3, 64, 64]),
    "squeezenet1_0": ({}, [2, 3, 48, 48]),
    "squeezenet1_1": ({}, [2, 3, 48, 48]),
    "resnet18": ({}, [2, 3, 48, 48]),
    "densenet121": ({}, [2, 3, 48, 48]),
}


@pytest.mark.parametrize("name", SMALL)
def test_training_reaches_every_parameter(name):
    oar.seed(3)
    kwargs, shape = SMALL[name]
    net = getattr(models, name)(num_classes=10, **kwargs)
    scores = net(oar.randn(shape))
    assert scores.shape == [2, 10]
    (scores * oar.randn([2, 10])).sum().backward()
    for key, parameter in net.named_parameters():
        if not parameter.stop_gradient:
            assert parameter.grad is not None and bool(oar.isfinite(parameter.grad).all()), key
    touched = [float(p.grad.abs().max()) > 0 for p in net.parameters() if not p.stop_gradient]
    assert np.mean(touched) > 0.95


@pytest.mark.parametrize("kwargs, expected", [
    ({"num_classes": 0, "with_pool": False}, [1, 512, 2, 2]),
    ({"num_classes": 0}, [1, 512, 1, 1]),
    ({"num_classes": 3}, [1, 3]),
])  # fmt: skip
def test_the_end_can_be_left_out(kwargs, expected):
    net = models.resnet18(**kwargs).eval()
    assert net(oar.zeros([1, 3, 64, 64])).shape == expected
    assert ("fc.weight" in net.state_dict()) == (kwargs["num_classes"] > 0)


def test_googlenet_returns_three():
    net = models.googlenet(num_classes=4).eval()
    assert [scores.shape for scores in net(oar.zeros([1, 3, 192, 192]))] == [[1, 4]] * 3


def test_inception_and_vgg():
    assert models.inception_v3(num_classes=4).eval()(oar.zeros([1, 3, 75, 75])).shape == [1, 4]
    net = models.vgg11(batch_norm=True, num_classes=0).eval()
    assert net(oar.zeros([1, 3, 32, 32])).shape == [1, 512, 7, 7]
    assert isinstance(net.features[1], nn.BatchNorm2D)


def test_captured_network():
    net = models.shufflenet_v2_x0_25(num_classes=5).eval()
    x = oar.randn([1, 3, 32, 32])
    np.testing.assert_allclose(oar.jit.to_static(net)(x).numpy(), net(x).numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("call, words", [
    (lambda: models.ResNet(models.resnet.BasicBlock, 20), ["ResNet", "depth is 20", "18, 34, 50, 101, 152"]),
    (lambda: models.DenseNet(100), ["DenseNet", "layers is 100", "121"]),
    (lambda: models.SqueezeNet("2.0"), ["SqueezeNet", "'2.0'", "'1.1'"]),
    (lambda: models.ShuffleNetV2(0.7), ["ShuffleNetV2", "0.7", "0.25"]),
    (lambda: models.ShuffleNetV2(0.25, act="gelu"), ["ShuffleNetV2", "'gelu'", "'swish'"]),
    (lambda: models.vgg16(pretrained=True, batch_norm=True, num_classes=0), ["vgg16_bn", "set_state_dict"]),
    (lambda: models.mobilenet_v1(pretrained=True, scale=0.25), ["mobilenetv1_0.25", "pretrained=False"]),
])  # fmt: skip
def test_mistakes(call, words):
    with pytest.raises((ValueError, NotImplementedError, RuntimeError)) as caught:
        call()
    assert all(word in str(caught.value) for word in words), caught.value


def test_trained_weights_come_from_the_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(download, "WEIGHTS_HOME", str(tmp_path))
    path = tmp_path / "squeezenet.pdparams"
    url = f"https://example.org/{path.name}"
    monkeypatch.setitem(_utils.WEIGHTS, "squeezenet1_1", (url, "0" * 32))
    with pytest.raises(FileNotFoundError) as caught:
        models.squeezenet1_1(pretrained=True)
    assert str(path) in str(caught.value) and url in str(caught.value)

    trained = models.squeezenet1_1()
    oar.save(trained.state_dict(), str(path))
    with pytest.raises(RuntimeError, match="MD5"):
        models.squeezenet1_1(pretrained=True)
    monkeypatch.setitem(_utils.WEIGHTS, "squeezenet1_1", (url, hashlib.md5(path.read_bytes()).hexdigest()))
    loaded = models.squeezenet1_1(pretrained=True)
    for key, value in trained.state_dict().items():
        np.testing.assert_array_equal(loaded.state_dict()[key].numpy(), value.numpy(), err_msg=key)


def test_every_file_of_weights_has_a_network():
    for arch, (url, md5sum) in _utils.WEIGHTS.items():
        assert url.endswith(".pdparams") and len(md5sum) == 32, arch
    named = {arch for arch in _utils.WEIGHTS if arch in NETWORKS}
    assert set(_utils.WEIGHTS) - named == {"mobilenetv1_1.0", "mobilenetv2_1.0", "mobilenet_v3_small_x1.0",
                                           "mobilenet_v3_large_x1.0"}  # fmt: skip


def test_images_from_files(tmp_path):
    image_of = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 256, (4, 6, 3), dtype=np.uint8)
    path = tmp_path / "image.png"
    image_of.fromarray(pixels).save(path)
    assert oar.vision.get_image_backend() == "pil"
    np.testing.assert_array_equal(np.asarray(oar.vision.image_load(str(path))), pixels)
    oar.vision.set_image_backend("tensor")
    try:
        assert oar.vision.get_image_backend() == "tensor"
        np.testing.assert_array_equal(oar.vision.image_load(path).numpy(), pixels.transpose(2, 0, 1))
    finally:
        oar.vision.set_image_backend("pil")
    with pytest.raises(ValueError, match="'gif'.*'cv2'"):
        oar.vision.set_image_backend("gif")
    np.testing.assert_array_equal(oar.vision.image_load(str(path), backend="cv2"), pixels[:, :, ::-1])
