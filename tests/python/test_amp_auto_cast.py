"""``amp.auto_cast``: which op computes in which dtype, by level and list."""

import numpy as np
import pytest

import oar
from oar import nn
from oar.amp import amp_lists

LOW = pytest.mark.parametrize("low", ["float16", "bfloat16"])


def x(*shape):
    return oar.ones(shape or (2, 2))


def dtypes(make, **kwargs):
    with oar.amp.auto_cast(**kwargs):
        made = make()
    return [str(one.dtype).removeprefix("oar.") for one in (made if isinstance(made, (list, tuple)) else [made])]


@LOW
@pytest.mark.parametrize("level", ["OD", "O1", "O2"])
def test_products_are_in_the_low_type(level, low):
    calls = [
        lambda: x() @ x(), lambda: nn.functional.linear(x(), x(), x(2)), lambda: oar.einsum("ij,jk->ik", x(), x()),
        lambda: nn.functional.conv2d(x(1, 1, 4, 4), x(1, 1, 3, 3)), lambda: nn.functional.conv1d(x(1, 1, 4), x(1, 1, 3)),
    ]  # fmt: skip
    for call in calls:
        assert dtypes(call, level=level, dtype=low) == [low]


@LOW
def test_delicate_ops_by_level(low):
    half = x().astype(low)
    calls = [lambda: half.sum(), lambda: half.mean(), lambda: half.exp(), lambda: nn.functional.softmax(half),
             lambda: nn.functional.layer_norm(half, [2]), lambda: half.pow(2.0), lambda: half.cumsum(0)]
    for call in calls:
        assert dtypes(call, dtype=low) == ["float32"]
        assert dtypes(call, dtype=low, level="O2") == [low]
        assert dtypes(call, dtype=low, level="OD") == ["float32"]
        assert dtypes(call, dtype=low, level="O0") == [low]
        assert dtypes(call, dtype=low, enable=False) == [low]


@LOW
def test_other_ops_follow_their_operands(low):
    half, full = x().astype(low), x()
    for level in ("O1", "O2"):
        assert dtypes(lambda: half + half, level=level, dtype=low) == [low]
        assert dtypes(lambda: half + full, level=level, dtype=low) == ["float32"]
        assert dtypes(lambda: oar.concat([half, full]), level=level, dtype=low) == ["float32"]
        assert dtypes(lambda: nn.functional.relu(half), level=level, dtype=low) == [low]
    assert dtypes(lambda: half + half, level="OD", dtype=low) == ["float32"]
    assert dtypes(lambda: half + full, level="O2", dtype=low, use_promote=False) == [low]
    assert dtypes(lambda: full + full, level="O2", dtype=low, use_promote=False) == [low]
    assert dtypes(lambda: full.sum(), level="O2", dtype=low, use_promote=False) == [low]
    assert dtypes(lambda: full + full, level="O1", dtype=low, use_promote=False) == ["float32"]


@LOW
def test_batch_norms_follow_their_input(low):
    image, statistic = x(2, 3, 4, 4).astype(low), [oar.zeros([3]), oar.ones([3])]
    for level in ("O1", "O2"):
        for norm in (nn.BatchNorm2D(3), nn.InstanceNorm2D(3)):
            assert dtypes(lambda norm=norm: norm(image), level=level, dtype=low) == [low]
        made = dtypes(lambda: nn.functional.batch_norm(image, *statistic, training=True), level=level, dtype=low)
        assert made == [low] and statistic[0].dtype == oar.float32
    # The weights stay in float32, whatever the result.
    norm = nn.LayerNorm(4)
    assert dtypes(lambda: norm(image), level="O2", dtype=low) == [low] and norm.weight.dtype == oar.float32


@LOW
def test_sums_into_one_place_are_in_float32_at_every_level(low):
    rows, index = x(4, 2).astype(low), oar.to_tensor([0, 1])
    for level in ("O1", "O2"):
        assert dtypes(lambda: nn.functional.embedding(index, rows), level=level, dtype=low) == ["float32"]
        assert dtypes(lambda: oar.scatter(rows, index, x(2, 2).astype(low)), level=level, dtype=low) == ["float32"]
    assert dtypes(lambda: nn.functional.embedding(index, rows), dtype=low, custom_white_list=["lookup_table_v2"]) == [low]


def test_custom_lists_take_the_names_of_paddle_and_of_oar():
    for name in ("elementwise_add", "add"):
        assert dtypes(lambda: x() + x(), custom_white_list={name}) == ["float16"]
        assert dtypes(lambda: x() + x(), custom_white_list=(name,), level="O2") == ["float16"]
    for name in ("matmul_v2", "matmul"):
        assert dtypes(lambda: (x() @ x(), nn.functional.linear(x(), x())), custom_black_list=[name]) == ["float32", "float32"]
    assert dtypes(lambda: nn.functional.conv2d(x(1, 1, 4, 4), x(1, 1, 3, 3)), custom_black_list=["conv2d"]) == ["float32"]
    half = x().astype("float16")
    assert dtypes(lambda: half.exp(), custom_white_list=["exp"]) == ["float16"]
    # An op that neither knows may be registered later.
    assert dtypes(lambda: x() @ x(), custom_black_list=["an_op_of_mine"]) == ["float16"]


