"""Names of files in a run directory that several parts of the package look for."""

LOG = "metrics.jsonl"
LINEAGE = "lineage.jsonl"
SCHEDULE = "schedule.json"
CHECKPOINTS = "checkpoints"
NONE_YET = f"{CHECKPOINTS}/none_yet.txt"
