"""The layers of network files in PyTorch, on tensors (N, C, H, W)."""

import math

import torch
import torch.nn.functional as F

from dropout_mask import dropout_factors

SEED = 5  # of dropout


class Context:
    """What layers need to know of the step they are in."""

    def __init__(self, step, labels=None):
        self.step = step
        self.labels = labels  # (N, H, W), negative where one does not count
        self.stream = 0  # of the next dropout layer
        self.is_training = True


def trained_shapes(layer, x):
    """Of the arrays that a layer trains, in the order of src/ops/parameter.h; x is the shape it reads."""
    f = layer.fields
    if layer.kind == "batch-norm":
        return [(x[1],), (x[1],)]
    if layer.kind == "convolution":
        out, weight = f["channels"], (f["channels"], x[1] // f["groups"], *f["kernel"])
    elif layer.kind == "transposed-convolution":
        out, weight = f["channels"], (x[1], f["channels"] // f["groups"], *f["kernel"])
    elif layer.kind == "linear":
        out, weight = f["features"], (f["features"], math.prod(x[1:]))
    else:
        return []
    return [weight, (out,)] if f["bias"] else [weight]


def _pool(x, f):
    if f["kind"] == "max":
        return F.max_pool2d(x, f["kernel"], f["stride"], f["padding"], ceil_mode=f["rounds-up"])
    return F.avg_pool2d(x, f["kernel"], f["stride"], f["padding"], ceil_mode=f["rounds-up"],
                        count_include_pad=f["counts-padding"])


def _crop(x, like, f):
    height, width = like.shape[2:]
    top, left = f["offset"]
    if f["centred"]:
        top, left = (x.shape[2] - height) // 2, (x.shape[3] - width) // 2
    return x[:, :, top:top + height, left:left + width]


def _drop(x, f, context):
    factors = dropout_factors(x.shape, f["probability"], context.stream, SEED, context.step)
    context.stream += 1
    return x * torch.tensor(factors, dtype=x.dtype)


def forward(layer, inputs, trained, running, context):
    """What `layer` makes of `inputs`; a loss, if it is one."""
    f, x = layer.fields, inputs[0]
    weight, bias = [*trained, None, None][:2]
    functions = {
        "convolution": lambda: F.conv2d(x, weight, bias, f["stride"], f["padding"], f["dilation"],
                                        f["groups"]),
        "transposed-convolution": lambda: F.conv_transpose2d(
            x, weight, bias, f["stride"], f["padding"], f["output-padding"], f["groups"],
            f["dilation"]),
        "batch-norm": lambda: F.batch_norm(x, *running, weight, bias, context.is_training,
                                           f["momentum"], f["epsilon"]),
        "relu": lambda: F.relu(x),
        "gelu": lambda: F.gelu(x),
        "flatten": lambda: x.flatten(1)[..., None, None],
        "global-average-pool": lambda: x.mean((2, 3), keepdim=True),
        "pool": lambda: _pool(x, f),
        "local-response-norm": lambda: F.local_response_norm(x, f["size"], f["alpha"], f["beta"],
                                                             f["k"]),
        "linear": lambda: F.linear(x.flatten(1), weight, bias)[..., None, None],
        "dropout": lambda: _drop(x, f, context),
        "add": lambda: x + inputs[1],
        "concat": lambda: torch.cat(inputs, 1),
        "crop": lambda: _crop(x, inputs[1], f),
        "softmax-cross-entropy": lambda: f["weight"] * F.cross_entropy(x, context.labels,
                                                                       ignore_index=-1),
    }
    return functions[layer.kind]()


def best_two(f, x, y):
    """The two largest numbers of each window of a max pool, of the fields `f`, that made `y` of `x`."""
    padding = []
    for axis in (1, 0):  # behind the image as much as the last window needs
        kernel, stride, before = (f[key][axis] for key in ("kernel", "stride", "padding"))
        needed = (y.shape[2 + axis] - 1) * stride + kernel - before - x.shape[2 + axis]
        padding += [before, max(before, needed)]
    windows = F.pad(x, padding, value=-math.inf)
    for axis in (0, 1):
        windows = windows.unfold(2 + axis, f["kernel"][axis], f["stride"][axis])
    return windows.flatten(4).topk(2).values


def flat(parts):
    return torch.cat([part.detach().flatten() for part in parts]).tolist()


def distance(a, b):
    """Of two lists of numbers, relative to the norm of the second."""
    a, b = torch.tensor(a, dtype=torch.float64), torch.tensor(b, dtype=torch.float64)
    return float((a - b).norm() / b.norm())
