"""Programs and states in files."""

import os

import numpy as np
import pytest

import oar
from oar import static


@pytest.fixture
def trained(tmp_path):
    oar.enable_static()
    main, startup = static.Program(), static.Program()
    with static.scope_guard(static.Scope()), oar.framework.unique_name.guard(), static.program_guard(main, startup):
        x, y = static.data("x", [None, 4]), static.data("y", [None, 1])
        hidden = oar.nn.functional.dropout(static.nn.fc(x, 8, activation="relu"), 0.5)
        out = static.nn.fc(hidden, 1, bias_attr=False) + oar.to_tensor(np.arange(20.0, dtype="float32")).sum() * 0.01
        loss = oar.mean((out - y) ** 2)
        oar.optimizer.Adam(0.01).minimize(loss)
        exe = static.Executor()
        exe.run(startup)
        feed = {"x": np.random.RandomState(0).randn(6, 4).astype("float32"), "y": np.ones((6, 1), "float32")}
        exe.run(main, feed=feed)
        yield main, exe, x, out, feed, str(tmp_path / "model")
    oar.disable_static()


def test_inference_models(trained):
    main, exe, x, out, feed, path = trained
    (wanted,) = exe.run(main.clone(for_test=True), feed=feed, fetch_list=[out])
    static.save_inference_model(path, [x], [out], exe)
    assert sorted(os.listdir(os.path.dirname(path))) == ["model.pdiparams", "model.pdmodel"]
    with static.scope_guard(static.Scope()):
        program, feeds, fetches = static.load_inference_model(path, exe)
        assert feeds == ["x"] and len(fetches) == 1 and "adamw_" not in str(program)
        for rows in (6, 2):
            (got,) = exe.run(program, feed={"x": feed["x"][:rows]}, fetch_list=fetches)
            np.testing.assert_allclose(got, wanted[:rows], rtol=1e-5, atol=1e-6)


def test_bytes(trained):
    main, exe, x, out, feed, path = trained
    (wanted,) = exe.run(main.clone(for_test=True), feed=feed, fetch_list=[out])
    program, states = static.serialize_program([x], [out]), static.serialize_persistables([x], [out], exe)
    static.save_to_file(path, program)
    with static.scope_guard(static.Scope()):
        again = static.deserialize_program(static.load_from_file(path))
        static.deserialize_persistables(again, states, exe)
        np.testing.assert_array_equal(exe.run(again, {"x": feed["x"]}, again._builder.outputs())[0], wanted)
    with pytest.raises(ValueError, match="not a program of Oar"):
        static.deserialize_program(b"something else")
    with pytest.raises(ValueError, match="which feed_vars does not have"):
        static.serialize_program([], [out])
    with pytest.raises(TypeError, match="feed_vars should be"):
        static.serialize_program("x", [out])


def test_normalised_programs(trained):
    main, exe, x, out, feed, _ = trained
    pruned = static.normalize_program(main, [x], [out])
    assert pruned.global_block().has_var("x") and not pruned.global_block().has_var("y")
    assert "dropout" not in str(pruned)


def test_training_goes_on_from_files(trained):
    main, exe, x, out, feed, path = trained
    static.save(main, path)
    kept = {name: t.numpy() for name, t in main.state_dict().items()}
    expected = exe.run(main, feed=feed, fetch_list=["fc_0.w_0"])[0]
    static.load(main, path, exe)
    for name, t in main.state_dict().items():
        np.testing.assert_array_equal(t.numpy(), kept[name])
    assert expected.shape == (4, 8)
    state = static.load_program_state(path)
    assert set(state) == set(kept)
    assert set(static.load_program_state(path, ["fc_0.w_0"])) == {"fc_0.w_0"}
    static.set_program_state(main, {"fc_0.w_0": np.zeros((4, 8), "float32")})
    assert not main.state_dict()["fc_0.w_0"].numpy().any()
    with pytest.raises(RuntimeError, match="does not fit"):
        static.set_program_state(main, {"fc_0.w_0": np.zeros((4, 9), "float32")})
    with pytest.raises(ValueError, match="no file"):
        static.load_program_state(path + "x")
    assert set(oar.load(path + ".pdparams")) >= {"fc_0.w_0", "fc_0.b_0", "fc_1.w_0"}


def test_load_in_static_mode_reads_values(trained):
    main, exe, x, out, feed, path = trained
    kept = {name: t.numpy() for name, t in main.state_dict("param").items()}
    oar.save(main.state_dict("param"), path + ".pdparams")
    oar.save({"weight": oar.static.global_scope()._tensor("fc_0.w_0")}, path + ".safetensors")
    before = str(main)
    exe.run(main, feed=feed)
    loaded = oar.load(path + ".pdparams")
    assert str(main) == before, "loading wrote constants into the program"
    np.testing.assert_array_equal(oar.load(path + ".safetensors")["weight"].numpy(), kept["fc_0.w_0"])
    main.set_state_dict(loaded)
    for name, t in main.state_dict("param").items():
        np.testing.assert_array_equal(t.numpy(), kept[name])
