"""Profiles: what they record, by op, kernel, layer, thread and phase."""

import json
import threading
import warnings

import numpy as np
import pytest

import oar
from oar import nn, profiler
from oar.nn import _path
from oar.profiler import Profiler, ProfilerState, RecordEvent, SortedKeys, SummaryView, TracerEventType, make_scheduler
from oar.profiler.by_layer import layer_rows
from oar.profiler.nodetree import read_tree


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.blocks = nn.LayerList([nn.Linear(8, 8), nn.Linear(8, 8)])
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        for block in self.blocks:
            x = nn.functional.relu(block(x))
        return self.head(x)


def quiet(**options):
    return Profiler(on_trace_ready=lambda p: None, **options)


def train(net, steps=2, p=None):
    optimizer = oar.optimizer.SGD(0.1, parameters=net.parameters())
    x, y = oar.ones([4, 8]), oar.zeros([4], dtype="int64")
    for _ in range(steps):
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
        optimizer.clear_grad()
        if p is not None:
            p.step()


def nodes_of(p):
    return [node for root in p.profiler_result.get_data().values() for node in root.walk() if node is not root]


def test_events_are_calls_of_ops():
    with quiet(record_shapes=True) as p:
        oar.ones([2, 3]) @ oar.ones([3, 4])
    name, begin, end, thread, depth, operands = next(e for e in p.events if e[0] == "matmul")
    assert 0 <= begin < end and thread >= 0 and depth == 0 and operands == "float32[2, 3], float32[3, 4]"
    with quiet() as p:
        oar.ones([2, 3]) @ oar.ones([3, 4])
    assert [e[5] for e in p.events if e[0] == "matmul"] == [""]


def test_kernels_are_inside_ops():
    with quiet() as p:
        oar.ones([16, 16]) @ oar.ones([16, 16])
    product = next(n for n in nodes_of(p) if n.name == "matmul")
    kernels = [n for n in product.walk() if n.type is TracerEventType.Kernel]
    assert kernels and all(product.start_ns <= k.start_ns <= k.end_ns <= product.end_ns for k in kernels)


def test_phases_and_layers_of_a_training_step():
    with quiet() as p:
        train(Net(), 2, p)
    by_type = {}
    for node in nodes_of(p):
        by_type.setdefault(node.type, []).append(node)
    assert len(by_type[TracerEventType.Backward]) == 2 and len(by_type[TracerEventType.Optimization]) == 2
    assert {n.name for n in by_type[TracerEventType.Forward]} == {"net", "net.blocks.0", "net.blocks.1", "net.head"}
    assert [n.name for n in by_type[TracerEventType.ProfileStep]][:2] == ["ProfileStep#0", "ProfileStep#1"]


def test_backward_belongs_to_the_layer_of_the_forward_call():
    with quiet(profile_memory=True, with_flops=True) as p:
        train(Net())
    rows = {row.path: row for row in layer_rows(p.profiler_result.get_data())}
    for path in ("net.blocks.0", "net.blocks.1", "net.head"):
        assert rows[path].forward_ns > 0 and rows[path].backward_ns > 0 and rows[path].flops > 0
        assert rows[path].allocated_bytes > 0
    assert rows["net"].total_ns >= rows["net.blocks"].total_ns + rows["net.head"].total_ns > 0
    # A product of [4, 8] and [8, 8] and two for its derivatives, each twice.
    assert rows["net.blocks.1"].total_flops >= 2 * 3 * 2 * 4 * 8 * 8


def test_launches_of_captured_programs_have_layers_and_kernels():
    net = Net()
    step = oar.jit.to_static(net)
    x = oar.ones([4, 8])
    step(x)
    before = oar.jit.capture_counts()["captures"] if "captures" in oar.jit.capture_counts() else None
    with quiet() as p:
        step(x)
    if before is not None:
        assert oar.jit.capture_counts()["captures"] == before  # profiling captures nothing again
    ops = [n for n in nodes_of(p) if n.type is TracerEventType.Operator]
    assert {n.layer for n in ops} >= {"net.blocks.0", "net.blocks.1", "net.head"}
    assert any(n.type is TracerEventType.Kernel for n in nodes_of(p))
    assert any(n.name.startswith("program ") for n in nodes_of(p))


