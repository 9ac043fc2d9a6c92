"""Fashion-MNIST as Debian's dataset-fashion-mnist has it: what runs under a Python with PyTorch."""

import gzip
import pathlib

import numpy
import torch

FOLDER = pathlib.Path("/usr/share/datasets/fashion-mnist")
NAMES = ("t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag",
         "boot")
HEADER = {"images": 16, "labels": 8}  # bytes, of which the last ones are the images' sides


def read_part(folder, split, what):
    """"train" or "t10k", "images" (N, H, W) or "labels" (N), as bytes."""
    name = f"{split}-{what}-idx{3 if what == 'images' else 1}-ubyte"
    plain = pathlib.Path(folder) / name
    content = (plain.read_bytes() if plain.exists()
               else gzip.decompress(plain.with_name(name + ".gz").read_bytes()))
    numbers = numpy.frombuffer(content, numpy.uint8, offset=HEADER[what])
    if what == "labels":
        return numbers
    return numbers.reshape(-1, *numpy.frombuffer(content, ">u4", count=2, offset=8))


def read_split(folder, split):
    """Images and labels, as tensors that may be written."""
    return (torch.from_numpy(read_part(folder, split, "images").copy()),
            torch.from_numpy(read_part(folder, split, "labels").astype(numpy.int64)))


def rate_of(recipe, step, steps):
    """The learning rate of a step, from 0: linear warm-up, then cosine annealing to 0."""
    warm_up = min(recipe.get("warmup-steps", 0), steps // 2)
    if step < warm_up:
        return recipe["lr"] * (step + 1) / warm_up
    part = (step - warm_up) / (steps - warm_up)
    return recipe["lr"] * (1 + numpy.cos(numpy.pi * part)) / 2


def parameter_groups(model, decay):
    """Weight decay of weights alone, not of biases and norms."""
    weights = [each for each in model.parameters() if each.ndim > 1]
    others = [each for each in model.parameters() if each.ndim <= 1]
    return [{"params": weights, "weight_decay": decay}, {"params": others, "weight_decay": 0}]
