"""How a run has ended, kept in its directory; of one that was killed nothing is."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

from ppo_jax.errors import brief, mendable
from ppo_jax.host.process import distributed
from ppo_jax.host.run_dir import files

KEPT = "ending.json"


class Ending:
    """To be said by whoever runs it.

    Attributes:
        state: `finished`, `stopped`, `interrupted` or `failed`; empty: not known.
        why: For what cause, if it failed.
    """

    def __init__(self, state: str = "", why: str = ""):
        self.state, self.why = state, why

    def became(self, state: str, error: BaseException | None = None) -> None:
        """Says how it ended; an interrupt is one, any other error a failure."""
        self.state, self.why = state, ""
        if isinstance(error, KeyboardInterrupt):
            self.state = "interrupted"
        elif error is not None:
            said = mendable(error) or brief(error)
            self.state, self.why = "failed", said.splitlines()[0]


@contextlib.contextmanager
def recorded(run_dir: Path) -> Iterator[Ending]:
    """Forgets how the run ended before, and writes how it ends now."""
    path = run_dir / KEPT
    if not distributed.is_first():
        yield Ending()
        return
    path.unlink(missing_ok=True)
    ending = Ending()
    try:
        yield ending
    except (KeyboardInterrupt, Exception) as error:
        ending.became("", error)
        raise
    finally:
        if ending.state:
            with contextlib.suppress(OSError):  # The disk takes nothing more.
                files.write_json(path, vars(ending))


def last(run_dir: Path) -> Ending:
    """How a run ended the last time, as far as it is written.

    >>> import tempfile
    >>> run_dir = Path(tempfile.mkdtemp())
    >>> with recorded(run_dir) as ending:
    ...     last(run_dir).state
    ...     ending.state = "finished"
    ''
    >>> last(run_dir).state
    'finished'
    """
    try:
        found = json.loads((run_dir / KEPT).read_text())
        return Ending(str(found["state"]), str(found["why"]))
    except (OSError, ValueError, TypeError, KeyError):
        return Ending()
