"""`docs/performance.md` says what the suite kept, and the suite keeps what it ran."""

import json
import sys
from pathlib import Path

import pytest
import zygote
from runs import ENVIRONMENT

ROOT = Path(__file__).parents[2]
SCRIPT = """
import json, os, sys
print("Hello")
if "broken" in sys.argv: sys.exit("It broke.")
given = map(os.environ.get, ("JAX_COMPILATION_CACHE_DIR", "XDG_CACHE_HOME"))
kept = next(filter(None, given), None)
found = os.listdir(kept) if kept else None
if kept: open(os.path.join(kept, "program"), "w").close()
print(json.dumps({
    "steps_per_second": 100, "versions": {"python": "3"}, "argv": sys.argv[1:],
    "cores": len(os.sched_getaffinity(0)), "seconds": 1000.0, "found": found,
    "compile_seconds": 1.0,
    "device": "GPU " + os.environ.get("CUDA_VISIBLE_DEVICES", "of all"),
    "caches": {k: v for k, v in os.environ.items() if "CACHE" in k and "JAX" in k},
}))
"""


@pytest.fixture
def modules(monkeypatch):
    """The suite's modules, by name."""
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import document, run, suites

    return {"document": document, "run": run, "suites": suites}


@pytest.fixture
def suite(modules, monkeypatch, tmp_path):
    """A suite of scripts that run in no time, and how to call it."""
    run, suites = modules["run"], modules["suites"]
    for name in ("one.py", "peer_rejax.py"):
        (tmp_path / name).write_text(SCRIPT)
    ours = suites.Contestant("ours", "one.py")
    rejax = suites.Contestant("rejax", "peer_rejax.py", "--slowly")
    evorl = suites.Contestant("evorl", "peer_evorl.py")
    jobs = (
        suites.Job("speed", "4", "--num-envs 4", (ours, rejax, evorl), 2.0),
        suites.Job("pinned", "4", "--num-envs 4", (ours,), pinned=True, rounds=1),
    )
    monkeypatch.setattr(run, "HERE", tmp_path)
    monkeypatch.setitem(run.SUITES, "quick", suites.Suite(2, jobs))
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    kept = tmp_path / "new" / "kept.jsonl"

    def call(*options):
        words = ["--suite", "quick", "--results", str(kept), *options]
        status = run.main([*words, "--python", f"rejax={sys.executable}"])
        return status, [json.loads(line) for line in kept.read_text().splitlines()]

    call.kept, call.folder = kept, tmp_path
    return call


def order(lines):
    return [(line["round"], line["job"], line["library"]) for line in lines]


EXPECTED = [
    (0, "speed, 4", "ours"),
    (0, "speed, 4", "rejax"),
    (0, "pinned, 4", "ours"),
    (1, "speed, 4", "rejax"),
    (1, "speed, 4", "ours"),
]


def test_libraries_take_turns(suite):
    """Round by round, the other way about in odd ones; who is not given is left out."""
    status, lines = suite()
    assert status == 0
    assert order(lines) == EXPECTED
    assert [line["argv"] for line in lines[:2]] == [
        ["--num-envs", "4"],
        ["--num-envs", "4", "--slowly"],
    ]
    assert lines[2]["cores"] == 1
    off = {"JAX_ENABLE_COMPILATION_CACHE": "0"}
    assert all(line["caches"] == off for line in lines)
    assert all(line["load"] >= 0 and line["machine"] for line in lines)


def test_a_whole_process_may_find_what_one_before_compiled(suite, modules, monkeypatch):
    """Its time is that of the process, of the second one where it is warm.

    Ours has its own cache, that of a user who has none yet.
    """
    run, suites = modules["run"], modules["suites"]
    both = tuple(
        suites.Contestant(name, script)
        for name, script in (("ours", "one.py"), ("rejax", "peer_rejax.py"))
    )
    jobs = [
        suites.Job("start", name, "", both, whole=True, warm=name == "warm")
        for name in ("cold", "warm")
    ]
    monkeypatch.setitem(run.SUITES, "quick", suites.Suite(1, tuple(jobs)))
    _, lines = suite()
    found = [line["found"] for line in lines]
    assert found == [[], None, ["program"], ["program"]]
    own = [not line["caches"] for line in lines]
    assert own == [True, False, True, False]
    for line in lines:
        assert 0 < line["seconds"] < 60
        assert line["steps_per_second"] == pytest.approx(1e5 / line["seconds"], rel=0.1)


