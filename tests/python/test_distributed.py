"""Several processes on this machine: collectives, messages, groups, data parallel training, launchers and faults."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import group_training
import group_work
import numpy as np
import oar
import pytest
from oar import distributed as dist

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
pytestmark = pytest.mark.skipif(not dist.is_available(), reason="built without Gloo and MPI")


@pytest.fixture(autouse=True)
def brief(monkeypatch):
    """Nothing may hang."""
    monkeypatch.setenv("PADDLE_DISTRI_PG_TIMEOUT", "60000")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]))


@pytest.mark.parametrize("count", [2, 4])
def test_collectives(count):
    dist.spawn(group_work.collectives, nprocs=count)


def test_streams_messages_and_subgroups():
    for work in (group_work.streams, group_work.messages, group_work.subgroups):
        dist.spawn(work, nprocs=4 if work is group_work.subgroups else 3)


def test_same_bits_in_all_runs(tmp_path):
    for run in range(2):
        folder = tmp_path / str(run)
        folder.mkdir()
        dist.spawn(group_work.same_bits, args=(str(folder),), nprocs=3)
    files = sorted(tmp_path.glob("*/*.bin"))
    assert len(files) == 6 and len({file.read_bytes() for file in files}) == 1


def test_ops_and_programs():
    dist.spawn(group_work.ops_and_programs, nprocs=2)


@pytest.mark.parametrize("count", [2, 4])
def test_data_parallel(count):
    dist.spawn(group_training.data_parallel, nprocs=count)


def test_captured_step():
    dist.spawn(group_training.captured_step, nprocs=2)


# ---- Faults --------------------------------------------------------------------------------------


def run_faults(script: str, folder: Path, **env: str) -> None:
    """Runs code in a process of its own, whose children are forked: a start takes milliseconds."""
    code = "import oar, group_work, sys\nfrom oar import distributed as dist\n" + textwrap.dedent(script)
    done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **env})
    assert done.returncode == 0, done.stdout + done.stderr


def reports(folder: Path, what: str) -> list[tuple[float, str]]:
    found = []
    for file in sorted(folder.glob(f"{what}.*")):
        seconds, _, text = file.read_text().partition(" ")
        found.append((float(seconds), text))
    return found


def test_a_killed_process_is_named_in_every_collective(tmp_path):
    run_faults("""
        for what in group_work.CALLS:
            try:
                dist.spawn(group_work.killed, args=(what, sys.argv[1]), nprocs=3, start_method="fork")
            except RuntimeError as error:
                assert "code -9" in str(error), error
            else:
                raise AssertionError(what)
        """, tmp_path, PADDLE_DISTRI_PG_TIMEOUT="8000")
    for what in group_work.CALLS:
        found = reports(tmp_path, what)
        assert len(found) == 2, (what, found)
        for seconds, text in found:
            assert seconds < 10 and f"[{what}]" in text and "for rank 1" in text, (what, seconds, text)


def test_processes_that_do_not_come_are_named(tmp_path):
    run_faults("""
        dist.spawn(group_work.absent, args=(sys.argv[1],), nprocs=3, start_method="fork")
        dist.spawn(group_work.late, args=(sys.argv[1],), nprocs=3, start_method="fork")
        """, tmp_path, PADDLE_DISTRI_PG_TIMEOUT="1500")
    found = reports(tmp_path, "absent")
    assert len(found) == 2
    for seconds, text in found:
        assert seconds < 5 and "for rank 1, which has not come," in text and "all_reduce of float32[10]" in text, text
    found = reports(tmp_path, "late")
    assert len(found) == 2 and all("for rank 1 of group world" in text for _, text in found), found


def test_spawn_raises_the_first_error():
    begin = time.monotonic()
    with pytest.raises(RuntimeError, match=r"rank 1\) failed:(.|\n)*this one is meant"):
        dist.spawn(group_work.fails, nprocs=2)
    assert time.monotonic() - begin < 30
    with pytest.raises(ValueError, match=r"nprocs is 0"):
        dist.spawn(print, nprocs=0)


def test_a_rendezvous_that_is_not_there(monkeypatch):
    code = "import oar; oar.distributed.init_parallel_env()"
    env = {**os.environ, "PADDLE_TRAINER_ID": "1", "PADDLE_TRAINERS_NUM": "2", "PADDLE_DISTRI_PG_TIMEOUT": "300"}
    env.pop("PADDLE_MASTER", None)
    for address, text in (("127.0.0.1:9", "nobody answers at tcp://127.0.0.1:9"), ("", "nothing says where they meet")):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60,
                              env={**env, "PADDLE_MASTER": address})
        assert done.returncode == 1 and text in done.stderr, done.stderr


def test_settings_that_cannot_be(tmp_path):
    env = {**os.environ, "PADDLE_TRAINER_ID": "0", "PADDLE_TRAINERS_NUM": "2", "PADDLE_MASTER": "127.0.0.1"}
    for more, text in (({}, "'tcp://127.0.0.1', where the processes meet, has no port"),
                       ({"PADDLE_DISTRI_BACKEND": "nccl"}, "PADDLE_DISTRI_BACKEND is 'nccl', and there is no such engine")):
        done = subprocess.run([sys.executable, "-c", "import oar; oar.distributed.init_parallel_env()"], capture_output=True, text=True,
                              timeout=60, env={**env, **more})
        assert done.returncode == 1 and text in done.stderr, done.stderr


def test_arrays_are_no_tensors():
    with pytest.raises(TypeError, match=r"\[all_reduce\] tensors can be sent, and this is a ndarray"):
        dist.all_reduce(np.ones(2))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_spawned_processes_end_with_their_parent(tmp_path, number):
    code = f"""
        import os, sys, time
        from oar import distributed as dist

        def work():
            open(os.path.join({str(tmp_path)!r}, str(os.getpid())), "w").close()
            time.sleep(300)

        if __name__ == "__main__":
            dist.spawn(work, nprocs=2, start_method="fork")
        """
    parent = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stderr=subprocess.DEVNULL)
    until(lambda: len(list(tmp_path.iterdir())) == 2)
    parent.send_signal(number)
    parent.wait(60)
    until(lambda: not any(is_alive(int(file.name)) for file in tmp_path.iterdir()))


def until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_alive(process):
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


# ---- Launchers -----------------------------------------------------------------------------------

SCRIPT = """
    import os, sys
    import oar
    from oar import distributed as dist
    dist.init_parallel_env()
    x = oar.full([2], dist.get_rank() + 1.0)
    dist.all_reduce(x)
    print("rank", dist.get_rank(), "of", dist.get_world_size(), "sum", x.tolist(), sys.argv[1:], flush=True)
    if len(sys.argv) > 2 and dist.get_rank() == 1:
        if not os.path.exists(sys.argv[2]):
            open(sys.argv[2], "w").close()
            sys.exit(7)
    if len(sys.argv) > 2:
        dist.barrier()
    """


@pytest.fixture
def script(tmp_path):
    file = tmp_path / "train.py"
    file.write_text(textwrap.dedent(SCRIPT))
    return file


def launched(*arguments: object, module: str = "oar.distributed.launch", **env: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", module, *map(str, arguments)], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **env})


def test_launch(script, tmp_path):
    done = launched("--nproc_per_node", 2, "--log_dir", tmp_path / "log", script, "--epochs")
    assert done.returncode == 0, done.stderr
    assert "rank 0 of 2 sum [3.0, 3.0] ['--epochs']" in done.stdout and "rank 1" not in done.stdout
    assert "rank 1 of 2 sum [3.0, 3.0]" in (tmp_path / "log/workerlog.1").read_text()


def test_launch_of_two_machines(script, tmp_path):
    master = f"127.0.0.1:{dist.spawn.__globals__['_free_ports'](1)[0]}"
    nodes = [subprocess.Popen([sys.executable, "-m", "oar.distributed.launch", "--nnodes", "2", "--master", master, "--nproc_per_node",
                               "2", "--log_dir", str(tmp_path / f"node{i}"), str(script)]) for i in range(2)]
    assert [node.wait(60) for node in nodes] == [0, 0]
    logs = "".join(file.read_text() for file in tmp_path.glob("node*/workerlog.*"))
    assert all(f"rank {r} of 4 sum [10.0, 10.0]" in logs for r in range(4)), logs


def test_launch_ends_all_when_one_fails(script, tmp_path):
    flag = tmp_path / "failed"
    done = launched("--nproc_per_node", 2, "--log_dir", tmp_path, script, "x", flag)
    assert done.returncode == 7 and "rank 1 ended with the code 7" in done.stderr, done.stderr
    flag.unlink()
    done = launched("--nproc_per_node", 2, "--log_dir", tmp_path, "--max_restart", 1, script, "x", flag)
    assert done.returncode == 0 and "starts again (1 of 1)" in done.stderr, done.stderr


def test_launch_leaves_no_orphans(tmp_path):
    script = tmp_path / "sleep.py"
    script.write_text("import os, sys, time\nopen(sys.argv[1] + os.environ['PADDLE_TRAINER_ID'], 'w').write(str(os.getpid()))\n"
                      "time.sleep(600)\n")
    for number, how in enumerate(("terminate", "kill")):
        prefix = tmp_path / f"pid{number}_"
        job = subprocess.Popen([sys.executable, "-m", "oar.distributed.launch", "--nproc_per_node", "2", "--log_dir", str(tmp_path),
                                str(script), str(prefix)])
        files = [Path(f"{prefix}{rank}") for rank in range(2)]
        wait_for(lambda: all(file.exists() and file.read_text() for file in files))
        getattr(job, how)()
        job.wait(30)
        pids = [int(file.read_text()) for file in files]
        wait_for(lambda: not any(is_running(pid) for pid in pids))


def wait_for(condition, seconds: float = 40) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_launch_as_paddle(script, tmp_path):
    script.write_text(script.read_text().replace("import oar\n", "import paddle as oar\n").replace("from oar import", "from paddle import"))
    done = launched("-m", "paddle.distributed.launch", "--nproc_per_node", 2, "--log_dir", tmp_path, script, module="oar.as_paddle")
    assert done.returncode == 0 and "rank 0 of 2 sum [3.0, 3.0]" in done.stdout, done.stderr


def test_a_rendezvous_in_a_folder(script, tmp_path):
    env = {**os.environ, "OAR_STORE": f"file://{tmp_path / 'meet'}", "WORLD_SIZE": "2"}
    jobs = [subprocess.Popen([sys.executable, str(script)], env={**env, "RANK": str(rank)}, stdout=subprocess.PIPE, text=True)
            for rank in range(2)]
    outputs = [job.communicate(timeout=60)[0] for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0] and all("sum [3.0, 3.0]" in text for text in outputs), outputs
    again = subprocess.run([sys.executable, str(script)], env={**env, "RANK": "0"}, capture_output=True, text=True, timeout=60)
    assert again.returncode == 1 and "the folder is that of another job" in again.stderr, again.stderr


def test_restarts_meet_in_a_folder_of_their_own(script, tmp_path):
    done = launched("--nproc_per_node", 2, "--max_restart", 1, "--log_dir", tmp_path / "log", script, "once", tmp_path / "died",
                    OAR_STORE=f"file://{tmp_path / 'meet'}")
    assert done.returncode == 0 and "the job starts again (1 of 1)" in done.stderr, done.stderr


@pytest.mark.skipif(shutil.which("mpirun") is None or not oar._C.has_engine("mpi"), reason="OpenMPI is not installed")
@pytest.mark.parametrize("engine", ["mpi", "gloo"])
def test_mpirun(script, tmp_path, engine):
    env = {**os.environ, "PADDLE_DISTRI_BACKEND": engine}
    if engine == "gloo":
        env["PADDLE_MASTER"] = f"127.0.0.1:{dist.spawn.__globals__['_free_ports'](1)[0]}"
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "2"]
    done = subprocess.run([*command, sys.executable, str(script)], capture_output=True, text=True, timeout=120, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("sum [3.0, 3.0]") == 2, done.stdout  # the lines of two processes may be mixed
    if engine == "mpi":
        work = "import group_work; group_work.collectives(('float32', 'bfloat16', 'bool')); group_work.streams(); group_work.messages()"
        done = subprocess.run([*command, sys.executable, "-c", work], capture_output=True, text=True, timeout=120, env=env)
        assert done.returncode == 0, done.stdout + done.stderr


def test_places_of_launchers(monkeypatch):
    from oar.distributed import _launched

    for name in list(os.environ):
        if name.startswith(("PADDLE_TRAINER", "SLURM_", "OMPI_")) or name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "PADDLE_MASTER", "OAR_STORE"):
            monkeypatch.delenv(name)
    assert _launched.place() == (0, 1, 0) and _launched.master() == ""
    monkeypatch.setenv("SLURM_NTASKS", "8")
    monkeypatch.setenv("SLURM_PROCID", "3")
    assert _launched.place().size == 1  # a batch script
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "8")
    monkeypatch.setenv("SLURM_LOCALID", "1")
    monkeypatch.setenv("SLURM_JOB_ID", "20123")
    for nodes, first in (("n[03-05,9],m1", "n03"), ("host7,host9", "host7"), ("alone", "alone"), ("a,n[1-2]", "a")):
        monkeypatch.setenv("SLURM_STEP_NODELIST", nodes)
        assert _launched.place() == (3, 8, 1) and _launched.master() == f"tcp://{first}:20123"
    monkeypatch.setenv("MASTER_ADDR", "10.0.0.1")
    assert _launched.master() == "tcp://10.0.0.1:29500"
    monkeypatch.setenv("PADDLE_TRAINERS_NUM", "two")
    monkeypatch.setenv("PADDLE_TRAINER_ID", "0")
    with pytest.raises(ValueError, match="PADDLE_TRAINERS_NUM is 'two'"):
        _launched.place()
