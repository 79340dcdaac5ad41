"""CartPole-v1 by a loop of one's own: the mathematics, without what is built around it.

Expect episodes of 475 steps or more after 300 000: `python experiments/by_hand.py`.
"""

from functools import partial

import jax
import jax.numpy as jnp
import optax

from ppo_jax import critics, envs, losses, networks, returns
from ppo_jax.arrays import tree
from ppo_jax.transforms.vgs import scale_by_variance

ENVS, STEPS, EPOCHS, MINIBATCHES, UPDATES = 16, 128, 4, 4, 150
GAMMA, LAMBDA, CLIP, ENTROPY = 0.98, 0.95, 0.2, 0.01
env = envs.make("CartPole-v1")
sizes = networks.ActorCritic(), env.action_space, jnp.zeros(4), critics.Scalar(), 1
network = networks.build(*sizes)
optimizer = optax.chain(
    scale_by_variance(), optax.clip_by_global_norm(0.5), optax.adam(2e-3)
)


@jax.jit
def begin(key_params, key_envs):
    """Parameters with the state of their optimiser, and environments."""
    params = network.init(key_params)
    now = jax.vmap(env.reset)(jax.random.split(key_envs, ENVS))
    return (params, optimizer.init(params)), now


def see(params, obs):
    """The policy, and the value of observations `[N, 4]`."""
    out = network.apply(params, (), obs[None], jnp.zeros((1, len(obs)), bool))
    return jax.tree.map(lambda x: x[0], (out.policy, out.value.mean()[..., 0]))


def step(params, now, key):
    """One step of all environments, and what is learned from."""
    obs, state = now
    key_act, *keys = jax.random.split(key, 1 + ENVS)
    policy, value = see(params, obs)
    action = policy.sample(key_act)
    after, state = jax.vmap(env.step)(jnp.stack(keys), state, action)
    _, next_value = see(params, after.final_obs)
    discount = GAMMA * (1.0 - after.terminated)
    trace = GAMMA * LAMBDA * (1.0 - (after.terminated | after.truncated))
    acted = obs, action, policy.log_prob(action)
    paid = after.reward, discount, trace, value, next_value
    return (after.obs, state), (acted, paid)


def loss(params, batch):
    """PPO's objective over a minibatch, to be minimised."""
    obs, action, log_prob, advantage, target = batch
    policy, value = see(params, obs)
    advantage, _ = returns.standardize(advantage, jnp.ones_like(advantage))
    log_ratio = policy.log_prob(action) - log_prob
    surrogate = losses.clipped_surrogate_loss(log_ratio, advantage, CLIP)
    error = losses.squared_error(value, target)
    return jnp.mean(surrogate + 0.5 * error - ENTROPY * policy.entropy())


@jax.jit
def update(learner, now, key):
    """A rollout, its advantages, and epochs of minibatches; how many episodes ended."""

    def learn(learner, rows):
        params, opt_state = learner
        gradient = jax.grad(loss)(params, tree.take(batch, rows))
        moves, opt_state = optimizer.update(gradient, opt_state)
        return (optax.apply_updates(params, moves), opt_state), None

    key, *orders = jax.random.split(key, 1 + EPOCHS)
    keys = jax.random.split(key, STEPS)
    now, (acted, paid) = jax.lax.scan(partial(step, learner[0]), now, keys)
    _, _, trace, value, _ = paid
    advantage, _ = returns.gae(*paid)
    batch = tree.merge_leading((*acted, advantage, advantage + value))
    order = [jax.random.permutation(key, STEPS * ENVS) for key in orders]
    rows = jnp.reshape(jnp.stack(order), (EPOCHS * MINIBATCHES, -1))
    learner, _ = jax.lax.scan(learn, learner, rows)
    return learner, now, jnp.sum(trace == 0)


def main(updates=UPDATES, seed=0):
    """Trains; returns how many steps an episode took over the last updates."""
    key, *keys = jax.random.split(jax.random.key(seed), 3)
    learner, now = begin(*keys)
    ends = []
    for each in jax.random.split(key, updates):
        learner, now, ended = update(learner, now, each)
        ends.append(int(ended))
    return ENVS * STEPS * len(ends[-20:]) / sum(ends[-20:])


if __name__ == "__main__":
    print(f"steps of an episode at the end: {main():.0f}")
