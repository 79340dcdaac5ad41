"""Plan of a walk-forward: settings, folds and seeds, as members of programs."""

from pathlib import Path
from typing import Any, NamedTuple

import jax

from ppo_jax import component
from ppo_jax.backtests.folds import Fold, Shape, Span, walk
from ppo_jax.backtests.playing import numbers_of
from ppo_jax.component import children
from ppo_jax.config import Config
from ppo_jax.envs import check_types
from ppo_jax.envs.trading import Trading
from ppo_jax.errors import UserError
from ppo_jax.host.run_dir import batched, experiment, files
from ppo_jax.host.run_dir.description import Description
from ppo_jax.pbt import Maximize
from ppo_jax.sweeps import cohorts, settings
from ppo_jax.sweeps.cohorts import Member
from ppo_jax.sweeps.settings import Names, Setting
from ppo_jax.terms import CVaR, CVaRConstraint, PredictedCVaR

ASKED = (*Shape._fields, "seeds", "grid", "trials", "memory", "sizes", "values")
"""Options of the command line, sizes of batches, and values that it keeps."""
KEPT = batched.WALK
BOUNDS = ("stop_at", "max_seconds")
"""Fields that end training before its budget is spent."""
OFF = {CVaR: "coef", CVaRConstraint: "max_dual", PredictedCVaR: "coef"}
"""Terms about risk, each with the number that turns it off when it is 0."""


class Plan(NamedTuple):
    """Settings, folds and seeds that are trained and tested."""

    config: Config
    settings: list[Setting]
    folds: list[Fold]
    seeds: int
    before: int
    """The number of agents that were tested elsewhere."""
    groups: list[list[Member]]
    """The members of each program; `place_of` returns the place of a member."""

    @property
    def market(self) -> Trading:
        """The environment in which agents trade, before any setting."""
        return market_of(self.config)

    def place_of(self, member: Member) -> tuple[int, int, int]:
        """Returns the numbers of a member's setting, fold and seed."""
        setting, fold = divmod(member.setting, len(self.folds))
        return setting, fold, member.seed - self.config.seed

    @property
    def trials(self) -> int:
        """The number of agents tested on all folds, and of those tested elsewhere."""
        return len(self.settings) * self.seeds + self.before

    @property
    def values(self) -> list[Description]:
        """The fields that each setting gives."""
        members = [member for group in self.groups for member in group]
        configs = {self.place_of(member)[0]: member.config for member in members}
        return settings.described(self.settings, configs)

    @property
    def whole(self) -> Span:
        """The span of all tests, from their first bar to their last."""
        return Span(self.folds[0].test.first, self.folds[-1].test.last)


def plan(config: Config, names: Names, options: Any) -> Plan:
    """Plans the walk-forward that the options ask for.

    Raises:
        ExperimentError: For settings that are not possible.
        UserError: For folds that do not fit, an experiment that does not trade, agents
            that cannot be compared, a population that searches for what is set, or too
            many seeds.
    """
    market = market_of(config)
    grid = settings.grid(options.grid, names)
    for path in ("env.first", "env.last"):
        if path in grid[0]:
            raise UserError(f"{path}: folds set it; give --folds, --train and so on")
    found = with_ablations(config, grid)
    require_own_numbers(config, found)
    for setting in found:
        require_comparable(settings.apply(config, setting), market)
    shape = Shape(*(getattr(options, name) for name in Shape._fields))
    try:
        folds = walk(usable(market), shape)
    except ValueError as error:
        raise UserError(f"--{error}") from error
    for setting in found:
        require_an_episode(settings.apply(config, setting), folds, shape)
    members = [
        Member(number * len(folds) + place, seed, one)
        for number, setting in enumerate(found)
        for place, fold in enumerate(folds)
        for one in [settings.apply(config, setting | numbers_of(fold.train))]
        for seed in cohorts.seeds(config, options.seeds)
    ]
    groups = cohorts.group(members)
    for first, *_ in groups:
        check_types(first.config.env)
    return Plan(config, found, folds, options.seeds, options.trials, groups)


