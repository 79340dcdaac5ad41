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
WHOLE = Contestant("ours", "whole.py")
PLAIN = Contestant("plain PPO", "recipe.py", "--plain")
BREAKDOWN = Contestant("ours", "breakdown.py")
RUNTIME = Contestant("ours", "runtime.py")
LIMIT = Contestant("ours", "limits.py")
SHORT = Contestant("ours, bfloat16", "ours.py", "--compute-dtype bfloat16")
LINEAR = Contestant("ours, MinGru", "ours.py", "--memory MinGru")
KERNELS = Contestant("ours", "kernels.py")
SHORT_KERNELS = Contestant("ours, bfloat16", "kernels.py", "--compute-dtype bfloat16")
LINEAR_KERNELS = Contestant("ours, MinGru", "kernels.py", "--memory MinGru")
PUREJAXRL_KERNELS = PUREJAXRL._replace(options="--kernels")
REJAX_KERNELS = REJAX._replace(options="--kernels")

ALL = (OURS, PUREJAXRL, REJAX)
COUNTED = (KERNELS, SHORT_KERNELS, PUREJAXRL_KERNELS, REJAX_KERNELS)
COUNTED_RECURRENT = (KERNELS, SHORT_KERNELS, LINEAR_KERNELS, PUREJAXRL_KERNELS)
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
    whole: bool = False
    """Whether the time counts from the start of the process to its end."""
    warm: bool = False
    """Whether all contestants find the programs that they compiled in a run before."""
    accelerated: bool = False
    """Whether all contestants have one GPU or TPU; on a CPU they are not run."""

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
    """Jobs, and how often they are done if nothing else is said.

    Attributes:
        rounds: How often.
        jobs: Those that the tables of the document are of.
        accelerated: Those of a GPU or TPU, which have tables of their own.
        endured: Those that may hang, if anything does; they have one too.
    """

    rounds: int
    jobs: tuple[Job, ...] = ()
    accelerated: tuple[Job, ...] = ()
    endured: tuple[Job, ...] = ()

    @property
    def all(self) -> tuple[Job, ...]:
        """All jobs."""
        return (*self.jobs, *self.accelerated, *self.endured)


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

START = tuple(
    Job(
        *("whole process", f"500 k steps, {name}", "--num-envs 8 --updates 488"),
        *((WHOLE, PUREJAXRL, REJAX), goal),
        whole=True,
        warm=warm,
    )
    for name, goal, warm in (("cold", 1.0, False), ("warm", 1.33, True))
)

GROWTH = (
    *(
        Job("environments", f"{n}", f"--num-envs {n} --updates {u}")
        for n, u in (
            *((4, 400), (16, 200), (64, 60), (256, 20), (1024, 8)),
            *((4096, 3), (16384, 2)),
        )
    ),
    *(
        Job("members", f"{n}", f"--members {n} --num-envs 16 --updates {u}")
        for n, u in ((1, 160), (2, 80), (4, 40), (8, 20), (16, 10), (32, 6), (64, 4))
    ),
    *(
        Job(
            *("parts of a minibatch, 32 members", f"{n}"),
            f"--microbatches {n} --members 32 --num-envs 16 --updates 6",
        )
        for n in (1, 2, 4)
    ),
    *(
        Job("width", f"{n}", f"--width {n} --num-envs 64 --updates {u}")
        for n, u in (
            *((16, 60), (32, 60), (64, 60), (128, 30), (256, 10)),
            *((512, 4), (1024, 2)),
        )
    ),
    *(
        Job(
            *("rollout length, recurrent", f"{n}"),
            f"--recurrent --num-steps {n} --num-envs 16 --updates {u}",
        )
        for n, u in (
            *((16, 64), (32, 32), (64, 16), (128, 16), (256, 8)),
            *((512, 4), (1024, 2)),
        )
    ),
    *(
        Job("quantiles", f"{n}", f"--quantiles {n} --updates 30")
        for n in (1, 2, 4, 8, 16, 32, 64)
    ),
)

