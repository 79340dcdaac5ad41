"""Provenance of an exported policy."""

from typing import Any

from ppo_jax.config import Config
from ppo_jax.host.metrics.figures import SCORE, Rows
from ppo_jax.host.metrics.rows import EVALUATIONS
from ppo_jax.host.run_dir import description, history


def trained(
    run: str | None, config: Config, update: int, member: int, size: int, rows: Rows
) -> dict[str, Any]:
    """Returns the experiment, budget and last evaluation of a policy, for JSON.

    Args:
        run: Name of the run; None: it is kept in memory.
        config: The experiment, with the policy's own numbers.
        update: Updates done.
        member: Number of the member that is exported.
        size: Number of members that were trained with it.
        rows: Lines of `metrics.jsonl`.
    """
    fields = description.describe(config)
    return {
        "run": run,
        "environment": repr(config.env),
        "update": update,
        "steps": update * config.steps_per_update,
        "member": member,
        "members": size,
        "evaluation": evaluation(rows, update, member if size > 1 else None),
        "experiment": {path: field["value"] for path, field in fields.items()},
    }


def evaluation(rows: Rows, update: int, member: int | None) -> dict[str, Any] | None:
    """Returns the last evaluation up to an update; None: there was none.

    A member that has copied another one since has that one's evaluation.

    Args:
        rows: Lines of `metrics.jsonl`.
        update: Updates done.
        member: Member of a population; None: rows are those of a single run.

    >>> rows = [{"time/iterations": 2, "eval/mean_reward": 1.5}, {"time/iterations": 4}]
    >>> evaluation(rows, 4, None)
    {'update': 2, 'mean_reward': 1.5}
    """
    past = [row for row in rows if row["time/iterations"] <= update]
    own = past if member is None else history.of_member(past, member)
    for row in reversed(own):
        if row.get(SCORE) is not None:
            return {"update": int(row["time/iterations"])} | {
                name.removeprefix("eval/"): row[name]
                for name in EVALUATIONS
                if row.get(name) is not None
            }
    return None
