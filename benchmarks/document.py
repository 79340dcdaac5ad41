"""The document of a suite, from what was kept of it alone."""

import functools
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.suites import OURS, REJAX, Job
from ppo_jax.sweeps.aggregate import interquartile_mean, interval

Line = dict[str, Any]
Tables = dict[str, Iterable[str]]
TEMPLATE = Path(__file__).with_name("performance.template.md")
LAST = 5
"""Updates at the end of a learning curve that its final return is the mean of."""
UNKNOWN = "–"


def text(jobs: Iterable[Job], lines: list[Line], tables: Tables) -> str:
    """The template with all tables in their places, some of which are given."""
    jobs = tuple(jobs)
    compared = [job for job in jobs if job.goal is not None]
    tables = tables | {
        "circumstances": circumstances(lines),
        "goals": goals(compared, lines),
        "speeds": speeds(compared, lines),
        "costs": costs((x for x in compared if REJAX in x.contestants), lines),
        "growth": growth(jobs, lines),
        "learning": learning(jobs, lines),
        "breakdown": breakdown(jobs, lines),
        "works": works(jobs, lines),
        "limits": limits(jobs, lines),
    }
    found = TEMPLATE.read_text()
    for name, rows in tables.items():
        found = found.replace(f"{{{name}}}", "\n".join(rows))
    return found


def figures(line: Line) -> str:
    """What a run found, in short."""
    for why in ("out_of_memory", "hung"):
        if why in line:
            return why.replace("_", " ")
    known = {
        "steps/s": line.get("steps_per_second"),
        "s to compile": line.get("compile_seconds"),
        "GFLOP/s": line.get("gflops"),
        "kernels": line.get("kernels"),
        "MiB": line.get("peak_rss_mib"),
        "MiB of the device": line.get("peak_device_mib"),
    }
    return ", ".join(f"{x:,} {unit}" for unit, x in known.items() if x is not None)


def circumstances(lines: list[Line]) -> Iterator[str]:
    """What all results depend on."""
    if not lines:
        yield "Nothing was measured yet."
        return
    versions = {f"{k} {v}" for line in lines for k, v in line["versions"].items()}
    loads = [line["load"] for line in lines]
    yield f"* {len(lines)} runs on {listed(line['machine'] for line in lines)}"
    yield f"* {listed(versions)}"
    yield f"* load before a run: {spread(loads, '.2f')}"
    yield f"* commits {listed(line['commit'] for line in lines)}"


def listed(words: Iterable[str]) -> str:
    """Each of them once."""
    return ", ".join(sorted(set(words)))


def of(job: Job, lines: list[Line]) -> dict[str, dict[int, Line]]:
    """What was kept of a job as it is now, by library and round."""
    commands = {each.name: job.command(each) for each in job.contestants}
    found: dict[str, dict[int, Line]] = {name: {} for name in commands}
    for line in lines:
        name = line["library"]
        if line["job"] == job.title and line["command"] == commands.get(name):
            found[name][line["round"]] = line
    return found


def column(rounds: dict[int, Line], name: str) -> list[float]:
    """What was measured, where it was."""
    values = (line.get(name) for line in rounds.values())
    return [value for value in values if value is not None]


def spread(values: list[float], form: str = ",.0f") -> str:
    """Median, least and most.

    >>> spread([3000.0, 1000.0, 2500.0])
    '2,500 (1,000 to 3,000)'
    >>> spread([])
    '–'
    """
    if not values:
        return UNKNOWN
    return (
        f"{median(values):{form}} ({min(values):{form}} to {max(values):{form}})"
        if len(values) > 1
        else f"{values[0]:{form}}"
    )


def fastest(job: Job, lines: list[Line]) -> dict[int, float]:
    """Speed of the fastest of the others, by round."""
    _, *others = map(speed, of(job, lines).values())
    rounds = {number for found in others for number in found}
    return {number: max(x[number] for x in others if number in x) for number in rounds}


def speed(rounds: dict[int, Line]) -> dict[int, float]:
    """Steps/s by round, of those that had the memory."""
    return {
        number: line["steps_per_second"]
        for number, line in rounds.items()
        if "steps_per_second" in line
    }


def ratios(job: Job, lines: list[Line]) -> list[float]:
    """Speed of ours over the fastest of the others in the same round."""
    ours, *_ = of(job, lines).values()
    theirs = fastest(job, lines)
    return [
        found / theirs[number]
        for number, found in sorted(speed(ours).items())
        if number in theirs
    ]


def goals(jobs: Iterable[Job], lines: list[Line]) -> Iterator[str]:
    """How much faster ours is, and how much it should be."""
    yield "| job | ours, × the fastest other | goal | met | rounds |"
    yield "|---|--:|--:|---|--:|"
    for job in jobs:
        assert job.goal is not None
        found = ratios(job, lines)
        met = UNKNOWN
        if found:
            met = "yes" if median(found) >= job.goal else "**no**"
        yield (
            f"| {job.title} | {spread(found, '.2f')} | {job.goal:g} | {met} "
            f"| {len(found)} |"
        )


