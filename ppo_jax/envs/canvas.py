"""Pictures drawn with NumPy alone: shapes of a plane, and cells of a grid."""

from collections.abc import Sequence

import numpy as np

Colour = tuple[int, int, int]
Point = tuple[float, float]
WIDTH = 320
"""Pixels of a picture, from left to right; heights are even."""
PAPER, INK, GREY = (255, 255, 255), (27, 36, 48), (195, 202, 212)
BLUE, ORANGE, GREEN = (37, 99, 201), (217, 130, 43), (42, 157, 111)
CELLS = (
    *(BLUE, ORANGE, GREEN, (194, 65, 127), (122, 85, 209), (23, 152, 173)),
    *((214, 69, 69), (240, 214, 90), (150, 160, 175), (110, 200, 90)),
)
"""Colours of the kinds of things in a grid; further kinds start over."""


class Canvas:
    """A part of a plane, on which shapes are drawn over each other.

    >>> canvas = Canvas((-2.0, 2.0), (-1.0, 1.0))
    >>> canvas.line([(0.0, 0.0)], 1.0, BLUE)
    >>> canvas.picture.shape, canvas.picture[80, 160].tolist()
    ((160, 320, 3), [37, 99, 201])
    """

    def __init__(self, across: Point, up: Point):
        self._unit = (across[1] - across[0]) / WIDTH
        height = 2 * max(1, round((up[1] - up[0]) / self._unit / 2))
        self._x = across[0] + self._unit * (np.arange(WIDTH, dtype=np.float32) + 0.5)
        steps = np.arange(height, dtype=np.float32)[:, None] + 0.5
        self._y = up[1] - self._unit * steps
        self._pixels = np.full((height, WIDTH, 3), PAPER, np.float32)

    def line(self, points: Sequence[Point], width: float, colour: Colour) -> None:
        """Draws lines from point to point with round ends; a single point is a disc."""
        pairs = zip(points, points[1:] or points, strict=False)
        nearest = np.minimum.reduce([self._distance(*pair) for pair in pairs])
        self._fill(nearest - width / 2, colour)

    def below(self, heights: np.ndarray, colour: Colour) -> None:
        """Fills the area below a curve, given by its height per column `[WIDTH]`."""
        slope = np.gradient(heights, self._unit)
        self._fill((self._y - heights) / np.hypot(1.0, slope), colour)

    @property
    def columns(self) -> np.ndarray:
        """Coordinates of the columns of pixels, `[WIDTH]`."""
        return self._x

    @property
    def picture(self) -> np.ndarray:
        """The picture drawn so far, uint8 `[height, WIDTH, 3]`."""
        return np.rint(self._pixels).astype(np.uint8)

    def _distance(self, start: Point, end: Point) -> np.ndarray:
        """Returns the distance of pixels from a line between two points."""
        x, y = self._x - start[0], self._y - start[1]
        dx, dy = end[0] - start[0], end[1] - start[1]
        along = np.clip((x * dx + y * dy) / (dx * dx + dy * dy or 1.0), 0.0, 1.0)
        return np.hypot(x - along * dx, y - along * dy)

    def _fill(self, distance: np.ndarray, colour: Colour) -> None:
        """Colours the inside of a shape, where distances are negative, and its edge."""
        share = np.clip(0.5 - distance / self._unit, 0.0, 1.0)[..., None]
        self._pixels += share * (np.array(colour, np.float32) - self._pixels)


def grid(cells: np.ndarray) -> np.ndarray:
    """Draws a grid, each cell in the colour of the last kind that is in it.

    Args:
        cells: Amount of each kind, 0 to 1, `[rows, columns, kinds]`.

    >>> grid(np.eye(2)[..., None])[[0, 0], [0, -1]].tolist()
    [[37, 99, 201], [0, 0, 0]]
    """
    there = cells > 0
    kinds = cells.shape[-1]
    last = kinds - 1 - there[..., ::-1].argmax(-1)
    shade = np.take_along_axis(cells, last[..., None], -1).clip(0.0, 1.0)
    colours = np.array(CELLS)[last % len(CELLS)] * shade * there.any(-1, keepdims=True)
    size = 2 * max(1, round(WIDTH / 2 / max(cells.shape[:2])))
    return np.rint(colours).astype(np.uint8).repeat(size, 0).repeat(size, 1)
