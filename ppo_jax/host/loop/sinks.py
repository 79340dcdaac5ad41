"""The sinks of a run: whatever one of them does, the run goes on."""

from collections.abc import Callable, Mapping
from typing import Any

from ppo_jax.config import Config
from ppo_jax.errors import brief
from ppo_jax.host.process import distributed
from ppo_jax.host.process.console import Console
from ppo_jax.host.run_dir.description import describe
from ppo_jax.metrics.sink import Beginning, Sink


class Sinks:
    """Tells the sinks of an experiment; one that raises is named, and left out.

    Args:
        config: The experiment.
        name: What the run is called, if anything.
        identity: Of this run and no other one.
        step: Environment steps done when the run begins or goes on.
        console: Where it is said that a sink is left out.
    """

    def __init__(
        self,
        config: Config,
        name: str | None,
        identity: str,
        step: int,
        console: Console,
    ):
        self._console = console
        self._left = config.sinks if distributed.is_first() else ()
        if self._left:
            fields = {path: x["value"] for path, x in describe(config).items()}
            run = Beginning(name, fields, step, identity)
            self._each(lambda sink: sink.begin(run))

    def write(self, row: Mapping[str, Any]) -> None:
        """Tells a row of the log; what is not finite is not told."""
        step = row["step"]
        known = {k: v for k, v in row.items() if k != "step" and v is not None}
        self._each(lambda sink: sink.write(step, dict(known)))

    def close(self) -> None:
        """Tells that no row follows."""
        self._each(lambda sink: sink.end())

    def _each(self, tell: Callable[[Sink], None]) -> None:
        self._left = tuple(sink for sink in self._left if self._told(sink, tell))

    def _told(self, sink: Sink, tell: Callable[[Sink], None]) -> bool:
        try:
            tell(sink)
        except (Exception, SystemExit) as error:
            name, said = type(sink).__name__, brief(error).splitlines()[0]
            self._console.say(f"warning: the sink {name} is left out from here: {said}")
            return False
        return True
