"""Alerts that begin and last during a run, and the members that they concern."""

import math
from collections.abc import Mapping, Sequence

from ppo_jax.host.metrics.alerts import ALERTS, Alert
from ppo_jax.metrics.rows import match

READ = "python -m ppo_jax.alerts"
"""Command that prints all about an alert."""

Members = Sequence[Mapping[str, float]]
"""Metrics of a phase for each member, the same ones for all."""


class Alarms:
    """Active alerts and their members, phase after phase.

    Args:
        streaks: Streaks of a run that resumes.

    Attributes:
        streaks: By alert, the number of phases in a row in which each member has passed
            its limits; as JSON, for a run to resume with.
    """

    def __init__(self, streaks: Mapping[str, list[int]] | None = None):
        self.streaks = dict(streaks or {})
        self._said: dict[str, set[int]] = {}

    def check(self, members: Members) -> tuple[dict[str, float], list[str]]:
        """Checks the metrics of a phase.

        Args:
            members: Metrics of each member, the same ones for all.

        Returns:
            The number of members for which each alert is active, if its metric is
            there; and a line for each alert that begins, once for a member. An alert
            does not change in a phase in which its metric is unavailable.
        """
        active: dict[str, set[int]] = {}
        lines = []
        for alert in ALERTS:
            for metric in members[0]:
                subject = match(alert.metric, metric)
                if subject is None:
                    continue
                name = alert.name.replace("*", subject)
                lasting, begun = self._observe(alert, name, metric, members)
                active.setdefault(name, set()).update(lasting)
                begun -= self._said.setdefault(name, set())
                self._said[name] |= begun
                if begun:
                    values = [member[metric] for member in members]
                    lines.append(_line(alert, name, metric, values, sorted(begun)))
        return {name: float(len(who)) for name, who in active.items()}, lines

    def _observe(
        self, alert: Alert, name: str, metric: str, members: Members
    ) -> tuple[set[int], set[int]]:
        """Returns the members for which an alert is active, and those with a new one.

        A member's alert is new in the phase in which it becomes active.
        """
        rule, _, _ = f"{name} {alert.when}".partition(", where ")
        before = self.streaks.get(rule, [0] * len(members))
        after = [
            streak
            if math.isnan(member[metric])
            else (streak + 1) * alert.concerns(member, metric)
            for streak, member in zip(before, members, strict=True)
        ]
        self.streaks[rule] = after
        lasting = {i for i, streak in enumerate(after) if streak >= alert.phases}
        return lasting, {i for i in lasting if before[i] < alert.phases}


def _line(
    alert: Alert, name: str, metric: str, values: list[float], who: list[int]
) -> str:
    """Returns the console's line about an alert that begins for some members."""
    ends = dict.fromkeys(f"{end([values[i] for i in who]):.3g}" for end in (min, max))
    seen = f"{metric} = {' to '.join(ends)}"
    if len(values) > 1:
        numbers = ", ".join(map(str, who))
        seen += f" in member{'s' * (len(who) > 1)} {numbers} of {len(values)}"
    return f"{name}: {seen}, healthy: {alert.healthy}; {READ} {name}"
