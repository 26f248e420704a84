"""A C program that finds the library by pkg-config, as docs/predictor.md shows it."""

import shutil
import subprocess

import numpy as np
import pytest
from test_docs import BUILD, fences, needs_build, run

import oar


@needs_build
@pytest.mark.skipif(shutil.which("pkg-config") is None or shutil.which("gcc") is None, reason="needs pkg-config and gcc")
def test_c_program_of_the_page(tmp_path):
    net = oar.nn.Sequential(oar.nn.Linear(8, 16), oar.nn.ReLU(), oar.nn.Linear(16, 3))
    oar.jit.save(net, str(tmp_path / "net.oar"), input_spec=[oar.static.InputSpec(["batch", 8], "float32", "x")])
    (source,) = fences("docs/predictor.md", "c")
    (tmp_path / "predict.c").write_text(source)
    (commands,) = fences("docs/predictor.md", "sh")
    (tmp_path / "build").symlink_to(BUILD)
    (tmp_path / "commands.sh").write_text("set -e\n" + commands.replace("gcc ", "gcc -std=c11 -Wall -Wextra -Werror -pedantic "))
    run("sh", "commands.sh", cwd=tmp_path)
    printed = [float(line) for line in run("./predict", cwd=tmp_path).split()]
    np.testing.assert_allclose(printed, net(oar.arange(1, 9, dtype="float32").reshape([1, 8])).numpy()[0], rtol=1e-4)


@needs_build
@pytest.mark.skipif(shutil.which("pkg-config") is None, reason="needs pkg-config")
def test_the_installed_file_is_relative_to_itself(tmp_path):
    folder = tmp_path / "some where" / "lib" / "pkgconfig"
    folder.mkdir(parents=True)
    shutil.copy(BUILD / "installed" / "oar.pc", folder)
    done = subprocess.run(["pkg-config", "--cflags", "--libs", "--modversion", "oar"], env={"PATH": "/usr/bin:/bin", "PKG_CONFIG_PATH": str(folder)},
                          capture_output=True, text=True, check=True)
    assert oar.__version__ in done.stdout
    flags = subprocess.run(["pkg-config", "--variable=libdir", "oar"], env={"PATH": "/usr/bin:/bin", "PKG_CONFIG_PATH": str(folder)},
                           capture_output=True, text=True, check=True).stdout
    assert flags.strip().endswith("lib/pkgconfig/../../lib")
