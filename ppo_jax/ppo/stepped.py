"""Rollouts and episodes whose environments are stepped from outside.

Between two steps of simulators on the host, one program runs: it takes the answer to
the last step, and returns the actions of the next one. `rollout`, `episodes` and
`learner` do the acting, recording and learning. All functions are for one member; the
host maps them.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct
from jax.typing import ArrayLike

from ppo_jax.arrays import tree
from ppo_jax.arrays.keys import fused, plain
from ppo_jax.arrays.packing import Packed, pack
from ppo_jax.attacks.opponents import Opponent
from ppo_jax.envs.env import Timestep, outcome
from ppo_jax.envs.simulators import Answer
from ppo_jax.ppo import acting, episodes, learner, quarantine, rollout
from ppo_jax.ppo.acting import Agent, Decision, Deed
from ppo_jax.ppo.rollout import BootstrapSlots
from ppo_jax.schedules import Progress
from ppo_jax.state import Actor, Learner, Run
from ppo_jax.types import Array, Carry, Key, PyTree

SEEDS = 2**32 - 1
"""Number that sets the seeds of simulators apart from the keys of rollouts."""


@struct.dataclass
class Journey:
    """A rollout under way, before a step of the simulators."""

    actor: Actor
    decision: Decision
    """The decision for the step."""
    slots: BootstrapSlots
    steps: Packed
    """Record of the steps, `[T, B]`; zeros for steps that are not taken yet."""
    carries: Carry
    """Carries before the first step of each chunk, `[T / L, B, ...]`."""
    keys: tuple[Key, Key, Key, Key]
    """Keys of the run afterwards, of all actions `[T, B]`, of values that are owed, and
    of learning."""


@struct.dataclass
class Game:
    """Episodes under way, before a step of the simulators."""

    actor: Actor
    decision: Decision


def seeds(key: Key, count: int) -> Array:
    """Returns seeds of simulators, uint32 `[count]`; the key may be used for more."""
    return jax.random.bits(jax.random.fold_in(key, SEEDS), (count,), jnp.uint32)


def depart(
    run: Run, progress: Progress, shown: tuple[PyTree, PyTree], anew: Array
) -> tuple[Journey, Array]:
    """Begins a rollout, up to its first step.

    Args:
        run: One member.
        progress: Progress of training.
        shown: Present observations and states of the simulators, `[B, ...]`.
        anew: Whether each simulator began another episode since the last rollout, bool
            `[B]`.

    Returns:
        The rollout, and actions `[B, ...]` for the simulators.
    """
    key, key_rollout, key_update = jax.random.split(fused(run.key), 3)
    agent = rollout.traveller(learner.opposed(run.learner, progress.course))
    config = agent.learner.config
    drawn = rollout.draws(config, key_rollout)
    actions = tree.merge_leading(drawn.steps.action)
    obs, state = shown
    actor = dataclasses.replace(run.actor, obs=obs, env_state=state)
    actor = quarantine.unless(~anew, actor, obs, state)
    decision = acting.decide(agent, actor, actor.carry, actions[0])
    count = config.num_steps // rollout.kept_together(config)
    slots = rollout.no_slots(config.env, actor, config.num_steps)
    journey = Journey(
        actor=actor,
        decision=decision,
        slots=slots,
        steps=_nothing(config, actor, slots, decision),
        carries=jax.tree.map(lambda x: jnp.stack([x] * count), actor.carry),
        keys=(key, actions, drawn.owed, key_update),
    )
    return plain(journey), decision.move


def proceed(
    member: Learner, progress: Progress, time: Array, journey: Journey, answer: Answer
) -> tuple[Journey, Array]:
    """Returns a rollout after a step, and actions `[B, ...]` for the next step.

    Args:
        member: The learner that acts.
        progress: Progress of training.
        time: Number of steps before this one, int32 `[]`.
        journey: The rollout before the step; donated.
        answer: The simulators' answer to the step.
    """
    agent = rollout.traveller(learner.opposed(member, progress.course))
    journey = _recorded(agent.learner.config, fused(journey), time, answer)
    _, actions, _, _ = journey.keys
    actor = journey.actor
    decision = acting.decide(agent, actor, actor.carry, actions[time + 1])
    return plain(dataclasses.replace(journey, decision=decision)), decision.move


def arrive(
    run: Run, progress: Progress, journey: Journey, answer: Answer
) -> tuple[Run, Packed]:
    """Ends a rollout and learns from it; returns the run afterwards, and metrics."""
    agent = rollout.traveller(learner.opposed(run.learner, progress.course))
    config = agent.learner.config
    journey = _recorded(config, fused(journey), config.num_steps - 1, answer)
    key, _, key_owed, key_update = journey.keys
    actor, (steps, slot) = journey.actor, journey.steps.unpack()
    steps = rollout.completed(agent, actor, journey.slots, steps, slot, key_owed)
    run = dataclasses.replace(run, key=key)
    lived = (plain(actor), steps, journey.carries)
    run, metrics = learner.learned(run, progress, key_update, *lived)
    return run, pack(metrics)


def starts(key: Key, count: int) -> Array:
    """Returns seeds of simulators for episodes to play, uint32 `[count]`."""
    _, key_start = jax.random.split(key)
    return jax.random.bits(key_start, (count,), jnp.uint32)


def open_game(
    member: Learner,
    key: Key,
    shown: tuple[PyTree, PyTree],
    opponent: Opponent | None,
    num_episodes: int,
    deterministic: bool,
) -> tuple[Game, Array]:
    """Begins episodes; returns them, and their first actions `[num_episodes, ...]`.

    Args:
        member: The learner that plays.
        key: Key of the episodes, as for `episodes.run_episodes`.
        shown: First observations and states of the simulators, `[num_episodes, ...]`.
        opponent: Attacker of the observations; None: no attacks.
        num_episodes: Number of episodes.
        deterministic: Whether the most likely action is taken instead of a sample.
    """
    everywhere = jnp.ones(num_episodes, bool)
    agent = episodes.player(member, everywhere, deterministic, opponent)
    actor = acting.begin(agent.network, *shown, num_episodes)
    return _at(agent, actor, actor.carry, key, 0)


def play_on(
    member: Learner,
    key: Key,
    time: Array,
    game: Game,
    answer: Answer,
    opponent: Opponent | None,
    deterministic: bool,
) -> tuple[Game, Array]:
    """Returns episodes after a step, and the next actions `[num_episodes, ...]`."""
    everywhere = jnp.ones_like(game.actor.reset)
    agent = episodes.player(member, everywhere, deterministic, opponent)
    actor = episodes.after(game.actor, _deed(game.decision, answer))
    return _at(agent, actor, game.decision.truth, key, time + 1)


def _at(
    agent: Agent, actor: Actor, truth: Carry, key: Key, time: ArrayLike
) -> tuple[Game, Array]:
    """Returns episodes before a step, and actions for it."""
    key, _ = jax.random.split(fused(key))
    keys = episodes.keys_at(key, time, actor.reset.shape[0])
    decision = acting.decide(agent, actor, truth, keys.action)
    return Game(actor, decision), decision.move


def _recorded(config: Any, journey: Journey, time: Any, answer: Answer) -> Journey:
    """Returns a rollout after a step, with the step recorded."""
    actor, length = journey.actor, rollout.kept_together(config)
    deed = _deed(journey.decision, answer)
    (after, slots), kept = rollout.lived(config, actor, journey.slots, deed)

    put = functools.partial(jax.lax.dynamic_update_index_in_dim, axis=0)

    def noted(carries, carry):
        first = jnp.where(time % length == 0, carry, carries[time // length])
        return put(carries, first, time // length)

    return dataclasses.replace(
        journey,
        actor=after,
        slots=slots,
        steps=jax.tree.map(
            lambda steps, step: put(steps, step, time),
            journey.steps,
            pack(kept, leading=1),
        ),
        carries=jax.tree.map(noted, journey.carries, actor.carry),
    )


def _nothing(
    config: Any, actor: Actor, slots: BootstrapSlots, decision: Decision
) -> Packed:
    """Returns the empty record of a rollout before its first step, `[T, B]`."""
    nothing = jnp.zeros_like(actor.episode_return)
    answer: Any = Answer(
        obs=actor.obs,
        state=actor.env_state,
        final_obs=actor.obs,
        reward=nothing,
        terminated=nothing > 0,
        truncated=nothing > 0,
        cost=nothing,
    )
    deed = _deed(decision, answer)

    def kept():
        _, kept = rollout.lived(config, actor, slots, deed)
        return pack(kept, leading=1)

    return jax.tree.map(
        lambda x: jnp.zeros((config.num_steps, *x.shape), x.dtype), jax.eval_shape(kept)
    )


def _deed(decision: Decision, answer: Answer) -> Deed:
    """Makes a `Deed`, as of environments in programs, of a decision and its answer."""
    step = jax.vmap(_outcome)(answer)._replace(obs=answer.obs)
    return Deed(decision, step, answer.state)


def _outcome(answer: Answer) -> Timestep:
    """Returns the timestep of one simulator, before any start of another episode."""
    flags = answer.terminated, answer.truncated
    return outcome(answer.final_obs, answer.reward, *flags, cost=answer.cost)
