"""Pictures of bodies, by suites that are installed."""

import jax
import numpy as np
import pytest

from ppo_jax import envs
from ppo_jax.envs import scenes
from ppo_jax.errors import UserError

mujoco = pytest.importorskip("mujoco")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
BALL = """
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <camera pos="0 0 4"/>
    <light pos="0 0 4"/>
    <body><freejoint/><geom size="0.5" rgba="1 0 0 1"/></body>
  </worldbody>
</mujoco>
"""


@pytest.fixture
def drawable():
    try:
        scenes.draw("x", mujoco.MjModel.from_xml_string("<mujoco/>"), {})
    except UserError as error:
        pytest.skip(str(error))


def test_bodies_are_where_their_state_has_them(drawable):
    """Seen by the first camera, from above: x to the right, y upwards."""
    model = mujoco.MjModel.from_xml_string(BALL)
    height, width = scenes.HEIGHT, scenes.WIDTH
    for x, y in ((0.0, 0.0), (1.0, 0.5), (-1.0, -0.5)):
        picture = scenes.draw("x", model, {"qpos": [x, y, 0, 1, 0, 0, 0]})
        assert picture.dtype == np.uint8 and picture.shape == (height, width, 3)
        row, column = np.argwhere(picture[..., 0] > 100).mean(axis=0)
        unit = height / 2 / np.tan(np.pi / 8) / 4  # Pixels, at an angle of 45 degrees.
        expected = height / 2 - unit * y, width / 2 + unit * x
        assert (row, column) == pytest.approx(expected, abs=4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "env_id"),
    [
        ("brax", "brax/inverted_pendulum"),
        ("mujoco_playground", "playground/CartpoleBalance"),
    ],
)
def test_a_pole_that_has_moved_looks_different(drawable, package, env_id):
    """As an environment of a suite, also around which there is a wrapper."""
    pytest.importorskip(package)
    env = envs.ResetPool(env_id, 1)
    with jax.numpy_rank_promotion("allow"):
        _, state = jax.jit(env.reset)(jax.random.key(0))
        begun = env.render(jax.device_get(state))
        for _ in range(3):
            _, state = jax.jit(env.step)(jax.random.key(1), state, np.ones(1))
    assert begun.std() > 10
    assert (env.render(jax.device_get(state)) != begun).mean() > 0.005


def test_without_opengl_it_is_said_what_to_set(monkeypatch):
    def absent(*_):
        raise RuntimeError("no such library\nand more")

    monkeypatch.setattr(mujoco, "Renderer", absent)
    model = mujoco.MjModel.from_xml_string(BALL)
    with pytest.raises(UserError) as error:
        scenes.draw("Brax.id: 'ant'", model, {})
    said = str(error.value)
    assert said.startswith("Brax.id: 'ant': cannot be drawn: RuntimeError: no such ")
    assert "MUJOCO_GL=egl" in said and "\n" not in said


def test_what_has_no_bodies_is_said():
    pytest.importorskip("brax")
    env = envs.make("brax/fast")
    with jax.numpy_rank_promotion("allow"), pytest.raises(UserError, match="no bodies"):
        env.render(jax.device_get(env.reset(jax.random.key(0))[1]))
