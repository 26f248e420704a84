"""Predictors: models from files, fed and run by name."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import oar
from oar import inference, static
from oar.inference import runnable


@pytest.fixture
def model(tmp_path):
    oar.enable_static()
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        x = static.data("x", [None, 4])
        out = static.nn.fc(x, 3, activation="relu")
        executor = static.Executor()
        executor.run(startup)
        prefix = str(tmp_path / "model")
        static.save_inference_model(prefix, [x], [out], executor)
        values = np.random.default_rng(1).standard_normal((5, 4)).astype("float32")
        expected, = executor.run(main, feed={"x": values}, fetch_list=[out])
    oar.disable_static()
    return prefix, values, expected


@pytest.mark.parametrize("end", [".pdmodel", ".json"])
def test_predictor_runs_what_was_saved(model, end):
    prefix, values, expected = model
    config = inference.Config(prefix + end, prefix + ".pdiparams")
    config.disable_gpu()
    config.set_cpu_math_library_num_threads(1)
    predictor = inference.create_predictor(config)
    assert predictor.get_input_names() == ["x"]
    handle = predictor.get_input_handle("x")
    handle.reshape([5, 4])
    handle.copy_from_cpu(values.reshape(20))
    threads = oar.get_num_threads()
    assert predictor.run() is True
    assert oar.get_num_threads() == threads
    output = predictor.get_output_handle(predictor.get_output_names()[0])
    np.testing.assert_allclose(output.copy_to_cpu(), expected, rtol=1e-6)
    assert output.shape() == [5, 3] and output.type() == inference.DataType.FLOAT32
    made, = predictor.clone().run([oar.to_tensor(values[:2])])
    np.testing.assert_allclose(made.numpy(), expected[:2], rtol=1e-6)


def test_a_predictor_has_states_of_its_own(model):
    prefix, values, expected = model
    pool = inference.PredictorPool(inference.Config(prefix), 2)
    for name in ("fc_0.w_0", "fc_0.b_0"):
        if static.global_scope().find_var(name) is not None:
            static.global_scope().find_var(name).get_tensor().set(np.zeros_like(np.array(static.global_scope().find_var(name).get_tensor())))
    for i in range(2):
        made, = pool.retrieve(i).run([oar.to_tensor(values)])
        np.testing.assert_allclose(made.numpy(), expected, rtol=1e-6)


def test_contents_are_not_copied(saved):
    folder, net, x, expected = saved
    predictor = inference.create_predictor(inference.Config(str(folder / "net.oar")))
    handle, array = predictor.get_input_handle("x"), x.copy()
    handle.share_external_data(array)
    predictor.run()
    output = predictor.get_output_handle(predictor.get_output_names()[0])
    np.testing.assert_allclose(output.copy_to_cpu(), expected, rtol=1e-4, atol=1e-5)
    array *= 2  # the predictor reads the caller's memory
    predictor.run()
    np.testing.assert_allclose(output.copy_to_cpu(), net(oar.to_tensor(array)).numpy(), rtol=1e-4, atol=1e-5)
    handle.copy_from_cpu(array)
    array *= 0
    predictor.run()
    np.testing.assert_allclose(output.copy_to_cpu(), net(oar.to_tensor(2 * x)).numpy(), rtol=1e-4, atol=1e-5)
    for kept in (x[:, :, ::2], np.broadcast_to(x[:1], x.shape)):  # not in order; read-only
        handle.share_external_data(kept)
        predictor.run()
        np.testing.assert_allclose(output.copy_to_cpu(), net(oar.to_tensor(np.array(kept))).numpy(), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="data type of the input 'x' is float32, but float64 was fed"):
        predictor.run([oar.zeros([2, 3, 8, 8], "float64")])


@pytest.mark.parametrize("path", ["net.oar", "net.onnx"])
def test_clones_share_the_model_and_run_in_threads(saved, path):
    folder, net, x, _ = saved
    first = inference.create_predictor(inference.Config(str(folder / path)))
    clones = [first, *(first.clone() for _ in range(3))]
    assert all(clone._model is first._model for clone in clones)
    given = [oar.to_tensor(np.random.default_rng(i).standard_normal((1 + i, 3, 8, 8)).astype("float32")) for i in range(4)]
    wanted, wrong = [net(one).numpy() for one in given], []

    def work(i):
        for _ in range(20):
            made, = clones[i].run([given[i]])
            if not np.allclose(made.numpy(), wanted[i], rtol=1e-4, atol=1e-5):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_errors(model):
    prefix, _, _ = model
    with pytest.raises(ValueError, match="no file"):
        inference.Config("nowhere.pdmodel", "nowhere.pdiparams")
    with pytest.raises(ValueError, match="no model"):
        inference.create_predictor(inference.Config())
    predictor = inference.create_predictor(inference.Config(prefix))
    with pytest.raises(ValueError, match="have no content"):
        predictor.run()
    with pytest.raises(ValueError, match="no 'y' there"):
        predictor.get_input_handle("y")
    with pytest.raises(ValueError, match="no GPU"):
        inference.Config(prefix).enable_use_gpu(100, 0)
    with pytest.raises(ValueError, match="Call run"):
        predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()
    assert inference.get_num_bytes_of_data_type(inference.DataType.INT64) == 8
    assert inference.get_trt_compile_version() == (0, 0, 0)


# ---- wishes of a Config: each acts, is an error, or says that it changes nothing -----------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A small network as files of every kind, an input, and its output."""
    folder = tmp_path_factory.mktemp("saved")
    oar.seed(3)
    net = oar.nn.Sequential(oar.nn.Conv2D(3, 8, 3, padding=1), oar.nn.BatchNorm2D(8), oar.nn.ReLU(), oar.nn.AdaptiveAvgPool2D(1), oar.nn.Flatten(),
                            oar.nn.Linear(8, 64), oar.nn.GELU(), oar.nn.Linear(64, 5))
    net.eval()
    spec = [static.InputSpec([None, 3, None, None], "float32", "x")]
    oar.jit.save(net, str(folder / "net.oar"), input_spec=spec)
    oar.jit.save(net, str(folder / "net"), input_spec=spec)
    oar.onnx.export(net, str(folder / "net"), spec)
    small = oar.nn.Sequential(oar.nn.Linear(16, 64), oar.nn.ReLU(), oar.nn.Linear(64, 4))
    oar.inference.paddle.save(small, str(folder / "theirs"), [static.InputSpec([None, 16], "float32", "x")])
    x = np.random.default_rng(0).standard_normal((2, 3, 16, 20)).astype("float32")
    return folder, net, x, net(oar.to_tensor(x)).numpy()