def test_all_runs_may_share_a_cache_and_then_do_not_tell_how_long_they_compile(suite):
    cache = suite.folder / "cache"
    cache.mkdir()
    _, lines = suite("--cache", str(cache))
    for line in lines:
        assert line["caches"]["JAX_COMPILATION_CACHE_DIR"] == str(cache)
        assert "compile_seconds" not in line
    _, lines = suite("--fresh")
    assert all("compile_seconds" in line for line in lines)


@pytest.fixture
def gpus(suite, modules, monkeypatch):
    """The suite with a job for a GPU, and what sets what ours finds."""
    run, suites = modules["run"], modules["suites"]
    rejax = suites.Contestant("rejax", "peer_rejax.py")
    ours = suites.Contestant("ours", "one.py")
    job = suites.Job("population", "4", "", (ours, rejax), accelerated=True)
    monkeypatch.setitem(run.SUITES, "quick", suites.Suite(1, accelerated=(job,)))

    def found(name):
        text = f"import os\ndef device(): return {name}"
        (suite.folder / "measure.py").write_text(text)

    found("'GPU ' + os.environ['CUDA_VISIBLE_DEVICES']")
    return found


def test_libraries_share_no_gpu_and_use_one(suite, gpus, monkeypatch):
    """The first that there is. On another one the suite is run anew, beside it."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    status, lines = suite()
    assert status == 0
    assert [x["device"] for x in lines] == ["GPU 2"] * 2
    assert suite() == (0, lines)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    _, both = suite()
    assert [x["device"] for x in both] == ["GPU 2"] * 2 + ["GPU 3"] * 2
    _, fresh = suite("--fresh")
    assert fresh[:2] == both[:2] and len(fresh) == 4


@pytest.mark.usefixtures("gpus")
def test_a_library_that_has_no_gpu_is_told_and_not_kept(suite, capsys):
    script = suite.folder / "peer_rejax.py"
    script.write_text(SCRIPT.replace('"GPU " + os', '"cpu" or os'))
    status, lines = suite()
    assert status == 1 and [x["library"] for x in lines] == ["ours"]
    assert "failed: runs on cpu, not on GPU 0: its interp" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("found", "needed"),
    [
        ("cpu", "its interpreter needs the JAX"),
        ("8 × TPU", "it has to see one of them"),
    ],
)
def test_a_suite_for_a_gpu_wants_one(found, needed, suite, gpus):
    gpus(repr(found))
    said = f"error: ours runs on {found}, not on one GPU or TPU: {needed}"
    with pytest.raises(SystemExit, match=said):
        suite()


def test_a_processor_is_told_by_its_generation(modules, tmp_path):
    from benchmarks import machine

    told = tmp_path / "cpuinfo"
    told.write_text(
        "processor\t: 0\ncpu family\t: 23\nmodel\t\t: 1\nmodel name\t: AMD EPYC\n"
        "cpu MHz\t\t: 2000.0\n"
    )
    assert machine.processor(told) == "AMD EPYC, family 23, model 1"
    assert machine.processor(tmp_path / "none")


def test_a_suite_that_was_stopped_goes_on(suite, capsys):
    """What was cut off is run again, and nothing else; `--fresh` runs all again."""
    _, lines = suite()
    whole = suite.kept.read_text().splitlines(True)
    suite.kept.write_text("".join(whole[:4]) + whole[4][:20])
    capsys.readouterr()
    _, again = suite()
    assert order(again) == EXPECTED
    assert again[:4] == lines[:4]
    assert capsys.readouterr().out.startswith("1/1 speed, 4: ours")
    _, fresh = suite("--fresh", "--only", "pinned")
    assert order(fresh) == [*EXPECTED[:2], *EXPECTED[3:], EXPECTED[2]]


def test_a_run_that_fails_is_told_and_not_kept(suite, capsys):
    (suite.folder / "peer_rejax.py").write_text('raise SystemExit("It broke.")')
    status, lines = suite("--rounds", "1")
    assert status == 1
    assert {line["library"] for line in lines} == {"ours"}
    assert "It broke." in capsys.readouterr().out


@pytest.mark.parametrize(
    "ending",
    [
        'sys.exit("jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory")',
        "os.kill(os.getpid(), 9)",
    ],
)
def test_what_does_not_fit_is_kept_as_such(ending, suite, capsys):
    """The others go on, it is not run again, and a table compares nothing with it."""
    (suite.folder / "peer_rejax.py").write_text(f"import os, sys; {ending}")
    status, lines = suite()
    assert status == 0 and order(lines) == EXPECTED
    short = [line for line in lines if line["library"] == "rejax"]
    assert all(line["out_of_memory"] and line["machine"] for line in short)
    assert "rejax out of memory" in capsys.readouterr().out
    assert suite() == (0, lines) and not capsys.readouterr().out
    made = suite.folder / "made.md"
    assert suite("--table", "--document", str(made))[0] == 0
    assert "\n| speed, 4 | – | 2 | – | 0 |\n" in made.read_text()


def test_what_hangs_is_kept_as_such(suite, capsys):
    """And told by the status; the others go on, and it is not run again."""
    (suite.folder / "peer_rejax.py").write_text("import time; time.sleep(60)")
    status, lines = suite("--rounds", "1", "--timeout", "5")
    assert status == 1 and order(lines) == EXPECTED[:3]
    assert [line.get("hung") for line in lines] == [None, True, None]
    assert "rejax hung" in capsys.readouterr().out
    assert suite("--rounds", "1") == (0, lines) and not capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--python", "jaxppo=x"], "unknown library ['jaxppo']"),
        (["--python", "rejax"], "expected NAME=VALUE, got 'rejax'"),
        (["--only", "("], "missing )"),
        (["--suite", "big"], "'cpu', 'gpu', 'absent', 'quick'"),
        (["--only", "nothing"], "no job of the suite 'cpu' is called so"),
        (["--rounds", "0"], "expected at least 1, got '0'"),
        (["--timeout", "0"], "expected seconds above 0, got '0'"),
        (["--timeout", "nan"], "expected seconds above 0, got 'nan'"),
        (["--timeout", "x"], "invalid seconds value: 'x'"),
        (["--python", "rejax=/no/python"], "no interpreter '/no/python' for rejax"),
        (["--results", "/tmp"], "--results: expected a file, got the folder '/tmp'"),
        (["--document", "/tmp"], "--document: expected a file, got the folder '/tmp'"),
        (["--table", "--results", "/no/file"], "nothing was kept in /no/file"),
    ],
)
def test_mistakes_are_told(options, said, modules, capsys):
    with pytest.raises(SystemExit) as ending:
        modules["run"].parse_arguments(options)
    assert ending.value.code == 2
    assert said in capsys.readouterr().err


def line(job, library, number, options="", **measured):
    script = "ours.py" if library == "ours" else f"peer_{library}.py"
    return {
        "job": job,
        "library": library,
        "round": number,
        "command": f"{script}{options}",
        "versions": {},
        "load": 1.0,
        "machine": "2 cores",
        "commit": "abc",
    } | measured


def test_tables_by_hand(modules):
    """Ours against the faster of the others of the same round: 300/150 and 400/100.

    Nobody else was there in the last; and another had other options.
    """
    suites, document = modules["suites"], modules["document"]
    growing = [suites.Job("members", str(n), "") for n in (1, 2)]
    job = suites.Job("speed", "4", "", suites.ALL, 3.0)
    lines = [
        line("speed, 4", library, number, steps_per_second=speed)
        for number, speeds in enumerate([(300, 100, 150), (400, 100, 50)])
        for library, speed in zip(("ours", "purejaxrl", "rejax"), speeds, strict=True)
    ]
    lines += [
        line(f"members, {n}", "ours", 0, steps_per_second=100 * n**2, peak_rss_mib=50)
        for n in (1, 2)
    ]
    lines.append(line("speed, 4", "ours", 2, steps_per_second=9000))
    others = {"options": " --updates 2", "steps_per_second": 9000}
    lines.append(line("speed, 4", "rejax", 1, **others))
    lines.append(line("speed, 4", "ours", 3, compile_seconds=3.0))
    lines += [
        line("speed, 4", library, 3, compile_seconds=seconds)
        for library, seconds in (("purejaxrl", 4.0), ("rejax", 2.0))
    ]
    (*_, cost) = document.costs([job], lines)
    assert cost == "| speed, 4 | 1.50 | – |"
    (*_, goal) = document.goals([job], lines)
    assert goal == "| speed, 4 | 3.00 (2.00 to 4.00) | 3 | yes | 2 |"
    _, _, first, second, _ = document.growth(growing, lines)
    assert first == "| 1 | 100 | – | 50 | – |"
    assert second == "| 2 | 400 | 4.00 | 50 | 1.00 |"


def test_limits_by_hand(modules):
    """Others do 150 and 100 steps/s, and a step is 2 GFLOP: at 3 · 125 they are 750."""
    suites, document = modules["suites"], modules["document"]
    jobs = [
        suites.Job("speed", "4", "", suites.ALL, 3.0),
        suites.Job("breakdown", "speed, 4", "", (suites.OURS,)),
        suites.Job("breakdown", "speed, 8", "", (suites.OURS,)),
        suites.Job("products", "all cores", "", (suites.OURS,)),
    ]
    lines = [
        line("speed, 4", "rejax", number, steps_per_second=speed)
        for number, speed in enumerate((150, 100))
    ]
    lines += [
        line(f"breakdown, speed, {n}", "ours", 0, steps_per_second=50, gflops=100.0)
        for n in (4, 8)
    ]
    lines += [
        line("products, all cores", "ours", i, gflops=x)
        for i, x in ((0, 400.0), (1, 500.0))
    ]
    _, _, *rows = document.limits(jobs, lines)
    assert rows == [
        "| in an update, speed, 4 | 100.0 | 20% | 150% |",
        "| in an update, speed, 8 | 100.0 | 20% | – |",
        "| alone, all cores | 500.0 | 100% | – |",
    ]


def test_works_by_hand(modules):
    """512 steps in 2 ms; at 1.5 times 160,000 steps/s they take 2,133 µs."""
    suites, document = modules["suites"], modules["document"]
    jobs = [
        suites.Job("speed", "4", "", suites.ALL, 1.5),
        suites.Job("works", "speed, 4", "", (suites.OURS,)),
    ]
    lines = [line("speed, 4", "rejax", 0, steps_per_second=160_000)]
    known = {"seconds_per_update": 0.002, "steps_per_second": 256_000}
    lines += [
        line("works, speed, 4", "ours", number, works=found, **known)
        for number, found in enumerate(
            ({"products": 30, "else": 70}, {"products": 20, "else": 60})
        )
    ]
    _, _, *rows = document.works(jobs, lines)
    assert rows == [
        "| else | 1,450 |",
        "| products | 550 |",
        "| an update, at the goal | 2,133 |",
        "| an update | 2,000 |",
    ]


def test_endurance_by_hand(modules):
    """Time is that of processes which ended; a row for all of them comes last."""
    suites, document = modules["suites"], modules["document"]
    jobs = [suites.Job("soak", name, "", (suites.OURS,)) for name in ("a", "b", "c")]
    lines = [
        *(line("soak, a", "ours", i, process_seconds=90.0) for i in range(2)),
        line("soak, b", "ours", 0, process_seconds=30.0, seconds=0.2),
        line("soak, b", "ours", 1, hung=True),
        line("soak, b", "ours", 2, " --num-envs 8", process_seconds=500.0),
    ]
    found = list(document.endurance(jobs, lines))
    assert found[-3:] == [
        "| soak, a | 2 | 3.0 | 0 |",
        "| soak, b | 2 | 0.5 | 1 |",
        "| all | 4 | 3.5 | 1 |",
    ]


def test_the_breakdown_knows_the_places_of_the_package(monkeypatch):
    """Functions that moved would count as the rest of an update."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from breakdown import PARTS

    for _, place, function in PARTS:
        if place.startswith("ppo_jax/"):
            path = ROOT / place
            files = path.rglob("*.py") if place.endswith("/") else [path]
            text = "".join(file.read_text() for file in files)
            assert f"def {function.strip('.')}" in text, (place, function)


