"""Experiments in suites of environments that may not be installed."""

from contextlib import contextmanager

import pytest


def needs_more(path):
    """Returns whether an experiment's file names a suite to install."""
    return "pip install" in path.read_text()


def each(paths, slow=()):
    """Makes parameters of a test; experiments with a suite take minutes to compile."""

    def marks(path):
        return [pytest.mark.slow] * (needs_more(path) or path.stem in slow)

    return [pytest.param(path, id=path.stem, marks=marks(path)) for path in paths]


@contextmanager
def or_skip():
    """Skips a test of an experiment whose suite is not installed."""
    try:
        yield
    except Exception as error:
        if "which is not installed: pip install" not in str(error):
            raise
        pytest.skip(str(error))
