"""Pictures side by side with captions, and videos of them.

Pillow and, for MP4, imageio-ffmpeg come with the extra `video`.
"""

import contextlib
import importlib.util
import itertools
import math
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ppo_jax.errors import UserError
from ppo_jax.host.run_dir import files

Frame = np.ndarray
"""uint8 `[H, W, 3]`."""
FPS = range(1, 51)
"""Frames per second that browsers show."""
LEAST = 240
"""Least width in pixels of a picture with its caption; smaller ones are enlarged."""
STRIP, LETTERS = 22, 13
"""Height of a caption, and of its letters."""
PAPER, INK = (255, 255, 255), (27, 36, 48)


def require(path: Path) -> None:
    """Checks at once that a file of this name can be made later.

    Raises:
        UserError: If it cannot; the message says why.
    """
    if path.suffix not in WRITERS:
        expected = " or ".join(WRITERS)
        raise UserError(f"{path}: expected a name that ends in {expected}")
    for module, package in NEEDED[path.suffix].items():
        if importlib.util.find_spec(module) is None:
            message = f"{path}: {package} is missing: pip install 'ppo_jax[video]'"
            raise UserError(message)
    files.require_writable(path)


def write(path: Path, frames: Iterator[Frame], fps: int) -> None:
    """Writes frames of one size, at least one, to a file of the kind of its suffix."""
    with tempfile.TemporaryDirectory() as home:
        part = Path(home) / f"part{path.suffix}"
        WRITERS[path.suffix](part, frames, fps)
        files.write_bytes(path, part.read_bytes())


def side_by_side(
    pictures: Sequence[Frame], captions: Sequence[str], faint: Sequence[bool]
) -> Frame:
    """Returns a frame with pictures of one size in rows, each above its caption.

    Args:
        pictures: The pictures.
        captions: Caption of each picture.
        faint: Whether each picture is paler than the others.
    """
    columns = math.ceil(math.sqrt(len(pictures)))
    tiles = [*map(_tile, pictures, captions, faint)]
    empty = np.full_like(tiles[0], PAPER)
    tiles += [empty] * (-len(tiles) % columns)
    rows = [np.hstack(tiles[i : i + columns]) for i in range(0, len(tiles), columns)]
    return np.vstack(rows)


def _tile(picture: Frame, caption: str, faint: bool) -> Frame:
    """Returns a picture above its caption; both lengths are even, as MP4 needs them."""
    from PIL import Image, ImageDraw, ImageFont

    times = max(1, math.ceil(LEAST / picture.shape[1]))
    picture = picture.repeat(times, 0).repeat(times, 1)
    height, width = picture.shape[:2]
    tile = Image.new("RGB", (width + width % 2, height + height % 2 + STRIP), PAPER)
    tile.paste(Image.fromarray(picture))
    if faint:
        tile = Image.blend(tile, Image.new("RGB", tile.size, PAPER), 0.6)
    place = 6, tile.height - STRIP + (STRIP - LETTERS) // 2
    font = ImageFont.load_default(LETTERS)
    ImageDraw.Draw(tile).text(place, caption, INK, font, anchor="lt")
    return np.asarray(tile)


def _gif(path: Path, frames: Iterator[Frame], fps: int) -> None:
    from PIL import Image

    first, others = Image.fromarray(next(frames)), map(Image.fromarray, frames)
    first.save(path, save_all=True, append_images=others, duration=1000 / fps, loop=0)


def _mp4(path: Path, frames: Iterator[Frame], fps: int) -> None:
    import imageio_ffmpeg  # pyright: ignore[reportMissingImports]

    first = next(frames)
    size = first.shape[1::-1]
    writer: Any = imageio_ffmpeg.write_frames(path, size, fps=fps, macro_block_size=2)
    with contextlib.closing(writer):
        with warnings.catch_warnings(action="ignore"):  # JAX warns of every process.
            writer.send(None)
        for frame in itertools.chain([first], frames):
            writer.send(np.ascontiguousarray(frame))


PILLOW = {"PIL": "Pillow"}
NEEDED = {".gif": PILLOW, ".mp4": PILLOW | {"imageio_ffmpeg": "imageio-ffmpeg"}}
"""Modules that each kind of file needs, and the packages that contain them."""
WRITERS = {".gif": _gif, ".mp4": _mp4}
