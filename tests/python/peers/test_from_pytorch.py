"""What docs/from-pytorch.md says about PyTorch is true."""

import os
import re
import subprocess
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[3] / "docs" / "from-pytorch.md"


@pytest.mark.skipif(not os.access(os.environ.get("OAR_TORCH", ""), os.X_OK), reason="needs OAR_TORCH: `make test-torch`")
def test_pytorch_blocks_of_the_page(tmp_path):
    blocks = re.findall(r"^```py\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 2
    (tmp_path / "page.py").write_text("\n".join(blocks))
    done = subprocess.run([os.environ["OAR_TORCH"], "page.py"], cwd=tmp_path, text=True, timeout=300,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip
    assert done.returncode == 0, done.stdout
