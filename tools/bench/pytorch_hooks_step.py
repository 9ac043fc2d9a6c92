"""Trains ResNet-18 in PyTorch with saved tensors in one of several places;
tools/bench/pytorch_hooks starts it as a process of its own.

Prints losses, seconds of each step, and the peak of the process's memory above what it had before
the first step.
"""

import argparse
import contextlib
import ctypes
import json
import mmap
import os
import pathlib
import sys
import time

import torch
from torch import nn

from disk_hooks import SMALLEST, saved_in_files, stays
from pytorch_step import loaded_blas, resnet18

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))


class InMemory:
    """PyTorch as it is."""

    def __init__(self, options, network):
        pass

    def step(self):
        return contextlib.nullcontext()

    def files(self):
        """Paths of those it keeps tensors in."""
        return []

    def result(self):
        return {}


class Counted(InMemory):
    """Adds up the memory that autograd saves."""

    def __init__(self, options, network):
        self.saved = {}

    def step(self):
        self.saved.clear()
        return torch.autograd.graph.saved_tensors_hooks(self.count, lambda tensor: tensor)

    def count(self, tensor):
        if not stays(tensor):
            storage = tensor.storage()  # alive until the backward pass
            self.saved[storage._cdata] = storage.nbytes()
        return tensor.detach()

    def result(self):
        return {"saved_bytes": sum(self.saved.values())}


class OnDisk(InMemory):
    """In files, as in PyTorch's tutorial on hooks for saved tensors."""

    def __init__(self, options, network):
        self.folder, self.names = options.folder, set()

    def step(self):
        return saved_in_files(self.folder, self.names)

    def files(self):
        return self.names


class InSpace(InMemory):
    """Spillway's."""

    def __init__(self, options, network):
        import spillway_um
        self.folder = options.folder
        far = options.folder if options.way == "spillway-file" else None
        self.space = spillway_um.Space(options.near, options.capacity, far=far)
        self.saved = spillway_um.saved_tensors(self.space, keep=network, smallest=SMALLEST)

    def step(self):
        return self.saved

    def files(self):
        """Without a name; this process has it open."""
        open_files = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
        folder = os.path.realpath(self.folder) + "/"
        return [f for f in open_files if os.path.realpath(f).startswith(folder)]

    def result(self):
        return {"space": self.space.counters(), "saved": self.saved.counters()}


WAYS = {"plain": InMemory, "count": Counted, "disk-hooks": OnDisk, "spillway-ram": InSpace,
        "spillway-file": InSpace}


def memory(name):
    """VmRSS or VmHWM of this process in bytes."""
    with open("/proc/self/status", encoding="utf-8") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith(name))


def cached(path):
    """Bytes of a file that are in the page cache, and all its bytes."""
    size = os.path.getsize(path)
    if size == 0:
        return 0, 0
    with open(path, "rb") as file, mmap.mmap(file.fileno(), size, mmap.MAP_PRIVATE,
                                             mmap.PROT_READ | mmap.PROT_WRITE) as memory_map:
        pages = (ctypes.c_ubyte * -(-size // mmap.PAGESIZE))()
        start = ctypes.c_ubyte.from_buffer(memory_map)
        failed = ctypes.CDLL(None).mincore(ctypes.c_void_p(ctypes.addressof(start)),
                                           ctypes.c_size_t(size), pages)
        del start  # or the map cannot be closed
    if failed:
        raise OSError(f"mincore of {path} failed")
    return sum(page & 1 for page in pages) * mmap.PAGESIZE, size


def train(options):
    torch.manual_seed(1)
    torch.set_num_threads(options.threads)
    network = resnet18(1000).train()
    images = torch.randn(options.batch, 3, 224, 224)
    labels = torch.randint(1000, (options.batch,))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    with open("/proc/self/clear_refs", "w", encoding="utf-8") as file:
        file.write("5")  # the peak begins anew
    before = memory("VmRSS")
    way = WAYS[options.way](options, network)
    seconds, cpu_seconds, losses, in_cache, in_files = [], [], [], 0, 0
    for number in range(options.steps):
        begin, cpu_begin = time.perf_counter(), time.process_time()
        optimizer.zero_grad(set_to_none=True)
        with way.step():
            loss = criterion(network(images), labels)
        if number == 0:  # not counted as a step's time
            sizes = [cached(path) for path in way.files()]
            in_cache, in_files = (sum(column) for column in zip(*sizes, (0, 0)))
        loss.backward()
        optimizer.step()
        losses.append(loss.item().hex())
        seconds.append(time.perf_counter() - begin)
        cpu_seconds.append(time.process_time() - cpu_begin)
    return {"losses": losses, "seconds": seconds, "cpu_seconds": cpu_seconds,
            "peak_bytes": memory("VmHWM") - before, "page_cache_bytes": in_cache,
            "file_bytes": in_files, **way.result()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--way", choices=sorted(WAYS), required=True)
    for name in ("--batch", "--threads", "--steps"):
        parser.add_argument(name, type=int, required=True)
    for name in ("--near", "--capacity"):
        parser.add_argument(name, type=int, default=0)
    parser.add_argument("--folder")
    options = parser.parse_args()
    print(json.dumps({"pytorch": torch.__version__, "blas": loaded_blas(), **train(options)}))


if __name__ == "__main__":
    main()
