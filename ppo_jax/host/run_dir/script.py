"""A user's Python file: run with the modules beside it, and kept with them.

Modules in the file's own folder are found, whatever the current folder is. A run
directory keeps the file as `experiment.py`, and those modules in `imported`, where they
are found too.
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from ppo_jax.component.suggestion import closest
from ppo_jax.errors import UserError, brief, is_ours, is_own, own_lines

RUN = "<run_path>"
"""Name that a file has among modules once it is run."""
KEPT = "experiment.py"
IMPORTED = "imported"
MADE = "made_in_python.txt"
"""Name of a file with the reason why there is no `experiment.py`."""

Texts = dict[str, bytes]
"""Files of a run directory, by path."""

replaced: dict[tuple[str, str], ModuleType] = {}
"""Modules whose names others have now, by name and file. What they did stays done."""
_run: dict[Path, Texts] = {}
"""Files to keep of each file that was run, by its path, as they were then."""


class ExperimentError(UserError):
    """Error in an experiment that its author can fix; the message describes it."""


def run(path: Path) -> dict[str, Any]:
    """Runs a file, and returns its names; its classes know the path of the file.

    Raises:
        ExperimentError: If the file fails; the message shows the lines that led there.
    """
    if path.is_dir():
        kept = f", such as {path / KEPT}" if (path / KEPT).exists() else ""
        raise ExperimentError(f"{path}: is a folder; expected a Python file{kept}")
    if not path.is_file():
        raise ExperimentError(f"{path}: no such experiment file{_instead(path)}")
    _prefer(_places(path))
    _replace(RUN)
    module = sys.modules[RUN] = ModuleType(RUN)
    names = vars(module)
    names["__file__"] = str(path)
    try:
        text = path.read_bytes()
        with contextlib.chdir(os.curdir):  # A file may go elsewhere to read its data.
            exec(compile(text, str(path), "exec", dont_inherit=True), names)
    except (Exception, SystemExit) as error:
        message = f"{path}: {brief(error)}{_choices(error)}{own_lines(error)}"
        raise ExperimentError(message) from error
    _run[path] = {KEPT: text} | beside(_places(path))
    return names


def texts(path: Path) -> Texts:
    """Returns the files that a run directory keeps of a file that was run.

    They are as they were when it ran; modules imported since are as they are now.
    """
    return beside(_places(path)) | _run[path]


def beside(places: list[Path]) -> Texts:
    """Returns the files that a run directory keeps of modules in use from some folders.

    A package is kept whole, whichever of its modules are in use.
    """
    kept: Texts = {}
    for place in places:
        for file in (file for top in _in_use(place) for file in _sources(top)):
            name = Path(IMPORTED) / file.relative_to(place)
            kept.setdefault(str(name), file.read_bytes())
    return kept


def _instead(path: Path) -> str:
    """Names the closest file, or says how to go on with a run that keeps none.

    That is one that was made in Python.
    """
    folder = path.parent
    if not (folder / MADE).exists():
        close = closest(path.name, sorted(x.name for x in folder.glob("*.py")))
        return f"; the closest is {folder / close}" if close else ""
    message = (folder / MADE).read_text("utf-8").strip()
    return (
        f": {message}. Go on in Python, with its config: ppo_jax.fit(config, "
        f"{str(folder)!r}, resume=True) or ppo_jax.load({str(folder)!r}, config=config)"
    )


def _places(path: Path) -> list[Path]:
    """Returns the folders in which a file finds modules before any others."""
    folder = path.parent.resolve()
    return [folder / IMPORTED, folder]


def _prefer(places: list[Path]) -> None:
    """Makes Python look for modules in these folders first.

    Loaded modules of the same names, from another experiment, are forgotten.
    """
    first = [str(place) for place in places]
    sys.path[:] = first + [name for name in sys.path if name not in first]
    here = {file.stem for place in places for file in place.glob("*.py")}
    here |= {file.parent.name for place in places for file in place.glob("*/*.py")}
    for name, file in _loaded():
        if name.split(".")[0] in here:
            known = any(Path(file).is_relative_to(place) for place in places)
            if not known and is_own(file):
                _replace(name)


def _replace(name: str) -> None:
    """Makes room for another module of this name, if there is one."""
    module = sys.modules.pop(name, None)
    if module is not None:
        replaced[name, str(module.__file__)] = module


def _in_use(place: Path) -> set[Path]:
    """Returns the modules and packages of a folder that are in use."""
    found = set()
    for name, file in _loaded():
        if file.startswith(f"{place}{os.sep}") and is_own(file):
            inside = Path(file).relative_to(place)
            parts = inside.with_suffix("").parts
            if ".".join(parts).removesuffix(".__init__") == name:
                found.add(place / inside.parts[0])
    return found


def _sources(top: Path) -> Iterator[Path]:
    """Yields the user's own files of a module or a package, except hidden ones."""
    if top.is_file():
        yield top
    for folder, inner, names in os.walk(top):
        inner[:] = [name for name in inner if not name.startswith(".")]
        for file in (Path(folder, name) for name in names):
            shown = file.suffix == ".py" and not file.name.startswith(".")
            if shown and file.is_file() and is_own(str(file)):
                yield file


def _loaded() -> list[tuple[str, str]]:
    """Returns the names of loaded modules, and their files."""
    files = {name: getattr(x, "__file__", None) for name, x in sys.modules.items()}
    return [(name, file) for name, file in files.items() if file]


def _choices(error: BaseException) -> str:
    """Lists the names of a module of this package, if it lacks the wanted one."""
    owner = getattr(error, "obj", None)
    if isinstance(error, ImportError):
        owner = sys.modules.get(error.name or "")
    if isinstance(owner, ModuleType) and is_ours(getattr(owner, "__file__", None)):
        return f"; it has {', '.join(sorted(_public(owner)))}"
    return ""


def _public(module: ModuleType) -> list[str]:
    """Returns the names that a module defines, or that a package exports."""
    if hasattr(module, "__all__"):
        return module.__all__
    public = {name: value for name, value in vars(module).items() if name[0] != "_"}
    if hasattr(module, "__path__"):
        return [name for name, x in public.items() if not isinstance(x, ModuleType)]
    home = module.__name__
    return [name for name, x in public.items() if getattr(x, "__module__", "") == home]
