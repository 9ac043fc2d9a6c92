"""Trains a model in one of several ways to save memory; tools/bench/pytorch_budgets and
pytorch_methods start it as a process of its own.

Prints as JSON: losses and a digest of the final state, and of each step its seconds, or with
--memory its peaks.
"""

import argparse
import hashlib
import json
import pathlib
import resource
import sys
import time
import warnings

import torch

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "python"))

from pytorch_models import MODELS, items, model_and_loss
from pytorch_ways import way_of
from tensor_memory import peaks_of, resident


class Training:
    """A model, its optimizer, and one way to train it."""

    def __init__(self, options):
        torch.set_num_threads(options.threads)
        torch.manual_seed(5)
        self.model, self.loss_of = model_and_loss(options.model, options.size, options.batch)
        self.way = way_of(options.way, self.model, torch.optim.AdamW(
            self.model.parameters(), lr=1e-4), options.far)
        self.optimizer = self.way.optimizer
        self.losses = []

    def step(self):
        """Forward, backward, update."""
        with self.way.forward():
            loss = self.loss_of(self.way.call)
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.item().hex())

    def state_digest(self):
        """Of the bits of all parameters and buffers."""
        digest = hashlib.sha256()
        for name, value in self.model.state_dict().items():
            digest.update(name.encode())
            digest.update(value.detach().contiguous().flatten().view(torch.uint8).numpy())
        return digest.hexdigest()


def seconds_of(step):
    """Runs it."""
    begin = time.perf_counter()
    step()
    return time.perf_counter() - begin


def run(options):
    """As this module says. The first step, in which ways prepare, is timed whatever the options."""
    training = Training(options)
    steps, near = [], training.way.near_beside_tensors
    torch.manual_seed(11)
    with training.way.training(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for number in range(options.steps):
            training.optimizer.zero_grad()
            if options.memory and number > 0:
                steps.append(peaks_of(training.step, near()))
            else:
                steps.append({"seconds": seconds_of(training.step)})
    return {"losses": training.losses, "state": training.state_digest(), "steps": steps,
            "items": items(options.model, options.size, options.batch),
            "parameters": sum(p.numel() for p in training.model.parameters()),
            "warnings": [str(w.message) for w in caught if "spillway" in str(w.message)],
            **training.way.facts()}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--model", choices=MODELS, required=True)
    add("--size", choices=["small", "real"], required=True)
    add("--way", required=True, help="as pytorch_ways.py says")
    add("--far", help="a folder; far memory is in RAM without")
    add("--batch", type=int)
    add("--steps", type=int, required=True)
    add("--threads", type=int, required=True)
    add("--memory", action="store_true", help="peaks in place of times")
    add("--limit", type=int, help="bytes of data that the process may have beside PyTorch's own")
    return parser.parse_args()


def main():
    options = parse_arguments()
    if options.limit:
        most = resident("VmData") + options.limit
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    try:
        result = run(options)
    except Exception as error:  # pylint: disable=broad-exception-caught
        if type(error).__name__ == "BudgetTooSmall":
            result = {"refused": str(error), "smallest_bytes": error.smallest}
        elif "allocate memory" in str(error) or isinstance(error, MemoryError):
            result = {"out_of_memory": str(error).splitlines()[0]}
        else:
            raise
    print(json.dumps({"pytorch": torch.__version__, **result}))


if __name__ == "__main__":
    main()