def ran(config, x):
    predictor = inference.create_predictor(config)
    predictor.get_input_handle("x").copy_from_cpu(x)
    predictor.run()
    return predictor, predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()


def test_a_predictor_runs_a_model_of_any_format(saved):
    folder, _, x, expected = saved
    for path in ("net.oar", "net.onnx", "net"):
        _, made = ran(inference.Config(str(folder / path)), x)
        np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-5)
    config = inference.Config()
    program, weights = (folder / "net.pdmodel").read_bytes(), (folder / "net.pdiparams").read_bytes()
    config.set_model_buffer(program, len(program), weights, len(weights))
    assert config.model_from_memory()
    np.testing.assert_allclose(ran(config, x)[1], expected, rtol=1e-4, atol=1e-5)
    config.set_prog_file(str(folder / "net.pdmodel"))


def test_wishes_without_effect_say_so(saved):
    config = inference.Config(str(saved[0] / "net.oar"))
    assert config.without_effect() == {}
    for name in ("disable_glog_info", "enable_memory_optim", "enable_new_executor", "enable_new_ir", "switch_ir_debug", "enable_cinn",
                 "set_optim_cache_dir", "set_mkldnn_cache_capacity", "set_optimization_level", "collect_shape_range_info", "disable_gpu"):
        getattr(config, name)()
        assert name in config.without_effect() and config.without_effect()[name] in config.summary()
    config.delete_pass("conv_bn_fuse_pass")
    assert "other passes" in config.without_effect()["delete_pass('conv_bn_fuse_pass')"]
    for name in ("enable_use_gpu", "enable_xpu", "set_xpu_config", "set_xpu_device_id", "enable_tensorrt_engine", "enable_ipu",
                 "enable_mkldnn_int8", "enable_openvino_engine", "enable_custom_device"):
        with pytest.raises(ValueError, match="there is no"):
            getattr(config, name)()
    with pytest.raises(ValueError, match="no XPU"):
        inference.XpuConfig()
    assert not (config.use_gpu() or config.use_xpu() or config.tensorrt_engine_enabled() or config.mkldnn_int8_enabled())


