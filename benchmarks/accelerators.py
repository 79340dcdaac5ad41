"""Tables of what GPUs and TPUs did, of what was kept alone."""

from collections.abc import Iterable, Iterator

from benchmarks.document import Line, circumstances, middle, of, spread
from benchmarks.document import column as values
from benchmarks.suites import POPULATION, Job

TOO_LARGE = "out of memory"


def tables(jobs: Iterable[Job], lines: list[Line]) -> Iterator[str]:
    """Of each device: speed, memory and kernels, and the largest populations."""
    if not lines:
        yield "Not measured yet: `python -m benchmarks.run --suite gpu` does."
        return
    jobs = tuple(jobs)
    yield from circumstances(lines)
    for device in sorted({line["device"] for line in lines}):
        own = [line for line in lines if line["device"] == device]
        yield from ("", f"On {device}:", "")
        yield from figures(jobs, own)
        yield from largest(jobs, own)


def figures(jobs: Iterable[Job], lines: list[Line]) -> Iterator[str]:
    """What every library did in every job that was measured."""
    yield "| job | library | steps/s | compile, s | MiB of the device | kernels |"
    yield "|---|---|--:|--:|--:|--:|"
    for job in jobs:
        for library, rounds in of(job, lines).items():
            if not rounds:
                continue
            speed = spread(values(rounds, "steps_per_second"))
            if values(rounds, "out_of_memory"):
                speed = TOO_LARGE
            yield (
                f"| {job.title} | {library} | {speed} "
                f"| {middle(rounds, 'compile_seconds', '.1f')} "
                f"| {middle(rounds, 'peak_device_mib')} "
                f"| {middle(rounds, 'kernels')} |"
            )


def largest(jobs: Iterable[Job], lines: list[Line]) -> Iterator[str]:
    """The most members that fit, and the least that do not, by library."""
    fits: dict[str, list[int]] = {}
    fails: dict[str, list[int]] = {}
    for job in jobs:
        if job.section == POPULATION:
            for library, rounds in of(job, lines).items():
                if values(rounds, "out_of_memory"):
                    fails.setdefault(library, []).append(int(job.name))
                elif values(rounds, "steps_per_second"):
                    fits.setdefault(library, []).append(int(job.name))
    if not {**fits, **fails}:
        return
    yield from ("", "| library | members that fit | members that do not |")
    yield "|---|--:|--:|"
    for library in {**fits, **fails}:
        most = max(fits.get(library, [0]))
        least = min(fails.get(library, []), default=None)
        said = "–" if least is None else f"{least:,}"
        yield f"| {library} | {most:,} | {said} |"
