"""The ending of a run, kept in its directory; a run that was killed leaves none."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

from ppo_jax.errors import brief, mendable
from ppo_jax.host.process import distributed
from ppo_jax.host.run_dir import files

KEPT = "ending.json"


class Ending:
    """The ending of a run, which the code that runs it sets.

    Attributes:
        state: `finished`, `stopped`, `interrupted` or `failed`; empty: not known.
        why: Cause of the failure, if it failed.
    """

    def __init__(self, state: str = "", why: str = ""):
        self.state, self.why = state, why

    def became(self, state: str, error: BaseException | None = None) -> None:
        """Sets the ending to a state, or by an error.

        `KeyboardInterrupt` makes it `interrupted`, any other error `failed`.
        """
        self.state, self.why = state, ""
        if isinstance(error, KeyboardInterrupt):
            self.state = "interrupted"
        elif error is not None:
            message = mendable(error) or brief(error)
            self.state, self.why = "failed", message.splitlines()[0]


@contextlib.contextmanager
def recorded(run_dir: Path) -> Iterator[Ending]:
    """Deletes the run's last ending, and writes the one that follows."""
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
    """Returns the last ending of a run, as far as it is written.

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
