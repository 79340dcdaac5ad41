"""Population-based training as one component."""

import dataclasses
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from ppo_jax.arrays.counting import share_of
from ppo_jax.component import (
    checked,
    component,
    converted,
    host,
    replace_at,
    require_number,
)
from ppo_jax.component.bounds import Count, Several
from ppo_jax.component.suggestion import unknown
from ppo_jax.errors import missing
from ppo_jax.pbt.exploit import Reinitialize, Strategy
from ppo_jax.pbt.explore import Copiers, Explorer, Movers, PerturbOrResample
from ppo_jax.pbt.select import Readiness, Selector, Truncation
from ppo_jax.pbt.space import Space


@component
class Fitness:
    """The quality of a member, measured by one of its metrics.

    Attributes:
        metric: Name of the metric, for example `eval/cvar_5_reward`. Metrics of `eval/`
            come from whole episodes that nothing is learned from, with the same starts
            for all members.
    """

    metric: str = "eval/mean_reward"

    @property
    def of_evaluations(self) -> bool:
        """Whether the metric is one of evaluations, which only broken members lack.

        Other metrics may come later.
        """
        return self.metric.startswith("eval/")

    def __call__(self, metrics: Mapping[str, float]) -> float:
        """Returns the fitness, a number; greater is better.

        Raises:
            ValueError: If there is no such metric; the message names the closest.
        """
        self.require_in(metrics)
        return self.score(metrics[self.metric])

    def require_in(self, metrics: Mapping[str, float]) -> None:
        """Raises a `ValueError` that names the closest metric if there is none."""
        if self.metric not in metrics:
            message = unknown("metric", self.metric, metrics)
            raise ValueError(f"{type(self).__name__}.metric: {message}")

    def score(self, value: float) -> float:
        """Returns the fitness for a value of the metric."""
        raise missing(self, "score")


@component
class Maximize(Fitness):
    """A metric of which more is better."""

    def score(self, value: float) -> float:
        return value


@component
class Minimize(Fitness):
    """A metric of which less is better."""

    def score(self, value: float) -> float:
        return -value


@component
class PBT:
    """A population whose worst members copy the best and explore from there.

    Attributes:
        space: The numbers that differ between members, and their ranges: a dictionary
            from paths, such as `optimizer.learning_rate`, to ranges. The first values
            are drawn from the ranges. All other numbers are the same for all members.
        size: P, number of members.
        interval: Updates between two generations.
        selector: Rule by which members copy others.
        explorer: Rule by which numbers move.
        movers: Rule for the members whose numbers move.
        optimizer: Rule for the optimiser's state of a member that copies.
        readiness: Condition for a generation.
        fitness: Measure of the quality that members are selected for.

    Raises:
        ValueError: At construction, for impossible numbers.
        TypeError: At construction, for a value of another type.

    Warns:
        UserWarning: At construction, for a range that is hardly wider than its factor.

    References:
        Jaderberg et al., `Population Based Training of Neural Networks
        <https://arxiv.org/abs/1711.09846>`_, 2017.
    """

    space: Space = converted(Space.of)
    size: Several = 10
    interval: Count = host(default=5)
    selector: Selector = Truncation()
    explorer: Explorer = PerturbOrResample()
    movers: Movers = Copiers()
    optimizer: Strategy = Reinitialize()
    readiness: Readiness = Readiness()
    fitness: Fitness = Maximize()

    def validate(self) -> None:
        """Raises a `ValueError` if the selector's share is less than one member."""
        if isinstance(self.selector, Truncation):
            expected = f"at least 1 / size = 1 / {self.size}, which is one member"
            ratio, name = self.selector.ratio, "PBT.selector.ratio"
            require_number(name, ratio, expected, lambda x: share_of(self.size, x) >= 1)

    def advise(self) -> Iterator[str]:
        """Yields warnings for ranges of which little but the ends would be searched."""
        for path, range_ in self.space.ranges:
            if range_.narrow:
                yield (
                    f"PBT.space: {path}: two steps by its factor cross {range_}, so "
                    "it moves by a share of that range; NearOne suits numbers near 1"
                )

    def require_names(self, config: object) -> None:
        """Raises a `ValueError` if an experiment lacks one of the searched numbers."""
        try:
            self.space.require_in(config)
        except KeyError as error:
            raise ValueError(f"PBT.space: {error.args[0]}") from None

    def require_ends(self, config: Any) -> None:
        """Raises a `ValueError` if an end of a range is impossible in an experiment."""
        with warnings.catch_warnings(action="ignore"):  # It warns by itself.
            single = dataclasses.replace(config, pbt=None)
        for path, range_ in self.space.ranges:
            for end in range_.ends:
                try:
                    checked(replace_at(single, path, end))
                except ValueError as error:
                    raise ValueError(f"PBT.space: {error.args[0]}") from None
