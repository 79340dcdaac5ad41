"""What matplotlib draws, by its dots."""

import numpy as np
import pytest

from ppo_jax.host.metrics import figures
from ppo_jax.host.metrics.figures import Line


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
