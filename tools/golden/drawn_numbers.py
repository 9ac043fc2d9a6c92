"""Numbers that look random and are the same in Python and C++ (tests/golden/drawn_numbers.h).

Multiples of 1/256 between -1 and 1 from integer arithmetic alone; so they, and they times a scale of
few bits, are exact as 32-bit floats.
"""

import numpy


def _words(name, count):
    """Of 32 bits: those of a Weyl sequence, mixed as in the last part of MurmurHash3."""
    key = 0
    for character in name:
        key = (31 * key + ord(character)) & 0xFFFFFFFF
    x = numpy.arange(count, dtype=numpy.uint32) * numpy.uint32(0x9E3779B1) + numpy.uint32(key)
    x = (x ^ (x >> 16)) * numpy.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * numpy.uint32(0xC2B2AE35)
    return x ^ (x >> 16)


def draw(name, count):
    """The first `count` numbers of the sequence `name`."""
    return ((_words(name, count) % 513).astype(numpy.float64) - 256) / 256


def draw_labels(name, count, classes):
    return (_words(name, count) % classes).astype(numpy.int64)


def weight_scale(fan_in):
    """The largest power of two, at most 1, whose square is at most 6 / fan_in (after He, 2015)."""
    scale = 1.0
    while scale * scale * fan_in > 6:
        scale /= 2
    return scale


def close_weight_scale(fan_in):
    """The same, closer: the largest m / 8 times that, m from 8 to 15."""
    scale = weight_scale(fan_in)
    return max(scale * m / 8 for m in range(8, 16) if m == 8 or (scale * m / 8) ** 2 * fan_in <= 6)
