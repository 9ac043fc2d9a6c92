"""Times resident training steps in PyTorch, eager or compiled; pytorch_side.py starts it as a
process of its own.

The networks are those of tools/bench/pytorch_step.py, by autocast in bfloat16 or in fp32 with TF32;
those of images in channels-last. First come steps on a batch that lies ready, each of which is
waited for. Then come steps by the clock on the wall: each copies another batch from pinned RAM, as
Spillway does, and only the last is waited for. With --operations steps run under PyTorch's profiler.
"""

import argparse
import contextlib
import json
import pathlib
import sys
import time

import torch
from torch import nn
from torch.autograd import DeviceType

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))

from pytorch_step import NETWORKS, LanguageModel

WARM_UP = 3  # before what is timed; the first compiles
TEXT_MODEL = "gpt2"
VOCABULARY = 50257


class Training:
    """A network, its optimizer and two batches."""

    def __init__(self, options):
        torch.manual_seed(1)
        torch.backends.cudnn.benchmark = True
        torch.backends.cuda.matmul.allow_tf32 = True
        torch.backends.cudnn.allow_tf32 = True
        self.options = options
        self.is_gpu = options.device == "cuda"
        self.reads_text = options.net == TEXT_MODEL
        network = LanguageModel() if self.reads_text else NETWORKS[options.net](options.classes)
        layout = {} if self.reads_text else {"memory_format": torch.channels_last}
        self.network = network.to(device=options.device, **layout).train()
        self.parameters = sum(p.numel() for p in self.network.parameters())
        self.forward = torch.compile(self.network) if options.compile else self.network
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = self.new_optimizer()
        self.batches = [self.new_batch() for _ in range(2)]
        self.ready = self.copied(self.batches[0])

    def new_optimizer(self):
        parameters, rate = self.network.parameters(), self.options.lr
        if self.options.optimizer == "adamw":
            fused = {"fused": True} if self.is_gpu else {}
            return torch.optim.AdamW(parameters, lr=rate, **fused)
        return torch.optim.SGD(parameters, lr=rate, momentum=0.9)

    def new_batch(self):
        batch, side = self.options.batch, self.options.image_size
        if self.reads_text:
            parts = [torch.randint(VOCABULARY, (batch, self.options.sequence_length))]
        else:
            images = torch.randn(batch, 3, side, side)
            parts = [images.to(memory_format=torch.channels_last),
                     torch.randint(self.options.classes, (batch,))]
        return [part.pin_memory() if self.is_gpu else part for part in parts]

    def copied(self, batch):
        return [part.to(self.options.device, non_blocking=True) for part in batch]

    def step(self, batch):
        self.optimizer.zero_grad(set_to_none=True)
        with self.precision():
            loss = self.loss(*batch)
        loss.backward()
        self.optimizer.step()

    def loss(self, samples, labels=None):
        if self.reads_text:
            return self.forward(samples)
        return self.criterion(self.forward(samples), labels)

    def precision(self):
        if self.is_gpu and self.options.precision == "bf16":
            return torch.autocast("cuda", torch.bfloat16)
        return contextlib.nullcontext()

    def wait(self):
        if self.is_gpu:
            torch.cuda.synchronize()

    def timed_steps(self, count):
        seconds = []
        for _ in range(count):
            begin = time.perf_counter()
            self.step(self.ready)
            self.wait()
            seconds.append(time.perf_counter() - begin)
        return seconds

    def wall_clock_step(self, count):
        self.wait()
        begin = time.perf_counter()
        for i in range(count):
            self.step(self.copied(self.batches[i % len(self.batches)]))
        self.wait()
        return (time.perf_counter() - begin) / count

    def operations(self, count):
        """Microseconds a step of each operation that PyTorch's profiler names, its own alone."""
        activities = [torch.profiler.ProfilerActivity.CPU]
        if self.is_gpu:
            activities.append(torch.profiler.ProfilerActivity.CUDA)
        with torch.profiler.profile(activities=activities) as profile:
            self.timed_steps(count)
        times = {average.key: own_time(average, self.is_gpu) / count
                 for average in profile.key_averages() if is_operation(average)}
        return {name: time for name, time in times.items() if time > 0}


def is_operation(average):
    """Not a kernel, whose time counts for the operation that launched it."""
    return getattr(average, "device_type", DeviceType.CPU) == DeviceType.CPU


def own_time(average, is_gpu):
    if not is_gpu:
        return average.self_cpu_time_total
    for name in ("self_device_time_total", "self_cuda_time_total"):  # new and old PyTorch's
        if hasattr(average, name):
            return getattr(average, name)
    return 0


def measure(options):
    training = Training(options)
    begin = time.perf_counter()
    training.timed_steps(WARM_UP)
    found = {"pytorch": torch.__version__, "parameters": training.parameters,
             "warm_up_seconds": time.perf_counter() - begin,
             "seconds": training.timed_steps(options.steps),
             "wall_clock_seconds": training.wall_clock_step(options.steps)}
    if options.operations:
        found["operations"] = training.operations(WARM_UP)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--net", choices=[*NETWORKS, TEXT_MODEL], required=True)
    add("--batch", type=int, required=True)
    add("--classes", type=int, default=1000)
    add("--image-size", type=int, default=224)
    add("--sequence-length", type=int, default=1024)
    add("--optimizer", choices=["sgd", "adamw"], default="sgd")
    add("--precision", choices=["bf16", "tf32"], required=True)
    add("--steps", type=int, required=True)
    add("--lr", type=float, required=True)
    add("--compile", action="store_true")
    add("--operations", action="store_true")
    add("--device", choices=["cpu", "cuda"], default="cuda")
    print(json.dumps(measure(parser.parse_args())))


if __name__ == "__main__":
    main()
