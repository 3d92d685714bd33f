"""The random words of a stream, in whole numbers of Python."""

from __future__ import annotations

ALL_BITS = 2**64 - 1


def word(key: int, counter: int) -> int:
    """Word ``counter`` of the stream with that key."""
    z = (key + 0x9E3779B97F4A7C15 * (counter + 1)) & ALL_BITS
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & ALL_BITS
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & ALL_BITS
    return z ^ (z >> 31)


def key(seed: int, run: int, stream: int) -> int:
    """The key of one stream of one run."""
    return word(word(word(0, seed), run), stream)
