"""What is said where MuJoCo is to draw with what is not there."""

from runs import ENVIRONMENT, command

EXPERIMENT = """
from ppo_jax import Config
config = Config("playground/CheetahRun")
"""
FILES = {
    "mujoco_playground/__init__.py": "import mujoco\n",
    "mujoco/__init__.py": "from mujoco import gl_context\n",
    "mujoco/gl_context.py": "None.glGetError\n",  # As where OSMesa is missing.
    "the.py": EXPERIMENT,
}


def test_an_import_that_fails_says_what_is_to_be_set(tmp_path):
    """By the command: MuJoCo looks for it before anything is drawn."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    asked = ENVIRONMENT | {"MUJOCO_GL": "osmesa"}
    done = command("train", tmp_path / "the.py", environment=asked)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "needs mujoco_playground: AttributeError: " in done.stderr
    assert "MUJOCO_GL=osmesa asks for what is not there" in done.stderr
    assert "osmesa needs libosmesa6" in done.stderr
