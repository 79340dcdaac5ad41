"""A puck that is pushed over a floor: the cheapest world with a contact."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

XML = """
<mujoco>
  <option timestep="0.01" integrator="Euler" iterations="20" ls_iterations="10"/>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1" friction="0.5 0 0" condim="3"/>
    <body name="puck" pos="0 0 0.1">
      <joint name="x" type="slide" axis="1 0 0"/>
      <joint name="z" type="slide" axis="0 0 1"/>
      <geom type="sphere" size="0.1" mass="2" friction="0.5 0 0" condim="3"/>
    </body>
  </worldbody>
  <actuator><motor joint="x" ctrlrange="-1 1" ctrllimited="true" gear="10"/></actuator>
</mujoco>
"""
EDGE = 0.1
"""The distance from the middle at which an episode ends by itself."""


def start(key):
    """Draws a place near the middle, and a speed."""
    place, speed = jax.random.uniform(key, (2,), minval=-1.0)
    return jnp.stack([0.05 * place, 0.0]), jnp.stack([2 * speed, 0.0])


def by_mujoco(qpos, qvel, actions, gravity=1.0, friction=1.0, mass=1.0):
    """Returns places and speeds after each step, by MuJoCo in float64, `[T, 4]`."""
    model = mujoco.MjModel.from_xml_string(XML)
    model.opt.gravity *= gravity
    model.geom_friction *= friction
    model.body_mass *= mass
    model.body_inertia *= mass
    data = mujoco.MjData(model)
    mujoco.mj_setConst(model, data)
    data.qpos[:], data.qvel[:] = qpos, qvel
    seen = []
    for action in actions:
        data.ctrl[:] = action
        mujoco.mj_step(model, data)
        seen.append(np.concatenate([data.qpos, data.qvel]))
    return np.stack(seen)


def seen(place, speed):
    return {"place": place, "speed": speed}


def register_in_playground():
    """Registers `Puck`; the weight of its reward is a number in a group of settings."""
    import mujoco_playground as package
    from ml_collections import config_dict
    from mujoco import mjx

    class Puck(package.MjxEnv):
        def __init__(self, config, config_overrides=None):
            super().__init__(config, config_overrides)
            self._mj_model = mujoco.MjModel.from_xml_string(XML)
            self._mjx_model = mjx.put_model(self._mj_model, impl=self._config.impl)

        def reset(self, rng):
            qpos, qvel = start(rng)
            data = mjx.make_data(self._mj_model, impl="jax")
            data = mjx.forward(self._mjx_model, data.replace(qpos=qpos, qvel=qvel))
            zero = jnp.zeros(())
            return package.State(
                data, seen(qpos, qvel), zero, zero, {"speed": zero}, {}
            )

        def step(self, state, action):
            data = package.step(self.mjx_model, state.data, action, self.n_substeps)
            state.metrics["speed"] = data.qvel[0]
            return state.replace(
                data=data,
                obs=seen(data.qpos, data.qvel),
                reward=self._config.pays.scales.speed * data.qvel[0],
                done=(jnp.abs(data.qpos[0]) > EDGE).astype(float),
            )

        xml_path = property(lambda self: "")
        action_size = property(lambda self: 1)
        mj_model = property(lambda self: self._mj_model)
        mjx_model = property(lambda self: self._mjx_model)

    def settings():
        return config_dict.create(
            ctrl_dt=0.01,
            sim_dt=0.01,
            episode_length=6,
            action_repeat=1,
            impl="warp",
            pays=config_dict.create(scales=config_dict.create(speed=1.0)),
        )

    package.dm_control_suite.register_environment("Puck", Puck, settings)


def register_in_brax():
    """Registers `puck`; the weight of its reward is an argument."""
    from brax import envs
    from brax.io import mjcf

    class Puck(envs.PipelineEnv):
        def __init__(self, speed_weight=1.0, backend="mjx"):
            super().__init__(mjcf.loads(XML), backend, n_frames=1)
            self._speed_weight = speed_weight

        def reset(self, rng):
            state = self.pipeline_init(*start(rng))
            zero = jnp.zeros(())
            return envs.State(
                state, seen(state.q, state.qd), zero, zero, {"speed": zero}
            )

        def step(self, state, action):
            after = self.pipeline_step(state.pipeline_state, action)
            state.metrics.update(speed=after.qd[0])
            return state.replace(
                pipeline_state=after,
                obs=seen(after.q, after.qd),
                reward=self._speed_weight * after.qd[0],
                done=jnp.where(jnp.abs(after.q[0]) > EDGE, 1.0, 0.0),
            )

    envs.register_environment("puck", Puck)
