"""Which elements Spillway's dropout layers drop: src/ops/dropout_mask.h and src/ops/dropout_mask.h again."""

import math

import numpy

GROUP = 4  # channels that draw together


def _philox(counter, key):
    """Philox4x32-10: four arrays of random words of four arrays, in 64 bits that hold 32."""
    low = 0xFFFFFFFF
    for _ in range(10):
        product0 = counter[0] * 0xD2511F53
        product1 = counter[2] * 0xCD9E8D57
        counter = [product1 >> 32 ^ counter[1] ^ key[0], product1 & low,
                   product0 >> 32 ^ counter[3] ^ key[1], product0 & low]
        key = [key[0] + 0x9E3779B9 & low, key[1] + 0xBB67AE85 & low]
    return counter


def dropout_factors(shape, probability, stream, seed, step):
    """What each element of (N, C, H, W) is multiplied by: 0, or 1 / (1 - probability)."""
    batch, channels, height, width = shape
    groups = -(-channels // GROUP)
    place = numpy.arange(batch * height * width * groups, dtype=numpy.uint64)
    constant = numpy.zeros_like(place)
    words = _philox([place, constant, constant + numpy.uint64(step), constant + numpy.uint64(stream)],
                    [seed & 0xFFFFFFFF, seed >> 32])
    words = numpy.stack(words, 1).reshape(batch, height, width, groups * GROUP)[..., :channels]
    threshold = math.ceil(float(numpy.float32(probability)) * 2**32)
    scale = numpy.float32(1) / (numpy.float32(1) - numpy.float32(probability))
    return numpy.where(words < threshold, 0.0, float(scale)).transpose(0, 3, 1, 2)
