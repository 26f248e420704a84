"""Predictors: models from files, fed and run by name."""

import numpy as np
import pytest

import oar
from oar import inference, static


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
