"""Every number of every component, as `docs/hypers.md`.

`python docs/hypers.py > docs/hypers.md`. A number is a float field: it may differ
over a population, change during a run and be searched by its path. What it means and
where it may lie is what the component's docstring says.
"""

import dataclasses
import inspect
import re
import types
import typing
from types import ModuleType

from ppo_jax import (
    adversaries,
    attacks,
    config,
    controllers,
    critics,
    networks,
    normalization,
    opponents,
    optimizers,
    schedules,
    terms,
)
from ppo_jax.component import is_component
from ppo_jax.host.process import tables

MODULES = (
    config,
    terms,
    optimizers,
    schedules,
    controllers,
    critics,
    normalization,
    networks,
    adversaries,
    opponents,
    attacks,
)
HEADER = ("number", "default", "meaning")
INTRODUCTION = """\
# Hyper-parameters

Every number, by component: float fields, which may differ over a population, change
during a run without a compilation, and be searched by their path in the config, such as
`optimizer.learning_rate` or `terms.surrogate.clip_eps`: terms are addressed by their
kind, a second one of a kind as `terms.entropy_2`. Ranges are checked at construction.
Generated: `python docs/hypers.py > docs/hypers.md`.

How they interact:

- `VGS.alpha` > 0 scales gradients down, but not fixed noise of UPGD: with `vgs`, noise
  is relative to the direction by default, and fixed noise above 10⁻⁴ warns; `sigma` of
  5·10⁻⁴ to 10⁻³ is advised for relative noise.
- The least factor of VGS is the greater of `floor` and 1 / (1 + `alpha` · `cap`): 1/6
  by default. A constant factor cancels in Adam's direction, and where `max_grad_norm`
  binds anyway.
- `max_grad_norm` bounds what VGS has scaled; decoupled decay is not bounded.
- `schedule` multiplies `learning_rate`, and with it noise and decoupled decay. What is
  searched over a population is multiplied too; `Bounded` bounds the factor.
- A gate is ½ for an average weight: UPGD moves about half as far as its inner direction
  at the same `learning_rate`, or as far with a `step_multiplier` of 2, which multiplies
  noise too, but not decay.
- `UPGDW.b2` is the decay of the second moments and of the utilities; the others have
  `beta_utility` of their own.
- `min_noise_std` is a floor in units of the update wherever `sigma` > 0, so that zero
  gradients do not silence noise; with `sigma` = 0 it does nothing.
- `VGS.warmup_steps` counts optimiser steps, not updates; statistics of `VGS.beta`
  remember about 1 / (1 − β) of them.
- `Value.clip_eps` needs a critic with a `clip`, and is in units of the return scale.
- `KlStop.target` ends updates early, `KlPid.target` moves a penalty, and
  `KlAdaptive.target` the learning rate: the first should be the largest one.
- The factor of `KlAdaptive` multiplies that of `schedule`, which is best `Constant()`
  then: one that falls is worked against. A copy of a member takes the factor over, and
  its own `learning_rate` is multiplied by it.
- `Adversary.ratio` is at most `max_percent` / 100; `Attack.eps` is in units of
  normalised observations, and `RobustKL.coef` weighs a mean over attacked rows, so that
  none of the three changes what another one means.
- The coefficients of CVaR terms weigh the tail against a mean of weight 1.
"""


def document() -> str:
    """The tables as Markdown, a section per component that has numbers."""
    parts = [INTRODUCTION]
    for module in MODULES:
        for component in _components(module):
            rows = _rows(component)
            if rows:
                name = f"{_short(module)}.{component.__name__}"
                parts.append(f"\n## `{name}`\n\n{tables.markdown(HEADER, rows)}")
    return "".join(parts)


def _components(module: ModuleType) -> list[type]:
    """Public components that a module defines or names, in their order."""
    return [
        value
        for name, value in vars(module).items()
        if isinstance(value, type)
        and is_component(value)
        and not name.startswith("_")
        and value.__module__.startswith(module.__name__)
    ]


def _rows(component: type) -> list[tuple[str, str, str]]:
    hints = typing.get_type_hints(component)
    meanings = {
        name: text
        for parent in reversed(component.__mro__)
        for name, text in _attributes(inspect.getdoc(parent) or "").items()
    }
    return [
        (f"`{field.name}`", _default(field), meanings.get(field.name, ""))
        for field in dataclasses.fields(component)
        if _is_number(hints[field.name]) and not field.metadata.get("host")
    ]


def _is_number(hint: object) -> bool:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return any(map(_is_number, typing.get_args(hint)))
    return hint is float


def _default(field: dataclasses.Field) -> str:
    missing = field.default is dataclasses.MISSING
    return "required" if missing else f"`{field.default}`"


def _attributes(doc: str) -> dict[str, str]:
    """What the section `Attributes` of a docstring says, by name."""
    section = re.search(r"^Attributes:\n((?:    .*\n?|\n)*)", doc, re.MULTILINE)
    if section is None:
        return {}
    entries = re.findall(
        r"^    (\w+): (.*(?:\n        .*)*)", section.group(1), re.MULTILINE
    )
    return {name: " ".join(text.split()) for name, text in entries}


def _short(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2]


if __name__ == "__main__":
    print(document(), end="")
