"""Names of Paddle's inner modules that programs use: gradients, nests, flags, places, one process."""

import numpy as np
import pytest

import oar
from oar import distributed, static
from oar.base import framework


def test_one_process():
    assert distributed.get_rank() == 0 and distributed.get_world_size() == 1
    distributed.init_parallel_env()
    assert distributed.is_initialized()
    env = distributed.ParallelEnv()
    assert env.rank == env.local_rank == 0 and env.nranks == 1 and env.trainer_endpoints == []


def test_several_processes_need_a_place_to_meet(monkeypatch):
    distributed.destroy_process_group()
    monkeypatch.delenv("PADDLE_MASTER", raising=False)
    monkeypatch.setenv("PADDLE_TRAINERS_NUM", "2")
    monkeypatch.setenv("PADDLE_TRAINER_ID", "1")
    assert distributed.get_rank() == 1 and distributed.get_world_size() == 2
    with pytest.raises(RuntimeError, match="2 processes were started, but nothing says where they meet"):
        distributed.init_parallel_env()


def test_placements():
    shard = distributed.Shard(1)
    assert shard == distributed.Shard(1) != distributed.Shard(0)
    assert len({shard, distributed.Shard(1), distributed.Replicate(), distributed.Partial()}) == 3
    assert shard.is_shard() and shard.is_shard(1) and not shard.is_shard(0) and shard.get_dim() == 1
    assert distributed.Replicate().is_replicated() and distributed.Partial().is_partial()
    assert repr(shard) == "Shard(dim=1)"


def test_gradients_in_programs():
    oar.enable_static()
    main = static.Program()
    with static.program_guard(main):
        x = static.data("x", [3])
        x.stop_gradient = False
        grad, = oar.autograd.ir_backward.grad(oar.sum(x * x), x)
        made, = static.Executor().run(main, feed={"x": np.float32([1, 2, 3])}, fetch_list=[grad])
    oar.disable_static()
    np.testing.assert_allclose(made, [2, 4, 6])


def test_states_of_programs():
    oar.enable_static()
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        two = oar.nn.initializer.Constant(2.0)
        weight = oar.pir.core.create_parameter("float32", [2], name="inner_names_w", initializer=two)
        kept = oar.pir.core.create_persistable_value("float32", [2], name="inner_names_k", initializer=two)
        executor = static.Executor()
        executor.run(startup)
        made, = executor.run(main, fetch_list=[weight + kept])
    oar.disable_static()
    assert made.tolist() == [4.0, 4.0] and kept.persistable and not weight.stop_gradient
    assert oar.pir.core.vartype_to_datatype[oar.base.core.VarDesc.VarType.FP32] == oar.float32


def test_slots_of_ops():
    protos = framework.OpProtoHolder.instance()
    assert protos.has_op_proto("matmul_v2") and not protos.has_op_proto("no_such_op")
    proto = protos.get_op_proto("matmul_v2")
    assert [slot.name for slot in proto.inputs] == ["X", "Y"] and [slot.name for slot in proto.attrs] == ["trans_x", "trans_y"]
    assert [slot.name for slot in proto.outputs] == ["Out"]
    with pytest.raises(ValueError, match="not been registered"):
        protos.get_op_proto("no_such_op")
    assert framework.convert_np_dtype_to_proto_type(np.float32) == oar.float32


def test_nests():
    nest = {"b": [1, (2, 3)], "a": 4}
    utils = oar.utils
    assert utils.flatten(nest) == [4, 1, 2, 3]
    assert utils.pack_sequence_as(nest, [0, 5, 6, 7]) == {"b": [5, (6, 7)], "a": 0}
    assert utils.map_structure(lambda x, y: x + y, nest, nest) == {"b": [2, (4, 6)], "a": 8}
    assert utils.map_structure(abs, -1) == 1 and utils.to_sequence(3) == [3] and utils.is_sequence(nest)
    utils.assert_same_structure(nest, {"a": 0, "b": [0, (0, 0)]})
    with pytest.raises(ValueError, match="structures differ"):
        utils.assert_same_structure(nest, {"a": 0, "b": [0, (0, 0, 0)]})
    with pytest.raises(TypeError, match="differ in type"):
        utils.assert_same_structure([1], (1,))
    with pytest.raises(ValueError, match="4 leaves"):
        utils.pack_sequence_as(nest, [1])