def test_curves_by_hand(modules):
    """Both seeds have a mean of 2 over training; the last five updates end at 2.4."""
    suites, document = modules["suites"], modules["document"]
    job = suites.Job("learning", "4", "", suites.ALL)
    curves = [[0.0, 1.0, 2.0, 3.0, 3.0, 3.0]] * 2
    row = line("learning, 4", "rejax", 0, curves=curves)
    (*_, found) = document.learning([job], [row])
    assert found == "| 4 | rejax | 2 | 2.0 (2.0 to 2.0) | 2.4 (2.4 to 2.4) |"


def test_tables_of_a_gpu_by_hand(modules):
    """Ours fits with four members, another with one, and one hangs; by device."""
    from benchmarks import accelerators

    suites = modules["suites"]
    jobs = [suites.Job("population", n, "", suites.ALL) for n in ("1", "4", "16")]
    jobs.append(suites.Job("kernels", "64 members", "", (suites.OURS,)))
    lines = [
        line("population, 1", "ours", 0, steps_per_second=1000, peak_device_mib=7),
        line("population, 1", "ours", 1, steps_per_second=3000, peak_device_mib=9),
        line("population, 4", "ours", 0, steps_per_second=4000),
        line("population, 16", "ours", 0, out_of_memory=True),
        line("population, 1", "rejax", 0, steps_per_second=500),
        line("population, 4", "rejax", 0, out_of_memory=True),
        line("population, 16", "rejax", 0, out_of_memory=True),
        line("population, 16", "purejaxrl", 0, hung=True),
        line("kernels, 64 members", "ours", 0, kernels=1234),
    ]
    lines = [x | {"device": "TPU"} for x in lines]
    lines.append(line("population, 1", "ours", 0, steps_per_second=7, device="H100"))
    found = list(accelerators.tables(jobs, lines))
    here = found.index("On TPU:")
    assert "| population, 1 | ours | 7 | – | – | – |" in found[:here]
    assert found.index("On H100:") < here
    assert "| population, 1 | ours | 2,000 (1,000 to 3,000) | – | 8 | – |" in found
    assert "| population, 16 | rejax | out of memory | – | – | – |" in found
    assert "| kernels, 64 members | ours | – | – | – | 1,234 |" in found
    assert found[-2:] == ["| ours | 4 | 16 |", "| rejax | 1 | 4 |"]
    (nothing,) = accelerators.tables(jobs, [])
    assert nothing.startswith("Not measured yet")