def test_watching_layers_does_not_capture_again():
    calls = []

    class Counted(nn.Layer):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 2)

        def forward(self, x):
            calls.append(None)  # an effect: it would decline a capture
            return self.fc(x)

    net = Net()
    function = oar.jit.to_static(lambda x: net(x))
    x = oar.ones([4, 8])
    first = function(x)
    counts = dict(oar.jit.capture_counts(function))
    with _path.watched():
        second = function(x)
    after = dict(oar.jit.capture_counts(function))
    assert after.pop("whole") == counts.pop("whole") + 1 and after == counts
    np.testing.assert_array_equal(first.numpy(), second.numpy())


def test_memory_is_recorded_with_the_op_and_ends_where_it_began():
    with quiet(profile_memory=True) as p:
        x = oar.ones([1000])
        y = x + 1
        del x, y
    events = [m for n in nodes_of(p) for m in n.mem_node]
    roots = [m for root in p.profiler_result.get_data().values() for m in root.mem_node]
    assert sum(1 for m in [*events, *roots] if m.increase_bytes == 4000) >= 2
    assert sum(m.increase_bytes for m in [*events, *roots]) == 0
    add = [m for n in nodes_of(p) if n.name == "add" for inner in n.walk() for m in inner.mem_node]
    assert [m.increase_bytes for m in add if m.increase_bytes >= 4000] == [4000]
    with quiet() as p:
        oar.ones([1000])
    assert not any(n.mem_node for n in nodes_of(p))


def test_memory_events_follow_the_counter():
    with quiet(profile_memory=True) as p:
        kept = [oar.ones([50_000]) for _ in range(3)]
    live = [m.current_allocated for root in p.profiler_result.get_data().values() for n in root.walk() for m in n.mem_node]
    assert max(live) - min(live) >= 2 * 200_000 and len(kept) == 3


def test_the_number_of_events_is_limited():
    oar.set_flags({"profile_events": 20})
    try:
        with quiet() as p:
            for _ in range(30):
                oar.ones([2]) + 1
    finally:
        oar.set_flags({"profile_events": 1_000_000})
    assert len(p.profiler_result.events) == 20 and p.profiler_result.dropped > 20
    assert "dropped" in p.summary(views=SummaryView.DeviceView)


def test_threads_join_with_a_range_and_leave_with_the_profile():
    def work():
        with RecordEvent("elsewhere"):
            oar.ones([3]) * 2
        oar.ones([3]) * 2

    with quiet() as p:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        oar.ones([2])
    node = next(n for n in nodes_of(p) if n.name == "elsewhere")
    assert any(c.name == "multiply" for c in node.walk())
    assert len({n.thread_id for n in nodes_of(p)}) == 2
    with quiet() as again:
        oar.ones([2])
    assert {n.name for n in nodes_of(again) if n.type is TracerEventType.Operator} <= {e[0] for e in again.events}


def test_threads_of_the_pool_are_recorded():
    if oar.get_num_threads() < 2:
        pytest.skip("one thread")
    x = oar.ones([4_000_000])
    for _ in range(10):  # on a busy machine the caller may do it all
        with quiet() as p:
            for _ in range(5):
                oar.exp(x)
        works = [n for n in nodes_of(p) if n.is_worker]
        if works:
            break
    assert works and {n.name for n in works} == {"exp"}
    table = p.summary(views=SummaryView.KernelView)
    assert len([line for line in table.splitlines() if line.startswith("exp ")]) <= 1


def test_python_functions_are_recorded_when_asked():
    def helper():
        return oar.ones([2]) + 1

    with quiet(with_stack=True) as p:
        helper()
    node = next(n for n in nodes_of(p) if "helper" in n.name)
    assert node.type is TracerEventType.PythonOp and any(c.name == "add" for c in node.walk())
    assert "test_profiler.py" in node.name
    with quiet() as p:
        helper()
    assert not any("helper" in n.name for n in nodes_of(p))


def test_a_range_records_in_a_profile_only():
    @RecordEvent("decorated")
    def function(n):
        return n if n == 0 else function(n - 1)

    event = RecordEvent("alone")
    event.end()  # without a beginning
    function(1)
    with quiet() as p:
        function(2)
        with pytest.raises(ZeroDivisionError), RecordEvent("fails"):
            1 / 0
    assert [n.name for n in nodes_of(p) if n.type is TracerEventType.PythonUserDefined] == ["decorated"] * 3 + ["fails"]
    with pytest.raises(TypeError, match=r"\[RecordEvent\] name is a int"):
        RecordEvent(3)
    with quiet(), pytest.warns(UserWarning, match="are not recorded"), RecordEvent("x", TracerEventType.Kernel):
        pass