def test_flags_of_other_engines_are_kept():
    assert oar.get_flags("FLAGS_sort_sum_gradient") == {"FLAGS_sort_sum_gradient": False}
    try:
        oar.set_flags({"FLAGS_sort_sum_gradient": True, "check_nan_inf": False})
        assert oar.get_flags(["sort_sum_gradient"]) == {"sort_sum_gradient": True}
        assert "FLAGS_sort_sum_gradient" in oar.base.core.globals()
    finally:
        oar.set_flags({"FLAGS_sort_sum_gradient": False})
    with pytest.raises(ValueError, match="no flag"):
        oar.set_flags({"FLAGS_no_such_flag": 1})


def test_indices_take_no_gradient():
    places = oar.to_tensor([0, 2], stop_gradient=False)
    assert not places.stop_gradient  # the flag is kept, as in Paddle
    x = oar.to_tensor([1.0, 2.0, 3.0], stop_gradient=False)
    oar.gather(x, places).sum().backward()
    assert x.grad.tolist() == [1.0, 0.0, 1.0] and places.grad is None


def test_input_specs_ask_for_gradients_where_there_are_some():
    spec = static.InputSpec([None], "int64")
    assert not spec.stop_gradient and not static.input.InputSpec([2]).stop_gradient
    table = oar.rand([5, 2])
    look_up = oar.jit.capture(lambda i: oar.nn.functional.embedding(i, table), [spec])
    np.testing.assert_array_equal(look_up(oar.to_tensor([3, 1])).numpy(), table.numpy()[[3, 1]])


def test_lists_of_tensors_become_one():
    parts = [oar.ones([2, 1]), oar.zeros([2, 3])]
    joined, sizes = oar.tensor.manipulation.tensor_array_to_tensor(parts, axis=1)
    assert joined.tolist() == [[1, 0, 0, 0]] * 2 and sizes.tolist() == [1, 3]
    stacked, sizes = oar.tensor.tensor_array_to_tensor([parts[0]] * 3, axis=0, use_stack=True)
    assert stacked.shape == [3, 2, 1] and sizes.tolist() == [1, 1, 1]
    with pytest.raises(TypeError, match="list of tensors"):
        oar.tensor.tensor_array_to_tensor(parts[0])


def test_tensors_that_become_others():
    a, b = oar.ones([2]), oar.zeros([3, 4])
    assert a._inplace_assign(b) is a and a.shape == [3, 4]
    b.fill_(7)
    assert float(a.sum()) == 0.0  # a copy
    x = oar.ones([2])
    x.stop_gradient = False
    y = x * 1
    y._inplace_assign(x * 3)
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_backward_hooks_without_arguments():
    x, calls = oar.to_tensor([2.0], stop_gradient=False), []
    assert x._register_backward_hook(lambda: calls.append(1))
    for _ in range(2):
        (x * x).backward()
    assert calls == [1, 1] and x.grad.tolist() == [8.0]
    with pytest.raises(ValueError, match="leaves"):
        (x * x)._register_backward_hook(lambda: None)


def test_random_numbers_and_embeddings_under_inner_paths():
    from oar.nn.functional.input import embedding_renorm_

    made = oar.tensor.random.gaussian([1000], 5.0, 0.1)
    assert abs(float(made.mean()) - 5.0) < 0.05
    table = oar.full([3, 4], 2.0)
    assert embedding_renorm_(oar.to_tensor([0, 2]), table, 1.0) is table
    np.testing.assert_allclose(np.linalg.norm(table.numpy(), axis=1), [1, 4, 1], rtol=1e-4)
    assert oar.CPUPlace()._equals(oar.CPUPlace())
    assert oar.framework.dtype.dtype("float32") == oar.float32


