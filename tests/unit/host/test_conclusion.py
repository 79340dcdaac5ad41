"""What a run tells at its end, of rows given by hand."""

from pathlib import Path

from ppo_jax.host.conclusion import summary


def test_the_fittest_may_have_no_finite_return():
    """Fitness can be another number than the mean return."""
    row = {"step": 8, "time/time_elapsed": 1.0, "error/quarantined_steps": 0.0}
    row |= {"eval/mean_reward": 2.0, "best/eval/mean_reward": None, "pbt/fittest": 1.0}
    text = summary("finished", [row], Path("run"))
    assert "evaluation 2, the median member; the fittest, 1: not finite\n" in text
