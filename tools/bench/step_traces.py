"""Steps of any size as traces (prefetch/README.md): a chain, and a DAG with ResNet's short cuts."""

import json
import pathlib
import random
import sys

# Of a layer's output, and of its weights, which are small enough to be pinned.
ACTIVATION_BYTES = 8 << 20
WEIGHT_BYTES = 4 << 10


class _Step:
    """A step in the making: its forward tasks first, then what add_backward() makes of them."""

    def __init__(self, name, seed):
        self.trace = {"format": "spillway-trace", "version": 1, "name": name, "tasks": [], "data": []}
        self.layers = []
        self.random = random.Random(seed)

    def block(self, name, size, kind="tensor"):
        self.trace["data"].append({"id": len(self.trace["data"]), "bytes": size, "kind": kind,
                                   "name": name})
        return self.trace["data"][-1]["id"]

    def task(self, name, reads, writes, microseconds, phase, kind="other"):
        self.trace["tasks"].append(
            {"name": name, "reads": reads, "writes": writes, "workspace_bytes": 0, "phase": phase,
             "kind": kind, "recomputable": phase == "forward",
             "duration_ns": round(1000 * microseconds * self.random.uniform(0.5, 1.5))})

    def layer(self, inputs, microseconds, kind="convolution"):
        """A forward task that reads `inputs`; its output."""
        name = f"layer{len(self.layers)}"
        weights = None
        if kind == "convolution":
            weights = self.block(f"{name}.w", WEIGHT_BYTES, "weight")
        output = self.block(f"{name}.y", ACTIVATION_BYTES * self.random.choice((1, 2, 4)) // 2)
        reads = inputs + ([] if weights is None else [weights])
        self.task(f"{name}.forward", reads, [output], microseconds, "forward", kind)
        self.layers.append((name, inputs, weights, output, microseconds, kind))
        return output

    def add_backward(self, first):
        """Of all layers; no gradient is wanted of `first`, the batch."""
        size = {block["id"]: block["bytes"] for block in self.trace["data"]}
        gradients = {}
        for name, inputs, weights, output, microseconds, kind in reversed(self.layers):
            if output not in gradients:  # the last layer's: the loss
                gradients[output] = self.block(f"{name}.dy", size[output])
                self.task("loss", [output], [gradients[output]], 10, "backward")
            for i, wanted in enumerate(inputs):
                if wanted == first:
                    continue
                is_sum = wanted in gradients
                if not is_sum:
                    gradients[wanted] = self.block(f"{name}.dx{i}", size[wanted])
                reads = [wanted, gradients[output]] + ([gradients[wanted]] if is_sum else [])
                if weights is not None:
                    reads.append(weights)
                self.task(f"{name}.backward{i}", reads, [gradients[wanted]], microseconds,
                          "backward", kind)
            if weights is None:
                continue
            update = self.block(f"{name}.dw", WEIGHT_BYTES)
            self.task(f"{name}.weights", [inputs[0], gradients[output]], [update], microseconds,
                      "backward", kind)
            self.task(f"{name}.update", [update, weights], [weights], 2, "update")


def chain(tasks, seed=1):
    """A chain of layers with about so many tasks; all forward ones are recomputable."""
    step = _Step(f"chain of {tasks}", seed)
    first = output = step.block("batch", ACTIVATION_BYTES)
    for _ in range(max(1, tasks // 4)):
        output = step.layer([output], 400)
    step.add_backward(first)
    return step.trace


def resnet(tasks, seed=1):
    """Residual blocks: two layers with weights, a cheap one between, and a sum with what went in."""
    step = _Step(f"ResNet of {tasks}", seed)
    first = output = step.block("batch", ACTIVATION_BYTES)
    output = step.layer([output], 400)
    for _ in range(max(1, tasks // 13)):
        inner = step.layer([output], 400)
        inner = step.layer([inner], 40, "activation")
        inner = step.layer([inner], 400)
        output = step.layer([inner, output], 40, "join")
    step.add_backward(first)
    return step.trace


FAMILIES = {"chain": chain, "ResNet": resnet}


def write(path, family, tasks):
    """Writes the step of that family with about `tasks` tasks; their number."""
    trace = FAMILIES[family](tasks)
    path.write_text(json.dumps(trace), encoding="utf-8")
    return len(trace["tasks"])


if __name__ == "__main__":
    write(pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
