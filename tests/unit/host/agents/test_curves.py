"""What is said of returns under attack."""

from ppo_jax.host.agents import curves


def test_cells_are_means_and_tails():
    found = {"FGSM": [{"mean": 1.25, "cvar_5": -3.0}, {"mean": 0.0, "cvar_5": -4.5}]}
    text = curves.table({"a": found}, [0.0, 0.25])
    assert text.splitlines()[0] == "| agent | attack | ε = 0 | ε = 0.25 |"
    assert text.splitlines()[2] == "| a | FGSM | 1.25 (-3) | 0 (-4.5) |"
