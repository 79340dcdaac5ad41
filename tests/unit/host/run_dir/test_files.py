"""Files that are there whole or not at all."""

import errno
import json
import math
import os
from pathlib import Path

import pytest

from ppo_jax.errors import UserError
from ppo_jax.host.run_dir import files
from ppo_jax.host.run_dir.script import ExperimentError


def test_a_file_is_replaced_or_left_as_it_was(tmp_path, monkeypatch):
    """Killed between the two halves of writing, the old text is whole."""
    path = tmp_path / "x.json"
    files.write(path, "old")
    files.write(path, "new")
    assert path.read_text() == "new" and [*tmp_path.iterdir()] == [path]

    def die(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(type(path), "replace", die)
    with pytest.raises(KeyboardInterrupt):
        files.write(path, "newer")
    assert path.read_text() == "new"


@pytest.mark.parametrize(
    ("name", "kind"),
    [("EACCES", ExperimentError), ("ENOTDIR", ExperimentError)]
    + [(name, OSError) for name in ("ENOSPC", "EDQUOT", "EIO")],
)
def test_a_place_for_no_run_is_not_taken_for_a_full_disk(tmp_path, name, kind):
    with pytest.raises(kind, match=name) as raised, files.of_run(tmp_path):
        raise OSError(getattr(errno, name), name)
    said = f"{tmp_path}: no run can be kept there"
    assert str(raised.value).startswith(said) == (kind is ExperimentError)


def test_a_full_disk_is_told_with_what_it_did_not_take(tmp_path, monkeypatch):
    """Of a device that is written to, and of a part that is not whole."""
    full = tmp_path / "full"
    full.symlink_to("/dev/full")
    monkeypatch.setattr(files, "_part", lambda path: full)
    for path in (Path("/dev/full"), tmp_path / "x.json"):
        with pytest.raises(OSError, match="No space left on device") as raised:
            files.write(path, "{}")
        assert str(raised.value).endswith(f"'{path}'")
    with pytest.raises(FileNotFoundError, match="'here'"), files.naming(tmp_path):
        raise FileNotFoundError(errno.ENOENT, "none", "here")


def test_a_link_stays_one(tmp_path):
    """As `latest.html`, to a page that there is or that comes to be."""
    home = tmp_path / "pages"
    home.mkdir()
    link = tmp_path / "latest.html"
    link.symlink_to(home / "1.html")
    for text in ("old", "new"):
        files.require_writable(link)
        files.write(link, text)
        assert link.is_symlink() and (home / "1.html").read_text() == text
    assert [x.name for x in home.iterdir()] == ["1.html"]


def test_what_is_no_file_is_written_to(tmp_path):
    """As `/dev/stdout` may be; it is there afterwards as before."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    files.require_writable(pipe)
    files.write(pipe, "told")
    assert os.read(reader, 9) == b"told"
    os.close(reader)
    assert pipe.is_fifo() and [*tmp_path.iterdir()] == [pipe]


def test_a_file_is_on_the_disk_before_it_takes_a_place(tmp_path, monkeypatch):
    path, seen, replace = tmp_path / "x.json", [], type(tmp_path).replace
    sync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: seen.append(sync(file)))

    def moved(part, target):
        seen.append(part.read_text())
        return replace(part, target)

    monkeypatch.setattr(type(path), "replace", moved)
    files.write(path, "whole")
    assert seen == [None, "whole"]


def test_what_is_not_finite_is_null(tmp_path):
    path, nan = tmp_path / "x.json", math.nan
    value = {"a": [1.0, math.inf, {"b": (nan, 2)}], "c": None, "d": "x", "e": -math.inf}
    files.write_json(path, value)
    plain = {"a": [1.0, None, {"b": [None, 2]}], "c": None, "d": "x", "e": None}
    assert json.loads(path.read_text(), parse_constant=pytest.fail) == plain


def test_two_processes_may_write_a_file_at_once(tmp_path, monkeypatch):
    """Another one has begun before this one does, and is done after it."""
    path = tmp_path / "x.json"
    replace, other = type(path).replace, os.getpid() + 1

    def meanwhile(part, target):
        with monkeypatch.context() as there:
            there.setattr(type(path), "replace", replace)
            there.setattr(os, "getpid", lambda: other)
            files.write(path, "theirs, and longer")
        assert path.read_text() == "theirs, and longer"
        return replace(part, target)

    monkeypatch.setattr(type(path), "replace", meanwhile)
    files.write(path, "ours")
    assert path.read_text() == "ours" and [*tmp_path.iterdir()] == [path]


def test_what_a_killed_process_left_is_removed(tmp_path):
    """By whoever writes that file next; not what is being written, nor other files."""
    path, others = tmp_path / "x[1].json", ["x[1].json.8.part", "x1.json.7.part"]
    lefts = [tmp_path / f"x[1].json.{name}" for name in ("7.part", "part")]
    for old in [*lefts, tmp_path / others[1]]:
        old.write_text("hal")
        os.utime(old, (0, 0))
    (tmp_path / others[0]).write_text("hal")
    files.write(path, "whole")
    assert {x.name for x in tmp_path.iterdir()} == {path.name, *others}


def test_what_can_be_written_is_left_as_it_is(tmp_path):
    path = tmp_path / "x.json"
    files.require_writable(path)
    assert not [*tmp_path.iterdir()]
    path.write_text("mine")
    files.require_writable(path)
    assert path.read_text() == "mine" and [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("folder", "folder: cannot be written: Is a directory"),
        ("nowhere/x.json", "x.json: cannot be written: No such file or directory"),
        ("file/x.json", "x.json: cannot be written: Not a directory"),
    ],
)
def test_what_cannot_be_written_is_said_at_once(tmp_path, name, said):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=said):
        files.require_writable(tmp_path / name)


def test_a_folder_is_made_if_it_can_be(tmp_path):
    files.require_folder(tmp_path / "a" / "b")
    files.require_folder(tmp_path / "a" / "b")
    assert [*(tmp_path / "a" / "b").iterdir()] == []
    (tmp_path / "file").touch()
    for name in ("file", "file/below"):
        with pytest.raises(UserError, match="cannot be made"):
            files.require_folder(tmp_path / name)


def test_rows_are_lines_of_json_without_one_that_was_cut_off(tmp_path):
    path, rows = tmp_path / "x.jsonl", [{"step": 1}, {"step": 2, "x": None}]
    assert files.rows(path) == []
    text = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_text(text)
    assert files.rows(path) == rows
    for end in range(1, len('{"step": 3}') + 1):
        path.write_text(text + '{"step": 3}'[:end])
        assert files.rows(path) == rows


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{x}", "x.jsonl: line 2 is no JSON: "),
        (b"", "x.jsonl: line 2 is no JSON: "),
        (b'{"x": "\xff"}', "x.jsonl: line 2 is no JSON: 'utf-8' codec can't decode"),
        (b"[1, 2]", r"x.jsonl: line 2: expected names and values, got \[1, 2\]"),
    ],
)
def test_a_line_that_is_no_row_is_named(tmp_path, line, said):
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"step": 1}\n' + line + b"\n")
    with pytest.raises(ExperimentError, match=said):
        files.rows(path)