def test_every_switch_of_paddle_is_there():
    for name in ("collect_shape_range_info cpu_math_library_num_threads delete_pass disable_glog_info disable_gpu disable_mkldnn "
                 "disable_onednn enable_cinn enable_custom_device enable_ipu enable_memory_optim enable_mkldnn enable_mkldnn_bfloat16 "
                 "enable_mkldnn_int8 enable_new_executor enable_new_ir enable_onednn enable_onednn_bfloat16 enable_onnxruntime "
                 "enable_openvino_engine enable_profile enable_save_optim_model enable_tensorrt_engine enable_use_gpu enable_xpu "
                 "glog_info_disabled gpu_device_id ir_optim memory_pool_init_size_mb mkldnn_enabled model_dir model_from_memory new_ir_enabled "
                 "onednn_enabled onnxruntime_enabled params_file prog_file set_bfloat16_op set_cpu_math_library_num_threads set_mkldnn_op "
                 "set_model set_model_buffer set_optim_cache_dir set_optimization_level set_params_file set_prog_file set_xpu_config "
                 "shape_range_info_collected shape_range_info_path specify_input_name summary switch_ir_debug switch_ir_optim "
                 "switch_specify_input_names switch_use_feed_fetch_ops tensorrt_engine_enabled use_feed_fetch_ops_enabled use_gpu "
                 "use_optimized_model use_xpu xpu_device_id").split():  # fmt: skip
        assert callable(getattr(inference.Config, name)) and getattr(inference.Config, name).__doc__, name


def test_settings_hold_during_runs_alone(saved, monkeypatch):
    folder, _, x, expected = saved
    config = inference.Config(str(folder / "net.oar"))
    config.set_cpu_math_library_num_threads(1)
    config.switch_ir_optim(False)
    config.disable_mkldnn()
    config.delete_pass("fuse_epilogues")
    assert not config.ir_optim() and not config.mkldnn_enabled() and config.cpu_math_library_num_threads() == 1
    assert "fuse_epilogues" in config.summary() and config.without_effect() == {}
    seen = []
    compute = runnable._Program.run

    def watched(self, given):
        seen.append((oar.get_num_threads(), *oar.get_flags(["onednn", "passes_off"]).values()))
        return compute(self, given)

    monkeypatch.setattr(runnable._Program, "run", watched)
    before = oar.get_num_threads(), oar.get_flags(["onednn", "passes_off"])
    np.testing.assert_allclose(ran(config, x)[1], expected, rtol=1e-4, atol=1e-5)
    (threads, onednn, off), = seen
    assert threads == 1 and onednn is False and set(off.split(",")) == {"all", "fuse_epilogues"}
    assert (oar.get_num_threads(), oar.get_flags(["onednn", "passes_off"])) == before
    config.enable_mkldnn()
    config.switch_ir_optim()
    assert config.ir_optim() and config.mkldnn_enabled()


@pytest.mark.parametrize("path", ["net.oar", "net", "net.onnx", "theirs"])
def test_bfloat16(saved, path):
    folder, _, x, _ = saved
    x = np.random.default_rng(0).standard_normal((3, 16)).astype("float32") if path == "theirs" else x
    given = str(folder / path)
    files = (given + ".json", given + ".pdiparams") if path == "theirs" else (given,)
    plain = ran(inference.Config(*files), x)[1]
    config = inference.Config(*files)
    config.enable_profile()
    config.enable_mkldnn_bfloat16()
    assert config.mkldnn_bfloat16_enabled() and "bfloat16" in config.summary()
    predictor, made = ran(config, x)
    assert made.dtype == np.float32 and 0 < np.abs(made - plain).max() < 0.05 * np.abs(plain).max()
    assert "cast" in predictor.op_times()
    smaller = predictor.run([oar.to_tensor(x[:1])])[0].numpy()
    np.testing.assert_allclose(smaller, made[:1], rtol=0.05, atol=0.02)
    config.set_bfloat16_op([])
    np.testing.assert_allclose(ran(config, x)[1], plain, rtol=1e-4, atol=1e-5)


def test_op_times(saved):
    folder, _, x, _ = saved
    config = inference.Config(str(folder / "net.oar"))
    assert ran(config, x)[0].op_times() == {}
    config.enable_profile()
    assert config.profile_enabled()
    predictor, _ = ran(config, x)
    predictor.run()
    times = predictor.op_times()
    assert sum(time.calls for name, time in times.items() if name.startswith("conv")) == 2 and all(time.milliseconds >= 0 for time in times.values())
    assert [t.milliseconds for t in times.values()] == sorted((t.milliseconds for t in times.values()), reverse=True)


