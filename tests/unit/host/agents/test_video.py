"""Files that move are read back as they were written."""

import gc
import importlib.util

import numpy as np
import pytest

from ppo_jax.errors import UserError
from ppo_jax.host.agents import video

Image = pytest.importorskip("PIL.Image")
RED, BLUE, PAPER = (200, 30, 30), (30, 30, 200), (255, 255, 255)


def plain(height, width, colour=RED):
    return np.full((height, width, 3), colour, np.uint8)


def frames(count):
    """Frames that a square wanders over."""
    for i in range(count):
        frame = plain(40, 64, PAPER)
        frame[:8, 8 * i : 8 * i + 8] = RED
        yield frame


def test_a_gif_has_all_frames_of_their_size_and_time(tmp_path):
    path = tmp_path / "x.gif"
    video.write(path, frames(6), fps=20)
    with Image.open(path) as found:
        assert (found.n_frames, found.size) == (6, (64, 40))
        assert found.info["loop"] == 0
        for i, frame in enumerate(frames(6)):
            found.seek(i)
            assert found.info["duration"] == 50
            seen = np.asarray(found.convert("RGB"), int)
            np.testing.assert_allclose(seen, frame, atol=8)
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_mp4_has_all_frames_of_their_size(tmp_path):
    ffmpeg = pytest.importorskip("imageio_ffmpeg")
    path = tmp_path / "x.mp4"
    video.write(path, frames(6), fps=20)
    about, *found = ffmpeg.read_frames(path)
    assert about["size"] == (64, 40) and about["fps"] == 20
    assert len(found) == 6
    for data, frame in zip(found, frames(6), strict=True):
        seen = np.frombuffer(data, np.uint8).reshape(40, 64, 3)
        assert np.abs(seen.astype(int) - frame).mean() < 12
    gc.collect()  # imageio-ffmpeg leaves pipes open, of which Python warns.


def test_pictures_lie_in_rows_above_their_captions():
    """Of three, the fourth place is empty; small ones are enlarged, odd ones filled."""
    pictures = [plain(31, 81, colour) for colour in (RED, BLUE, RED)]
    found = video.side_by_side(pictures, ["one", "two", "three"], [False, False, True])
    height, width = 3 * 31 + 1 + video.STRIP, 3 * 81 + 1
    assert found.shape == (2 * height, 2 * width, 3)
    assert not found.shape[0] % 2 and not found.shape[1] % 2
    assert (found[:93, :243] == RED).all()
    assert (found[:93, width : width + 243] == BLUE).all()
    assert (found[height:, width:] == PAPER).all()
    pale = found[height, 0].astype(int)
    assert (pale >= RED).all() and pale.sum() > sum(RED) + 200
    for row, column in ((0, 0), (0, 1), (1, 0)):
        strip = found[(row + 1) * height - video.STRIP :][: video.STRIP]
        assert strip[:, column * width :][:, :60].min() < 120  # There are letters.


def test_captions_differ_by_what_they_say():
    one, same, other = (
        video.side_by_side([plain(20, 240)], [text], [False])
        for text in ("return 1", "return 1", "return 2")
    )
    assert (one == same).all() and (one != other).any()
    assert (one[:20] == other[:20]).all()


def test_what_cannot_be_made_is_said(tmp_path, monkeypatch):
    for name in ("x", "x.avi", "gif"):
        with pytest.raises(UserError, match=r"expected a name that ends in .gif or .m"):
            video.require(tmp_path / name)
    with pytest.raises(UserError, match="cannot be written: No such file"):
        video.require(tmp_path / "nowhere" / "x.gif")
    video.require(tmp_path / "x.gif")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"Pillow is missing: pip install 'ppo_jax\[v"):
        video.require(tmp_path / "x.gif")
    found = {"PIL": "there"}
    monkeypatch.setattr(importlib.util, "find_spec", found.get)
    with pytest.raises(UserError, match="imageio-ffmpeg is missing: pip install 'pp"):
        video.require(tmp_path / "x.mp4")
    assert not [*tmp_path.iterdir()]
