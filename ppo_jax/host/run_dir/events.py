"""Events, as tensorboard reads them."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tensorboardX import summary
from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto import api_pb2, event_pb2, plugin_hparams_pb2, summary_pb2

api: Any = api_pb2  # Messages are made when their modules are imported.
hparams: Any = plugin_hparams_pb2
event: Any = event_pb2
summaries: Any = summary_pb2

Charts = Mapping[str, Mapping[str, Sequence[str]]]
"""Names of the metrics that are drawn together, by group and by title."""

KINDS = {
    "bool_value": api.DATA_TYPE_BOOL,
    "number_value": api.DATA_TYPE_FLOAT64,
    "string_value": api.DATA_TYPE_STRING,
}


class Events:
    """The events of a folder; events that were there before are deleted.

    Raises:
        OSError: Here and in every method, if the disk does not take it.
    """

    def __init__(self, folder: Path):
        folder.mkdir(parents=True, exist_ok=True)
        for stale in folder.glob("events.out.tfevents.*"):
            stale.unlink()
        # A relative path may look like a URL.
        self._writer = EventsWriter(str(folder.absolute() / "events"))

    def numbers(self, step: int, when: float, numbers: Mapping[str, float]) -> None:
        """Writes numbers at an environment step, at a time since the epoch."""
        values = [
            summaries.Summary.Value(tag=name, simple_value=value)
            for name, value in numbers.items()
        ]
        self._write(summaries.Summary(value=values), step, when)

    def layout(self, charts: Charts, when: float) -> None:
        """Writes which metrics are drawn together, on the page of custom scalars."""
        lines = {
            group: {
                title: ["Multiline", [f"^{re.escape(name)}$" for name in names]]
                for title, names in each.items()
            }
            for group, each in charts.items()
        }
        self._write(summary.custom_scalars(lines), 0, when)

    def settings(
        self, given: Mapping[str, Any], reached: Sequence[str], when: float
    ) -> None:
        """Writes the settings of a run, and the metrics by which it is compared."""
        kinds = [
            api.HParamInfo(name=name, type=_kind(value))
            for name, value in given.items()
        ]
        goals = [api.MetricInfo(name=api.MetricName(tag=name)) for name in reached]
        begun = hparams.SessionStartInfo()
        for name, value in given.items():
            setattr(begun.hparams[name], *_value(value))
        messages = {
            "experiment": api.Experiment(hparam_infos=kinds, metric_infos=goals),
            "session_start_info": begun,
            "session_end_info": hparams.SessionEndInfo(status=api.STATUS_SUCCESS),
        }
        for name, message in messages.items():
            content = hparams.HParamsPluginData(version=0, **{name: message})
            data = summaries.SummaryMetadata.PluginData(
                plugin_name="hparams", content=content.SerializeToString()
            )
            value = summaries.Summary.Value(
                tag=f"_hparams_/{name}",
                metadata=summaries.SummaryMetadata(plugin_data=data),
            )
            self._write(summaries.Summary(value=[value]), 0, when)

    def flush(self) -> None:
        """Writes all events to the disk."""
        self._writer.flush()

    def close(self) -> None:
        """Writes all events to the disk, and closes the file."""
        self._writer.close()

    def _write(self, told: Any, step: int, when: float) -> None:
        self._writer.write_event(event.Event(wall_time=when, step=step, summary=told))


def _value(given: Any) -> tuple[str, Any]:
    """Returns the field that holds a value, and the value as it is held there."""
    if isinstance(given, bool):
        return "bool_value", given
    if isinstance(given, int | float):
        return "number_value", float(given)
    return "string_value", str(given)


def _kind(given: Any) -> Any:
    return KINDS[_value(given)[0]]