def test_loading_of_data_is_recorded():
    data = oar.io.TensorDataset([oar.arange(8).reshape([8, 1])])
    with quiet() as p:
        batches = list(oar.io.DataLoader(data, batch_size=4))
    loads = [n for n in nodes_of(p) if n.type is TracerEventType.Dataloader]
    assert len(batches) == 2 and len(loads) >= 2


def test_errors_do_not_break_a_profile():
    with quiet() as p:
        with pytest.raises(ValueError):
            oar.ones([2, 3]) @ oar.ones([2, 3])
        oar.ones([2]) + 1
    names = [e[0] for e in p.events]
    assert "matmul" in names and "add" in names and _path.current() == ""
    assert all(e[4] == 0 for e in p.events if e[0] == "add")


def test_two_profilers_do_not_record_at_once():
    with quiet():
        with pytest.raises(RuntimeError, match=r"\[Profiler.start\] another profiler records already. Stop it first."):
            quiet().start()
    with quiet() as p:
        oar.ones([2])
    assert p.events


def test_schedules():
    state = make_scheduler(closed=1, ready=1, record=2, repeat=2, skip_first=1)
    names = [state(i).name[:6] for i in range(11)]
    assert names == ["CLOSED", "CLOSED", "READY", "RECORD", "RECORD"] + ["CLOSED", "READY", "RECORD", "RECORD", "CLOSED", "CLOSED"]
    assert state(4) is ProfilerState.RECORD_AND_RETURN
    with pytest.raises(AssertionError, match=r"\[make_scheduler\] record is 0. Pass an integer of at least 1."):
        make_scheduler(closed=1, ready=1, record=0)
    with pytest.raises(AssertionError, match="closed is -1"):
        make_scheduler(closed=-1, ready=1, record=1)
    with pytest.raises(AssertionError, match="the step is -1"):
        state(-1)
    with pytest.warns(UserWarning, match="cost of starting"):
        make_scheduler(closed=0, ready=0, record=1)
    with pytest.raises(AssertionError, match=r"scheduler is \(3, 3\)"):
        Profiler(scheduler=(3, 3))


@pytest.mark.parametrize("scheduler, expected", [((2, 4), [2]), ((0, 2), [2]), (lambda s: ProfilerState.RECORD_AND_RETURN, [1] * 6)])
def test_recordings_are_handed_over(scheduler, expected):
    steps = []

    def ready(p):
        steps.append(sum(n.type is TracerEventType.ProfileStep for n in nodes_of(p)))

    p = Profiler(scheduler=scheduler, on_trace_ready=ready)
    with p:
        for _ in range(5):
            oar.ones([2]) + 1
            p.step()
    assert steps == expected
    assert not oar._C.profile_is_running() and not _path.is_watching()


def test_improper_schedules_warn():
    states = [ProfilerState.READY, ProfilerState.CLOSED, ProfilerState.RECORD, ProfilerState.CLOSED, ProfilerState.READY]
    p = Profiler(scheduler=lambda s: states[min(s, 4)], on_trace_ready=lambda p: pytest.fail("nothing is complete"))
    p.start()
    with pytest.warns(UserWarning, match="READY to CLOSED"):
        p.step()
    p.step()
    with pytest.warns(UserWarning, match="RECORD to CLOSED: what was recorded is dropped"):
        p.step()
    p.step()
    with pytest.warns(UserWarning, match="has recorded nothing"):
        p.stop()
    assert not _path.is_watching()


def test_targets_that_cannot_be_profiled_warn():
    with pytest.warns(UserWarning, match="ProfilerTarget.GPU cannot be profiled here"):
        p = quiet(targets=[profiler.ProfilerTarget.CPU, profiler.ProfilerTarget.GPU])
    assert p.targets == {profiler.ProfilerTarget.CPU}


