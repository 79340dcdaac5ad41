"""The experiment: one component that describes all of it."""

import collections
import dataclasses
import math
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Self

import jax
import jax.numpy as jnp

from ppo_jax import networks
from ppo_jax.attacks.adversaries import Adversary
from ppo_jax.attacks.opponents import Opponent
from ppo_jax.component import component, converted, host, require_field
from ppo_jax.component.bounds import Count, Natural, Positive, PositiveShare, Share
from ppo_jax.controllers import EarlyStop
from ppo_jax.critics import Critic, Scalar
from ppo_jax.envs.env import Env
from ppo_jax.envs.suites import make
from ppo_jax.metrics.explained import Appraisal
from ppo_jax.metrics.sink import Sink
from ppo_jax.networks import ActorCritic, Network
from ppo_jax.normalization.advantages import OverAll, Standardization
from ppo_jax.normalization.return_scale import ReturnNormalization
from ppo_jax.optimizers import Adam, Optimizer
from ppo_jax.optimizers.optimizer import not_of_optax
from ppo_jax.pbt.config import PBT
from ppo_jax.terms import Entropy, Surrogate, Term, Value
from ppo_jax.types import PyTree


def paired(given: Any) -> Any:
    """Returns the items of a dictionary, and any other value as it is."""
    return tuple(given.items()) if isinstance(given, Mapping) else given


