"""The sinks of a run, whose errors do not stop it."""

from collections.abc import Callable, Mapping
from typing import Any

from ppo_jax.config import Config
from ppo_jax.errors import brief
from ppo_jax.host.process import distributed
from ppo_jax.host.process.console import Console
from ppo_jax.host.run_dir.description import describe
from ppo_jax.host.run_dir.recording import Memory
from ppo_jax.metrics.sink import Beginning, Sink


class Sinks:
    """Sends rows to the sinks of an experiment, and leaves out a sink that raises.

    Args:
        config: The experiment.
        record: Where the run is kept. If its newest row is of `step`, that is told
            again: a run is saved before its sinks are told, and may have been killed in
            between.
        identity: Of this run and no other one.
        step: Environment steps done when the run begins or goes on.
        console: Console that prints the name and the error of a sink that is left out.
    """

    def __init__(
        self,
        config: Config,
        record: Memory,
        identity: str,
        step: int,
        console: Console,
    ):
        self._console = console
        self._left = config.sinks if distributed.is_first() else ()
        if self._left:
            fields = {path: x["value"] for path, x in describe(config).items()}
            run = Beginning(record.name, fields, step, identity)
            self._each(lambda sink: sink.begin(run))
        if record.rows.last.get("step") == step:
            self.write(record.rows.last)

    def write(self, row: Mapping[str, Any]) -> None:
        """Sends a row of the log, without values that are not finite."""
        step = row["step"]
        known = {k: v for k, v in row.items() if k != "step" and v is not None}
        self._each(lambda sink: sink.write(step, dict(known)))

    def close(self) -> None:
        """Tells all sinks that no row follows."""
        self._each(lambda sink: sink.end())

    def _each(self, tell: Callable[[Sink], None]) -> None:
        self._left = tuple(sink for sink in self._left if self._told(sink, tell))

    def _told(self, sink: Sink, tell: Callable[[Sink], None]) -> bool:
        try:
            tell(sink)
        except (Exception, SystemExit) as error:
            name, message = type(sink).__name__, brief(error).splitlines()[0]
            self._console.say(
                f"warning: the sink {name} is left out from here: {message}"
            )
            return False
        return True
