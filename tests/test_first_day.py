"""What goes wrong on a first day with the commands, and what is said of it.

A message names whose part is wrong and shows the user's own lines; nothing comes raw.
"""

import re
import runpy
import shutil
from pathlib import Path

import pytest
from runs import command, rows

SIZES = """
import jax.numpy as jnp

from ppo_jax import Config, critics, envs, networks, terms
from ppo_jax.component import component

SIZES = dict(
    num_envs=4,
    num_steps=8,
    num_minibatches=2,
    total_timesteps=32 * 2,
    phase_updates=1,
    eval_phases=1,
    eval_episodes=4,
    network=networks.ActorCritic(torso=networks.Mlp(hidden=(4,))),
)
"""
WALK = (
    SIZES
    + """

@component
class Walk(envs.Env):
    limit: int = 4

    @property
    def action_space(self):
        return envs.Discrete(2)

    @property
    def max_episode_steps(self):
        return self.limit

    def reset(self, key):
        return jnp.zeros(1), jnp.zeros(())

    def transition(self, key, state, action):
        state = state + 1
        timestep = envs.outcome(state[None], action, truncated=state >= self.limit)
        return timestep, state


config = Config(env=Walk(), **SIZES)
"""
)
LINE = 1 + WALK[: WALK.index("state = state + 1")].count("\n")
SAYS_ALL = "def __call__(self, out, batch, context): return out.log_ratio, {}"


def part(kind, body):
    """An experiment with a term or a critic of its own."""
    mine = "critic=Mine()"
    if kind == "terms.Term":
        mine = "terms=(terms.Surrogate(), Mine())"
    return (
        f"{WALK}\n\n@component\nclass Mine({kind}):\n    {body}\n\n\n"
        f"config = Config(env=Walk(), {mine}, **SIZES)\n"
    )


def written(folder, text, name="mine.py"):
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(text)
    return path


def refused(done, *said):
    """A command ended with status 2 and said all that; nothing is raw."""
    assert done.returncode == 2, done.stderr
    for text in said:
        assert text in done.stderr
    assert "Traceback" not in done.stderr and "site-packages" not in done.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\nrate = 1 / 0\n", "ZeroDivisionError: division by zero{}rate = 1 / 0\n"),
        (
            "\nconfig = dict(\n",
            "SyntaxError: '(' was never closed (mine.py, line 2)\n"
            '  File "{path}", line 2\n    config = dict(\n                 ^\n',
        ),
        ("\nassert False\n", "AssertionError{}assert False\n"),
    ],
)
def test_a_file_that_fails_shows_its_own_lines(tmp_path, text, said):
    path = written(tmp_path, text)
    line = f'\n  File "{path}", line 2, in <module>\n    '
    done = command("train", path)
    refused(done)
    assert done.stderr == f"error: {path}: {said.format(line, path=path)}"


def test_an_error_in_a_module_shows_the_way_to_it(tmp_path):
    module = written(tmp_path, "def load():\n    raise KeyError('x')\n", "data.py")
    path = written(tmp_path, "import data\ndata.load()\n")
    done = command("sweep", path, cwd="/")
    refused(done)
    assert done.stderr == (
        f"error: {path}: KeyError: 'x'\n"
        f'  File "{path}", line 2, in <module>\n    data.load()\n'
        f"  File \"{module}\", line 2, in load\n    raise KeyError('x')\n"
    )


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    """A run of an experiment with modules beside it, both of which are gone."""
    home = tmp_path_factory.mktemp("first_day")
    written(home / "parts", "LIMIT = 4\n", "sizes.py")
    written(home / "parts", "", "__init__.py")
    written(home, WALK, "walks.py")
    text = "from walks import *\nfrom parts.sizes import LIMIT\n"
    text += "config = Config(env=Walk(limit=LIMIT), **SIZES)\n"
    path = written(home, text)
    done = command("train", path, "--run-dir", home / "run", cwd="/")
    assert done.returncode == 0, done.stderr
    path.unlink()
    (home / "walks.py").unlink()
    shutil.rmtree(home / "parts")
    return home / "run"


def test_modules_beside_an_experiment_are_kept_with_its_run(walked, tmp_path):
    """Found from any folder, by whatever reads the run directory."""
    run_dir = shutil.copytree(walked, tmp_path / "moved")
    done = command("evaluate", run_dir, "--episodes", 2, cwd="/")
    assert done.returncode == 0, done.stderr
    path, more = run_dir / "experiment.py", ("--total-timesteps", 32 * 3)
    done = command("train", path, "--run-dir", run_dir, "--resume", *more, cwd="/")
    assert done.returncode == 0, done.stderr
    assert "resuming after update 2 of 3" in done.stdout
    assert rows(run_dir)[-1]["rollout/ep_len_mean"] == 4


def test_each_of_two_runs_has_its_own_modules(walked, tmp_path):
    other = shutil.copytree(walked, tmp_path / "other")
    sizes = other / "imported" / "parts" / "sizes.py"
    sizes.write_text("LIMIT = 5\n")
    options = ("--against", other, "--eps", 0, "--episodes", 1)
    refused(command("robustness", walked, *options), "another environment")