def test_files(tmp_path):
    with quiet(record_shapes=True, profile_memory=True) as p:
        train(Net(), 1, p)
    p.export(str(tmp_path / "trace.json"))
    rows = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    product = next(r for r in rows if r["name"] == "matmul")
    assert product["ph"] == "X" and product["cat"] == "op" and "float32" in product["args"]["operands"]
    assert any(r["ph"] == "C" and r["args"]["bytes in use"] > 0 for r in rows)
    p.export(str(tmp_path / "deep" / "trace.pb"), format="pb")
    loaded = profiler.load_profiler_result(str(tmp_path / "deep" / "trace.pb"))
    here = [(n.name, n.type, n.start_ns, n.end_ns, n.layer, n.operands, len(n.mem_node)) for n in nodes_of(p)
            if n.type is TracerEventType.Operator]  # fmt: skip
    there = [(n.name, n.type, n.start_ns, n.end_ns, n.layer, n.operands, len(n.mem_node)) for root in loaded.get_data().values()
             for n in root.walk() if n.type is TracerEventType.Operator]  # fmt: skip
    assert here == there and loaded.get_extra_info() == p.profiler_result.get_extra_info()
    changes = [m.increase_bytes for root in loaded.get_data().values() for n in root.walk() for m in n.mem_node]
    assert any(c < 0 for c in changes) and any(c > 0 for c in changes)
    with pytest.raises(ValueError, match=r"\[Profiler.export\] format is 'csv'"):
        p.export(str(tmp_path / "x"), format="csv")


@pytest.mark.parametrize("content", [b"", b"\xff" * 20, b"\x0a\xff\xff\xff\x0f", b"\x0a\x051.0.2\x1a\x02\x08\x01", bytes(range(256))])
def test_a_broken_file_is_refused(tmp_path, content):
    (tmp_path / "bad.pb").write_bytes(content)
    with pytest.raises(ValueError, match=r"\[load_profiler_result\] .*Pass a file that Profiler.export"):
        read_tree(str(tmp_path / "bad.pb"))


def test_the_report_has_everything(tmp_path, monkeypatch):
    monkeypatch.setattr("oar.profiler.report._LEAST_SHARE", 0)  # on a busy machine one call may take almost all the time
    with quiet(profile_memory=True, with_flops=True, with_stack=True) as p:
        with RecordEvent("</script> & mine"):
            train(Net(), 2, p)
    p.export(str(tmp_path / "report.html"), format="html")
    page = (tmp_path / "report.html").read_text()
    assert page.count("</script>") == 1 and "/*DATA*/" not in page
    data = json.loads(page.split("const data = ", 1)[1].split(";\nconst $", 1)[0])
    assert data["peak"] > 0 and data["memory"] and len(data["steps"]) == 2
    layers = {row[0] for row in data["layers"]}
    assert {"net", "net.blocks.0", "net.head"} <= layers
    frames = {flame["title"]: flame["root"] for flame in data["flames"]}
    phases = {box[0]: box for box in frames["Layers"][4]}
    assert {"forward", "backward", "optimizer"} <= set(phases)
    assert "net" in {box[0] for box in phases["backward"][4]}
    for root in frames.values():
        for name, _, time, calls, inside in _boxes(root):
            assert sum(box[2] for box in inside) <= time * 1.001 + 1 and calls > 0, name


def _boxes(box):
    yield box
    for inner in box[4]:
        yield from _boxes(inner)


def test_tables(capsys):
    with quiet(record_shapes=True, profile_memory=True, with_flops=True) as p:
        with RecordEvent("mine"):
            train(Net(), 2, p)
    text = p.summary()
    assert capsys.readouterr().out == text + "\n"
    for title in ("Device", "Overview", "Model", "Kernel", "Operator", "UserDefined", "Layer"):
        assert f"{title} Summary" in text
    assert "Memory Summary of Place(cpu)" in text and "FLOPs" in text
    assert "Distribution Summary" not in text  # there is no communication
    one = p.summary(views=SummaryView.OperatorView, op_detail=False, thread_sep=True, time_unit="us", sorted_by=SortedKeys.CPUMin)
    assert "Thread: 0" in one and "Total (us)" in one and "Layer Summary" not in one
    with pytest.raises(ValueError, match=r"\[Profiler.summary\] time_unit is 'h'"):
        p.summary(time_unit="h")
    with pytest.raises(TypeError, match="sorted_by is 'cpu'"):
        p.summary(sorted_by="cpu")
    with pytest.raises(ValueError, match="views has 3"):
        p.summary(views=[3])


