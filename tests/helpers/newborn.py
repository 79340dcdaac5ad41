"""A process that has loaded nothing of the tests."""

import contextlib
import math
import sys

from ppo_jax.host.programs import sources
from ppo_jax.host.run_dir import script


@contextlib.contextmanager
def newborn(monkeypatch, place):
    """Its code is years old; it forgets what it loads from a folder of the test."""
    sys.modules.pop(script.RUN, None)
    loaded, before = sources._loaded, sys.modules.copy()

    def others():
        for name, module, file in loaded():
            if name not in before or not sources._is_own(name, file):
                yield name, module, file

    monkeypatch.setattr(sources, "_loaded", others)
    monkeypatch.setattr(sources, "BEGAN", math.inf)
    monkeypatch.setattr(script, "replaced", {})
    monkeypatch.setattr(sys, "path", [*sys.path])
    main = sys.modules["__main__"]  # Without a file where tests run side by side.
    monkeypatch.setattr(main, "__file__", sources.__file__, raising=False)
    yield
    for name in sys.modules.keys() - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(place)):
            del sys.modules[name]