CHANGES = {
    "shape": (
        ("state[None], action", "jnp.zeros(2), action"),
        "- transition: obs: got float32[2], expected float32[1]",
    ),
    "type": (
        ("return timestep, state", "return timestep, state.astype(int)"),
        "- transition: state: got int32[], expected float32[]",
    ),
    "tuple": (
        ("return timestep, state", "return 1, 2, 3, 4, 5"),
        "- transition: got a tuple of 5, expected (Timestep, state)",
    ),
    "bool": (
        ("state = state + 1", "state = state + 1 if state < 9 else state"),
        "- transition: got TracerBoolConversionError: Attempted boolean conversion of "
        "traced array with shape bool[]., expected code that JAX can trace; numbers "
        "are arrays here: choose with jnp.where, not with if\n"
        '  File "{path}", line {line}, in Walk.transition\n'
        "    state = state + 1 if state < 9 else state\n",
    ),
    "exception": (
        ("state = state + 1", "state = state + len(None)"),
        "- transition: got TypeError: object of type 'NoneType' has no len(), expected "
        'no error\n  File "{path}", line {line}, in Walk.transition\n'
        "    state = state + len(None)\n",
    ),
    "forgotten": (
        ("def action_space", "def actions"),
        "- Walk.action_space: missing; every Env needs one of its own\n",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_an_environment_is_checked_before_anything_is_made(tmp_path, name):
    change, said = CHANGES[name]
    path = written(tmp_path, WALK.replace(*change))
    done = command("train", path, "--run-dir", tmp_path / "run")
    refused(done, "error: Walk(limit=4): ", said.format(path=path, line=LINE))
    assert done.stdout == "" and not (tmp_path / "run").exists()


def test_what_an_environment_does_later_has_a_line_too(tmp_path):
    """A callback fails while the program runs, which no tracing can know."""
    text = WALK.replace("config =", "def ask(x): return x / None\n\n\nconfig =")
    text = text.replace("import jax.numpy", "import jax\nimport jax.numpy")
    call = "state = jax.pure_callback(ask, state, state, vmap_method='sequential')"
    path = written(tmp_path, text.replace("state = state + 1", call))
    done = command("train", path, "--run-dir", tmp_path / "run")
    refused(done, "error: TypeError: unsupported operand", "return x / None")
    assert re.search(r'File ".*/mine.py", line \d+, in ask\n', done.stderr)
    assert not (tmp_path / "run" / "checkpoints" / "1").exists()


PARTS = {
    "loss": (
        ("terms.Term", SAYS_ALL.replace("out.log_ratio", "out.log_ratio.mean()")),
        "Mine: loss: expected the shape (1, 16), a number per example, got float32[]",
    ),
    "no pair": (
        ("terms.Term", SAYS_ALL.replace(", {}", "")),
        "Mine: expected (loss, dict of metrics), got float32[1, 16]",
    ),
    "no loss": (
        ("terms.Term", "weight: float = 1.0"),
        "Mine.__call__: missing; every Term needs one of its own",
    ),
    "prepare": (
        (
            "terms.Term",
            "def prepare(self, memory, rollout): return rollout.reward.sum(), {}",
        ),
        "Mine.prepare: expected arrays whose shape begins with (8, 4), a row per step, "
        "got float32[]",
    ),
    "update": (
        (
            "terms.Term",
            f"{SAYS_ALL}\n    def update(self, memory, metrics): return jnp.ones(3)",
        ),
        "Mine.update: expected () as before, got float32[3]",
    ),
    "critic": (
        (
            "critics.Scalar",
            "def loss(self, outputs, target): return (outputs[..., 0] - target).mean()",
        ),
        "Mine.loss: expected the shape (1, 16), a number per prediction, got float32[]",
    ),
}


@pytest.mark.parametrize("name", PARTS)
def test_a_part_of_ones_own_is_named(tmp_path, name):
    (kind, body), said = PARTS[name]
    path = written(tmp_path, part(kind, body))
    done = command("train", path, "--run-dir", tmp_path / "run")
    refused(done, f"error: {said}")


def test_a_run_that_never_began_is_not_in_the_way(tmp_path):
    text = part("terms.Term", SAYS_ALL.replace("out.log_ratio", "1.0"))
    path, run_dir = written(tmp_path, text), tmp_path / "run"
    refused(command("train", path, "--run-dir", run_dir), "got a float")
    assert (run_dir / "config.json").exists()
    done = command("train", written(tmp_path, WALK), "--run-dir", run_dir)
    assert done.returncode == 0, done.stderr
    done = command("train", path, "--run-dir", run_dir)
    refused(done, f"{run_dir}: holds a run already; give --resume")


def test_what_is_no_head_is_refused_with_those_that_are(tmp_path):
    text = SIZES + "network = networks.ActorCritic(head=networks.Categorical())\n"
    heads = ("GaussianHead", "SigmoidHead", "TanhHead")
    refused(command("train", written(tmp_path, text)), *heads)
    text = text.replace("networks.Categorical()", "networks.SquashedHead()")
    refused(command("train", written(tmp_path, text)), "ActorCritic.head", *heads)


DOCS = Path(__file__).parent.parent / "docs"


def lasting(text):
    """A recorded session without numbers, the time of lines, and which alerts began."""
    said = re.sub(r"-?\d[\d,.]*(e-?\d+)?( s\b| min\b)?", "#", text)
    fleeting = re.compile(r" *# of # steps|warn/|  evaluation|events\.out")
    return [line for line in said.splitlines() if not fleeting.match(line)]


@pytest.mark.slow
def test_the_recorded_session_still_goes(tmp_path):
    """Every command of a first day says what the document says."""
    written = (DOCS / "first_day.md").read_text()
    again = runpy.run_path(str(DOCS / "record.py"))["recorded"](written, tmp_path)
    assert lasting(again) == lasting(written)
    assert written.count("[status 2]") == 5 and written.count("[status ") == 6
    assert "Traceback" not in written