@pytest.mark.parametrize("key", list(SortedKeys))
def test_every_order_of_rows(key):
    with quiet() as p:
        oar.exp(oar.ones([2])) + 1
    assert "exp" in p.summary(sorted_by=key, views=[SummaryView.OperatorView])


def test_without_a_recording_there_is_no_summary(tmp_path):
    p = quiet()
    assert p.summary() == "" and p.events == []
    p.export(str(tmp_path / "none.json"))
    assert not (tmp_path / "none.json").exists()


def test_the_default_writes_a_trace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Profiler():
        oar.ones([2])
    assert [f.suffixes[-2:] for f in (tmp_path / "profiler_log").iterdir()] == [[".paddle_trace", ".json"]]


def test_a_timer_measures_steps_and_loading(capsys):
    data = oar.io.TensorDataset([oar.arange(24).reshape([24, 1])])
    p = Profiler(timer_only=True)
    p.start()
    for _ in oar.io.DataLoader(data, batch_size=2):
        p.step(num_samples=2)
    info = p.step_info("images")
    assert "reader_cost" in info and "batch_cost" in info and info.endswith("images/s")
    p.stop()
    printed = capsys.readouterr().out
    assert "Perf Summary" in printed and "Reader Ratio" in printed
    p = Profiler(timer_only=True)
    p.start()
    p.step()
    assert p.step_info().endswith("steps/s")
    p.stop()
    assert capsys.readouterr().out == ""  # not more than 10 steps
    with pytest.raises(RuntimeError, match="nothing is measured"):
        p.step_info()


def test_loading_of_another_dataset_stops_the_clock():
    clock = profiler.timer.benchmark()
    first, second = [oar.io.TensorDataset([oar.arange(4)]) for _ in range(2)]
    p = Profiler(timer_only=True)
    p.start()
    next(iter(oar.io.DataLoader(first)))
    assert clock.current_event.need_record
    next(iter(oar.io.DataLoader(second)))
    assert not clock.current_event.need_record
    next(iter(oar.io.DataLoader(first)))
    assert clock.current_event.need_record
    p.stop()
    assert oar.io.reader._observe is None


def test_a_profiler_by_configuration(tmp_path):
    config = {"targets": ["CPU"], "scheduler": [1, 3], "timer_only": True,
              "on_trace_ready": {"export_protobuf": {"module": "oar.profiler", "use_direct": False, "args": [],
                                                     "kwargs": {"dir_name": str(tmp_path / "log")}}}}  # fmt: skip
    (tmp_path / "good.json").write_text(json.dumps(config))
    p = profiler.profiler.get_profiler(str(tmp_path / "good.json"))
    assert p.timer_only and p.scheduler(1) is ProfilerState.RECORD and (tmp_path / "log").is_dir()
    (tmp_path / "bad.json").write_text(json.dumps({"targets": [1], "timer_only": 1, "scheduler": {"x": {}}}))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        p = profiler.profiler.get_profiler(str(tmp_path / "bad.json"))
    assert len([w for w in seen if "[get_profiler]" in str(w.message)]) == 3 and not p.timer_only


def test_older_names(tmp_path, capsys):
    old = oar.utils.profiler
    with old.profiler("CPU", "total", str(tmp_path / "trace.json")):
        oar.ones([2]) + 1
    assert "Operator Summary" in capsys.readouterr().out and (tmp_path / "trace.json").exists()
    old.start_profiler("All")
    old.reset_profiler()
    old.stop_profiler()  # none runs
    with pytest.raises(ValueError, match=r"\[start_profiler\] state is 'TPU'"):
        old.start_profiler("TPU")
    with pytest.raises(ValueError, match=r"sorted_key is 'x'"):
        old.stop_profiler("x")
    with pytest.raises(RuntimeError, match="no CUDA devices"), old.cuda_profiler("x"):
        pass
    with pytest.raises(ValueError, match="there is no option 'x'"):
        old.ProfilerOptions()["x"]
    assert old.ProfilerOptions().with_state("GPU")["state"] == "GPU" and old.ProfilerOptions()["profile_path"] is None


def test_a_forked_child_does_not_record():
    import multiprocessing

    def child(queue):
        oar.ones([2]) + 1
        queue.put(oar._C.profile_is_running())

    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    with quiet() as p:
        process = context.Process(target=child, args=(queue,))
        process.start()
        assert queue.get(timeout=30) is False
        process.join()
        oar.ones([2]) + 1
    assert p.events