PROGRAM = """HloModule jit_update

%fused (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  ROOT %t = f32[4]{0} tanh(%p)
}

%short (p: f32[4]) -> f32[4] {
  ROOT %p = f32[4]{0} parameter(0)
}

%long (q: f32[4]) -> f32[4] {
  %q = f32[4]{0} parameter(0)
  %a = f32[4]{0} fusion(%q), kind=kLoop, calls=%fused
  ROOT %b = f32[4]{0} copy(%a)
}

%body (s: (s32[], f32[4])) -> (s32[], f32[4]) {
  %s = (s32[], /*index=1*/f32[4]{0:T(128)}) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %x = f32[4]{0} get-tuple-element(%s), index=1
  %y = f32[4]{0} fusion(%x), kind=kLoop, calls=%fused
  %z = f32[4]{0} conditional(%i, %y, %y), branch_computations={%short, %long}
  ROOT %r = (s32[], f32[4]{0}) tuple(%i, %z)
}

%less (s: (s32[], f32[4])) -> pred[] {
  %s = (s32[], f32[4]{0}) parameter(0)
  ROOT %c = pred[] constant(true)
}

ENTRY %main (x: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  %zero = s32[] constant(0)
  %m = f32[4,4]{1,0} custom-call(%x, %x), custom_call_target="__cublas$gemm"
  %in = (s32[], f32[4]{0}) tuple(%zero, %x)
  %out = (s32[], f32[4]{0}) while(%in), condition=%less, body=%body, TIMES
  %again = (s32[], f32[4]{0}) while(%out), condition=%less, body=%body
  %end = f32[4]{0} call(%x), to_apply=%long
  ROOT %y = f32[4]{0} get-tuple-element(%again), index=1
}
"""


