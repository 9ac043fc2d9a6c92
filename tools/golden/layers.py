"""Layers in PyTorch under the names that Spillway gives their parameters and statistics."""

import math

import torch
import torch.nn.functional as F

from drawn_numbers import draw, weight_scale


class Layers:
    """Trained layers, made at their first use with drawn initial values.

    `kinks` collects how far each ReLU and max pool of a pass was from a place where the gradient
    jumps, in units of the root mean square of what it read.
    """

    def __init__(self, salt, dtype):
        self.salt = salt
        self.dtype = dtype
        self.trained = {}  # name -> tensors, in the order of src/ops/parameter.h
        self.running = {}  # name -> [mean, variance]
        self.is_training = True
        self.kinks = []

    def drawn(self, name, *shape):
        numbers = draw(f"{self.salt} {name}", math.prod(shape))
        return torch.tensor(numbers, dtype=self.dtype).reshape(shape)

    def _weighted(self, name, *shape, bias):
        """Weights of `shape` (out, ...), and biases if any."""
        if name not in self.trained:
            scale = weight_scale(math.prod(shape[1:]))
            parts = [scale * self.drawn(name, *shape)]
            if bias:
                parts.append(self.drawn(name + ".bias", shape[0]) / 4)
            self.trained[name] = [part.requires_grad_() for part in parts]
        parts = self.trained[name]
        return parts[0], parts[1] if bias else None

    def convolution(self, name, x, channels, kernel, stride=1, padding=0, bias=True):
        size = kernel if isinstance(kernel, tuple) else (kernel, kernel)
        weight, shift = self._weighted(name, channels, x.shape[1], *size, bias=bias)
        return F.conv2d(x, weight, shift, stride, padding)

    def linear(self, name, x, features, bias=True):
        x = x.flatten(1)
        weight, shift = self._weighted(name, features, x.shape[1], bias=bias)
        return F.linear(x, weight, shift)

    def batch_norm(self, name, x):
        channels = x.shape[1]
        if name not in self.trained:
            gamma = 1 + self.drawn(name, channels) / 2
            beta = self.drawn(name + ".bias", channels) / 2
            self.trained[name] = [gamma.requires_grad_(), beta.requires_grad_()]
            self.running[name] = [self.drawn(name + ".mean", channels) / 4,
                                  1 + self.drawn(name + ".variance", channels) / 2]
        return F.batch_norm(x, *self.running[name], *self.trained[name],
                            training=self.is_training, momentum=0.1, eps=1e-5)

    def relu(self, x):
        # Exact zeros are sums of nothing: no rounding moves them.
        self._note_kink(x, x.abs()[x != 0])
        return F.relu(x)

    def max_pool(self, x, kernel, stride, padding=0, rounds_up=False):
        y = F.max_pool2d(x, kernel, stride, padding, ceil_mode=rounds_up)
        # Behind the image as much as the last window needs.
        height, width = ((n - 1) * stride + kernel - padding - old
                         for n, old in zip(y.shape[2:], x.shape[2:]))
        padded = F.pad(x, [padding, max(padding, width), padding, max(padding, height)],
                       value=-math.inf)
        windows = padded.unfold(2, kernel, stride).unfold(3, kernel, stride).flatten(4)
        best = windows.topk(2).values
        # Zeros side by side come from ReLUs, which let no gradient through there.
        self._note_kink(x, (best[..., 0] - best[..., 1])[best[..., 0] != 0])
        return y

    def average_pool(self, x, kernel, stride, padding=0, counts_padding=False):
        return F.avg_pool2d(x, kernel, stride, padding, count_include_pad=counts_padding)

    def local_response_norm(self, x, size, alpha, beta, k):
        return F.local_response_norm(x, size, alpha, beta, k)

    def concat(self, *parts):
        return torch.cat(parts, 1)

    def global_average_pool(self, x):
        return x.mean((2, 3), keepdim=True)

    def dropout(self, x):
        """With probability 0: PyTorch and Spillway draw different masks."""
        return F.dropout(x, 0.0, self.is_training)

    def _note_kink(self, x, distances):
        if distances.numel():
            self.kinks.append(float((distances.min() / x.square().mean().sqrt()).detach()))
