"""Loads batches of images with torchvision's ImageFolder and PyTorch's DataLoader, and prints images,
seconds and processor seconds as JSON, without the warm-up. What pytorch_loader runs."""

import argparse
import json
import os
import pathlib
import time

import torch
from torchvision import transforms
from torchvision.datasets import ImageFolder

TICKS = os.sysconf("SC_CLK_TCK")
IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    for name in ("side", "batch", "workers", "warm_up", "batches"):
        parser.add_argument(name, type=int)
    parser.add_argument("augmentation", choices=("none", "standard", "strong"))
    return parser.parse_args()


def recipe(augmentation, side):
    """As the program's --augment has it."""
    if augmentation == "none":
        first = [transforms.Resize(side * 256 // 224), transforms.CenterCrop(side)]
    else:
        first = [transforms.RandomResizedCrop(side), transforms.RandomHorizontalFlip()]
    if augmentation == "strong":
        first.append(transforms.ColorJitter(0.4, 0.4, 0.4))
    last = [transforms.ToTensor(), transforms.Normalize(*IMAGENET)]
    if augmentation == "strong":
        last.append(transforms.RandomErasing(0.1))
    return transforms.Compose(first + last)


def processor_seconds(processes):
    """Of this process and of others, in user and system mode."""
    ticks = 0
    for process in (os.getpid(), *processes):
        fields = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / TICKS


def main():
    options = parse_arguments()
    torch.manual_seed(1)
    data = ImageFolder(options.folder / "train", recipe(options.augmentation, options.side))
    count = options.warm_up + options.batches
    sampler = torch.utils.data.RandomSampler(data, True, count * options.batch)
    loader = torch.utils.data.DataLoader(data, options.batch, sampler=sampler, drop_last=True,
                                         num_workers=options.workers)
    batches = iter(loader)
    workers = [worker.pid for worker in batches._workers]  # nothing public tells
    for _ in range(options.warm_up):
        next(batches)
    processor, begin = processor_seconds(workers), time.monotonic()
    for _ in range(options.batches):
        next(batches)
    print(json.dumps({"images": options.batches * options.batch,
                      "seconds": time.monotonic() - begin,
                      "processor_seconds": processor_seconds(workers) - processor}))


if __name__ == "__main__":
    main()
