"""Times training steps in PyTorch with activations in one of several places;
tools/bench/pytorch_out_of_core starts it as a process of its own.

The work of a step is that of pytorch_step.py; on a GPU in channels-last and, by autocast, bfloat16.
"""

import argparse
import contextlib
import json
import time

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from disk_hooks import saved_in_files
from pytorch_step import NETWORKS, loaded_blas


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
    """The context in which a forward pass runs."""
    if options.way == "disk":
        return saved_in_files(options.folder)
    if options.way == "cpu":
        return torch.autograd.graph.save_on_cpu(pin_memory=True)
    return contextlib.nullcontext()


class Processor:
    """Where the work is done, and how."""

    def __init__(self, options):
        self.is_gpu = options.device == "cuda"
        self.layout = (torch.channels_last if self.is_gpu or options.channels_last
                       else torch.contiguous_format)
        torch.set_num_threads(options.threads)
        torch.backends.cudnn.benchmark = True

    def precision(self):
        return torch.autocast("cuda", torch.bfloat16) if self.is_gpu else contextlib.nullcontext()

    def finish(self):
        if self.is_gpu:
            torch.cuda.synchronize()

    def peak_bytes(self):
        """The most memory of the device that was taken; on a processor the process's own."""
        if self.is_gpu:
            return torch.cuda.max_memory_reserved()
        return peak_resident_set()


def peak_resident_set():
    with open("/proc/self/status", encoding="utf-8") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))


def train(options):
    torch.manual_seed(1)
    processor = Processor(options)
    network = NETWORKS[options.net](options.classes)
    if options.way == "checkpoint":
        network = Checkpointed(network)
    network = network.to(options.device, memory_format=processor.layout).train()
    side = options.image_size
    images = torch.randn(options.batch, 3, side, side).to(options.device,
                                                          memory_format=processor.layout)
    labels = torch.randint(options.classes, (options.batch,)).to(options.device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(network.parameters(), lr=options.lr, momentum=0.9,
                                weight_decay=options.weight_decay)
    seconds, losses = [], []
    for _ in range(options.steps):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with saving(options), processor.precision():
            loss = criterion(network(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        processor.finish()
        seconds.append(time.perf_counter() - begin)
    return {"parameters": sum(p.numel() for p in network.parameters()), "seconds": seconds,
            "losses": losses, "near_peak_bytes": processor.peak_bytes() if processor.is_gpu else None,
            "peak_resident_set_bytes": peak_resident_set()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--net", choices=sorted(NETWORKS), required=True)
    parser.add_argument("--way", choices=["resident", "checkpoint", "disk", "cpu"], required=True)
    parser.add_argument("--device", choices=["cpu", "cuda"], required=True)
    for name in ("--batch", "--image-size", "--classes", "--threads", "--steps"):
        parser.add_argument(name, type=int, required=True)
    for name in ("--lr", "--weight-decay"):
        parser.add_argument(name, type=float, required=True)
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--folder", help="for --way disk")
    options = parser.parse_args()
    print(json.dumps({"pytorch": torch.__version__, "blas": loaded_blas(), **train(options)}))


if __name__ == "__main__":
    main()
