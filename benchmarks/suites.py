"""What is measured: suites are tables, and a row of one is a job.

The contestants of a job are given the same options. Every one of them is a script of
this folder; what begins with `peer_` runs in the interpreter of that library.
"""

from dataclasses import dataclass
from typing import NamedTuple


class Contestant(NamedTuple):
    """Who takes part in a job."""

    name: str
    script: str
    options: str = ""
    """Beside those of the job."""

    @property
    def owner(self) -> str:
        """Whose interpreter runs the script.

        >>> [each.owner for each in (OURS, REJAX, EVORL_ON_ALL_CORES)]
        ['ours', 'rejax', 'evorl']
        """
        kind, _, owner = self.script.removesuffix(".py").partition("_")
        return owner if kind == "peer" else "ours"


OURS = Contestant("ours", "ours.py")
PUREJAXRL = Contestant("purejaxrl", "peer_purejaxrl.py")
REJAX = Contestant("rejax", "peer_rejax.py")
GENERATIONS = Contestant("ours", "populations.py")
EVORL = Contestant("evorl", "peer_evorl.py")
EVORL_ON_ALL_CORES = Contestant("evorl, a device per core", "peer_evorl.py", "--spread")
RECIPE = Contestant("ours", "recipe.py")
PLAIN = Contestant("plain PPO", "recipe.py", "--plain")
BREAKDOWN = Contestant("ours", "breakdown.py")
LIMIT = Contestant("ours", "limits.py")

ALL = (OURS, PUREJAXRL, REJAX)
PBT = (GENERATIONS, EVORL, EVORL_ON_ALL_CORES)


class Job(NamedTuple):
    """A row of a suite."""

    section: str
    name: str
    options: str
    contestants: tuple[Contestant, ...] = (OURS,)
    goal: float | None = None
    """Least speed of ours, × the fastest of the others."""
    pinned: bool = False
    """Whether all contestants have one core."""
    rounds: int | None = None
    """At most so many; None: as many as the suite has."""

    @property
    def title(self) -> str:
        """What `--only` is held against."""
        return f"{self.section}, {self.name}"

    def command(self, contestant: Contestant) -> str:
        """The script of a contestant, and its options.

        >>> Job("speed", "4", "--num-envs 4").command(PLAIN)
        'recipe.py --num-envs 4 --plain'
        """
        parts = (contestant.script, self.options, contestant.options)
        return " ".join(part for part in parts if part)


@dataclass(frozen=True)
class Suite:
    """Jobs, and how often they are done if nothing else is said."""

    rounds: int
    jobs: tuple[Job, ...]


SPEED = (
    Job("feed-forward", "4 environments", "--num-envs 4 --updates 1953", ALL, 1.5),
    Job("feed-forward", "64 environments", "--num-envs 64 --updates 122", ALL, 2.0),
    Job("feed-forward", "2048 environments", "--num-envs 2048 --updates 4", ALL, 2.0),
    Job("one core", "4 environments", "--num-envs 4 --updates 1953", ALL, 1.3, True),
    Job("one core", "64 environments", "--num-envs 64 --updates 122", ALL, 1.3, True),
    Job("one core", "2048 environments", "--num-envs 2048 --updates 4", ALL, 1.3, True),
    Job(
        *("recurrent", "4 environments", "--recurrent --num-envs 4 --updates 292"),
        *((OURS, PUREJAXRL), 5.0),
    ),
    Job(
        *("recurrent", "64 environments", "--recurrent --num-envs 64 --updates 18"),
        *((OURS, PUREJAXRL), 3.0),
    ),
    Job("seeds", "8 members", "--members 8 --num-envs 16 --updates 60", ALL, 2.0),
    Job("seeds", "32 members", "--members 32 --num-envs 16 --updates 15", ALL, 2.0),
    Job("generations", "8 members", "--members 8 --num-envs 16", PBT, 2.0),
    Job("generations", "32 members", "--members 32 --num-envs 16", PBT, 2.0),
    Job(
        *("full recipe", "64 environments", "--num-envs 64 --updates 10"),
        *((RECIPE, PLAIN), 0.5),
    ),
)

