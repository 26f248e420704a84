"""The code of the page on models of other frameworks runs."""

import shutil
import sys

import numpy as np
from test_docs import fences, run
from test_interop_caffe import layer, weights
from test_interop_gguf import gguf, text
from test_torch_files import DATA


def test_python_of_the_page_on_importing(tmp_path):
    net = "input: 'data' input_dim: [1, 3, 224, 224]" + layer("Pooling", "pooling_param { pool: AVE global_pooling: true }", ["data"], ["prob"])
    (tmp_path / "deploy.prototxt").write_text(net)
    (tmp_path / "net.caffemodel").write_bytes(weights({"l": [np.zeros(1)]}))
    for name in ("mobilenet_v2.pth", "checkpoint.pt"):
        shutil.copy(DATA / "torch_zip.pt", tmp_path / name)
    (tmp_path / "model.gguf").write_bytes(gguf([("general.architecture", 8, text("llama"))], [("token_embd.weight", (1, 32), 8, bytes(34))]))
    (tmp_path / "page.py").write_text("\n".join(fences("docs/importing.md", "python")))
    printed = run(sys.executable, "page.py", cwd=tmp_path)
    assert "['data'] {'data': [1, 3, 224, 224]} ['prob']" in printed
    assert "mean(" in printed
    assert "llama Q8_0" in printed
