"""Trains the networks of tests/golden/families.json in PyTorch."""

import functools
import math
import subprocess

import torch

import torch_training
from drawn_numbers import close_weight_scale
from network_text import read_network


def family_network(program, name):
    """As `program`, write_family_network, writes it."""
    return read_network(subprocess.run([program, name], check=True, capture_output=True,
                                       text=True).stdout)


class Training(torch_training.Training):
    def __init__(self, name, network, salt, dtype):
        super().__init__(network, f"{name} {salt}", dtype)
        self.stages = {}  # height and width -> names of layers
        self.kink = math.inf

    def first_values(self, layer, shapes):
        if layer.kind == "batch-norm":
            # Most of what a ReLU reads after it is positive: else so many batch norms in a row, of so
            # few numbers, would make of a rounding error a chaos.
            return [(2 + self.drawn(layer.name, *shapes[0])) / 4,
                    1 / 2 + self.drawn(layer.name + ".bias", *shapes[1])]
        scales = {"layer-norm": 1 / 2, "rms-norm": 1 / 2, "embedding": 1 / 2,
                  "position-embedding": 1 / 4, "image-tokens": 1 / 2, "vocabulary-loss": 1 / 4}
        if layer.kind == "vocabulary-loss" and len(shapes[0]) > 1:
            return [self.drawn(layer.name, *shapes[0]) / 2]  # a table of its own
        if layer.kind in scales:
            shift = 1 if layer.kind.endswith("-norm") else 0
            parts = [shift + self.drawn(layer.name, *shapes[0]) * scales[layer.kind]]
            return parts + [self.drawn(layer.name + ".bias", *shape) * scales[layer.kind]
                            for shape in shapes[1:]]
        # The kernels of these networks' transposed convolutions are twice their strides: 2 x 2 taps
        # reach a pixel.
        fan_in = (4 * shapes[0][0] if layer.kind == "transposed-convolution"
                  else math.prod(shapes[0][1:]))
        parts = [self.drawn(layer.name, *shapes[0]) * close_weight_scale(fan_in)]
        return parts + [self.drawn(layer.name + ".bias", *shape) / 4 for shape in shapes[1:]]

    def first_statistics(self, layer, channels):
        return [torch.zeros(channels, dtype=self.dtype), torch.ones(channels, dtype=self.dtype)]

    def note(self, step, layer, x, y):
        if step > 0:
            return
        if layer.kind == "relu":
            self.kink = min(self.kink, torch_training.relu_distance(x))
        if layer.name in self.trained:
            self.stages.setdefault("x".join(map(str, y.shape[2:])), []).append(layer.name)

    def numbers(self, rate):
        """Losses, and norms of the gradients of the first step."""
        norms = {}

        def keep_norms():
            for name, parts in self.trained.items():
                squares = (float(part.grad.double().square().sum()) for part in parts)
                norms[name] = math.sqrt(sum(squares))

        return self.train(functools.partial(self.optimizer, rate), keep_norms), norms
