"""Times training steps in PyTorch with activations in one of several places;
tools/bench/pytorch_out_of_core and tools/gpu/run start it as a process of its own.

The work of a step is that of pytorch_step.py; on a GPU in channels-last and, by autocast, bfloat16,
or in fp32 with TF32.
"""

import argparse
import contextlib
import json

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from disk_hooks import saved_in_files
from pytorch_step import add_step_flags, loaded_blas, train


def segments(network):
    """Its layers in groups: up to a max pooling, each residual block, and the rest."""
    groups = [[]]
    for layer in network:
        is_block = not isinstance(layer, nn.Flatten) and any(True for _ in layer.children())
        if is_block and groups[-1]:
            groups.append([])
        groups[-1].append(layer)
        if is_block or isinstance(layer, nn.MaxPool2d):
            groups.append([])
    return [nn.Sequential(*group) for group in groups if group]


class Checkpointed(nn.Module):
    """Keeps what each segment reads, and runs it again on the way back; the last one's stays."""

    def __init__(self, network):
        super().__init__()
        self.segments = nn.ModuleList(segments(network))

    def forward(self, x):
        for segment in self.segments[:-1]:
            x = checkpoint(segment, x, use_reentrant=False)
        return self.segments[-1](x)


def saving(options):
    """A context that a forward pass runs in."""
    if options.way == "disk":
        return saved_in_files(options.folder)
    if options.way == "cpu":
        return torch.autograd.graph.save_on_cpu(pin_memory=True)
    return contextlib.nullcontext()


def precision(options):
    """Another that it runs in."""
    if options.device == "cuda" and options.precision == "bf16":
        return torch.autocast("cuda", torch.bfloat16)
    return contextlib.nullcontext()


def peak_resident_set():
    with open("/proc/self/status", encoding="utf-8") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))


def measure(options):
    is_gpu = options.device == "cuda"
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = True
    steps = train(options, image_size=options.image_size, device=options.device,
                  channels_last=is_gpu or options.channels_last,
                  wrap=Checkpointed if options.way == "checkpoint" else lambda network: network,
                  hooks=lambda: saving(options), precision=lambda: precision(options))
    return {**steps, "near_peak_bytes": torch.cuda.max_memory_reserved() if is_gpu else None,
            "peak_resident_set_bytes": peak_resident_set()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    add_step_flags(parser)
    parser.add_argument("--way", choices=["resident", "checkpoint", "disk", "cpu"], required=True)
    parser.add_argument("--device", choices=["cpu", "cuda"], required=True)
    parser.add_argument("--precision", choices=["bf16", "tf32"], default="bf16", help="on a GPU")
    parser.add_argument("--image-size", type=int, required=True)
    parser.add_argument("--folder", help="for --way disk")
    options = parser.parse_args()
    print(json.dumps({"pytorch": torch.__version__, "blas": loaded_blas(), **measure(options)}))


if __name__ == "__main__":
    main()