def speeds(jobs: Iterable[Job], lines: list[Line]) -> Iterator[str]:
    """What every library did in every job."""
    yield "| job | library | steps/s (min to max) | compile, s | RSS, MiB | return |"
    yield "|---|---|--:|--:|--:|--:|"
    for job in jobs:
        for library, rounds in of(job, lines).items():
            yield (
                f"| {job.title} | {library} "
                f"| {spread(column(rounds, 'steps_per_second'))} "
                f"| {middle(rounds, 'compile_seconds', '.1f')} "
                f"| {middle(rounds, 'peak_rss_mib')} "
                f"| {middle(rounds, 'mean_return')} |"
            )
    yield ""
    yield "| generations | exploit and explore | MiB of a member | in a phase |"
    yield "|---|--:|--:|--:|"
    for job in jobs:
        ours = of(job, lines)["ours"]
        if column(ours, "evolving_share"):
            yield (
                f"| {job.name} | {middle(ours, 'evolving_share', '.2%')} "
                f"| {middle(ours, 'state_mib_per_member', '.2f')} "
                f"| {middle(ours, 'phase_mib_per_member', '.2f')} |"
            )


def costs(jobs: Iterable[Job], lines: list[Line]) -> Iterator[str]:
    """What ours takes to be compiled, and memory, over the least of the others."""
    yield "| job | trace and compile, × the least other | RSS, × the least other |"
    yield "|---|--:|--:|"
    for job in jobs:
        ours, *others = of(job, lines).values()
        cells = [
            ratio(column(ours, name), [column(x, name) for x in others])
            for name in ("compile_seconds", "peak_rss_mib")
        ]
        yield f"| {job.title} | {' | '.join(cells)} |"


def ratio(ours: list[float], others: list[list[float]]) -> str:
    """Of medians: ours over the least of the others.

    >>> ratio([1.0, 3.0, 2.0], [[4.0], [1.0]]), ratio([], [[4.0]])
    ('2.00', '–')
    """
    least = [median(values) for values in others if values]
    return f"{median(ours) / min(least):.2f}" if ours and least else UNKNOWN


def middle(rounds: dict[int, Line], name: str, form: str = ",.0f") -> str:
    """The median of what was measured."""
    values = column(rounds, name)
    return f"{median(values):{form}}" if values else UNKNOWN


def growth(jobs: Iterable[Job], lines: list[Line]) -> Iterator[str]:
    """How ours grows: a table for each section that has nothing else."""
    sections: dict[str, list[Job]] = {}
    for job in jobs:
        if job.goal is None and job.contestants == (OURS,):
            sections.setdefault(job.section, []).append(job)
    for section, points in sections.items():
        yield f"| {section} | steps/s | × before | RSS, MiB | × before |"
        yield "|--:|--:|--:|--:|--:|"
        before: dict[str, float] = {}
        for job in points:
            rounds, cells = of(job, lines)["ours"], []
            for name in ("steps_per_second", "peak_rss_mib"):
                values = column(rounds, name)
                cells.append(spread(values))
                kink = UNKNOWN
                if values and name in before:
                    kink = f"{median(values) / before[name]:.2f}"
                before.pop(name, None)
                if values:
                    before[name] = median(values)
                cells.append(kink)
            yield f"| {job.name} | {' | '.join(cells)} |"
        yield ""


def endurance(jobs: Iterable[Job], lines: list[Line]) -> Iterator[str]:
    """How long training was watched, and how often it hung."""
    lines = [line for job in jobs for line in of(job, lines)["ours"].values()]
    yield from circumstances(lines)
    yield ""
    yield "| job | runs | minutes | hung |"
    yield "|---|--:|--:|--:|"
    titles = dict.fromkeys(line["job"] for line in lines)
    for title in (*titles, "all"):
        runs = [line for line in lines if title in (line["job"], "all")]
        minutes = sum(line.get("process_seconds", 0.0) for line in runs) / 60
        hung = sum("hung" in line for line in runs)
        yield f"| {title} | {len(runs)} | {minutes:.1f} | {hung} |"


def learning(jobs: Iterable[Job], lines: list[Line]) -> Iterator[str]:
    """How well libraries learn, with intervals over seeds."""
    yield "| job | library | seeds | mean over training, 95 % | IQM at the end, 95 % |"
    yield "|---|---|--:|--:|--:|"
    for job in jobs:
        for library, rounds in of(job, lines).items():
            curves = [x for line in rounds.values() for x in line.get("curves", ())]
            if curves:
                known = filled(curves)
                area = known.mean(axis=1, keepdims=True)
                end = known[:, -LAST:].mean(axis=1, keepdims=True)
                yield (
                    f"| {job.name} | {library} | {len(curves)} "
                    f"| {estimate(mean, area)} "
                    f"| {estimate(interquartile_mean, end)} |"
                )