def test_kernels_by_hand(monkeypatch):
    """A product; five times, and once more, a fusion and the two of the longer branch;
    and the two of a call: 1 + 15 + 3 + 2."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from hlo import kernels

    times = 'backend_config={"known_trip_count":{"n":"5"}}'
    assert kernels(PROGRAM.replace("TIMES", times)) == 21


def test_all_who_can_are_counted_for_a_gpu_that_is_not_there(modules):
    """rejax has no recurrent policy."""
    for job in modules["suites"].ABSENT:
        counted = {x.owner: job.command(x) for x in job.contestants}
        assert all(" --absent" in command for command in counted.values())
        assert ("rejax" in counted) == ("--recurrent" not in job.options)
        assert not job.accelerated


@pytest.mark.parametrize(
    ("device", "wanted"),
    [("h100", r"NVIDIA GPUs: pip install 'jax\[cuda12\]'"), ("v4", "TPUs: .*tpu")],
)
def test_an_absent_device_wants_its_compiler(device, wanted, monkeypatch):
    """What JAX says without it is that nobody can describe the device."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import deviceless

    for name in ("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", *deviceless.ALONE):
        monkeypatch.setenv(name, "0")

    def unknown(*_, platform, **__):
        raise NotImplementedError(f"topology not implemented for {platform}")

    monkeypatch.setattr(deviceless.topologies, "get_topology_desc", unknown)
    with pytest.raises(SystemExit, match=f"no compiler: expected the JAX of {wanted}"):
        deviceless.DEVICES[device]()


