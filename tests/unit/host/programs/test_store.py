"""Programs kept between runs, and all that may go wrong with them."""

import contextlib
import importlib
import os
import pwd
import resource
import shutil
import warnings
from pathlib import Path
from unittest.mock import Mock

import jax
import numpy as np
import pytest
from jax import monitoring
from jax._src import compilation_cache

from ppo_jax.host.programs import store
from ppo_jax.host.programs.store import Store

ROOM = 1 << 20
RUN = Path(__file__).parents[3] / "runs" / "stored" / "feed_forward"
UNSEEN = "--xla_force_host_platform_device_count=3"
"""A flag that the key of JAX leaves out."""
HITS = "/jax/compilation_cache/cache_hits"


def files(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def cut(folder):
    """As where a disk was full, or a machine went down."""
    for file in files(folder):
        file.write_bytes(file.read_bytes()[:-1])


def empty(folder):
    for file in files(folder):
        file.write_bytes(b"")


def flip(folder):
    for file in files(folder):
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)


def swap(folder):
    """Names say what is in a file; the newest is in the others' place."""
    one, *others = files(folder)
    for other in others:
        shutil.copy(one, other)


def lose(folder):
    shutil.rmtree(folder / "ppo_jax")


DAMAGES = (cut, empty, flip, swap, lose)


@contextlib.contextmanager
def full_disk():
    """A file may be smaller than any program; so nothing may be printed into one."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def start():
    """A new process with two programs; how many of them it did not compile."""
    hits = []
    compilation_cache.reset_cache()
    jax.clear_caches()
    monitoring.register_event_listener(listen := lambda name, **_: hits.append(name))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store.keep()
        said = [
            np.asarray(jax.jit(f)(np.arange(8.0, dtype=np.float32)))
            for f in (lambda x: x @ x, lambda x: (x + 1.0).sum())
        ]
    monitoring.unregister_event_listener(listen)
    assert [float(x) for x in said] == [140.0, 36.0]
    return hits.count(HITS)


def test_a_second_start_compiles_nothing(home, capsys):
    """The first one says once where programs are, and how that is turned off."""
    assert start() == 0
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert f"{home}/ppo_jax/programs" in said and store.OFF in said
    before = {file: file.stat().st_size for file in files(home)}
    assert start() == 2
    assert {file: file.stat().st_size for file in files(home)} == before
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_damaged_is_compiled_and_kept_anew(home, damage):
    start()
    damage(home)
    assert start() < 2
    assert start() == 2


def test_what_xla_cannot_load_is_compiled(home, monkeypatch):
    """Although it is what was put; it is no reason to warn, or to end."""
    start()
    with monkeypatch.context() as broken:
        broken.setattr(Store, "get", lambda *_: b"no program")
        assert start() == 0
    assert start() == 2


def test_a_full_disk_costs_a_compilation(home, capsys):
    with full_disk():
        assert [start(), start()] == [0, 0]
    assert files(home) == []
    assert [start(), start()] == [0, 2]


def test_a_disk_that_takes_nothing_gives_what_was_kept(home, monkeypatch, capsys):
    """One that is full, or may only be read, which is said."""
    start()
    capsys.readouterr()
    monkeypatch.setattr(os, "utime", Mock(side_effect=PermissionError))
    monkeypatch.setattr(os, "access", lambda path, how: how != os.W_OK)
    with full_disk():
        assert start() == 2
    expected = f"programs are not kept: {home}/ppo_jax/programs is read-only\n"
    assert capsys.readouterr().err == expected


@pytest.mark.parametrize("place", ["/proc/nowhere", __file__])
def test_a_home_that_takes_nothing_costs_a_compilation(
    home, monkeypatch, capsys, place
):
    """It is said why."""
    monkeypatch.setenv("XDG_CACHE_HOME", place)
    assert [start(), start()] == [0, 0]
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2 and place in said[0]
    assert said[0].startswith("programs are compiled anew: ")


def test_no_home_costs_a_compilation(home, monkeypatch, capsys):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", Mock(side_effect=KeyError))
    assert [start(), start()] == [0, 0]
    assert "programs are compiled anew: " in capsys.readouterr().err


def test_a_relative_place_is_none(home, monkeypatch):
    """By the rules of XDG_CACHE_HOME."""
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    monkeypatch.setenv("HOME", str(home))
    start()
    assert files(home / ".cache" / "ppo_jax")


@pytest.mark.parametrize(
    "other",
    [
        lambda set, path: set.setenv("XLA_FLAGS", UNSEEN, prepend=" "),
        lambda set, path: set.setenv("NPROC", "7"),
        lambda set, path: set.setenv("JAX_NUM_CPU_DEVICES", "7"),
        lambda set, path: set.setattr(store.devices, "cores", lambda: 77),
        lambda set, path: set.setattr(store.jaxlib.version, "__version__", "0.0.1"),
        lambda set, path: set.setattr(store.jax, "__version__", "0.0.1"),
        lambda set, path: set.setattr(store, "CPUINFO", path),
    ],
    ids=["flags", "threads", "devices", "cores", "jaxlib", "jax", "cpu"],
)
def test_programs_of_another_machine_are_not_run(home, monkeypatch, other):
    """Nor are they lost: it finds them again."""
    assert [start(), start()] == [0, 2]
    cpuinfo = home / "cpuinfo"
    cpuinfo.write_text(store.CPUINFO.read_text().replace("sse4_2", ""))
    with monkeypatch.context() as elsewhere:
        other(elsewhere, cpuinfo)
        assert [start(), start()] == [0, 2]
    assert start() == 2


def test_a_machine_is_known_again(monkeypatch, tmp_path):
    """What changes from second to second is no part of it."""
    monkeypatch.setattr(store, "CPUINFO", tmp_path / "cpuinfo")
    lines = "processor\t: {}\nflags\t\t: sse avx\ncpu MHz\t\t: {}\n"
    said = []
    for clock in (2600.0, 3100.5):
        store.CPUINFO.write_text(lines.format(0, clock) + lines.format(1, 2600.0))
        said.append(store.machine())
    assert said[0] == said[1] and said[0].count("flags") == 1


X86 = """\
vendor_id\t: AuthenticAMD
cpu family\t: 25
model\t\t: 1
model name\t: AMD EPYC
stepping\t: 1
flags\t\t: fpu sse avx
"""
ARM = """\
Features\t: fp asimd sve
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x1
CPU part\t: 0xd40
"""


@pytest.mark.parametrize("lines", [X86, ARM], ids=["x86", "arm"])
def test_any_other_kind_of_cpu_is_another_machine(lines, monkeypatch, tmp_path):
    monkeypatch.setattr(store, "CPUINFO", tmp_path / "cpuinfo")
    told = lines.splitlines()
    said = set()
    for line in (None, *told):
        other = [each + "9" * (each == line) for each in told]
        store.CPUINFO.write_text("\n".join(other))
        said.add(store.machine())
    assert len(said) == 1 + len(told)


@pytest.mark.parametrize(
    ("setting", "value"),
    [("jax_enable_compilation_cache", False), ("jax_compilation_cache_dir", "chosen")],
)
def test_what_the_user_has_chosen_stays(home, monkeypatch, capsys, setting, value):
    """Off, or a folder of their own, which is JAX's to make."""
    monkeypatch.chdir(home)
    before = getattr(jax.config, setting)
    jax.config.update(setting, value)
    start()
    jax.config.update(setting, before)
    assert not (home / "ppo_jax").exists()
    assert (home / "chosen").exists() == (value == "chosen")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("given", [True, False])