def filled(curves: list[list[float | None]]) -> np.ndarray:
    """Curves `[P, N]`; an update in which no episode ended has the return before.

    >>> filled([[None, 1.0, None], [2.0, None, 3.0]]).tolist()
    [[0.0, 1.0, 1.0], [2.0, 2.0, 3.0]]
    """
    rows = []
    for curve in curves:
        row = [0.0]
        for value in curve:
            row.append(row[-1] if value is None else value)
        rows.append(row[1:])
    return np.array(rows)


def mean(scores: np.ndarray) -> np.ndarray:
    """Over runs and tasks, `[...]`."""
    return scores.mean(axis=(-2, -1))


def estimate(statistic: Any, scores: np.ndarray) -> str:
    """A statistic with its bootstrapped interval."""
    low, high = interval(statistic, scores)
    return f"{float(statistic(scores)):.1f} ({low:.1f} to {high:.1f})"


def breakdown(jobs: Iterable[Job], lines: list[Line]) -> Iterator[str]:
    """Shares of an update, a column for each job."""
    shares = {}
    for job in jobs:
        rounds = [x for x in of(job, lines).get("ours", {}).values() if "parts" in x]
        if rounds:
            shares[job.name] = {
                part: median(share(line["parts"], part) for line in rounds)
                for part in rounds[0]["parts"]
            }
    if not shares:
        return
    largest = functools.partial(max, default=0.0)
    names = {part for found in shares.values() for part in found}
    yield f"| part | {' | '.join(shares)} |"
    yield f"|---|{'--:|' * len(shares)}"
    for part in sorted(
        names, key=lambda x: -largest(found.get(x, 0.0) for found in shares.values())
    ):
        cells = (f"{found.get(part, 0.0):.1%}" for found in shares.values())
        yield f"| {part} | {' | '.join(cells)} |"


def share(parts: dict[str, float], part: str) -> float:
    """Of the time of all parts."""
    return parts.get(part, 0.0) / sum(parts.values())


def works(jobs: Iterable[Job], lines: list[Line]) -> Iterator[str]:
    """Microseconds of an update by who works, and what there is of them at the goal."""
    jobs = list(jobs)
    columns = {}
    for job in jobs:
        rounds = [x for x in of(job, lines).get("ours", {}).values() if "works" in x]
        if rounds:
            spent = {
                work: median(
                    micros(line) * share(line["works"], work) for line in rounds
                )
                for work in rounds[0]["works"]
            }
            whole = {"an update": median(map(micros, rounds))}
            columns[job.name] = spent | whole
            if goal := goal_of(job.name, jobs, lines):
                steps = median(x["steps_per_second"] * micros(x) for x in rounds)
                columns[job.name]["an update, at the goal"] = steps / goal
    if not columns:
        return
    largest: dict[str, float] = {}
    for found in columns.values():
        for name, spent in found.items():
            largest[name] = max(spent, largest.get(name, 0.0))
    yield f"| µs | {' | '.join(columns)} |"
    yield f"|---|{'--:|' * len(columns)}"
    for name in sorted(largest, key=lambda x: (x.startswith("an update"), -largest[x])):
        cells = (f"{found.get(name, 0.0):,.0f}" for found in columns.values())
        yield f"| {name} | {' | '.join(cells)} |"


def micros(line: Line) -> float:
    """Of an update."""
    return 1e6 * line["seconds_per_update"]


def goal_of(name: str, jobs: list[Job], lines: list[Line]) -> float | None:
    """Steps/s at the goal of the job that is called so."""
    for job in jobs:
        if job.title == name and job.goal and (theirs := fastest(job, lines)):
            return job.goal * median(theirs.values())
    return None


def limits(jobs: Iterable[Job], lines: list[Line]) -> Iterator[str]:
    """GFLOP/s of products: alone, in updates, and in updates as fast as a goal."""
    jobs = list(jobs)
    found = {}
    for job in jobs:
        values = column(of(job, lines).get("ours", {}), "gflops")
        if values:
            found[job] = max(values) if is_limit(job) else median(values)
    limit = next((x for job, x in found.items() if job.name == "all cores"), None)
    yield "| products | GFLOP/s | of the best on all cores | at the goal |"
    yield "|---|--:|--:|--:|"
    for job, value in found.items():
        where = "alone" if is_limit(job) else "in an update"
        shares = (
            f"{x / limit:.0%}" if x and limit else UNKNOWN
            for x in (value, at_the_goal(job, jobs, lines))
        )
        yield f"| {where}, {job.name} | {value:,.1f} | {' | '.join(shares)} |"


def is_limit(job: Job) -> bool:
    """Whether products alone are measured."""
    return job.section == "products"


def at_the_goal(job: Job, jobs: list[Job], lines: list[Line]) -> float | None:
    """GFLOP/s of products in updates as fast as the goal of the job of that name."""
    goal = goal_of(job.name, jobs, lines)
    if goal is None:
        return None
    rounds = of(job, lines)["ours"].values()
    return goal * median(line["gflops"] / line["steps_per_second"] for line in rounds)
