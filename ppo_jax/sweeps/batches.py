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


def divided(groups: Sequence[list[Member]], sizes: Sequence[int]) -> list[list[Member]]:
    """The batches of all programs, in their order."""
    return [
        batch
        for group, size in zip(groups, sizes, strict=True)
        for batch in cohorts.split(group, size)
    ]


def place(run_dir: Path, number: int) -> Path:
    """The directory of a batch, the first of which is 1."""
    return run_dir / "batches" / f"{number:03}"


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
    batches = divided(groups, sizes)
    for number, batch in enumerate(batches, start=1):
        home = place(run_dir, number)
        found = scores.kept(home)
        if found is None:
            print(f"batch {number} of {len(batches)}, {len(batch)} runs")
            ending = cohorts.train(batch, home, hint, verbosity).ending
            if ending == "interrupted":
                print(hint)
                raise KeyboardInterrupt
            found = scores.keep(home, batch, ending)
        yield found
