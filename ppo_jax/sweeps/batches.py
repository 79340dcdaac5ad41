"""Batches of a sweep: as large as memory allows, and trained one after the other."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from ppo_jax.host.process.console import Console
from ppo_jax.host.run_dir.batched import BATCHES
from ppo_jax.sweeps import capacity, cohorts, scores
from ppo_jax.sweeps.cohorts import Member
from ppo_jax.sweeps.scores import Score

SHARE_OF_MEMORY = 0.8
MIB = 2**20


def sizes(
    groups: Sequence[list[Member]],
    known: Sequence[int],
    memory: float | None,
    say: Callable[[str], None],
    remember: Callable[[list[int]], None],
) -> list[int]:
    """Returns how many runs of each program are trained at once, and reports it.

    The sizes so far are kept before each program is compiled for this, and at the end.

    Args:
        groups: The runs of each program.
        known: Sizes that were decided before, those of the first programs.
        memory: MiB to use; None: most of what the device has.
        say: Prints a line about the sizes.
        remember: Keeps the sizes that are known so far.

    Raises:
        UserError: If the device does not report its memory, and `memory` is None.
    """
    asked = None if memory is None else memory * MIB
    room = asked or SHARE_OF_MEMORY * capacity.of_device()
    found = [*known]
    remember(found)
    for group in groups[len(known) :]:
        size, needed = cohorts.largest_batch(group, room)
        found.append(size)
        runs = len(group)
        say(
            f"  program {len(found)}: {runs} runs, {min(size, runs)} at once in "
            f"{needed / MIB:,.1f} of {room / MIB:,.0f} MiB"
        )
        remember(found)
    return found


def split(
    groups: Sequence[list[Member]], sizes: Sequence[int], run_dir: Path
) -> dict[Path, list[Member]]:
    """Returns the runs of each batch, by its directory, in the order of training."""
    found = [
        batch
        for group, size in zip(groups, sizes, strict=True)
        for batch in cohorts.split(group, size)
    ]
    homes = (run_dir / BATCHES / f"{number:03}" for number in itertools.count(1))
    return dict(zip(homes, found, strict=False))


def train(
    batches: Mapping[Path, list[Member]], hint: str, consoles: Callable[[], Console]
) -> Iterator[list[Score]]:
    """Trains the batches that are not finished; yields the scores of each batch.

    Args:
        batches: The runs of each batch, by its directory.
        hint: Message on how to go on after an interrupt.
        consoles: Makes a console for each batch.

    Raises:
        KeyboardInterrupt: If a batch was interrupted, and has been saved.
    """
    for number, (home, batch) in enumerate(batches.items(), start=1):
        found = scores.kept(home, batch)
        if found is None:
            console = consoles()
            console.note(f"batch {number} of {len(batches)}, {_described(batch)}")
            ended = cohorts.train(batch, home, hint, console)
            if ended.ending == "interrupted":
                console.say(hint)
                raise KeyboardInterrupt
            found = scores.keep(home, batch, cohorts.endings(batch, ended))
        yield found


def _described(batch: Sequence[Member]) -> str:
    times = batch.count(batch[-1])
    filled = f", the last one {times} times to fill it" if times > 1 else ""
    return f"{len(batch) - times + 1} runs{filled}"
