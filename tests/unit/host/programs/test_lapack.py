"""LAPACK is there at once, and its package is what it always was."""

import json
import os
import subprocess
import sys

import pytest

USES = {
    "an attribute": "import scipy.linalg; qr = scipy.linalg.qr",
    "a name": "from scipy.linalg import qr",
    "all names": "from scipy.linalg import *",
    "a module": "import scipy.linalg.cython_lapack; scipy.linalg.cython_blas",
    "another package": "import scipy.signal; from scipy.linalg import qr",
    "a list of names": "import scipy.linalg; assert 'qr' in dir(scipy.linalg)",
    "what is not there": "import scipy.linalg; assert not hasattr(scipy.linalg, 'no')",
    "several threads": """
from concurrent.futures import ThreadPoolExecutor

def found(_):
    from scipy.linalg import qr
    return qr

with ThreadPoolExecutor(8) as pool:
    qr, *others = pool.map(found, range(8))
assert others == [qr] * 7
""",
}
CODE = """
import json, os, sys
from ppo_jax.host.programs import lapack

said = {"before": [x for x in sys.modules if x.startswith("scipy.linalg")]}
lapack.initialize()
lapack.initialize()
said["modules"] = sorted(x for x in sys.modules if x.startswith("scipy.linalg."))
said["read"] = "__all__" in vars(sys.modules["scipy.linalg"])
for name, use in json.loads(sys.argv[1]).items():
    if not (child := os.fork()):
        places = {}
        exec(use, places)
        qr = places.get("qr")
        assert qr is None or qr.__module__ == "scipy.linalg._decomp_qr"
        os._exit(0)
    said[name] = os.waitpid(child, 0)[1]
import jax.numpy as jnp
said["triangle"] = abs(jnp.linalg.qr(jnp.array([[3.0, 1.0], [4.0, 2.0]]))[1]).tolist()
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def said():
    """What a process says that imported nothing of SciPy's before."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, json.dumps(USES)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_only_what_jax_needs_is_imported(said):
    assert not said["before"] and not said["read"]
    assert said["modules"] == ["scipy.linalg.cython_blas", "scipy.linalg.cython_lapack"]


def test_programs_call_it(said):
    """By hand: of (3, 4) and (1, 2) the lengths are 5 and 0.4, the overlap is 2.2."""
    (a, b), (zero, c) = said["triangle"]
    assert (a, b, zero, c) == pytest.approx((5, 2.2, 0, 0.4), abs=1e-5)


@pytest.mark.parametrize("use", USES)
def test_whoever_uses_the_package_finds_all_of_it(said, use):
    assert said[use] == 0