GROWTH = (
    *(
        Job("environments", f"{n}", f"--num-envs {n} --updates {u}", rounds=2)
        for n, u in (
            *((4, 400), (16, 200), (64, 60), (256, 20), (1024, 8)),
            *((4096, 3), (16384, 2)),
        )
    ),
    *(
        Job("members", f"{n}", f"--members {n} --num-envs 16 --updates {u}", rounds=2)
        for n, u in ((1, 160), (2, 80), (4, 40), (8, 20), (16, 10), (32, 6), (64, 4))
    ),
    *(
        Job("width", f"{n}", f"--width {n} --num-envs 64 --updates {u}", rounds=2)
        for n, u in (
            *((16, 60), (32, 60), (64, 60), (128, 30), (256, 10)),
            *((512, 4), (1024, 2)),
        )
    ),
    *(
        Job(
            *("rollout length, recurrent", f"{n}"),
            f"--recurrent --num-steps {n} --num-envs 16 --updates {u}",
            rounds=2,
        )
        for n, u in (
            *((16, 64), (32, 32), (64, 16), (128, 16), (256, 8)),
            *((512, 4), (1024, 2)),
        )
    ),
    *(
        Job("quantiles", f"{n}", f"--quantiles {n} --updates 30", rounds=2)
        for n in (1, 2, 4, 8, 16, 32, 64)
    ),
)

LEARNING = (
    Job(
        *("learning", "64 environments"),
        *("--learning --members 64 --num-envs 64 --updates 61", ALL),
        rounds=1,
    ),
)

PARTS = tuple(
    Job(
        *("breakdown", f"{kind}, {n} environments"),
        *(f"--num-envs {n} --updates {u}{option}", (BREAKDOWN,)),
        rounds=2,
    )
    for kind, option, sizes in (
        ("feed-forward", "", ((4, 20), (64, 10), (2048, 2))),
        ("recurrent", " --recurrent", ((4, 4), (64, 1))),
    )
    for n, u in sizes
)

LIMITS = (
    Job("products", "one core", "", (LIMIT,), pinned=True, rounds=3),
    Job("products", "all cores", "", (LIMIT,), rounds=3),
    *(
        Job(
            *("products", f"a recurrence (rows: {n}), one core"),
            *(f"--rows {n}", (LIMIT,)),
            pinned=True,
            rounds=3,
        )
        for n in (1, 8, 16)
    ),
)

QUICK = (
    Job("feed-forward", "4 environments", "--num-envs 4 --updates 4", ALL, 1.5),
    Job("one core", "4 environments", "--num-envs 4 --updates 4", ALL, 1.3, True),
    Job(
        *("recurrent", "4 environments", "--recurrent --num-envs 4 --updates 2"),
        *((OURS, PUREJAXRL), 5.0),
    ),
    Job("seeds", "2 members", "--members 2 --num-envs 4 --updates 2", ALL, 2.0),
    Job(
        *("generations", "2 members"),
        *("--members 2 --num-envs 4 --updates 2 --generations 1", PBT, 2.0),
    ),
    Job(
        *("full recipe", "4 environments", "--num-envs 4 --updates 2"),
        *((RECIPE, PLAIN), 0.5),
    ),
    Job("environments", "4", "--num-envs 4 --updates 4"),
    Job("environments", "16", "--num-envs 16 --updates 4"),
    Job("learning", "4 environments", "--learning --num-envs 4 --updates 8", ALL),
    Job("breakdown", "4 environments", "--num-envs 4 --updates 4", (BREAKDOWN,)),
    Job("products", "all cores", "--size 256", (LIMIT,)),
)

SUITES = {
    "cpu": Suite(5, (*SPEED, *GROWTH, *LEARNING, *PARTS, *LIMITS)),
    "quick": Suite(1, QUICK),
}
