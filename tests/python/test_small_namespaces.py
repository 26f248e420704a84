"""Versions, folders for compilers, files from the web, models from folders, checks of the installation."""

import hashlib
import http.server
import importlib
import io
import pathlib
import tarfile
import threading
import warnings
import zipfile

import numpy as np
import pytest

import oar
from oar.utils import download


def test_version(capsys):
    assert oar.version.full_version == oar.__version__
    assert ".".join([oar.version.major, oar.version.minor, oar.version.patch]) == oar.__version__.partition("rc")[0]
    assert oar.version.cuda() == oar.version.cudnn() == oar.version.xpu() == "False" and oar.version.cuda_archs() == []
    assert oar.version.nccl() == "0" and oar.version.tensorrt() == "None" and oar.version.hip is None
    oar.version.show()
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == f"full_version: {oar.__version__}" and shown[-1] == "cuda_archs: []" and len(shown) == 15


def test_headers_and_library():
    assert pathlib.Path(oar.sysconfig.get_include(), "oar", "oar.h").exists()
    assert pathlib.Path(oar.sysconfig.get_lib(), "liboar.so").exists()


def test_the_check_of_the_installation(capsys):
    oar.utils.run_check()
    assert "works on cpu." in capsys.readouterr().out


@pytest.fixture
def server(tmp_path):
    """A folder on the web, its address, and the requests that came."""
    folder, asked = tmp_path / "web", []
    folder.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(folder))

        def log_message(self, *args):
            asked.append(self.path)

    web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=web.serve_forever)
    thread.start()
    yield folder, f"http://127.0.0.1:{web.server_port}", asked
    web.shutdown()
    thread.join()
    web.server_close()


def test_files_from_the_web(server, tmp_path, monkeypatch):
    folder, address, asked = server
    content = b"weights" * 1000
    (folder / "net.bin").write_bytes(content)
    total = hashlib.md5(content).hexdigest()
    monkeypatch.setattr(download, "WEIGHTS_HOME", str(tmp_path / "cache"))
    path = download.get_weights_path_from_url(f"{address}/net.bin", total)
    assert pathlib.Path(path).read_bytes() == content and pathlib.Path(path).parent == tmp_path / "cache"
    assert download.get_weights_path_from_url(f"{address}/net.bin", total) == path and len(asked) == 1
    with pytest.raises(RuntimeError, match="3 tries: its MD5 sum is not 00"):
        download.get_weights_path_from_url(f"{address}/net.bin", "00")
    assert pathlib.Path(path).read_bytes() == content and len(list((tmp_path / "cache").iterdir())) == 1
    with pytest.raises(RuntimeError, match="could not be fetched in 3 tries.*404"):
        download.get_path_from_url(f"{address}/absent", str(tmp_path))
    with pytest.raises(ValueError, match="does not name a file"):
        download.get_path_from_url(f"{address}/", str(tmp_path))


def test_archives_are_unpacked(server, tmp_path):
    folder, address, _ = server
    with tarfile.open(folder / "net.tar.gz", "w:gz") as archive:
        entry = tarfile.TarInfo("net/a.txt")
        entry.size = 5
        archive.addfile(entry, io.BytesIO(b"hello"))
    with zipfile.ZipFile(folder / "flat.zip", "w") as files:
        files.writestr("a.txt", "hello")
        files.writestr("b.txt", "world")
    net = download.get_path_from_url(f"{address}/net.tar.gz", str(tmp_path))
    assert pathlib.Path(net) == tmp_path / "net" and (tmp_path / "net" / "a.txt").read_text() == "hello"
    assert download.get_path_from_url(f"{address}/flat.zip", str(tmp_path)) == str(tmp_path)
    assert (tmp_path / "b.txt").read_text() == "world"
    assert download.get_path_from_url(f"{address}/flat.zip", str(tmp_path), decompress=False).endswith("flat.zip")