def test_descriptions_of_ops():
    from oar.base.proto.framework_pb2 import OpProto

    protos = {proto.type: proto for proto in map(OpProto.FromString, oar.base.core.get_all_op_protos())}
    concat = protos["concat"]
    assert concat.inputs[0].name == "X" and concat.inputs[0].duplicable and not protos["relu"].inputs[0].duplicable
    assert {a.name: a.default for a in protos["softmax"].attrs} == {"axis": -1}
    assert concat == framework.OpProtoHolder.instance().get_op_proto("concat")
    assert oar.base.core.get_op_extra_attrs("concat") == {}


def test_programs_keep_their_ops_whole():
    oar.enable_static()
    main = static.Program()
    with static.program_guard(main):
        x = static.data("x", [3])
        y = oar.nn.functional.softmax(x)
        assert oar.decomposition.decompose(main, [y])[0] is y
        with pytest.raises(TypeError, match="should be a Program"):
            oar.decomposition.decompose(None, [y])
    oar.disable_static()


def test_contents_with_lengths_of_sequences():
    made = oar.base.create_lod_tensor(np.arange(5).reshape(5, 1), [[2], [2, 3]], oar.CPUPlace())
    assert made.recursive_sequence_lengths() == [[2], [2, 3]] and made.lod() == [[0, 2], [0, 2, 5]]
    assert made.shape() == [5, 1] and made.has_valid_recursive_sequence_lengths()
    rows = oar.base.create_lod_tensor([[1, 2], [3]], [[2, 1]])
    np.testing.assert_array_equal(np.array(rows), [[1], [2], [3]])
    with pytest.raises(ValueError, match="add up to 4"):
        oar.base.create_lod_tensor(np.zeros([5, 1]), [[2, 2]])
    drawn = oar.base.create_random_int_lodtensor([[2, 3]], [4], None, 3, 5)
    assert drawn.shape() == [5, 4] and np.array(drawn).min() >= 3 and np.array(drawn).max() <= 5


def test_assign_gives_a_tensor_another_shape():
    target = oar.zeros([1])
    assert oar.assign(np.float32([[1, 2]]), target) is target and target.tolist() == [[1.0, 2.0]]


def test_shuffled_rows():
    x = oar.arange(12, dtype="float32").reshape([2, 3, 2])
    x.stop_gradient = False
    made = oar.incubate.layers.shuffle_batch(x, 3)
    assert sorted(made.numpy().reshape(6, 2).tolist()) == x.numpy().reshape(6, 2).tolist() and made.shape == [2, 3, 2]
    assert (made == oar.incubate.layers.shuffle_batch(x, 3)).all()
    made.sum().backward()
    assert x.grad.tolist() == np.ones([2, 3, 2]).tolist()
    with pytest.raises(ValueError, match="2 axes"):
        oar.incubate.layers.shuffle_batch(oar.ones([3]))


def test_an_argument_of_the_wrong_type_is_both_errors():
    for kind in (TypeError, ValueError, oar.ArgumentTypeError):
        with pytest.raises(kind, match="must be a tensor or a number, not None"):
            oar.abs(None)


def test_index_fill_takes_numbers():
    x, index = oar.zeros([3, 2]), oar.to_tensor([0, 2])
    assert oar.index_fill(x, index, 0, 5).tolist() == [[5, 5], [0, 0], [5, 5]]
    assert x.index_fill(index, 0, oar.to_tensor(2.0)).tolist() == [[2, 2], [0, 0], [2, 2]]
    assert x.index_fill_(oar.to_tensor([1]), 1, 7.0) is x and x.tolist() == [[0, 7]] * 3
    assert oar.index_fill(x > 0, index, 0, False).tolist() == [[False, False], [False, True], [False, False]]
