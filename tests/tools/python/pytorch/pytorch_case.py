"""Small models and their training steps; skips all tests here where there is no PyTorch 2."""

import gc
import os
import pathlib
import sys
import unittest
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from importing import ROOT  # noqa: F401 pylint: disable=unused-import

os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # of PyTorch's profiler, which looks for GPUs
try:
    import torch
    import torch._functorch.partitioners
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 6):
        raise ImportError(f"it is {torch.__version__}")
except ImportError as error:
    print(f"skipped: there is no PyTorch 2.6 or newer ({error}); tools/setup --torch makes a "
          "Python that has it, or SPILLWAY_TORCH_PYTHON names one when the tree is configured")
    raise unittest.SkipTest("there is no PyTorch 2.6 or newer") from error

import spillway
import spillway.pytorch
from spillway.pytorch.models import models_of
from spillway.pytorch.graphs.allocations import Allocations
from spillway.pytorch.held import live_tensors, storages
from torch import nn
from torch.nn import functional

torch.set_num_threads(2)


class Attention(nn.Module):
    """Transformer layers with dropout, a shared embedding and attention."""

    def __init__(self, layers=2, width=64, words=128, length=64, dropout=0.1):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(
            width, 4, 4 * width, dropout, "gelu", batch_first=True) for _ in range(layers))

    def forward(self, text):
        x = self.words(text) + self.places(torch.arange(text.shape[1]))
        for layer in self.layers:
            x = layer(x)
        logits = x @ self.words.weight.t()
        return functional.cross_entropy(logits.flatten(0, 1), text.flatten())


class Convolutions(nn.Module):
    """Batch norm with running statistics, in-place functions, pooling and a residual connection."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
        self.second, self.last = nn.Conv2d(16, 16, 3, padding=1), nn.Linear(16 * 16, 10)

    def forward(self, images):
        x = functional.relu(self.norm(self.first(images)), inplace=True)
        x = functional.max_pool2d(x + functional.silu(self.second(x)), 2)
        x = functional.dropout(functional.adaptive_avg_pool2d(x, 4), 0.2, self.training)
        return self.last(x.flatten(1))


def text_step(model):
    """A function that calls the model on a batch, as it is or compiled."""
    del model
    text = torch.randint(0, 128, (8, 64), generator=torch.Generator().manual_seed(3))
    return lambda call: call(text)


def image_step(model):
    """The same with a loss outside the model."""
    del model
    generator = torch.Generator().manual_seed(3)
    images = torch.randn(8, 3, 32, 32, generator=generator)
    labels = torch.randint(0, 10, (8,), generator=generator)
    return lambda call: functional.cross_entropy(call(images), labels)


class Trained:
    """Losses, final state and the most bytes of tensors in any step but the first."""

    def __init__(self, losses, state, peak):
        self.losses, self.state, self.peak = losses, state, peak


def train(model, call, loss_of, steps=3, parts=1, made_by=torch.optim.AdamW):
    """Steps of an optimizer, each of so many parts whose gradients are added."""
    optimizer = made_by(model.parameters(), lr=1e-3)
    torch.manual_seed(11)
    losses, peak = [], 0
    for number in range(steps):
        optimizer.zero_grad()

        def step():
            for _ in range(parts):
                loss = loss_of(call)
                loss.backward()
            optimizer.step()
            return loss.detach()

        if number == 0:
            losses.append(step())
            continue
        gc.collect()
        before = sum(storages(live_tensors("cpu")).values())
        with Allocations() as allocations:
            losses.append(step())
        peak = max(peak, before + allocations.peak())
    return Trained(losses, {k: v.detach().clone() for k, v in model.state_dict().items()}, peak)


class PyTorchCase(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        gc.collect()

    def make_errors_of_warnings(self, **which):
        """In this test; `which` as of warnings.filterwarnings()."""
        caught = warnings.catch_warnings()
        caught.__enter__()
        self.addCleanup(caught.__exit__, None, None, None)
        warnings.filterwarnings("error", **which)

    def made(self, kind):
        """A model with the same weights each time."""
        torch.manual_seed(5)
        return kind().train()

    def expect_same(self, ours, theirs):
        """Bits."""
        for a, b in zip(ours.losses, theirs.losses):
            self.assertTrue(torch.equal(a, b), f"losses {ours.losses} and {theirs.losses}")
        for name, value in theirs.state.items():
            self.assertTrue(torch.equal(ours.state[name], value), name)

    def plans_of(self, model):
        """The PlannedGraphs of a compiled model."""
        return [plan for each in models_of(model) for plan in each.plans]
