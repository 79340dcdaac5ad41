"""Batches of a sweep: as large as memory allows, and trained one after the other."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ppo_jax.host.console import Verbosity
from ppo_jax.sweeps import cohorts, scores
from ppo_jax.sweeps.cohorts import Member
from ppo_jax.sweeps.scores import Score

SHARE_OF_MEMORY = 0.8
MIB = 2**20


def sizes(
    groups: Sequence[list[Member]], known: Sequence[int], memory: float | None
) -> list[int]:
    """How many runs of each program go at once, which is said.

    Args:
        groups: The runs of each program.
        known: Sizes that were decided before, those of the first programs.
        memory: MiB to use; None: most of what the device has.
    """
    most = SHARE_OF_MEMORY * cohorts.capacity()
    room, found = most if memory is None else memory * MIB, [*known]
    for group in groups[len(known) :]:
        size, needed = cohorts.largest_batch(group, room)
        found.append(size)
        print(
            f"  program {len(found)}: {len(group)} runs, {size} at once in "
            f"{needed / MIB:,.1f} of {room / MIB:,.0f} MiB"
        )
    return found


def train(
    groups: Sequence[list[Member]],
    sizes: Sequence[int],
    run_dir: Path,
    hint: str,
    verbosity: Verbosity,
) -> Iterator[list[Score]]:
    """Trains what is not finished; yields what each batch scored.

    Args:
        groups: The runs of each program.
        sizes: How many of each go at once.
        run_dir: The directory of the sweep.
        hint: How it goes on after an interrupt.
        verbosity: How much is shown.

    Raises:
        KeyboardInterrupt: If a batch was interrupted, and has been saved.
    """
    batches = [
        batch
        for group, size in zip(groups, sizes, strict=True)
        for batch in cohorts.split(group, size)
    ]
    for number, batch in enumerate(batches, start=1):
        home = run_dir / "batches" / f"{number:03}"
        found = scores.kept(home)
        if found is None:
            print(f"batch {number} of {len(batches)}, {len(batch)} runs")
            ending = cohorts.train(batch, home, hint, verbosity)
            if ending == "interrupted":
                print(hint)
                raise KeyboardInterrupt
            found = scores.keep(home, batch, ending)
        yield found
