"""A second start takes from the user's cache folder what the first one compiled."""

import json
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from runs import ENVIRONMENT, EXPERIMENT, assert_same, python

MADE = "compiled programs are kept in"
EACH = """
import contextlib, io, json, os
from pathlib import Path
from ppo_jax.__main__ import main

kept = []
for number, (name, *options) in enumerate({lines}):
    caches = os.environ["XDG_CACHE_HOME"] = os.path.join({folder!r}, str(number))
    with contextlib.redirect_stderr(io.StringIO()) as said:
        assert main([name, "nowhere", *options]) == 2, said.getvalue()
    kept.append(Path(caches).exists())
print(json.dumps(kept))
"""
"""What commands did before they found that there is no such experiment or run."""
SETTLED = """
import json, sys
from jax import monitoring
from ppo_jax.host.programs import sources
from ppo_jax.train import main

sources.BEGAN, lowered = float("inf"), []
monitoring.register_event_duration_secs_listener(
    lambda event, seconds, fun_name="", **_: lowered.append(fun_name)
    if event == "/jax/core/compile/jaxpr_to_mlir_module_duration" else None
)
status = main(sys.argv[1:])
print(json.dumps(lowered))
sys.exit(status)
"""
"""A command whose code is years old; at its end it says what was not found."""


def begin(path, run_dir, *options, environment):
    """Begins it from an installed file, as code without one is not known."""
    file = path.parent / "site-packages" / "settled.py"
    words = [path, "--run-dir", run_dir, *options]
    return subprocess.Popen(
        [sys.executable, file, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def ended(process):
    """What a command was to make ready for the compiler, and what it warned of."""
    out, said = process.communicate(timeout=180)
    assert process.returncode == 0, said
    return json.loads(out.splitlines()[-1]), said


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """That of a user who has chosen nothing, and a cache folder in which nothing is."""
    unset = ENVIRONMENT.keys() - {"JAX_COMPILATION_CACHE_DIR"}
    caches = {"XDG_CACHE_HOME": str(tmp_path_factory.mktemp("caches"))}
    return {name: ENVIRONMENT[name] for name in unset} | caches


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "experiment.py"
    path.write_text(EXPERIMENT.format(memory=""))
    (path.parent / "site-packages").mkdir()
    (path.parent / "site-packages" / "settled.py").write_text(SETTLED)
    return path


@pytest.fixture(scope="module")
def cold(path, environment):
    """The first of two runs that began at once, and what both said."""
    run_dirs = [path.parent / name for name in ("cold", "twin")]
    both = [begin(path, run_dir, environment=environment) for run_dir in run_dirs]
    said = [ended(process)[1] for process in both]
    assert_same(*run_dirs)
    return run_dirs[0], said


def programs(environment):
    """Files of programs; one that was written anew is another one."""
    folder = Path(environment["XDG_CACHE_HOME"]) / "ppo_jax" / "programs"
    return {(path.name, path.stat().st_ino) for path in folder.iterdir()}


def test_two_processes_may_begin_without_any_program(cold):
    """One of them makes the folder, and says so."""
    _, said = cold
    assert sum(text.count(MADE) for text in said) == 1
    for text in said:
        assert "Traceback" not in text and "Warning" not in text


def test_a_warm_start_compiles_nothing_and_ends_the_same(cold, path, environment):
    """PROP-18.1: a loaded program is the same one; it is not even traced."""
    run_dir, _ = cold
    kept = programs(environment)
    warm = path.parent / "warm"
    lowered, said = ended(begin(path, warm, environment=environment))
    assert not {"jit(start)", "jit(phase)", "jit(play)"} & {*lowered}
    assert said == ""
    assert programs(environment) == kept
    assert_same(run_dir, warm)


def test_a_run_goes_on_with_kept_programs(cold, path, environment):
    """PROP-18.1: as one that was never stopped."""
    run_dir, _ = cold
    broken = shutil.copytree(run_dir, path.parent / "broken")
    shutil.rmtree(broken / "checkpoints" / "24")
    lowered, said = ended(begin(path, broken, "--resume", environment=environment))
    assert not {"jit(start)", "jit(phase)", "jit(play)"} & {*lowered}
    assert said == ""
    assert_same(run_dir, broken)


def test_whatever_compiles_keeps_programs(environment, tmp_path):
    """Not so a job, whose processes wait for each other while they compile."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        job = ("--coordinator", f"127.0.0.1:{free.getsockname()[1]}")
    job = (*job, "--num-processes", "1", "--process-id", "0", "--run-dir", "run")
    kept = {
        ("evaluate",): True,
        ("replay",): True,
        ("robustness",): True,
        ("selfcheck",): True,
        ("sweep",): True,
        ("train",): True,
        ("report",): False,
        ("alerts",): False,
        ("train", *job): False,
    }
    found = python(EACH.format(lines=list(kept), folder=str(tmp_path)), environment)
    assert json.loads(found) == list(kept.values())
