"""CartPole-v1 by a loop of one's own: the mathematics, without what is built around it.

Expect episodes of 475 steps or more after 300 000: `python experiments/by_hand.py`.
"""

from functools import partial

import gymnax
import jax
import jax.numpy as jnp
import optax

from ppo_jax import critics, envs, losses, networks, returns
from ppo_jax.transforms.vgs import scale_by_variance

ENVS, STEPS, EPOCHS, MINIBATCHES, UPDATES = 16, 128, 4, 4, 150
GAMMA, LAMBDA, CLIP, ENTROPY = 0.98, 0.95, 0.2, 0.01
env, env_params = gymnax.make("CartPole-v1")
sizes = networks.ActorCritic(), envs.Discrete(2), jnp.zeros(4), critics.Scalar(), 1
network = networks.build(*sizes)
optimizer = optax.chain(
    scale_by_variance(), optax.clip_by_global_norm(0.5), optax.adam(2e-3)
)


def see(params, obs):
    """The policy, and the value of observations `[T, B, 4]`."""
    out = network.apply(params, (), obs, jnp.zeros(obs.shape[:2], bool))
    return out.policy, out.value.mean()[..., 0]


def step(params, now, key):
    """One step of all environments, and what is learned from."""
    obs, state = now
    key_act, *keys = jax.random.split(key, 1 + ENVS)
    policy, value = see(params, obs[None])
    action = policy.sample(key_act)
    stepped = jax.vmap(env.step, (0, 0, 0, None))(
        jnp.stack(keys), state, action[0], env_params
    )
    after, state, reward, terminated, truncated, info = stepped
    _, next_value = see(params, info["final_observation"][None])
    discount = GAMMA * (1.0 - terminated)
    trace = GAMMA * LAMBDA * (1.0 - (terminated | truncated))
    acted = obs, action[0], policy.log_prob(action)[0]
    return (after, state), (acted, (reward, discount, trace, value[0], next_value[0]))


def loss(params, batch):
    """PPO's objective over a minibatch, to be minimised."""
    obs, action, log_prob, advantage, target = (x[None] for x in batch)
    policy, value = see(params, obs)
    advantage, _ = returns.standardize(advantage, jnp.ones_like(advantage))
    log_ratio = policy.log_prob(action) - log_prob
    surrogate = losses.clipped_surrogate_loss(log_ratio, advantage, CLIP)
    error = losses.squared_error(value, target)
    return jnp.mean(surrogate + 0.5 * error - ENTROPY * policy.entropy())


def learn(learner, batch):
    """One step of the optimiser."""
    params, opt_state = learner
    moves, opt_state = optimizer.update(jax.grad(loss)(params, batch), opt_state)
    return (optax.apply_updates(params, moves), opt_state), None


@jax.jit
def update(learner, now, key):
    """A rollout, its advantages, and epochs of minibatches; how many episodes ended."""
    key, *orders = jax.random.split(key, 1 + EPOCHS)
    keys = jax.random.split(key, STEPS)
    now, (acted, paid) = jax.lax.scan(partial(step, learner[0]), now, keys)
    _, _, trace, value, _ = paid
    advantage, _ = returns.gae(*paid)
    rows = jax.tree.map(
        lambda x: x.reshape(-1, *x.shape[2:]), (*acted, advantage, advantage + value)
    )
    for key in orders:
        order = jax.random.permutation(key, STEPS * ENVS).reshape(MINIBATCHES, -1)
        learner, _ = jax.lax.scan(
            learn, learner, jax.tree.map(partial(jnp.take, indices=order, axis=0), rows)
        )
    return learner, now, jnp.sum(trace == 0)


def main(updates=UPDATES, seed=0):
    """Trains; returns how many steps an episode took over the last updates."""
    key, key_params, key_envs = jax.random.split(jax.random.key(seed), 3)
    params = network.init(key_params)
    learner = params, optimizer.init(params)
    now = jax.vmap(env.reset, (0, None))(jax.random.split(key_envs, ENVS), env_params)
    ends = []
    for each in jax.random.split(key, updates):
        learner, now, ended = update(learner, now, each)
        ends.append(int(ended))
    return ENVS * STEPS * len(ends[-20:]) / sum(ends[-20:])


if __name__ == "__main__":
    print(f"steps of an episode at the end: {main():.0f}")