def test_warm_up(saved):
    folder, _, x, expected = saved
    for path in ("net.oar", "net.onnx"):
        predictor = inference.create_predictor(inference.Config(str(folder / path)))
        predictor.get_input_handle("x").copy_from_cpu(x)
        predictor.warm_up({"x": [4, 3, 16, 20]})
        predictor.run()
        made = predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()
        np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="the inputs are x"):
        predictor.warm_up({"y": [1]})


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_memory_is_flat_over_varying_shapes(saved):
    folder = saved[0]
    predictor = inference.create_predictor(inference.Config(str(folder / "net.oar")))
    shapes = [(1 + i % 3, 3, 16 + i % 23, 16 + i % 19) for i in range(600)]
    for shape in shapes[:300]:
        predictor.run([oar.zeros(shape)])
    before = resident()
    for shape in shapes[300:]:
        predictor.run([oar.zeros(shape)])
    assert resident() - before < 8 << 20


@pytest.mark.parametrize("isa", ["avx2", "auto"])
def test_instruction_set(saved, isa):
    """The flag is read once, so a process of its own."""
    folder, _, x, expected = saved
    np.save(folder / "x.npy", x)
    program = ("import numpy as np, oar\n"
               f"config = oar.inference.Config({str(folder / 'net.oar')!r})\n"
               f"assert 'instruction set: {isa}' in config.summary()\n"
               "predictor = oar.inference.create_predictor(config)\n"
               f"made, = predictor.run([oar.to_tensor(np.load({str(folder / 'x.npy')!r}))])\n"
               f"np.save({str(folder / isa)!r}, made.numpy())\n")
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, "OAR_CPU_ISA": isa})
    np.testing.assert_allclose(np.load(folder / f"{isa}.npy"), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind, tolerance", [(inference.PrecisionType.Half, 0.005), (inference.PrecisionType.Bfloat16, 0.05)])
@pytest.mark.parametrize("source", [("net.oar", ""), ("net.pdmodel", "net.pdiparams"), ("theirs.json", "theirs.pdiparams")])
@pytest.mark.parametrize("target", [("half.oar", ""), ("half.pdmodel", "half.pdiparams")])
def test_convert_to_mixed_precision(saved, tmp_path, kind, tolerance, source, target):
    folder, _, x, _ = saved
    x = np.random.default_rng(0).standard_normal((3, 16)).astype("float32") if source[0].startswith("theirs") else x
    given = [str(folder / part) if part else "" for part in source]
    written = [str(tmp_path / part) if part else "" for part in target]
    inference.convert_to_mixed_precision(*given, *written, kind, inference.PlaceType.CPU)
    plain = ran(inference.Config(*[part for part in given if part]), x)[1]
    made = ran(inference.Config(*[part for part in written if part]), x)[1]
    assert made.dtype == np.float32 and 0 < np.abs(made - plain).max() < tolerance * np.abs(plain).max()
    inference.convert_to_mixed_precision(*given, *written, kind, inference.PlaceType.CPU, False)
    narrow = oar.interop.load(written[0])
    name = {"Half": "float16", "Bfloat16": "bfloat16"}[kind.name]
    assert narrow.dtypes == {"x": name} and narrow(oar.to_tensor(x).astype(name))[0].dtype.name == name


def test_mixed_precision_of_chosen_ops(saved, tmp_path):
    folder, _, x, expected = saved
    files = str(folder / "net.oar"), "", str(tmp_path / "m.oar"), ""
    inference.convert_to_mixed_precision(*files, inference.PrecisionType.Half, inference.PlaceType.CPU,
                                         black_list={"conv2d", "linear", "matmul_v2", "matmul"})
    np.testing.assert_allclose(oar.interop.load(files[2])(x)[0].numpy(), expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="no GPU"):
        inference.convert_to_mixed_precision(*files, inference.PrecisionType.Half, inference.PlaceType.GPU)
    with pytest.raises(ValueError, match="Half or"):
        inference.convert_to_mixed_precision(*files, inference.PrecisionType.Int8, inference.PlaceType.CPU)
    with pytest.raises(TypeError, match="'gray_list'"):
        inference.convert_to_mixed_precision(*files, inference.PrecisionType.Half, inference.PlaceType.CPU, gray_list=set())
