"""Measurements of a run after its training: `evaluate --json`, and `robustness`."""

from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from ppo_jax.reports.charts import TONES, Chart, Curve
from ppo_jax.reports.elements import code, element, table
from ppo_jax.reports.records import Record, is_number, numbers
from ppo_jax.reports.scales import written
from ppo_jax.reports.sections import Grid, Part, Section

FIGURES = ("mean", "std", "median", "q25", "q75", "cvar_5", "episodes")
RISKS = (("mean", "mean return"), ("cvar_5", "mean of the worst 5 %"))


def section(run: Record) -> Section | None:
    """Returns risk and robustness, as far as measured; None: neither was."""
    played = {name: x for name, x in run.measured.items() if is_evaluation(x)}
    attacked = {name: x for name, x in run.measured.items() if is_robustness(x)}
    parts: list[Part] = [_evaluations(played)] if played else []
    for name, figures in attacked.items():
        unit = f", ε in units of {figures['unit']}" if "unit" in figures else ""
        parts.append(element("p", "Returns under attack, by ", code(name), f"{unit}."))
        parts.append(Grid(_charts(figures)))
    return Section("Risk and robustness", parts) if parts else None


def is_evaluation(value: dict[str, Any]) -> bool:
    """Returns whether the content of a file is that of `evaluate --json`."""
    return all(_is_figure(value.get(name, "none")) for name in FIGURES)


def is_robustness(value: dict[str, Any]) -> bool:
    """Returns whether the content of a file is that of `robustness`."""
    eps, agents = value.get("eps"), value.get("agents")
    return (
        isinstance(eps, list)
        and isinstance(agents, dict)
        and all(map(is_number, eps))
        and all(_is_agent(curves, len(eps)) for curves in agents.values())
    )


def _is_figure(value: Any) -> bool:
    """Returns whether a value is a number, or None for one that is not finite."""
    return value is None or type(value) in (int, float)


def _is_agent(curves: Any, count: int) -> bool:
    return isinstance(curves, dict) and all(
        isinstance(each, list)
        and len(each) == count
        and all(isinstance(point, dict) for point in each)
        for each in curves.values()
    )


def _evaluations(played: dict[str, dict[str, Any]]) -> Element:
    header = ("file", *FIGURES, "unfinished", "actions", "environment", "checkpoint")
    rows = [
        (
            code(name),
            *map(written, numbers(value[figure] for figure in FIGURES)),
            str(value.get("unfinished", "")),
            "most likely" if value.get("deterministic", True) else "sampled",
            str(value.get("fields", "")) or "as trained",
            str(value.get("checkpoint", "")),
        )
        for name, value in played.items()
    ]
    return table(header, rows)


def _charts(figures: dict[str, Any]) -> list[Chart]:
    """Charts returns over the radius: one chart for each agent and figure."""
    eps = np.array(figures["eps"], np.float64)
    return [
        Chart(f"{agent}: {title}", _curves(curves, eps, key), "ε", log=False)
        for agent, curves in figures["agents"].items()
        for key, title in RISKS
    ]


def _curves(curves: dict[str, Any], eps: np.ndarray, key: str) -> list[Curve]:
    """Returns a curve per opponent.

    Those drawn on top have gaps, as opponents often cost the same.
    """
    each = ("one", *(f"{tone} gaps" for tone in TONES[1:]))
    return [
        Curve(name, eps, numbers(point.get(key) for point in points), tone, dots=True)
        for (name, points), tone in zip(curves.items(), each, strict=False)
    ]
