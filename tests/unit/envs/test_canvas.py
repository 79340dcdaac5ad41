"""Shapes cover the area that geometry says, at their places."""

import math

import numpy as np
import pytest

from ppo_jax.envs.canvas import BLUE, CELLS, INK, PAPER, WIDTH, Canvas, grid


def covered(canvas):
    """The area that is not paper, and its centre, in units of the plane."""
    ink = (canvas.picture != PAPER).any(-1) * 1.0
    rows, columns = np.nonzero(ink)
    unit = 4 / WIDTH
    return ink.sum() * unit**2, (columns.mean() * unit - 2, 1 - rows.mean() * unit)


@pytest.mark.parametrize(
    ("points", "width", "area", "centre"),
    [
        ([(0.5, -0.25)], 1.0, math.pi / 4, (0.5, -0.25)),
        ([(-1, 0), (1, 0)], 0.4, 0.8 + math.pi * 0.04, (0, 0)),
        ([(0, -0.5), (1, 0.5)], 0.5, math.sqrt(2) / 2 + math.pi / 16, (0.5, 0)),
    ],
)
def test_a_line_is_a_bar_with_round_ends(points, width, area, centre):
    canvas = Canvas((-2, 2), (-1, 1))
    canvas.line(points, width, INK)
    found, place = covered(canvas)
    assert found == pytest.approx(area, rel=0.03)
    assert place == pytest.approx(centre, abs=0.01)


def test_what_is_below_a_curve_is_filled():
    canvas = Canvas((-2, 2), (-1, 1))
    canvas.below(np.sin(canvas.columns) / 2, BLUE)
    assert covered(canvas)[0] == pytest.approx(4.0, rel=0.02)
    above, below = canvas.picture[20, WIDTH // 2], canvas.picture[-20, WIDTH // 2]
    assert above.tolist() == [*PAPER] and below.tolist() == [*BLUE]


def test_edges_are_smooth_and_later_shapes_are_above():
    canvas = Canvas((-2, 2), (-1, 1))
    canvas.line([(0, 0)], 1.0, INK)
    assert len(np.unique(canvas.picture.reshape(-1, 3), axis=0)) > 5
    canvas.line([(0, 0)], 0.5, BLUE)
    assert canvas.picture[80, WIDTH // 2].tolist() == [*BLUE]


def test_a_cell_has_the_colour_of_the_last_kind_in_it():
    """Black without any, darker where there is less of it."""
    cells = np.zeros((2, 3, 12))
    cells[0, 0, 0] = cells[0, 1, [0, 2]] = cells[1, 0, 11] = 1
    cells[1, 1, 1] = 0.5
    found = grid(cells)
    size = found.shape[0] // 2
    assert found.shape == (2 * size, 3 * size, 3) and size % 2 == 0
    found = found[size // 2 :: size, size // 2 :: size].tolist()
    black = [0, 0, 0]
    assert found[0] == [[*CELLS[0]], [*CELLS[2]], black]
    half = np.rint(np.array(CELLS[1]) / 2).tolist()
    assert found[1] == [[*CELLS[1]], half, black]