@component
class Config:
    """An experiment: the agent, its environment, and the length of training.

    The defaults are those of CleanRL and purejaxrl, but predictions of values are not
    clipped, and advantages are standardised over a rollout, not over each minibatch.
    Floats may change during a run and differ over a population; the program is compiled
    for everything else.

    Attributes:
        env: An environment, or the id of one: `CartPole-v1` of gymnax, `brax/ant` and
            the like of the other suites.
        num_envs: B, the number of environments that run in parallel.
        num_steps: T, the steps of a rollout in each environment.
        num_epochs: Passes over a rollout.
        num_minibatches: Optimiser steps in a pass.
        num_microbatches: Least number of parts of a minibatch whose gradients are added
            up. Without a memory and an adversary, a CPU uses as many as suit its
            caches.
        chunk_length: L, the number of consecutive steps that stay together when a
            rollout is shuffled; None: T with a memory, otherwise 1.
        gamma: Discount γ in (0, 1].
        gae_lambda: λ in [0, 1] of generalised advantage estimation.
        standardization: Groups of advantages that are standardised together; None:
            advantages are not standardised.
        obs_clip: Bound of normalised observations; None: not normalised.
        return_scale: Rule by which the scale of returns follows them; None: it stays 1.
        network: Architecture.
        critic: Kind of critic.
        num_critics: C, the number of critics; the least of their means counts.
        terms: Summands of the objective.
        opponent: Attacker of the observations while acting; None: no attacks.
        adversary: Attacker of the observations that are learned from; None: no attacks.
        early_stop: Rule that ends an update early; by default none does.
        holdout_envs: Number of environments, the last ones, that nothing is learned
            from. The critic's explained variance of their returns is a metric. Where
            only these are in a minibatch, no step is taken.
        appraisal: Runs the critics again after each update, to measure what they
            learned; None: they are not run again.
        optimizer: Optimiser with its learning rate.
        pbt: Rules of a population that searches for numbers; None: a single run.
        total_timesteps: Environment steps to train for, each member of a population.
            Schedules span all of them; if a resumed run gets another total, they span
            the new one.
        seed: Seed of everything.
        phase_updates: Updates between two visits to the host; 0: 1 % of the run, 256 at
            most. An interval of a population is divided into phases as even as can be.
        eval_phases: Phases between two evaluations.
        eval_episodes: Episodes of an evaluation.
        eval_sample: Whether evaluations sample actions, as training does, instead of
            taking the most likely ones.
        max_failures: Updates in a row without one finite step before a run stops.
        devices_per_member: Devices that share the environments and the minibatches of
            an agent; None: one device, or on a CPU as many cores as pay.
        stall_seconds: Seconds without a result, callbacks aside, after which the run
            reports a stall; or three times the longest wait for a result so far, if
            that is more. The run ends after four times that.
        stop_at: Metrics by name, with the least value that each of them has to reach.
            The run stops after the first phase in which all of them do. As an option,
            `--stop-at eval/mean_reward 475`.
        max_seconds: Seconds, over all resumptions together, after which the run stops
            at the end of a phase.
        sinks: Receivers of every row of metrics, beside the run's directory.

    Raises:
        ValueError: At construction, for impossible numbers or combinations.
        TypeError: At construction, for a value of another type.

    Warns:
        UserWarning: At construction, for terms none of which guides the policy, two
            terms of a kind, doubts of a term or the opponent, a population with one
            learning rate for all or without a generation, and an opponent or adversary
            of observations that are not normalised.
    """

    env: Env = converted(make)
    num_envs: Count = 4
    num_steps: Count = 128
    num_epochs: Count = 4
    num_minibatches: Count = 4
    num_microbatches: Count = 1
    chunk_length: int | None = None
    gamma: PositiveShare[float] = 0.99
    gae_lambda: Share[float] = 0.95
    standardization: Standardization | None = OverAll()
    obs_clip: Positive[float | None] = None
    return_scale: ReturnNormalization | None = None
    network: ActorCritic = ActorCritic()
    critic: Critic = Scalar()
    num_critics: Count = 1
    terms: tuple[Term, ...] = (Surrogate(), Value(), Entropy())
    opponent: Opponent | None = None
    adversary: Adversary | None = None
    early_stop: EarlyStop = EarlyStop()
    holdout_envs: int = 0
    appraisal: Appraisal | None = None
    optimizer: Optimizer = converted(not_of_optax, default=Adam())
    pbt: PBT | None = host(default=None)
    total_timesteps: int = host(default=500_000)
    seed: int = host(default=0)
    phase_updates: Natural = host(default=0)
    eval_phases: Count = host(default=10)
    eval_episodes: Count = host(default=128)
    eval_sample: bool = host(default=False)
    max_failures: Count = host(default=10)
    devices_per_member: int | None = host(default=None)
    stall_seconds: Count = host(default=1800)
    stop_at: tuple[tuple[str, float], ...] | None = host(default=None, converter=paired)
    max_seconds: Positive[float | None] = host(default=None)
    sinks: tuple[Sink, ...] = host(default=())

    def validate(self) -> None:
        """Raises a `ValueError` for impossible numbers or combinations."""
        if self.pbt is not None:
            self.pbt.require_names(self)
        require_field(self, "seed", 0 <= self.seed < 2**32, "0 to 2³² − 1")
        require_field(self, "terms", bool(self.terms), "a term to learn from")
        bounds = [value for _, value in self.stop_at or ()]
        known = all(map(math.isfinite, bounds))
        require_field(self, "stop_at", known, "finite numbers by metric")
        self._validate_shapes()
        self.network.check(self)
        self.optimizer.check(self)
        self._validate_critic()
        for term in self.terms:
            term.check(self)
        if self.adversary is not None:
            self.adversary.check(self)
        self._validate_perturbed()
        expected = f"at least 0 and less than num_envs = {self.num_envs}"
        learns = 0 <= self.holdout_envs < self.num_envs
        require_field(self, "holdout_envs", learns, expected)
        if self.pbt is not None:
            self.pbt.require_ends(self)

    def advise(self) -> Iterator[str]:
        """Yields a warning for each part of the experiment that is possible but odd."""
        kinds = collections.Counter(type(term).__name__ for term in self.terms)
        if not any(term.guides for term in self.terms):
            only = ", ".join(kinds)
            yield f"Config.terms: none says what the policy should do, only {only}"
        for kind, count in kinds.items():
            if count > 1:
                yield f"Config.terms: {count} of {kind} add up; metrics are the last's"
        for part in filter(None, (*self.terms, self.opponent)):
            yield from part.doubts(self)
        for name in ("opponent", "adversary"):
            if getattr(self, name) is not None and self.obs_clip is None:
                yield (
                    f"Config.{name}: observations are not normalised (obs_clip is "
                    "None), so that its eps is in their own units"
                )
        chunks = self.steps_per_update // self.chunk // self.num_minibatches
        if chunks % (self.devices_per_member or 1):
            yield (
                f"Config.devices_per_member: {self.devices_per_member} devices cannot "
                f"share {chunks} chunks of a minibatch, so each learns from all of them"
            )
        if self.pbt and "optimizer.learning_rate" not in self.pbt.space.paths:
            message = "without optimizer.learning_rate all members keep the same one"
            yield f"Config.pbt.space: {message}, {self.optimizer.learning_rate}"
        if self.pbt and self.pbt.interval > self.num_updates:
            yield (
                f"PBT.interval: {self.pbt.interval} updates, but the run has "
                f"{self.num_updates}: there is no generation"
            )

    def _validate_shapes(self) -> None:
        envs, steps, chunk = self.num_envs, self.num_steps, self.chunk
        devices = self.devices_per_member
        shared = devices is None or (devices >= 1 and envs % devices == 0)
        expected = f"a divisor of num_envs = {envs}"
        require_field(self, "devices_per_member", shared, expected)
        whole = chunk >= 1 and steps % chunk == 0
        expected = f"a divisor of num_steps = {steps}"
        require_field(self, "chunk_length", whole, expected)
        chunks = envs * steps // chunk
        parts = self.num_minibatches * self.num_microbatches
        expected = (
            f"num_minibatches · num_microbatches = {parts} to divide the {chunks} "
            "chunks of num_envs · num_steps / chunk_length = "
            f"{envs} · {steps} / {chunk}"
        )
        require_field(self, "num_minibatches", chunks % parts == 0, expected)
        once = self.total_timesteps >= envs * steps
        expected = f"at least one rollout of num_envs · num_steps = {envs * steps}"
        require_field(self, "total_timesteps", once, expected)
        expected = f"num_envs · num_steps = num_envs · {steps} below 2³¹"
        require_field(self, "num_envs", envs * steps < 2**31, expected)

    def _validate_critic(self) -> None:
        follows = self.critic.rescalable or self.return_scale is None
        kind = type(self.critic).__name__
        expected = f"None with a {kind} critic, whose support is fixed"
        require_field(self, "return_scale", follows, expected)
        if self.critic.clip is not None:
            expected = "a Value term with a clip_eps, because the critic has a clip"
            clips = any(term.clips for term in self.terms)
            require_field(self, "terms", clips, expected)

    def _validate_perturbed(self) -> None:
        """Checks that there are floats to perturb for an opponent or adversary."""
        for name in ("opponent", "adversary"):
            if getattr(self, name) is not None and self.obs_clip is None:
                leaves = jax.tree.leaves(self.network.of_actor(self.obs_spec()))
                floats = [jnp.issubdtype(x.dtype, jnp.floating) for x in leaves]
                expected = f"observations with floats, or an obs_clip, for the {name}"
                require_field(self, "env", any(floats), expected)

    @property
    def chunk(self) -> int:
        """The length L of a chunk, with its default resolved."""
        if self.chunk_length is not None:
            return self.chunk_length
        return 1 if self.network.memory is None else self.num_steps

    @property
    def steps_per_update(self) -> int:
        """Environment steps of one rollout."""
        return self.num_envs * self.num_steps

    @property
    def num_members(self) -> int:
        """The number P of members of the population; 1 for a single run."""
        return 1 if self.pbt is None else self.pbt.size

    @property
    def num_updates(self) -> int:
        """Number of updates of the whole run."""
        return self.total_timesteps // self.steps_per_update

    @property
    def reads_old_policy(self) -> bool:
        """Whether anything but acting needs the policy that acted."""
        readers = (self.early_stop, self.optimizer, *self.terms)
        return any(reader.reads_old_policy for reader in readers)

    @property
    def outline(self) -> Self:
        """A copy of the experiment whose environment can be traced in programs.

        It lacks the environment's numbers, and therefore a population over them.
        """
        if not self.env.simulated:
            return self
        with warnings.catch_warnings(action="ignore"):  # It has warned.
            return dataclasses.replace(self, env=self.env.outline, pbt=None)

    def build(self) -> Network:
        """Builds the network's functions for this environment."""
        return networks.build(
            self.network,
            self.env.action_space,
            self.obs_spec(),
            self.critic,
            self.num_critics,
        )

    def obs_spec(self) -> PyTree:
        """Returns the shapes and types of an observation."""
        return jax.eval_shape(self.env.reset, jax.random.key(0))[0]
