"""Whose error it is, and what is said of it."""

import re
import runpy

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax import errors
from ppo_jax.errors import Misfit, Missing, UserError

FILE = """
class Walk:
    def reset(self):
        return 1 / 0

def begin():
    Walk().reset()
"""


def raised(call):
    with pytest.raises(BaseException) as caught:
        call()
    return caught.value


@pytest.fixture
def mine(tmp_path):
    """What a file of the user's own defines, and its path."""
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    return runpy.run_path(str(path)), path


def test_lines_of_the_user_s_own_are_shown_with_their_classes(mine):
    names, path = mine
    error = raised(names["begin"])
    lines = (
        f'\n  File "{path}", line 7, in begin\n    Walk().reset()'
        f'\n  File "{path}", line 4, in Walk.reset\n    return 1 / 0'
    )
    own = errors.own_lines(error)
    assert own.endswith(lines) and own.count(str(path)) == 2
    assert errors.mendable(error) == f"ZeroDivisionError: division by zero{own}"


def test_a_fault_of_the_package_is_not_the_user_s():
    """Nor one of what is installed: nothing is to be mended."""
    error = ZeroDivisionError("division by zero")
    assert errors.own_lines(error) == "" and errors.mendable(error) is None
    assert errors.mendable(UserError("gamma: too large")) == "gamma: too large"


def test_a_file_that_is_no_python_shows_the_line_that_is_wrong(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("x = 1\ny = (\n")
    said = errors.mendable(raised(lambda: runpy.run_path(str(path))))
    assert said is not None and said.startswith("SyntaxError: '(' was never closed")
    assert f'File "{path}", line 2' in said and "y = (" in said


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("too large"), "ValueError: too large"),
        (ValueError("two\nlines"), "ValueError: two\nlines"),
        (KeyError("x"), "KeyError: 'x'"),
        (ZeroDivisionError(), "ZeroDivisionError"),
        (
            jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: 9 bytes\nmore"),
            "JaxRuntimeError: RESOURCE_EXHAUSTED: 9 bytes",
        ),
    ],
)
def test_an_error_in_brief(error, said):
    assert errors.brief(error) == said


def test_lines_that_became_text_are_found():
    """JAX raises what a callback raised, with its traceback in the message."""
    text = (
        "INTERNAL: CpuCallback error: Traceback (most recent call last):\n"
        '  File "/home/me/mine.py", line 3, in pay\n'
        f'  File "{errors.__file__}", line 1, in ours\n'
        "ValueError: nothing to pay"
    )
    error = jax.errors.JaxRuntimeError(text)
    assert errors.brief(error) == "ValueError: nothing to pay"
    assert (
        errors.own_lines(error) == '\n  File "/home/me/mine.py", line 3, in pay\n    '
    )


@pytest.mark.parametrize(
    ("file", "own"),
    [
        (None, False),
        ("<stdin>", False),
        (re.__file__, False),
        (jax.__file__, False),
        (errors.__file__, False),
        (__file__, True),
        ("/home/me/mine.py", True),
    ],
)
def test_a_file_that_is_not_installed_nor_of_this_package_is_own(file, own):
    assert errors.is_own(file) == own
    assert errors.is_ours(file) == (file == errors.__file__)


def test_what_lacks_a_method_is_told_by_the_class_that_wants_it():
    class Part:
        def first(self):
            raise errors.missing(self, "first")

    class Mine(Part):
        pass

    error = raised(Mine().first)
    assert isinstance(error, Missing) and isinstance(error, NotImplementedError)
    assert str(error) == "Mine.first: missing; every Part needs one of its own"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (np.zeros((3, 1), np.float32), "got float32[3, 1]"),
        (jnp.zeros(3, bool), "got bool[3]"),
        ([1, 2], "got a list of 2"),
        ({}, "got a dict"),
        (None, "got None"),
    ],
)
def test_a_shape_that_does_not_fit_is_said(given, said):
    with pytest.raises(Misfit) as caught:
        errors.require_shape("Mine", given, (2, 3), "one per step")
    assert str(caught.value) == (
        f"Mine: expected the shape (2, 3), one per step, {said}"
    )
    errors.require_shape("Mine", np.zeros((2, 3)), (2, 3), "one per step")


@pytest.mark.parametrize(
    ("kind", "plain"), [(Misfit, ValueError), (Missing, NotImplementedError)]
)
def test_the_user_s_errors_are_also_those_of_python(kind, plain):
    assert issubclass(kind, UserError) and issubclass(kind, plain)


def test_a_link_is_as_much_the_users_own_as_what_it_leads_to(tmp_path):
    own, installed = tmp_path / "own.py", tmp_path / "site-packages" / "installed.py"
    installed.parent.mkdir()
    links = {own: installed.parent / "link.py", installed: tmp_path / "link.py"}
    for file, link in links.items():
        file.touch()
        link.symlink_to(file)
        assert errors.is_own(str(file)) == errors.is_own(str(link)) == (file is own)


def test_what_the_standard_library_holds_is_not_own_wherever_it_leads(
    tmp_path, monkeypatch
):
    """Debian's `sitecustomize` is there, and a link to /etc."""
    monkeypatch.setattr(errors, "STANDARD", tmp_path / "python")
    customize, link = tmp_path / "etc.py", tmp_path / "python" / "sitecustomize.py"
    link.parent.mkdir()
    customize.touch()
    link.symlink_to(customize)
    assert errors.is_own(str(customize)) and not errors.is_own(str(link))