@pytest.fixture
def measured(modules, monkeypatch, capsys, tmp_path):
    """Runs jobs of the quick suite: lines that it kept, and the document of them."""
    monkeypatch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
    kept, made = tmp_path / "kept.jsonl", tmp_path / "made.md"
    options = ["--suite", "quick", "--results", str(kept), "--document", str(made)]

    def call(only):
        for last in (["--only", only], ["--table"]):
            assert modules["run"].main([*options, *last]) == 0
        assert capsys.readouterr().err == ""
        return [json.loads(x) for x in kept.read_text().splitlines()], made.read_text()

    return call


def test_the_document_says_what_was_kept(tmp_path):
    """Rerun `python -m benchmarks.run --table` after a change."""
    made = tmp_path / "performance.md"
    words = ["-m", "benchmarks.run", "--table", "--document", str(made)]
    done = zygote.run(words, ENVIRONMENT, ROOT)
    assert (done.returncode, done.stderr) == (0, "")
    assert made.read_text() == (ROOT / "docs" / "performance.md").read_text()


@pytest.mark.parametrize("suite", ["gpu", "absent", "soak"])
def test_the_document_is_the_same_whatever_suite_was_run(suite, modules):
    run = modules["run"]
    kept = ROOT / "benchmarks" / "results" / "performance.jsonl"
    lines = [json.loads(x) for x in kept.read_text().splitlines()]
    assert run.documented(suite, lines) == run.documented("cpu", lines)


def test_a_row_of_the_quick_suite(measured):
    """A real run of ours: its line, and its row in the document."""
    (found,), made = measured("environments, 16")
    assert found["job"] == "environments, 16"
    assert (found["library"], found["round"]) == ("ours", 0)
    assert found["steps_per_second"] > 0
    steps = 4 * 128 * 16
    assert found["seconds"] == pytest.approx(
        steps / found["steps_per_second"], abs=1e-3
    )
    assert found["compile_seconds"] > found["seconds"]
    assert found["peak_rss_mib"] > 100
    assert 8 <= found["mean_return"] <= 500
    speed, memory = found["steps_per_second"], found["peak_rss_mib"]
    assert f"\n| 16 | {speed:,} | – | {memory:,} | – |\n" in made


def test_a_dry_run_of_the_suite_for_a_gpu(measured):
    """A population, as a GPU is to train it; which device it was is told."""
    (found,), made = measured("^population, 2")
    assert found["device"] == "cpu" and found["steps_per_second"] > 0
    assert f"| population, 2 | ours | {found['steps_per_second']:,} |" in made
    assert made.count("| ours | 2 | – |") == 1


@pytest.mark.slow
def test_all_jobs_for_a_gpu_run(measured):
    lines, made = measured("^(population|large|recurrent policies|kernels)")
    jobs = {(line["job"], line["library"]) for line in lines}
    assert len(jobs) == 2 + 2 * 2 + 2 + 2
    counted = [line["kernels"] for line in lines if "kernels" in line]
    assert len(counted) == 2 and min(counted) > 100
    assert "Not measured yet" not in made