def test_what_is_compiled_quickly_is_kept_if_the_user_says_so(home, monkeypatch, given):
    """Otherwise this package says what is worth it."""
    monkeypatch.setattr(store, "SECONDS", 3600.0)
    if not given:
        monkeypatch.delenv(store.SECONDS_GIVEN)
    start()
    assert bool(files(home)) == given


def test_what_was_not_used_for_longest_goes(tmp_path):
    """Whichever machine it is of."""
    ours, theirs = (Store(tmp_path, name, 3 * 64) for name in ("ours", "theirs"))
    stores = {"a": ours, "b": theirs, "c": ours}
    for key, either in stores.items():
        either.put(key, bytes(32))
        for file in files(tmp_path):
            os.utime(file, ns=(0, file.stat().st_mtime_ns - 10**9))
    assert ours.get("a")
    ours.put("d", bytes(32))
    assert [key for key in stores if stores[key].get(key)] == ["a", "c"]
    assert ours.get("d") and len(files(tmp_path)) == 3


def test_a_program_that_is_too_large_goes_alone(tmp_path):
    kept = Store(tmp_path, "ours", 3 * 64)
    for key, size in {"a": 32, "b": 32, "large": 3 * 64}.items():
        kept.put(key, bytes(size))
    assert [key for key in ("a", "b", "large") if kept.get(key)] == ["a", "b"]


def test_files_have_a_limit_by_themselves(home, monkeypatch):
    limits = []
    monkeypatch.setattr(store, "Store", lambda *given: limits.append(given[-1]))
    store.keep()
    assert limits == [256 * 1024**2]


def test_a_limit_is_that_of_jax_if_it_has_one(home):
    before = jax.config.jax_compilation_cache_max_size
    jax.config.update("jax_compilation_cache_max_size", 0)
    start()
    jax.config.update("jax_compilation_cache_max_size", before)
    assert files(home) == []


class Asked(Exception):
    """A command has asked for its programs to be kept."""


@pytest.mark.parametrize(
    "words", ["evaluate", "export", "paper prices.csv", "robustness"], ids=str.split
)
def test_what_reads_a_run_keeps_its_programs(words, monkeypatch):
    monkeypatch.setattr(store, "keep", Mock(side_effect=Asked))
    name, *more = words.split()
    command = importlib.import_module(f"ppo_jax.{name}")
    with pytest.raises(Asked):
        command.main([str(RUN), *more])


def test_a_link_to_nowhere_is_no_reason_to_keep_all(tmp_path):
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    kept = Store(tmp_path, "ours", 3 * 64)
    for key in "abcdef":
        kept.put(key, bytes(32))
    assert sum(kept.get(key) is not None for key in "abcdef") == 3


def test_flags_in_a_file_are_flags(tmp_path, monkeypatch):
    """XLA reads them from there, where the variable has the file's name."""
    (tmp_path / "flags").write_text(UNSEEN)
    monkeypatch.setenv("XLA_FLAGS", str(tmp_path / "flags"))
    before = store.machine()
    assert UNSEEN in before
    (tmp_path / "flags").write_text("")
    assert store.machine() != before


def test_any_number_of_processes_make_one_folder(tmp_path, capsys):
    first, second = (Store(tmp_path / "new", "ours", ROOM) for _ in range(2))
    assert capsys.readouterr().err.count("compiled programs are kept") == 1
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700  # Programs are run.
    first.put("a", b"1")
    second.put("a", b"2")
    assert first.get("a") == b"2"
    assert len(files(tmp_path)) == 1
