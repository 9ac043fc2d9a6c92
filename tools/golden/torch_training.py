"""Trains networks of network files in PyTorch, on images and from values that are drawn by name."""

import math

import torch

from drawn_numbers import draw, draw_labels
from torch_layers import Context, forward, makes_sequence, trained_shapes

BATCH = 3
BATCHES = 2  # different ones, in turn: few enough for the loss to fall
STEPS = 10
# Exact in binary, so that both sides train with the same numbers.
MOMENTUM = 7 / 8
WEIGHT_DECAY = 1 / 64


class Training:
    """Of `network`; subclasses say what parameters and statistics start from."""

    def __init__(self, network, prefix, dtype):
        self.network = network
        self.prefix = prefix  # of the names of its sequences of drawn numbers
        self.dtype = dtype
        self.is_training = True
        self.trained = {}  # name of a layer -> tensors, in the order of src/ops/parameter.h
        self.running = {}  # name of a batch norm -> [mean, variance]

    def drawn(self, name, *shape):
        numbers = draw(f"{self.prefix} {name}", math.prod(shape)).reshape(shape)
        return torch.tensor(numbers, dtype=self.dtype)

    def parameters(self, layer, x):
        """Those of `layer`, made when it is first asked for."""
        shapes = trained_shapes(layer, x.shape)
        if shapes and layer.name not in self.trained:
            parts = self.first_values(layer, shapes)
            self.trained[layer.name] = [part.requires_grad_() for part in parts]
            if layer.kind == "batch-norm":
                self.running[layer.name] = self.first_statistics(layer, x.shape[1])
        return self.trained.get(layer.name, [])

    def labels(self, number, height, width):
        """Of images: one each. Of pixels: some do not count."""
        classes = self.network.classes
        choices = classes if height * width == 1 else classes + 1
        labels = draw_labels(f"{self.prefix} labels {number}", BATCH * height * width, choices)
        labels[labels == classes] = -1
        return torch.tensor(labels).reshape(BATCH, height, width)

    def images(self, number):
        """Of a batch; or its tokens."""
        if not self.network.has_tokens:
            return self.drawn(f"images {number}", BATCH, *self.network.image)
        shape = BATCH, *self.network.image
        tokens = draw_labels(f"{self.prefix} images {number}", math.prod(shape), self.network.classes)
        return torch.tensor(tokens).to(self.dtype).reshape(shape)

    def note(self, step, layer, x, y):
        """Is told what each layer but losses read first and made."""

    def forward(self, step):
        """Of the batch of `step`: the sum of all heads' losses, and the last one's right answers."""
        number = step % BATCHES
        context = Context(step)
        context.is_training = self.is_training
        values = {"image": self.images(number)}
        sequences = set()
        total = 0
        for layer in self.network.layers:
            inputs = [values[name] for name in layer.inputs]
            layer.reads_sequence = layer.inputs[0] in sequences
            trained = self.parameters(layer, inputs[0])
            if layer.kind == "softmax-cross-entropy":
                context.labels = self.labels(number, *inputs[0].shape[2:])
                correct = int((inputs[0].argmax(1) == context.labels).sum())
                total = total + forward(layer, inputs, trained, None, context)
                continue
            if layer.kind == "vocabulary-loss":
                context.labels = self.labels(number, *inputs[0].shape[2:])
                inputs[1:] = [self.trained[name][0] for name in layer.inputs[1:]]
                total = total + forward(layer, inputs, trained, None, context)
                correct = int((context.predictions == context.labels).sum())
                continue
            if makes_sequence(layer):
                sequences.add(layer.name)
            y = forward(layer, inputs, trained, self.running.get(layer.name), context)
            values[layer.name] = y
            self.note(step, layer, inputs[0].detach(), y.detach())
        return total, correct

    def parameter_groups(self):
        """Weights decay, the first part of what a layer has; vectors do not: biases, and gamma and
        beta of norms; nor does a second table."""
        def decays(place, part):
            return place == 0 and part.dim() > 1

        all_parts = [pair for parts in self.trained.values() for pair in enumerate(parts)]
        return [{"params": [p for i, p in all_parts if decays(i, p)], "weight_decay": WEIGHT_DECAY},
                {"params": [p for i, p in all_parts if not decays(i, p)], "weight_decay": 0}]

    def optimizer(self, rate, nesterov=False):
        return torch.optim.SGD(self.parameter_groups(), lr=rate, momentum=MOMENTUM,
                               nesterov=nesterov)

    def train(self, make_optimizer, after_first_gradients=None):
        """The losses of all steps."""
        losses = []
        optimizer = None
        for step in range(STEPS):
            loss, _ = self.forward(step)
            optimizer = optimizer or make_optimizer()
            optimizer.zero_grad()
            loss.backward()
            if step == 0 and after_first_gradients:
                after_first_gradients()
            losses.append(float(loss.detach()))
            optimizer.step()
        return losses


def relu_distance(x):
    """How far what a ReLU reads is from zero, where its gradient jumps, in units of the root mean
    square of it; exact zeros aside, which are sums of nothing: no rounding moves them."""
    return float(x.abs()[x != 0].min() / x.square().mean().sqrt())
