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
    """How good a member is, by one of its metrics.

    Attributes:
        metric: Its name, for example `eval/cvar_5_reward`; those of `eval/` are of
            whole episodes that nothing was learned from, on the same starts for all.
    """

    metric: str = "eval/mean_reward"

    @property
    def of_evaluations(self) -> bool:
        """Whether only a broken member lacks it; others may come later."""
        return self.metric.startswith("eval/")

    def __call__(self, metrics: Mapping[str, float]) -> float:
        """A number, greater is better.

        Raises:
            ValueError: If there is no such metric; the message names the closest.
        """
        self.require_in(metrics)
        return self.score(metrics[self.metric])

    def require_in(self, metrics: Mapping[str, float]) -> None:
        """Raises a `ValueError` if there is no such metric, which names the closest."""
        if self.metric not in metrics:
            said = unknown("metric", self.metric, metrics)
            raise ValueError(f"{type(self).__name__}.metric: {said}")

    def score(self, value: float) -> float:
        """The fitness of a value of the metric."""
        raise missing(self, "score")


@component
class Maximize(Fitness):
    """The more, the better."""

    def score(self, value: float) -> float:
        return value


@component
class Minimize(Fitness):
    """The less, the better."""

    def score(self, value: float) -> float:
        return -value


@component
class PBT:
    """A population whose worst members copy the best and explore from there.

    Attributes:
        space: Which numbers differ over the members, and where each may lie: a
            dictionary from paths, such as `optimizer.learning_rate`, to ranges. At
            first they are drawn from it. All other numbers are the same for all.
        size: P, members.
        interval: Updates between two generations.
        selector: Who copies whom.
        explorer: How numbers move.
        movers: Whose numbers move.
        optimizer: What becomes of the optimiser's state of a member that copies.
        readiness: When there is a generation.
        fitness: What is selected for.

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
        """Raises a `ValueError` for a selector by less than one member."""
        if isinstance(self.selector, Truncation):
            expected = f"at least 1 / size = 1 / {self.size}, which is one member"
            ratio, name = self.selector.ratio, "PBT.selector.ratio"
            require_number(name, ratio, expected, lambda x: share_of(self.size, x) >= 1)

    def advise(self) -> Iterator[str]:
        """Says where hardly anything but the ends of a range would be searched."""
        for path, range_ in self.space.ranges:
            if range_.narrow:
                yield (
                    f"PBT.space: {path}: two steps by its factor cross {range_}, so "
                    "it moves by a share of that range; NearOne suits numbers near 1"
                )

    def require_names(self, config: object) -> None:
        """Raises a `ValueError` if an experiment has no number that is searched."""
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