def require_own_numbers(config: Config, found: list[Setting]) -> None:
    """Checks that a population searches no number that settings or the market give.

    Raises:
        UserError: If it does, or selects by anything but validation.
    """
    if config.pbt is None:
        return
    for path in config.pbt.space.paths:
        if path.startswith("env.") or any(path in setting for setting in found):
            given = "the market, --grid or the twin without risk gives it"
            raise UserError(f"Config.pbt.space: {path}: {given}")
    if config.pbt.fitness != Maximize():
        expected = "none, as what is earned on validation is the fitness"
        got = type(config.pbt.fitness).__name__
        raise UserError(f"Config.pbt.fitness: expected {expected}, got {got}")


def require_comparable(config: Config, market: Trading) -> None:
    """Checks that the agents of a setting have the budget and the prices of all others.

    Raises:
        UserError: If a bound ends their training, or they trade at other prices.
    """
    for name in BOUNDS:
        if given := getattr(config, name):
            expected = "None, as agents are compared after the same budget"
            raise UserError(f"Config.{name}: expected {expected}, got {given}")
    prices = market_of(config).prices
    if prices != market.prices:
        expected = "the prices of the experiment, as folds are cut of them"
        raise UserError(f"env.prices: expected {expected}, got {prices!r:.80}")


def require_an_episode(config: Config, folds: list[Fold], shape: Shape) -> None:
    """Checks that an episode has room in the training of each fold.

    Raises:
        UserError: If it has not.
    """
    window = market_of(config).window or 1
    if min(fold.train.bars for fold in folds) < window:
        expected = f"at least {window}, the steps of an episode (env.window)"
        raise UserError(f"--train: expected {expected}, got {shape.train}")


def market_of(config: Config) -> Trading:
    """Returns the environment in which the agents of an experiment trade.

    Raises:
        UserError: If they do not trade.
    """
    if not isinstance(config.env, Trading):
        kind = type(config.env).__name__
        raise UserError(f"Config.env: expected a Trading to walk in, got {kind}")
    return config.env


def usable(env: Trading) -> Span:
    """Returns the bars that an environment decides at, each of which has a next one.

    >>> from ppo_jax.envs.trading import RandomWalk
    >>> usable(Trading(RandomWalk(num_bars=500)))
    Span(first=63, last=499)
    """
    first = env.features.lookback if env.first is None else env.first
    last = len(env.prices.bars.times) if env.last is None else env.last
    return Span(int(first), int(last) - 1)


def with_ablations(config: Config, found: list[Setting]) -> list[Setting]:
    """Returns settings, each with a twin without terms about risk, where that differs.

    >>> from ppo_jax import terms
    >>> config = Config("CartPole-v1", terms=(terms.Surrogate(), terms.CVaR(coef=0.5)))
    >>> with_ablations(config, [{"gamma": 0.9}])
    [{'gamma': 0.9}, {'gamma': 0.9, 'terms.cvar.coef': 0.0}]
    """
    every = []
    for setting in found:
        here = settings.apply(config, setting)
        numbers = component.numbers(here)
        off = {path: 0.0 for path in risk_numbers(here) if numbers[path] != 0}
        every += [setting, setting | off]
    given: dict[tuple, Setting] = {}
    for setting in every:
        leaves, structure = jax.tree.flatten(settings.apply(config, setting))
        given.setdefault((structure, *leaves), setting)
    return list(given.values())


def risk_numbers(config: Config) -> list[str]:
    """Returns the paths of the numbers that turn terms about risk off."""
    return [
        f"terms.{name}.{OFF[type(term)]}"
        for name, term in children(config.terms).items()
        if type(term) in OFF
    ]


def remember(run_dir: Path, options: Any) -> None:
    """Writes the options to the directory."""
    asked = {name: getattr(options, name) for name in ASKED}
    files.write_json(run_dir / KEPT, asked)


def recall(run_dir: Path, options: Any) -> None:
    """Sets the options to those of the directory."""
    stored = {"memory": None, "values": None} | experiment.stored(run_dir, KEPT)
    for name in ASKED:
        setattr(options, name, stored[name])
