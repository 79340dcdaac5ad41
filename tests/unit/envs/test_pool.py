"""Starts that are drawn ahead, against starts that are drawn when they are needed."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tabular import first

from ppo_jax import envs, networks, optimizers, terms
from ppo_jax.component import component
from ppo_jax.config import Config
from ppo_jax.critics import ValueDist
from ppo_jax.envs import Env, Faulty, MaskObservation, ResetPool, TimeLimit, probes
from ppo_jax.envs.env import NEVER
from ppo_jax.networks.distributions import Categorical
from ppo_jax.ppo import learner, rollout
from ppo_jax.schedules import Progress

B, T = 4, 16
live = jax.jit(rollout.unroll)
said = jax.jit(jax.vmap(lambda env, state: env.metrics(state), (None, 0)))


@component
class Lottery(Env):
    """Shows what was drawn at the start of an episode, until chance ends it."""

    ending: float = 0.4

    @property
    def action_space(self):
        return envs.Discrete(2)

    def reset(self, key):
        drawn = jax.lax.digamma(jax.random.uniform(key, minval=1.0, maxval=2.0))
        return drawn[None], drawn

    def transition(self, key, state, action):
        over = jax.random.uniform(key) < self.ending
        return envs.outcome(state[None], 1.0, terminated=over), state


@component
class Turns(Lottery):
    """Episodes of so many steps."""

    length: float = 2.0

    def reset(self, key):
        obs, drawn = super().reset(key)
        return obs, (drawn, jnp.zeros((), jnp.int32))

    def transition(self, key, state, action):
        drawn, time = state
        timestep = envs.outcome(drawn[None], 1.0, terminated=time + 1 >= self.length)
        return timestep, (drawn, time + 1)


@component
class OwnStep(Lottery):
    def step(self, key, state, action):
        return super().step(key, state, action)


@component
class Keyed(Lottery):
    """Its state has two keys: one of a reset, and one of its own making."""

    def reset(self, key):
        obs, drawn = super().reset(key)
        return obs, (drawn, key, jax.random.key(5))

    def transition(self, key, state, action):
        timestep, _ = super().transition(key, state[0], action)
        return timestep, state


@component
class Blind(Config):
    """A policy of two actions, and a critic, that see nothing."""

    def build(self):
        def init(key):
            odds, worth = {"head": jnp.zeros(2)}, {"head": jnp.zeros(1)}
            return {"actor": odds, "critic": {"heads": worth}}

        def apply(params, carry, obs, reset, action_mask=None):
            odds = jnp.broadcast_to(params["actor"]["head"], (*reset.shape, 2))
            worth = params["critic"]["heads"]["head"]
            value = jnp.broadcast_to(worth, (*reset.shape, 1, 1))
            return networks.Output(Categorical(odds), ValueDist(value, self.critic), ())

        return networks.Network(init, lambda num_envs: (), apply)


def begin(env):
    """A run before its first update; updates are as little as there are."""
    config = Blind(
        env,
        num_envs=B,
        num_steps=T,
        num_epochs=1,
        num_minibatches=1,
        standardization=None,
        terms=(terms.Surrogate(),),
        optimizer=optimizers.Sgd(max_grad_norm=None),
    )
    return first(config)


def shapes(env):
    """Those of such a run, for which nothing is drawn."""
    return jax.eval_shape(lambda: begin(env))


def pool_of(state):
    """The state of a pool, whatever is around it."""
    return state if hasattr(state, "taken") else pool_of(state.env)


def taken_by_hand(before, after, steps):
    """What each environment showed at the starts of episodes after the first one."""
    shown = np.concatenate([steps.obs, after.obs[None]])[..., 0]
    began = np.concatenate([steps.reset[1:], after.reset[None]])
    np.testing.assert_array_equal(shown[0], np.ravel(before.obs))
    return [shown[1:][began[:, i], i].tolist() for i in range(B)]


def reused(run, actor):
    """What each environment says of the starts that it took again."""
    metrics = said(run.learner.config.env, actor.env_state)
    return metrics["rollout/reused_starts"].tolist()


@pytest.mark.parametrize(
    ("env", "size", "again"), [(Lottery(), T, False), (Keyed(), 2, True)]
)
def test_episodes_begin_with_the_starts_in_order_and_then_again(env, size, again):
    """Known from a loop over steps; what is reused is counted. States may have keys."""
    run = begin(ResetPool(env, size))
    actor, steps, _ = live(run.learner, run.actor, run.key)
    starts = np.asarray(actor.env_state.starts[0])[..., 0]
    counts = []
    for i, taken in enumerate(taken_by_hand(run.actor, actor, steps)):
        expected = [starts[i, k % size] for k in range(len(taken))]
        assert taken == expected and len(taken) > 2
        counts.append(sum(taken[k] in taken[:k] for k in range(len(taken))))
    assert reused(run, actor) == counts
    assert all(counts) == any(counts) == again


def test_states_begin_with_their_observations():
    """What an episode shows is what its state knows, to its last step."""
    run = begin(ResetPool(Lottery(), T))
    actor, steps, _ = jax.device_get(live(run.learner, run.actor, run.key))
    constant = ~steps.reset[1:]
    same = steps.obs[1:, :, 0] == steps.obs[:-1, :, 0]
    assert same[constant].all() and constant.any()
    np.testing.assert_array_equal(actor.obs[:, 0], actor.env_state.env)


def test_an_episode_goes_on_while_its_successors_are_drawn_anew():
    """No start is in two pools, of environments or of rollouts."""
    run = begin(ResetPool(Lottery(ending=0.0), T))
    actor, _, _ = live(run.learner, run.actor, run.key)
    later, _, _ = live(run.learner, actor, jax.random.key(7))
    np.testing.assert_array_equal(later.obs, run.actor.obs)
    np.testing.assert_array_equal(later.env_state.env, run.actor.env_state.env)
    pools = [np.ravel(x.env_state.starts[0]) for x in (run.actor, actor, later)]
    everything = np.concatenate([*pools, np.ravel(run.actor.obs)])
    assert len(np.unique(everything)) == everything.size == 3 * T * B + B


def test_the_pool_is_begun_anew_with_every_rollout():
    run = begin(ResetPool(Turns(length=T / 2), 3))
    actor, _, _ = live(run.learner, run.actor, run.key)
    later, steps, _ = live(run.learner, actor, jax.random.key(7))
    assert actor.env_state.taken.tolist() == later.env_state.taken.tolist() == [2] * B
    starts = np.asarray(later.env_state.starts[0])[:, :2, 0]
    assert taken_by_hand(actor, later, steps) == starts.tolist()


def test_starts_are_distributed_as_those_of_resets():
    """Kolmogorov and Smirnov: √n · sup |F_n − F| exceeds 2 once in 1500 times."""
    run = begin(ResetPool(Lottery(), T))
    actor, begun = run.actor, []
    for key in jax.random.split(jax.random.key(3), 100):
        after, steps, _ = live(run.learner, actor, key)
        for taken in taken_by_hand(actor, after, steps):
            begun += taken
        actor = after
    keys = jax.random.split(jax.random.key(4), 10**6)
    drawn = np.sort(jax.jit(jax.vmap(Lottery().reset))(keys)[1])
    rank = np.searchsorted(drawn, np.sort(begun)) / drawn.size
    n = len(begun)
    assert n > 2000 and len(set(begun)) > n - 5  # Floats of 23 bits may coincide.
    steps_of = np.arange(n + 1) / n
    gap = max(np.abs(rank - steps_of[1:]).max(), np.abs(rank - steps_of[:-1]).max())
    assert gap * np.sqrt(n) < 2


def test_without_renewal_the_first_start_is_that_of_any_reset(key):
    """As many draws as there are starts, and one for the first episode."""
    env = ResetPool(Lottery(), 6)
    obs, state = jax.device_get(env.reset(key))
    assert obs[0] == state.env
    everything = np.append(state.starts[0][:, 0], obs)
    assert len(np.unique(everything)) == 7
    np.testing.assert_array_equal(*(x.squeeze() for x in state.starts))


def digammas(jaxpr, in_a_loop=False):
    """Shapes of what resets compute, and whether it is in a loop, at any depth."""
    for equation in jaxpr.eqns:
        if equation.primitive.name == "digamma":
            yield equation.outvars[0].aval.shape, in_a_loop
        inside = in_a_loop or equation.primitive.name in ("scan", "while")
        for value in equation.params.values():
            for inner in value if isinstance(value, tuple | list) else (value,):
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    yield from digammas(inner, inside)


@pytest.mark.parametrize(
    ("env", "pooled"),
    [
        (Lottery(), False),
        (ResetPool(Lottery(), 3), True),
        (TimeLimit(Lottery(), 5), False),
        (TimeLimit(ResetPool(Lottery(), 3), 5), True),
        (Faulty(ResetPool(Lottery(), 3)), True),
        (MaskObservation(ResetPool(Lottery(), 3), (0,)), True),
    ],
)
def test_no_step_of_a_pool_resets(env, pooled):
    """A rollout draws a pool; one more with a start replaces what is broken."""
    run = shapes(env)
    program = jax.make_jaxpr(rollout.unroll)(run.learner, run.actor, run.key)
    found = sorted(digammas(program.jaxpr))
    if pooled:
        assert found == [((B,), False), ((B, 3), False), ((B, 3), False)]
    else:
        assert ((B,), True) in found


def veiled(env):
    return MaskObservation(env, (0,))


def limited(env):
    return TimeLimit(env, 5)


def breakable(env):
    return Faulty(env, rate=0.0, steps=NEVER, obs=np.nan)


def corruptible(env):
    return Faulty(env, rate=0.0, steps=NEVER, state=np.nan)


def wrapped(env):
    return limited(breakable(veiled(env)))


def assert_drawn_anew(before, after):
    old, new = (pool_of(actor.env_state).starts[0] for actor in (before, after))
    assert not np.isin(old, new).any()


@pytest.mark.parametrize("around", [lambda env: env, limited, breakable])
@pytest.mark.parametrize(("length", "again"), [(2.0, 5), (5.0, 0)])
def test_a_rollout_renews_a_pool_and_counts_what_was_reused(around, length, again):
    """16 steps are 8 episodes of two; of 3 starts, 5 are reused in each environment."""
    run = begin(around(ResetPool(Turns(length=length), 3)))
    actor, _, _ = live(run.learner, run.actor, run.key)
    assert reused(run, actor) == [again] * B
    assert_drawn_anew(run.actor, actor)


@jax.jit
def updated(run):
    """The actor after an update, and what that says of starts."""
    after, metrics = learner.iteration(run, Progress.at(0.0))
    return after.actor, metrics["rollout/reused_starts"]


def test_an_update_says_what_was_reused():
    """By all environments together, whatever is around their pools."""
    for length, again in ((2.0, 5), (5.0, 0)):
        run = begin(wrapped(ResetPool(Turns(length=length), 3)))
        actor, count = updated(run)
        assert count == B * again
        assert_drawn_anew(run.actor, actor)


def test_others_say_nothing_of_starts():
    run = shapes(Turns())
    _, metrics = jax.eval_shape(learner.iteration, run, Progress.at(0.0))
    assert "rollout/reused_starts" not in metrics


def test_a_time_limit_takes_the_next_start():
    """Episodes of five steps that never end by themselves."""
    run = begin(TimeLimit(ResetPool(Turns(length=99.0), 3), 5))
    actor, steps, _ = jax.device_get(live(run.learner, run.actor, run.key))
    pool = pool_of(actor.env_state)
    assert pool.taken.tolist() == [3] * B
    assert taken_by_hand(run.actor, actor, steps) == pool.starts[0][..., 0].tolist()
    assert (steps.last & ~steps.terminated).sum() == 3 * B


@pytest.mark.parametrize("broken", [breakable, corruptible])
def test_an_environment_that_breaks_begins_anew_with_a_pool(broken):
    """R-A20: the others never know."""
    run = begin(broken(ResetPool(Turns(), 3)))
    state = run.actor.env_state
    start = np.where(np.arange(B) == 1, T - 2, state.start)
    struck = run.actor.replace(env_state=state._replace(start=start))
    ill, steps, _ = jax.device_get(live(run.learner, struck, run.key))
    healthy, _, _ = jax.device_get(live(run.learner, run.actor, run.key))
    others = np.array([0, 2, 3])
    assert not steps.valid[-1, 1] and steps.valid[:, others].all()
    given, expected = (
        jax.tree.map(lambda x: x[others], actor.env_state) for actor in (ill, healthy)
    )
    chex.assert_trees_all_equal(given._replace(start=expected.start), expected)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(ill.env_state))
    assert ill.env_state.env.taken[1] == 0
    _, steps, _ = live(run.learner, ill, jax.random.key(7))
    assert steps.valid.all()


@pytest.mark.parametrize("env", [probes.RecallCue(), "CartPole-v1"])
def test_a_pool_keeps_the_protocol(env):
    """`taken` outlives episodes on purpose, as `check` is told."""
    pool = ResetPool(env, 8)
    envs.check(pool, steps=600, carried=("state.taken",))
    inner = envs.make(env)
    assert pool.action_space == inner.action_space
    assert pool.min_steps_to_truncation == inner.min_steps_to_truncation
    assert pool.max_episode_steps == inner.max_episode_steps


def test_check_wants_to_be_told():
    with pytest.raises(ValueError, match=r"check\(env, carried=\('state.taken',\)\)"):
        envs.check(ResetPool(probes.RecallCue(), 8), steps=600)


def test_masks_pass_through(key):
    env = ResetPool(probes.MaskedBandit(), 2)
    _, state = env.reset(key)
    np.testing.assert_array_equal(
        env.action_mask(state), probes.MaskedBandit().action_mask(state.env)
    )


@pytest.mark.parametrize(
    "env", [TimeLimit(Turns(), 3), Faulty(Turns()), OwnStep(), "DeepSea-bsuite"]
)
def test_an_environment_without_a_transition_has_no_pool(env):
    with pytest.raises(ValueError, match=r"ResetPool\.env: .*`transition`.*, got"):
        ResetPool(env, 2)


@component
class Levels(Turns):
    """Episodes go on from where those before them ended."""

    def restart(self, key, state):
        return self.reset(key)


def test_an_environment_whose_episodes_go_on_has_no_pool():
    """Which would begin them as if there was none before."""
    with pytest.raises(ValueError, match=r"ResetPool\.env: .*without a `restart`, got"):
        ResetPool(Levels(), 2)


def test_a_pool_has_a_start():
    with pytest.raises(ValueError, match=r"ResetPool\.size: expected at least 1"):
        ResetPool(Turns(), 0)
