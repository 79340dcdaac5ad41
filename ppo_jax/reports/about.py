"""The experiment of a run, its ending, and the next commands."""

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from ppo_jax.host.metrics.figures import BEST, SCORE
from ppo_jax.host.process.command import typed
from ppo_jax.host.run_dir import script
from ppo_jax.host.run_dir.description import defaults
from ppo_jax.monitoring import status
from ppo_jax.reports import troubles
from ppo_jax.reports.elements import code, element, table, tiles
from ppo_jax.reports.records import SECONDS, Record
from ppo_jax.reports.scales import UNKNOWN, elapsed, exactly
from ppo_jax.reports.sections import Fold, Part, Section
from ppo_jax.reports.speed import COMPILING, SPEED

ROOM = 300
"""Most characters of a value that are shown."""


def lead(run: Record) -> str:
    """Returns a line on the experiment that was trained."""
    env = run.field("env.id").strip("'") or run.field("env.type", "an experiment")
    who = f"a population of {run.members}" if run.members > 1 else "one agent"
    if run.kind == status.BATCH:
        who = f"{run.members} runs of a batch"
    memory = run.field("network.memory.type")
    kind = f", with a memory ({memory})" if memory else ""
    seed = f", seed {run.field('seed')}" if run.field("seed") else ""
    return f"{env}, {who}{kind}{seed}."


def overview(run: Record) -> Element:
    """Returns tiles with the most important figures."""
    steps, seconds = run.rows[-1]["step"], run.last(SECONDS)
    compiling = run.series(COMPILING)[1]
    spent = float(compiling[compiling > 0].sum())
    active, lasting = troubles.summary(run)
    whose = " of each member" if run.members > 1 else ""
    facts = [
        ("state", run.state, f"{steps:,.0f} steps{whose}"),
        _evaluated(run),
        _tail(run),
        ("time", elapsed(seconds), f"{elapsed(spent)} of it compiling"),
        ("speed", exactly(run.last(SPEED)), "steps per second at the end"),
        ("alerts", str(active), f"that were active, {lasting} still at the end"),
    ]
    return tiles((name, [value, element("small", note)]) for name, value, note in facts)


def section(run: Record) -> Section:
    """Returns the experiment's differences from the defaults, and the next commands."""
    parts: list[Part] = []
    if run.description:
        parts += [_differences(run), _all(run)]
    parts += [element("h3", "Next"), element("pre", "\n".join(commands(run)))]
    return Section("Experiment", parts)


def notes(runs: Sequence[Record]) -> Element | None:
    """Returns notes on files of runs that could not be read; None: there are none."""
    found = [element("li", note) for run in runs for note in run.notes]
    return element("div", element("ul", found), class_="notes") if found else None


def commands(run: Record) -> list[str]:
    """Returns commands that one may want to give next."""
    path, found = run.path, []
    if run.state not in (status.RUNNING, status.FINISHED):
        found += filter(None, [status.again(path)])
    if (path / script.KEPT).exists():  # It is what commands load.
        found.append(typed("evaluate", path))
        found += [typed("replay", path)] if run.generations else []
        found.append(typed("robustness", path))
    return [*found, typed("report", path, "OTHER_RUN_DIR")]


def _evaluated(run: Record) -> tuple[str, str, str]:
    score, named = run.last(SCORE), "the median member"
    if run.members == 1:
        _, values = run.series(SCORE)
        known = values[values == values]
        best = f"best {exactly(float(known.max()))}" if known.size else "never finite"
        return "evaluation", exactly(score), best
    best = run.last(f"best/{SCORE}")
    who = run.last(BEST)
    fittest = f"{named}; the fittest, {exactly(who)}: {exactly(best)}"
    return "evaluation", exactly(score), fittest


def _tail(run: Record) -> tuple[str, str, str]:
    tail = run.last("eval/cvar_5_reward")
    low, high = (run.last(f"eval/q{q}_reward") for q in (25, 75))
    whose = " of the median member" if run.members > 1 else ""
    note = f"worst 5 %{whose}; quartiles {exactly(low)} and {exactly(high)}"
    return "tail", exactly(tail), note


def _differences(run: Record) -> Element:
    """Returns a table of the fields that differ from their defaults.

    A field without a default is left out if its value is `None`.
    """
    usual = defaults(run.description)
    given = {path: field["value"] for path, field in run.description.items()}
    pairs = {path: (value, _expected(path, usual)) for path, value in given.items()}
    rows = [
        (code(path), _cut(here), _cut(default))
        for path, (here, default) in pairs.items()
        if here != default and (here, default) != ("None", UNKNOWN)
    ]
    return table(("field", "here", "default"), rows)


def _expected(path: str, expected: dict[str, str]) -> str:
    """Returns the default of a field, whether that is a value or a component."""
    whole = expected.get(path.removesuffix(".type"), UNKNOWN)
    return expected.get(path, expected.get(f"{path}.type", whole))


def _cut(text: str) -> str:
    """Cuts a text to the characters that there is room for."""
    return text if len(text) <= ROOM else f"{text[:ROOM]}…"


def _all(run: Record) -> Fold:
    rows = [(code(path), x["value"], x["kind"]) for path, x in run.description.items()]
    fields = table(("field", "value", "kind"), rows)
    return Fold(f"All {len(rows)} fields", [fields], open=False)
