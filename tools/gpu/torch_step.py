"""Times training steps in PyTorch on a GPU; `run` starts it as a process of its own.

A step is forward, backward and an update by SGD with momentum, in channels_last, on a batch that
lies ready on the GPU. bf16: autocast, fp32 parameters; tf32: TF32 in convolutions and matrix
products. cudnn.benchmark chooses among cuDNN's engines during the warm-up.
"""

import argparse
import json
import pathlib
import sys
import time

import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))


def make_network(name, classes):
    """torchvision's, or where there is none the one of tools/bench, and which of the two."""
    try:
        from torchvision import models
        return getattr(models, name)(num_classes=classes), "torchvision"
    except (ImportError, RuntimeError):
        import pytorch_step
        return pytorch_step.NETWORKS[name](classes), "tools/bench/pytorch_step.py"


class Training:
    """A network, its optimizer and a batch, on the GPU."""

    def __init__(self, options):
        device = torch.device("cuda")
        network, self.source = make_network(options.net, options.classes)
        self.network = network.to(device, memory_format=torch.channels_last).train()
        images = torch.randn(options.batch, 3, 224, 224, device=device)
        self.images = images.to(memory_format=torch.channels_last)
        self.labels = torch.randint(options.classes, (options.batch,), device=device)
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=options.lr, momentum=0.9)
        self.model = torch.compile(self.network) if options.compile else self.network
        self.is_mixed = options.precision == "bf16"

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16, enabled=self.is_mixed):
            loss = self.criterion(self.model(self.images), self.labels)
        loss.backward()
        self.optimizer.step()
        return loss


def train(options):
    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    training = Training(options)
    seconds, losses = [], []
    for _ in range(options.steps):  # each waited for, as ours are
        begin = time.perf_counter()
        losses.append(training.step().item())
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
    begin = time.perf_counter()
    for _ in range(options.steps):
        training.step()
    torch.cuda.synchronize()
    return {"network": training.source,
            "parameters": sum(p.numel() for p in training.network.parameters()),
            "seconds": seconds, "losses": losses,
            "unwatched_step_seconds": (time.perf_counter() - begin) / options.steps,
            "peak_bytes": torch.cuda.max_memory_allocated()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--net", choices=["resnet50", "vgg16"], required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--precision", choices=["bf16", "tf32"], required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--lr", type=float, required=True)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--compile", action="store_true", help="by torch.compile")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit(f"{sys.argv[0]}: this PyTorch sees no GPU")
    print(json.dumps({"pytorch": torch.__version__, "cudnn": torch.backends.cudnn.version(),
                      "device": torch.cuda.get_device_name(), **train(options)}))


if __name__ == "__main__":
    main()
