"""Run directories as training leaves them, without training."""

import json

BUDGET = {
    "total_timesteps": 100,
    "num_envs": 2,
    "num_steps": 5,
    "max_failures": 3,
}


def row(step, score=None, **more):
    """Returns a row; there are ten steps per update and second."""
    said = {
        "step": step,
        "error/quarantined_steps": 0.0,
        "rollout/ep_rew_mean": step / 2,
        "time/fps": 10.0,
        "time/iterations": step / 10,
        "time/time_elapsed": step / 10,
        "warn/x": 0.0,
    }
    return said | ({} if score is None else {"eval/mean_reward": score}) | more


def log(run_dir, rows):
    """Appends rows to a log."""
    with (run_dir / "metrics.jsonl").open("a") as file:
        file.writelines(json.dumps(each) + "\n" for each in rows)


def run(run_dir, rows=(), saved=(), ending=None, why="", budget=BUDGET):
    """Writes the directory of a run that is not under way."""
    run_dir.mkdir(parents=True)
    fields = {k: {"kind": "host", "value": str(v)} for k, v in budget.items()}
    (run_dir / "config.json").write_text(json.dumps(fields))
    (run_dir / "experiment.py").write_text("config = None\n")
    checkpoints = run_dir / "checkpoints"
    checkpoints.mkdir()
    for update in saved:
        (checkpoints / str(update)).mkdir()
    if not any(isinstance(update, int) for update in saved):
        (checkpoints / "none_yet.txt").touch()
    if rows:
        log(run_dir, rows)
    if ending is not None:
        text = json.dumps({"state": ending, "why": why})
        (run_dir / "ending.json").write_text(text)
    return run_dir
