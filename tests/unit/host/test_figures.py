"""What figures show, as data; one is drawn by the command."""

import json

import numpy as np
import pytest
from runs import command

from ppo_jax.host import figures, lineage
from ppo_jax.host.figures import Line

RATE, GAMMA = "optimizer.learning_rate", "gamma"


def generation(update, parent, fitness, rates, gammas):
    numbers = {RATE: rates, GAMMA: gammas}
    return {"update": update, "parent": parent, "fitness": fitness, "numbers": numbers}


# Member 2 copied 0 after 4 updates, 0 copied 2 after 8: the best one's past.
FIRST = {RATE: np.array([0.5, 0.01, 0.25]), GAMMA: np.array([0.5, 0.75, 0.5])}
LINES = [
    lineage.beginning(3, FIRST),
    generation(4, [0, 1, 0], [3.0, 2.0, 1.0], [0.5, 0.01, 0.125], [0.5, 0.75, 0.5]),
    generation(8, [2, 1, 2], [9.0, None, 5.0], [0.0625, 0.01, 0.125], [0.5] * 3),
]
METRICS = [
    {"time/iterations": update, "eval/mean_reward": score}
    | {f"each/eval/mean_reward/{i}": score + i - 1 for i in range(3)}
    for update, score in ((2, 1.0), (10, 3.0))
]
METRICS.insert(1, {"time/iterations": 6})
METRICS[0]["pbt/fittest"], METRICS[2]["pbt/fittest"] = 1.0, 0.0


def test_the_family_tree():
    """Lives, copies, and the ancestry of the fittest."""
    panel = figures.family_tree(LINES, best=0, end=10)
    assert panel.strong == [Line([0, 4, 4, 8, 8, 10], [0, 0, 2, 2, 0, 0])]
    lives, copies = panel.faint[:3], panel.faint[3:]
    assert lives == [Line([0, 10], [i, i]) for i in range(3)]
    assert copies == [Line([4, 4], [0, 2]), Line([8, 8], [2, 0])]


def test_schedules_of_numbers():
    """Of every member, and along the ancestry; wide ones are shown by their order."""
    panel = figures.schedules(LINES, RATE, best=0, end=10)
    assert panel.log and panel.title == RATE
    times = [0, 4, 4, 8, 8, 10]
    assert panel.strong == [Line(times, [0.5, 0.5, 0.125, 0.125, 0.0625, 0.0625])]
    assert panel.faint[1] == Line(times, [0.01] * 6)
    assert len(panel.faint) == 3
    assert not figures.schedules(LINES, GAMMA, best=0, end=10).log


def test_learning_curves():
    panel = figures.learning_curve(METRICS)
    assert panel.strong == [Line([2, 10], [1.0, 3.0])]
    assert panel.faint == [Line([2, 10], [i, i + 2.0]) for i in range(3)]


def test_what_there_is_to_see():
    panels = figures.panels(METRICS, LINES)
    titles = [panel.title for panel in panels]
    assert titles == ["eval/mean_reward", "member", RATE, GAMMA]
    assert panels[1] == figures.family_tree(LINES, best=0, end=10)
    assert figures.fittest([]) == 0
    assert len(figures.panels(METRICS, [])) == 1


def test_curves_that_coincide_are_all_to_be_seen(tmp_path, monkeypatch):
    """In the picture's own dots; FGSM and PGD are often the same."""
    figure = pytest.importorskip("matplotlib.figure").Figure
    from matplotlib import colors, image

    drawn, save, path = [], figure.savefig, tmp_path / "picture.png"

    def save_without_legend(self, path):
        drawn.extend(self.axes)
        drawn[0].get_legend().remove()
        save(self, path, dpi=200)

    monkeypatch.setattr(figure, "savefig", save_without_legend)
    line = Line([0.0, 0.1, 0.2], [3.0, 2.0, 1.0])
    lines = dict.fromkeys(("random", "FGSM", "critic", "MAD", "PGD"), line)
    figures.draw_grid([[("agent", lines)]], "ε", path)
    dots = image.imread(path)[..., :3].reshape(-1, 3)
    for curve in drawn[0].lines:
        colour = np.array(colors.to_rgb(curve.get_color()))
        assert (np.abs(dots - colour).max(axis=1) < 0.01).sum() > 100, curve
    assert len({curve.get_marker() for curve in drawn[0].lines}) == 5


def test_the_command_draws_a_run(tmp_path):
    pytest.importorskip("matplotlib")
    for name, lines in (("metrics", METRICS), ("lineage", LINES)):
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (tmp_path / f"{name}.jsonl").write_text(text)
    done = command("report", tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "report.png").read_bytes().startswith(b"\x89PNG")