LEARNING = tuple(
    Job(
        *("learning", f"{n} environments"),
        *(f"--learning --members 64 --num-envs {n} --updates {u}", ALL),
        rounds=1,
    )
    for n, u in ((8, 488), (64, 61))
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

WORKS = tuple(
    Job("works", job.title, job.options, (RUNTIME,), pinned=True, rounds=3)
    for job in SPEED
    if job.title in ("one core, 4 environments", "recurrent, 4 environments")
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

POPULATION = "population"
"""The section whose jobs are named by how many members they have."""


def kernels(section: str, name: str, options: str) -> Job:
    """A job that counts kernels; rejax has no recurrent policy."""
    there = COUNTED_RECURRENT if "--recurrent" in options else COUNTED
    return Job(section, name, options, there, rounds=1)


def accelerated(
    members: tuple[tuple[int, int], ...],
    wide: tuple[tuple[str, str], ...],
    recurrent: tuple[tuple[int, int], ...],
    counted: tuple[tuple[str, str], ...],
    there: bool = False,
) -> tuple[Job, ...]:
    """Jobs of a GPU or TPU.

    Args:
        members: Sizes of populations, and how many updates they do.
        wide: Names and options of large networks.
        recurrent: Environments of a recurrent policy, and how many updates it does.
        counted: Names and options of programs whose kernels are counted.
        there: Whether there is to be a GPU or TPU; else it is a dry run.
    """
    jobs = (
        *(
            Job(POPULATION, f"{n}", f"--members {n} --num-envs 16 --updates {u}", ALL)
            for n, u in members
        ),
        *(Job("large networks", *each, (OURS, SHORT)) for each in wide),
        *(
            Job(
                *("recurrent policies", f"{n} environments"),
                f"--recurrent --num-envs {n} --updates {u}",
                (OURS, SHORT, LINEAR, PUREJAXRL),
            )
            for n, u in recurrent
        ),
        *(kernels("kernels", *each) for each in counted),
    )
    return tuple(job._replace(accelerated=there) for job in jobs)


PROGRAMS = (
    ("feed-forward, 64 environments", "--num-envs 64"),
    ("feed-forward, 2048 environments", "--num-envs 2048"),
    ("recurrent, 64 environments", "--recurrent --num-envs 64"),
    ("64 members", "--members 64 --num-envs 16"),
)

GPU = accelerated(
    there=True,
    members=(
        *((1, 400), (4, 400), (16, 200), (64, 100), (256, 50), (1024, 10)),
        *((4096, 4), (16384, 2), (65536, 1)),
    ),
    wide=(
        *(
            (f"width {n}", f"--width {n} --num-envs 1024 --updates {u}")
            for n, u in ((64, 100), (256, 50), (1024, 20), (4096, 4))
        ),
        *(
            (f"channels {n}", f"--channels {n} --num-envs 1024 --updates {u}")
            for n, u in (("16", 50), ("64 64", 20), ("256 256", 4))
        ),
    ),
    recurrent=((64, 20), (1024, 10), (4096, 4)),
    counted=PROGRAMS,
)

ABSENT = tuple(
    kernels("kernels, for a GPU that is not there", name, f"{options} --absent")
    for name, options in PROGRAMS
)

QUICK_GPU = accelerated(
    members=((1, 2), (2, 2)),
    wide=(
        ("width 8", "--width 8 --num-envs 4 --updates 2"),
        ("channels 2", "--channels 2 --width 4 --num-envs 4 --updates 2"),
    ),
    recurrent=((4, 2),),
    counted=(("2 members", "--members 2 --num-envs 4 --num-steps 16 --width 8"),),
)

SOAK = tuple(
    Job("soak", f"{name}, {cores}", options, (contestant,), pinned=pinned)
    for name, contestant, options in (
        ("4 environments", OURS, "--num-envs 4 --updates 12000"),
        ("64 environments", OURS, "--num-envs 64 --updates 1500"),
        ("recurrent", OURS, "--recurrent --num-envs 16 --updates 400"),
        ("8 members", OURS, "--members 8 --num-envs 16 --updates 600"),
        (
            *("8 members that evolve", GENERATIONS),
            "--members 8 --num-envs 16 --updates 4 --generations 100",
        ),
    )
    for cores, pinned in (("one core", True), ("all cores", False))
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
    Job(
        *("whole process", "warm", "--num-envs 4 --updates 2"),
        *((WHOLE, PUREJAXRL, REJAX), 1.33),
        whole=True,
        warm=True,
    ),
    Job("environments", "4", "--num-envs 4 --updates 4"),
    Job("environments", "16", "--num-envs 16 --updates 4"),
    Job("learning", "4 environments", "--learning --num-envs 4 --updates 8", ALL),
    Job("breakdown", "4 environments", "--num-envs 4 --updates 4", (BREAKDOWN,)),
    Job("products", "all cores", "--size 256", (LIMIT,)),
)

QUICK_SOAK = (Job("soak", "4 environments", "--num-envs 4 --updates 4"),)

SUITES = {
    "cpu": Suite(5, (*SPEED, *START, *GROWTH, *LEARNING, *PARTS, *WORKS, *LIMITS)),
    "gpu": Suite(3, accelerated=GPU),
    "absent": Suite(1, accelerated=ABSENT),
    "quick": Suite(1, QUICK, QUICK_GPU, QUICK_SOAK),
    "soak": Suite(20, endured=SOAK),
}