def test_archives_stay_in_their_folder(server, tmp_path):
    folder, address, _ = server
    with tarfile.open(folder / "bad.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo("../outside.txt"))
    inside = tmp_path / "inside"
    with pytest.raises(tarfile.OutsideDestinationError):
        download.get_path_from_url(f"{address}/bad.tar", str(inside))
    assert not (tmp_path / "outside.txt").exists()


def test_states_from_the_web(server, tmp_path):
    folder, address, _ = server
    state = oar.nn.Linear(2, 3).state_dict()
    oar.save(state, str(folder / "net.pdparams"))
    total = hashlib.sha256((folder / "net.pdparams").read_bytes()).hexdigest()
    (folder / f"net-{total[:8]}.pdparams").write_bytes((folder / "net.pdparams").read_bytes())
    (folder / "net-00000000.pdparams").write_bytes((folder / "net.pdparams").read_bytes())
    loaded = oar.hub.load_state_dict_from_url(f"{address}/net-{total[:8]}.pdparams", str(tmp_path), check_hash=True)
    np.testing.assert_array_equal(loaded["weight"].numpy(), state["weight"].numpy())
    with pytest.raises(RuntimeError, match="not with '00000000', as its name says"):
        oar.hub.load_state_dict_from_url(f"{address}/net-00000000.pdparams", str(tmp_path), check_hash=True)
    oar.hub.load_state_dict_from_url(f"{address}/net.pdparams", str(tmp_path), file_name="other.pdparams")
    assert (tmp_path / "other.pdparams").exists()


def test_models_from_a_folder(tmp_path):
    (tmp_path / "parts.py").write_text("import oar\n\ndef layer(size):\n    return oar.nn.Linear(size, 1)\n")
    (tmp_path / "hubconf.py").write_text(
        'dependencies = ["json"]\nfrom parts import layer as _layer\n\ndef small(size=2):\n    "A layer."\n    return _layer(size)\n')
    folder = str(tmp_path)
    assert oar.hub.list(folder, source="local") == ["small"]
    assert oar.hub.help(folder, "small", source="local") == "A layer."
    assert oar.hub.load(folder, "small", source="local", size=3).weight.shape == [3, 1]
    with pytest.raises(RuntimeError, match="no function 'large'. It has small"):
        oar.hub.load(folder, "large", source="local")
    with pytest.raises(NotImplementedError, match="clone the repository"):
        oar.hub.list("a/b")
    with pytest.raises(ValueError, match="source is 'web'"):
        oar.hub.list(folder, source="web")
    with pytest.raises(FileNotFoundError, match=r"no hubconf\.py"):
        oar.hub.list(str(tmp_path / "nowhere"), source="local")
    (tmp_path / "hubconf.py").write_text('dependencies = ["no_such_module"]\n')
    with pytest.raises(RuntimeError, match="not installed: no_such_module"):
        oar.hub.list(folder, source="local")


def test_lists_of_numbers():
    assert oar.utils.convert_to_list(2.0, 2, "scale", float) == [2.0, 2.0]
    with pytest.raises(ValueError, match="stride must be one int or a list of 2"):
        oar.utils.convert_to_list([1, 2, 3], 2, "stride")
    assert oar.utils.is_same_shape([None, 3], [2, -1]) and not oar.utils.is_same_shape([2, 3], [2, 4])


def test_modules_under_paddles_inner_paths():
    decode = importlib.import_module("oar.text.viterbi_decode")
    assert decode.viterbi_decode is oar.text.viterbi_decode and decode.ViterbiDecoder is oar.text.ViterbiDecoder
    assert oar.nn.initializer.lazy_init.LazyGuard is oar.LazyGuard
    with oar.ir_guard:
        assert not oar.in_dynamic_mode()
    assert oar.in_dynamic_mode()


def test_dtypes_of_mixed_precision():
    assert oar.amp.is_bfloat16_supported("cpu")
    assert oar.amp.is_float16_supported() is oar.amp.is_float16_supported("cpu")
    with pytest.raises(ValueError, match=r"\[is_float16_supported\] there is no gpu:0 here"):
        oar.amp.is_float16_supported("gpu:0")


def test_wishes_to_tune_are_checked(tmp_path):
    set_config = oar.incubate.autotune.set_config
    (tmp_path / "wishes.json").write_text('{"dataloader": {"enable": true, "tuning_steps": 3}}')
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        set_config()
        set_config(str(tmp_path / "wishes.json"))
        set_config({"kernel": {"enable": True, "tuning_range": [1, 5]}, "layout": {"enable": False}})
    for wishes, text in (({"kernel": {"enable": 1}}, "enable of kernel must be of type bool, not 1"),
                         ({"kernel": {"tuning_range": 1}}, "tuning_range of kernel must be a list"),
                         ({"dataloader": {"tuning_steps": True}}, "tuning_steps of dataloader must be of type int")):  # fmt: skip
        with pytest.warns(UserWarning, match=text):
            set_config(wishes)
    with pytest.raises(TypeError, match="must be a dict"):
        set_config(3)
    with pytest.raises(FileNotFoundError):
        set_config(str(tmp_path / "absent.json"))


def test_functions_compiled_by_their_annotations():
    cc, t = oar.incubate.cc, oar.incubate.cc.typing
    n, dtype = t.DimVar("n", min=2), t.DTypeVar("T", "float32", "float64")

    def layer(x: t.Tensor([n, 3], dtype), w: t.Tensor([t.DimVar(3), n], dtype)):
        return cc.fuse.matmul(x, w, oar.nn.functional.relu)

    compiled = cc.compile(layer)
    rng = np.random.default_rng(0)
    for size, kind in ((2, "float32"), (4, "float32"), (4, "float64")):
        x, w = (rng.standard_normal(shape).astype(kind) for shape in ((size, 3), (3, size)))
        np.testing.assert_allclose(compiled(oar.to_tensor(x), oar.to_tensor(w)), np.maximum(x @ w, 0), rtol=1e-5, atol=1e-6)
    x, w = oar.ones([4, 3]), oar.ones([3, 4])
    for wrong, text in (((x, oar.ones([3, 5])), r"argument w has shape \[3, 5\]"), ((x[:1], w[:, :1]), r"x has shape \[1, 3\]"),
                        ((x, w.astype("float64")), "w has dtype float64; its annotation asks for float32"),
                        ((x.astype("int32"), w), "float32 or float64")):  # fmt: skip
        with pytest.raises(ValueError, match=text):
            compiled(*wrong)
    with pytest.raises(TypeError, match="takes 2 tensors, not 1"):
        compiled(x)
    with pytest.raises(ValueError, match="train must be False"):
        cc.compile(layer, train=True)
    with pytest.raises(TypeError, match="argument x of <lambda> must be annotated"):
        cc.compile(lambda x: x)