def test_dtypes_that_were_asked_for_stay():
    wide, whole = x().astype("float64"), oar.to_tensor([1, 2])
    assert dtypes(lambda: wide @ wide, level="O2") == ["float64"]
    assert dtypes(lambda: whole + whole, level="O2", use_promote=False) == ["int64"]
    assert dtypes(lambda: x().astype("float32"), level="O2", use_promote=False) == ["float32"]
    assert dtypes(lambda: x().astype("float16").astype("float64"), level="OD") == ["float64"]


def test_nesting_and_decorating():
    with oar.amp.auto_cast(dtype="bfloat16"):
        with oar.amp.auto_cast(enable=False):
            assert (x() @ x()).dtype == oar.float32
        assert (x() @ x()).dtype == oar.bfloat16
        assert oar.amp.is_autocast_enabled() and oar.amp.get_autocast_dtype() == "bfloat16"
    assert not oar.amp.is_autocast_enabled()

    @oar.amp.auto_cast(dtype="bfloat16")
    def product():
        return x() @ x()

    assert product().dtype == oar.bfloat16 and (x() @ x()).dtype == oar.float32
    with pytest.raises(KeyError), oar.amp.auto_cast():
        raise KeyError
    assert not oar.amp.is_autocast_enabled()


@LOW
def test_backward_inside_has_the_dtypes_of_the_forward(low):
    net = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 1))
    data = oar.randn([5, 3])

    def gradients(inside):
        with oar.amp.auto_cast(dtype=low):
            loss = net(data).square().mean()
            if inside:
                loss.backward()
        if not inside:
            loss.backward()
        found = [p.grad.numpy() for p in net.parameters()]
        assert all(p.grad.dtype == oar.float32 for p in net.parameters())
        net.clear_gradients()
        return found

    for one, other in zip(gradients(True), gradients(False)):
        np.testing.assert_array_equal(one, other)


def test_branches_keep_the_types_of_their_program():
    @oar.jit.to_static
    def f(a, flag):
        b = a @ a
        return oar.static.nn.cond(flag, lambda: b * 2, lambda: b - 1) + a

    with oar.amp.auto_cast(dtype="bfloat16"):
        assert f(x(), oar.to_tensor(True)).dtype == oar.float32
        assert f(x(), oar.to_tensor(False)).tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_captures_know_levels():
    net = oar.jit.to_static(nn.Sequential(nn.Linear(2, 2), nn.Softmax()))
    kinds = []
    for level in ("O1", "O2", "O0"):
        with oar.amp.auto_cast(dtype="bfloat16", level=level):
            kinds.append(str(net(x()).dtype))
    assert kinds == ["oar.float32", "oar.bfloat16", "oar.float32"]


BAD = {
    "level": (lambda: oar.amp.auto_cast(level="O3"), ValueError, "level must be one of O0, OD, O1, O2"),
    "dtype": (lambda: oar.amp.auto_cast(dtype="float64"), ValueError, "'float16' or 'bfloat16', not 'float64'"),
    "no dtype": (lambda: oar.amp.auto_cast(dtype="half-ish"), ValueError, "half-ish"),
    "lists": (lambda: oar.amp.auto_cast(custom_white_list=["exp"], custom_black_list=["exp"]), ValueError, "exp: in custom_white"),
    "string": (lambda: oar.amp.auto_cast(custom_white_list="exp"), TypeError, r"Pass \['exp'\]"),
}


@pytest.mark.parametrize("case", BAD)
def test_mistakes(case):
    call, error, text = BAD[case]
    with pytest.raises(error, match=text):
        call()


def test_off_takes_any_dtype_and_levels_in_lower_case():
    oar.amp.auto_cast(enable=False, dtype="float32")
    assert dtypes(lambda: x() @ x(), level="o1") == ["float16"]


# the lists -----------------------------------------------------------------------------------------


def result_of(name, dtype):
    """The dtype of the first result of an op, on its first sample in a dtype, at level O1."""
    with oar.amp.auto_cast(dtype="bfloat16"):
        made = getattr(oar._C.ops, name)(*oar._C.op_samples(name, dtype)[0])
    return (made[0] if isinstance(made, (list, tuple)) else made).dtype


def test_records_agree_with_the_lists():
    """What the lists of Paddle's names say is what the ops of Oar do."""
    known = {record["name"] for record in oar._C.op_records()}
    cases = [(amp_lists.WHITE_LIST, "float32", oar.bfloat16), (amp_lists.FP16_BLACK_LIST, "bfloat16", oar.float32),
             (amp_lists.EXTRA_BLACK_LIST, "bfloat16", oar.float32)]
    absent = set()
    for names, given, expected in cases:
        for name in names:
            own = amp_lists.own_names([name]) & known
            absent |= set() if own else {name}
            assert {op: result_of(op, given) for op in own} == dict.fromkeys(own, expected), name
    assert absent == {"c_softmax_with_cross_entropy", "c_softmax_with_multi_label_cross_entropy", "softmin", "tanh_shrink",
                      "fused_rotary_position_embedding", "max_pool2d_with_index"}


def test_lists_are_copies():
    oar.amp.white_list()["float16"]["O1"].add("exp")
    assert "exp" not in oar.amp.white_list()["float16"]["O1"]
    black = oar.amp.black_list()["float16"]
    assert "scatter" in black["O2"] and "exp" not in black["O2"] and "exp" in black["O1"] and not black["OD"]
