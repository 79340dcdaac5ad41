"""Experiments in suites of environments that may not be installed."""

from contextlib import contextmanager

import pytest


@contextmanager
def or_skip():
    """Skips a test of an experiment whose suite is not installed."""
    try:
        yield
    except Exception as error:
        if "which is not installed: pip install" not in str(error):
            raise
        pytest.skip(str(error))
