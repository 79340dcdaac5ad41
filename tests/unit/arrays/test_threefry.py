import jax
import numpy as np
import pytest

from ppo_jax.arrays import threefry

ROTATIONS = [13, 15, 26, 6, 17, 29, 16, 24]
KEYS = np.array([[0, 0], [2**32 - 1, 1], [0x13198A2E, 0x03707344]], np.uint32)


def encrypted(key, counter):
    """Threefry-2x32 with 20 rounds, on whole numbers of Python."""

    def word(x):
        return x % 2**32

    parts = [int(key[0]), int(key[1])]
    parts.append(parts[0] ^ parts[1] ^ 0x1BD11BDA)
    x, y = (word(int(c) + part) for c, part in zip(counter, parts, strict=False))
    for done in range(1, 21):
        x = word(x + y)
        distance = ROTATIONS[(done - 1) % 8]
        y = word(y << distance | y >> 32 - distance) ^ x
        if done % 4 == 0:
            keys = done // 4
            x = word(x + parts[keys % 3])
            y = word(y + parts[(keys + 1) % 3] + keys)
    return x, y


@pytest.mark.parametrize(
    ("key", "counter", "expected"),
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((2**32 - 1,) * 2, (2**32 - 1,) * 2, (0x1CB996FC, 0xBB002BE7)),
        (
            (0x13198A2E, 0x03707344),
            (0x243F6A88, 0x85A308D3),
            (0xC4923A9C, 0x483DF7A0),
        ),
    ],
)
def test_the_reference_is_right(key, counter, expected):
    """It gives the known answers of Random123."""
    assert encrypted(key, counter) == expected


@pytest.mark.parametrize("size", [0, 1, 5])
@pytest.mark.parametrize("key", KEYS)
def test_bits(variant, key, size):
    pairs = [encrypted(key, (0, place)) for place in range(size)]
    got = variant(lambda key: threefry.bits(key, size))(key)
    assert got.dtype == np.uint32
    np.testing.assert_array_equal(got, np.array([x ^ y for x, y in pairs], np.uint32))


@pytest.mark.parametrize("first", [(), (np.uint32(2**32 - 2),)])
@pytest.mark.parametrize("key", KEYS)
def test_words(variant, key, first):
    """Both of each hash in turn; counters begin anew behind the last one."""
    counters = [(sum(map(int, first)) + i) % 2**32 for i in range(4)]
    expected = [word for i in counters for word in encrypted(key, (0, i))]
    got = variant(lambda key, *first: threefry.words(key, 8, *first))(key, *first)
    np.testing.assert_array_equal(got, np.array(expected, np.uint32))


def test_keys_and_numbers_are_mapped_alone():
    """In either order; what is not mapped is the same for all."""
    first = np.array([3, 2**31], np.uint32)

    def draw(key, first):
        return threefry.words(key, 2, first)

    by_first = jax.vmap(draw, (None, 0))
    got = jax.vmap(by_first, (0, None))(KEYS, first)
    expected = [[encrypted(key, (0, i)) for i in first] for key in KEYS]
    np.testing.assert_array_equal(got, np.array(expected, np.uint32))


def test_draws_of_a_shape_are_written_once():
    """They are calls of one function, whose rounds a program has once."""

    def draws(keys):
        return [threefry.bits(key, 6) for key in keys] + [threefry.bits(keys[0], 7)]

    text = jax.jit(draws).lower(KEYS).as_text()
    assert text.count("stablehlo.shift_left") == 2 * 20
