"""The steps that tools/bench times in PyTorch: the same work whatever the layout, and wherever
activations lie."""

import argparse
import contextlib
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

TOOLS = pathlib.Path(__file__).resolve().parents[3] / "tools" / "bench"
sys.path.insert(0, str(TOOLS))

try:
    import torch
    from torch import nn
except ImportError as error:
    print(f"skipped: PyTorch does not load ({error}); tools/setup --bench installs it")
    raise unittest.SkipTest("there is no PyTorch") from error

import pytorch_out_of_core_step
import pytorch_step

STEPS = 3


def small_network(classes):
    """At a batch of 2 and images of 64x64 the convolution's output takes 256 KiB: enough for a
    file."""
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2),
                         nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Linear(8 * 16 * 16, classes))


PARAMETERS = 3 * 8 * 9 + 8 + 8 * 8 * 9 + 8 + 8 * 16 * 16 * 10 + 10


class Steps(unittest.TestCase):
    def setUp(self):
        networks = mock.patch.dict(pytorch_step.NETWORKS, small=small_network)
        networks.start()
        self.addCleanup(networks.stop)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def options(self, **more):
        return argparse.Namespace(**{"net": "small", "batch": 2, "classes": 10, "threads": 1,
                                     "steps": STEPS, "lr": 0.01, "weight_decay": 5e-4,
                                     "optimizer": "sgd", "image_size": 64,
                                     "channels_last": False, "device": "cpu",
                                     "way": "resident", "folder": self.folder, **more})

    def plain(self, **more):
        return pytorch_step.train(self.options(), image_size=64, **more)

    def test_learn_the_batch(self):
        result = self.plain()
        self.assertEqual(result["parameters"], PARAMETERS)
        self.assertEqual(len(result["seconds"]), STEPS)
        self.assertEqual(len(result["losses"]), STEPS)
        self.assertLess(result["losses"][-1], result["losses"][0])

    def test_update_by_the_optimizer_that_is_asked_for(self):
        parameters = list(small_network(10).parameters())
        for name, kind in {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}.items():
            self.assertIsInstance(
                pytorch_step.optimizer_of(self.options(optimizer=name), parameters), kind)

    def test_compute_the_same_in_either_layout(self):
        layouts = []

        def noted(network):
            network[0].register_forward_hook(lambda layer, read, made: layouts.append(
                read[0].is_contiguous(memory_format=torch.channels_last)))
            return network

        losses = [self.plain(channels_last=is_last, wrap=noted)["losses"]
                  for is_last in (False, True)]
        self.assertEqual(layouts, STEPS * [False] + STEPS * [True])
        for one, other in zip(*losses):
            self.assertAlmostEqual(one, other, places=4)

    def test_run_each_forward_pass_in_its_contexts_and_no_backward_pass(self):
        events = []

        @contextlib.contextmanager
        def noted(name):
            events.append(f"{name} begins")
            yield
            events.append(f"{name} ends")

        def watched(network):
            network[-1].weight.register_hook(lambda gradient: events.append("backward"))
            return network

        self.plain(hooks=lambda: noted("hooks"), precision=lambda: noted("precision"),
                   wrap=watched)
        self.assertEqual(events, STEPS * ["hooks begins", "precision begins", "precision ends",
                                          "hooks ends", "backward"])

    def test_give_the_same_losses_wherever_activations_lie(self):
        expected = self.plain()
        for way in ("resident", "checkpoint", "disk"):
            result = pytorch_out_of_core_step.measure(self.options(way=way))
            self.assertEqual(result["losses"], expected["losses"], way)
            self.assertEqual(result["parameters"], PARAMETERS)
            self.assertIsNone(result["near_peak_bytes"])  # a GPU's
            self.assertGreater(result["peak_resident_set_bytes"], 1 << 20)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_keep_activations_in_files_until_the_way_back(self):
        counts = []

        def watched(network):
            network[-1].register_forward_hook(
                lambda *_: counts.append(len(list(self.folder.iterdir()))))
            return network

        options = self.options(way="disk")
        with mock.patch.dict(pytorch_step.NETWORKS, small=lambda n: watched(small_network(n))):
            pytorch_out_of_core_step.measure(options)
        self.assertEqual(len(counts), STEPS)
        self.assertGreater(min(counts), 0)

    def test_run_each_segment_but_the_last_again(self):
        passes = []

        def watched(network):
            for layer in (network[0], network[-1]):
                layer.register_forward_hook(lambda layer, *_: passes.append(type(layer).__name__))
            return network

        with mock.patch.dict(pytorch_step.NETWORKS, small=lambda n: watched(small_network(n))):
            pytorch_out_of_core_step.measure(self.options(way="checkpoint"))
        self.assertEqual(passes, STEPS * ["Conv2d", "Linear", "Conv2d"])


if __name__ == "__main__":
    unittest.main()
