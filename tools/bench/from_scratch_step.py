"""Trains torchvision's ResNet-18 on Fashion-MNIST by a recipe of `spillway train`, and prints
accuracy and times as JSON. What from_scratch runs."""

import argparse
import contextlib
import json
import pathlib
import sys
import time

import torch
import torchvision
from torch.nn import functional

from fashion_mnist import FOLDER, parameter_groups, rate_of, read_split


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("recipe", type=pathlib.Path)
    add("--idx", type=pathlib.Path, default=FOLDER)
    add("--steps", type=int, help="stop after so many")
    add("--seed", type=int, default=1)
    add("--precision", choices=("fp32", "bf16"), default="fp32")
    return parser.parse_args()


class Images:
    """Standardised by mean and deviation of all pixels to learn from, resized, of three channels."""

    def __init__(self, learnt, side):
        numbers = learnt.double() / 255
        self.mean, self.deviation = numbers.mean().item(), numbers.std(correction=0).item()
        self.side = side

    def __call__(self, images):
        numbers = ((images.float() / 255 - self.mean) / self.deviation).unsqueeze(1)
        if self.side != images.shape[-1]:
            numbers = functional.interpolate(numbers, size=(self.side, self.side), mode="bilinear",
                                             align_corners=False)
        return numbers.expand(-1, 3, -1, -1).contiguous(memory_format=torch.channels_last)


def accuracy_of(model, prepare, images, labels, precision):
    model.eval()
    right = 0
    with torch.inference_mode(), precision():
        for begin in range(0, len(labels), 250):
            part = slice(begin, begin + 250)
            right += (model(prepare(images[part])).argmax(1) == labels[part]).sum().item()
    model.train()
    return right / len(labels)


def make_model(recipe):
    zero_gamma = recipe.get("zero-gamma", False)
    model = torchvision.models.resnet18(num_classes=10, zero_init_residual=zero_gamma)
    return model.to(memory_format=torch.channels_last)


def main():
    options = parse_arguments()
    recipe = json.loads(options.recipe.read_text(encoding="utf-8"))
    torch.manual_seed(options.seed)
    images, labels = read_split(options.idx, "train")
    tests = read_split(options.idx, "t10k")
    prepare = Images(images, recipe["image-size"])
    model = make_model(recipe)
    optimizer = torch.optim.SGD(parameter_groups(model, recipe["weight-decay"]), lr=1,
                                momentum=recipe["momentum"], nesterov=recipe["nesterov"])

    def precision():
        if options.precision == "fp32":
            return contextlib.nullcontext()
        return torch.autocast("cpu", torch.bfloat16)

    batch = recipe["batch"]
    in_epoch = len(labels) // batch
    steps = min(options.steps or sys.maxsize, recipe["epochs"] * in_epoch)
    begin = time.monotonic()
    epochs = []
    for step in range(steps):
        if step % in_epoch == 0:
            order = torch.randperm(len(labels))
        chosen = order[step % in_epoch * batch:][:batch]
        for group in optimizer.param_groups:
            group["lr"] = rate_of(recipe, step, steps)
        with precision():
            loss = functional.cross_entropy(model(prepare(images[chosen])).float(), labels[chosen],
                                            label_smoothing=recipe["label-smoothing"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % in_epoch == 0 or step + 1 == steps:
            epochs.append(accuracy_of(model, prepare, *tests, precision))
            print(f"pytorch: step {step + 1}/{steps}, loss {loss.item():.3f}, accuracy "
                  f"{epochs[-1]:.4f}, {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    print(json.dumps({"accuracy": epochs[-1], "accuracies": epochs, "steps": steps,
                      "seconds": time.monotonic() - begin, "torch": torch.__version__}))


if __name__ == "__main__":
    main()
