"""The steps that tools/gpu times in PyTorch, on the processor: of a small network."""

import argparse
import pathlib
import sys
import unittest
from unittest import mock

TOOLS = pathlib.Path(__file__).resolve().parents[3] / "tools"
sys.path[:0] = [str(TOOLS / "gpu"), str(TOOLS / "bench")]

try:
    from torch import nn
except ImportError as error:
    print(f"skipped: PyTorch does not load ({error}); tools/setup --bench installs it")
    raise unittest.SkipTest("there is no PyTorch") from error

import torch_step


def small_network(classes):
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, classes))


class ResidentSteps(unittest.TestCase):
    def setUp(self):
        networks = mock.patch.dict(torch_step.NETWORKS, small=small_network)
        networks.start()
        self.addCleanup(networks.stop)

    def measure(self, **more):
        return torch_step.measure(argparse.Namespace(**{
            "net": "small", "batch": 2, "classes": 10, "image_size": 16, "precision": "bf16",
            "steps": 4, "lr": 0.01, "compile": False, "operations": False, "device": "cpu",
            "sequence_length": 8, "optimizer": "sgd",
            **more}))

    def test_are_timed_one_by_one_and_by_the_wall_clock(self):
        found = self.measure()
        self.assertEqual(found["parameters"], 3 * 8 * 9 + 8 + 8 + 8 + 8 * 10 + 10)
        self.assertEqual(len(found["seconds"]), 4)
        self.assertGreater(found["wall_clock_seconds"], 0)
        self.assertNotIn("operations", found)

    def test_are_of_texts_too(self):
        model = nn.Embedding(16, 1)
        model.forward = lambda tokens: nn.Embedding.forward(model, tokens % 16).mean()
        with mock.patch.object(torch_step, "LanguageModel", return_value=model):
            found = self.measure(net=torch_step.TEXT_MODEL, optimizer="adamw", precision="tf32")
        self.assertEqual(found["parameters"], 16)
        self.assertEqual(len(found["seconds"]), 4)

    def test_have_operations_that_the_profiler_names(self):
        operations = self.measure(operations=True)["operations"]
        self.assertTrue(any("conv" in name for name in operations), operations)
        self.assertTrue(all(time > 0 for time in operations.values()))


if __name__ == "__main__":
    unittest.main()
