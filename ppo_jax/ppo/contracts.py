"""Assumptions of training about a network, and a check that they hold.

A replay is compared with the rollout, and nothing may leak from one environment or
episode into another.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ppo_jax import losses
from ppo_jax.arrays import counting
from ppo_jax.component import program
from ppo_jax.config import Config
from ppo_jax.envs import TimeLimit
from ppo_jax.envs.faults import Faulty
from ppo_jax.errors import UserError
from ppo_jax.ppo import learner, rollout
from ppo_jax.ppo.batch import chunks
from ppo_jax.ppo.objective import forward
from ppo_jax.ppo.update import gather
from ppo_jax.state import Actor, Learner, Run
from ppo_jax.types import Array, Key

TOLERANCE = 1e-5


class Contract(NamedTuple):
    """An assumption of training about the network."""

    holds: str
    look: str
    """Advice on finding the cause if the contract does not hold."""


REPLAYS = Contract(
    "a replay from what was kept gives the probabilities that were acted with",
    "the network (`build` of the config): it may go by nothing but its parameters, the "
    "observation, the action mask, the memory before the step, and `reset`",
)
BEGINS_ANEW = Contract(
    "after a step that broke, agent and replay begin anew",
    "`reset` in the network: nothing from before it may come through, finite or not",
)
SIDE_BY_SIDE = Contract(
    "what one environment shows changes nothing in the others",
    "means, sums and orders over the environments of a batch in the network",
)
ONE_BY_ONE = Contract(
    "what an episode shows changes nothing in the next",
    "`reset` in the network: it empties the memory before the step it comes with",
)


class Finding(NamedTuple):
    """A line of the report."""

    what: str
    value: float
    ok: bool
    contract: Contract


class Seen(NamedTuple):
    """Facts about the rollout, and about the rollout with faults."""

    num_steps: int
    num_envs: int
    chunk: int
    resets: int
    """Resets in mid-rollout."""
    truncations: int
    faults: int
    """Faults in mid-episode."""
    memory: bool
    """Whether the network has a memory."""


class Report(NamedTuple):
    """Facts about the rollouts that were checked, and the findings."""

    seen: Seen
    findings: list[Finding]

    @property
    def ok(self) -> bool:
        """Whether all contracts hold."""
        return all(finding.ok for finding in self.findings)


class Unseen(UserError):
    """Raised if something that the check needs did not occur in the rollout."""


def check(config: Config) -> Report:
    """Replays one rollout, perturbs it, and replays it once more with faults.

    Products are as exact as the device can make them, because coarse products would
    hide defects: those of float32 have three digits on GPUs and TPUs by default.

    Raises:
        Unseen: If no reset in mid-rollout, truncation, fault or L < T occurred.
    """
    with jax.default_matmul_precision("highest"):
        return _report(program(_hurried(config)))


def _report(config: Config) -> Report:
    new = jax.jit(learner.init)(config, jax.random.key(config.seed))
    run, steps, log_ratio = _live_and_replay(new)
    _, struck, with_faults = _live_and_replay(_struck(new))
    seen = _seen(run, steps, struck)
    _require_all(seen)
    kl = float(losses.approx_kl(log_ratio).mean())
    apart, apart_in_time = _leaks(run, steps)
    lived, others = "largest |ratio − 1| of", "effect of one environment on the others"
    beside = Finding(others, *_zero(apart), SIDE_BY_SIDE)
    findings = [
        Finding(f"{lived} the replay", *_unmoved(log_ratio), REPLAYS),
        Finding(f"{lived} a replay with faults", *_unmoved(with_faults), BEGINS_ANEW),
        Finding("KL of the replay", *_small(kl), REPLAYS),
        *([beside] if seen.num_envs > 1 else []),
        Finding("effect of an episode on the next", *_zero(apart_in_time), ONE_BY_ONE),
    ]
    return Report(seen, findings)


def _hurried(config: Config) -> Config:
    """Returns the experiment with short episodes, short chunks, and faults.

    Chunks become shorter than the rollout. The state of the environments decides which
    of them break, and when. The network computes in float32, because coarser rounding
    would hide defects. No population searches for numbers.
    """
    limit = max(2, config.num_steps // 3)
    chunk = config.chunk
    if chunk == config.num_steps:
        chunk //= min(counting.divisors(chunk, least=2), default=1)
    env = TimeLimit(env=config.env.outline, limit=limit)
    env = Faulty(env=env, reward=float("nan"), rate=0.0)
    network = dataclasses.replace(config.network, compute_dtype="float32")
    hurried = {"env": env, "chunk_length": chunk, "network": network}
    return dataclasses.replace(config, pbt=None, **hurried)


def _struck(run: Run) -> Run:
    """Returns the run, set so that its environments break in the second rollout.

    Each of them breaks once, one after the other.
    """
    num_steps, num_envs = run.learner.config.num_steps, run.learner.config.num_envs
    start = num_steps + np.arange(num_envs, dtype=np.int32) * num_steps // num_envs
    env_state = run.actor.env_state._replace(start=start)
    actor = dataclasses.replace(run.actor, env_state=env_state)
    return dataclasses.replace(run, actor=actor)


def _live_and_replay(run: Run) -> Any:
    """Plays two rollouts and replays the second, which begins in mid-episode.

    Returns:
        The run before the second rollout, the steps of it, and the replay's log-ratios.
    """
    key_first, key_second = jax.random.split(run.key)
    actor, _, _ = _lived(run.learner, run.actor, key_first)
    _, steps, carries = _lived(run.learner, actor, key_second)
    log_ratio = _replayed(run.learner, steps, carries)
    return dataclasses.replace(run, actor=actor), steps, log_ratio


@jax.jit
def _lived(learner: Learner, actor: Actor, key: Key) -> Any:
    return rollout.unroll(learner, actor, key)


@jax.jit
def _replayed(learner: Learner, steps: Any, carries: Any) -> Array:
    """Returns log-ratios of the replay to the rollout, both of one policy.

    They are 0 where the weight is 0.
    """
    nothing = jnp.zeros_like(steps.reward)
    cut = chunks(learner.config, steps, nothing, nothing, carries)
    batch = gather(cut, jnp.arange(cut.weight.shape[0]))
    out = forward(learner.config.build(), learner.params, batch)
    return jnp.where(batch.weight > 0, out.log_ratio, 0.0)


def _seen(run: Run, steps: Any, struck: Any) -> Seen:
    steps, struck = jax.device_get((steps, struck))
    num_steps, num_envs = steps.reset.shape
    return Seen(
        num_steps=num_steps,
        num_envs=num_envs,
        chunk=run.learner.config.chunk,
        resets=int(steps.reset[1:].sum()),
        truncations=int((steps.last & ~steps.terminated).sum()),
        faults=int((~struck.valid & ~struck.last).sum()),
        memory=bool(jax.tree.leaves(run.actor.carry)),
    )


def _require_all(seen: Seen) -> None:
    needed = {
        "a reset in mid-rollout": seen.resets,
        "a truncation": seen.truncations,
        "a chunk shorter than the rollout": seen.chunk < seen.num_steps,
        "a fault in mid-episode": seen.faults,
    }
    missing = [what for what, occurred in needed.items() if not occurred]
    if missing:
        advice = "another num_steps or more num_envs may show it"
        raise Unseen(f"nothing can be said without {', '.join(missing)}; {advice}")


@jax.jit
def _leaks(run: Run, steps: Any) -> tuple[Any, Any]:
    """Perturbs observations; returns the largest changes where there must be none.

    The first result is for outputs of other environments, the second for outputs of
    later episodes.
    """
    network = run.learner.config.build()

    def outputs(obs):
        out = network.apply(run.learner.params, run.actor.carry, obs, steps.reset)
        leaves = jax.tree.leaves((out.value.outputs, out.policy))
        each = [x for x in leaves if x.shape[:2] == steps.reset.shape]
        return jnp.concatenate([x.reshape(*x.shape[:2], -1) for x in each], axis=-1)

    def perturb(mask):
        def one(x):
            spread = mask.reshape(mask.shape + (1,) * (x.ndim - 2))
            return jnp.where(spread, _other(x), x)

        return outputs(jax.tree.map(one, steps.obs))

    base = outputs(steps.obs)
    num_steps, num_envs = steps.reset.shape
    first = jnp.broadcast_to(jnp.arange(num_envs)[None] == 0, (num_steps, num_envs))
    others = jnp.abs(perturb(first) - base)[:, 1:].max(initial=0.0)
    began = jnp.cumsum(steps.reset[::-1], axis=0)[::-1] - steps.reset
    ended_later = began > 0  # A reset follows: an episode ends after this step.
    last_start = jnp.max(jnp.where(steps.reset, jnp.arange(num_steps)[:, None], 0), 0)
    after = jnp.arange(num_steps)[:, None] >= last_start[None]
    change = jnp.abs(perturb(ended_later) - base).max(axis=-1)
    return others, jnp.max(jnp.where(after & ~ended_later, change, 0.0))


def _other(x: Any) -> Any:
    """Returns an array of the same type that differs from `x` everywhere.

    >>> _other(jnp.array([True, False])).tolist(), _other(jnp.float32(1e9)).item()
    ([False, True], 2000000000.0)
    """
    if x.dtype == bool:
        return ~x
    return x + jnp.ones_like(x) + (jnp.abs(x) if x.dtype.kind == "f" else 0)


def _unmoved(log_ratio: Any) -> tuple[float, bool]:
    return _small(np.abs(np.exp(np.asarray(log_ratio)) - 1).max())


def _small(value: float) -> tuple[float, bool]:
    return float(value), bool(abs(value) <= TOLERANCE)


def _zero(value: Any) -> tuple[float, bool]:
    return float(value), bool(value == 0)
