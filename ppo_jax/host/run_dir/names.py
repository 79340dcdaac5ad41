"""Names of what several parts of the package look for in a run directory."""

LOG = "metrics.jsonl"
LINEAGE = "lineage.jsonl"
SCHEDULE = "schedule.json"
CHECKPOINTS = "checkpoints"
