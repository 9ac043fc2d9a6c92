"""Numbers that look random and are the same in Python and C++ (tests/golden/drawn_numbers.h).

Multiples of 1/256 between -1 and 1 from integer arithmetic alone; so they, and they times a power of
two, are exact as 32-bit floats.
"""

MASK = 0xFFFFFFFF


def _key(name):
    key = 0
    for character in name:
        key = (31 * key + ord(character)) & MASK
    return key


def _mix(x):
    """The last part of MurmurHash3."""
    x = ((x ^ (x >> 16)) * 0x85EBCA6B) & MASK
    x = ((x ^ (x >> 13)) * 0xC2B2AE35) & MASK
    return x ^ (x >> 16)


def draw(name, count):
    """The first `count` numbers of the sequence `name`."""
    key = _key(name)
    return [(_mix((key + i * 0x9E3779B1) & MASK) % 513 - 256) / 256 for i in range(count)]


def draw_labels(name, count, classes):
    key = _key(name)
    return [_mix((key + i * 0x9E3779B1) & MASK) % classes for i in range(count)]


def weight_scale(fan_in):
    """The largest power of two, at most 1, whose square is at most 6 / fan_in (after He, 2015)."""
    scale = 1.0
    while scale * scale * fan_in > 6:
        scale /= 2
    return scale
