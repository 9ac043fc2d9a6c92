"""Times training steps in PyTorch; tools/bench/pytorch starts it as a process of its own.
pytorch_out_of_core_step.py takes its steps from here.

The networks are those of nets/families/vgg.cpp and resnet.cpp (ResNet v1.5: the stride is in the 3x3
convolution), and transformers as their libraries have them, without dropout. A step is forward,
backward and an update by SGD with momentum or AdamW, with weight decay, on a batch that lies ready.
"""

import argparse
import contextlib
import json
import time

import torch
from torch import nn


def vgg16(classes):
    layers, channels = [], 3
    for convolutions, width in [(2, 64), (2, 128), (3, 256), (3, 512), (3, 512)]:
        for _ in range(convolutions):
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU(inplace=True)]
            channels = width
        layers.append(nn.MaxPool2d(2))
    layers += [nn.Flatten(),
               nn.Linear(512 * 7 * 7, 4096), nn.ReLU(inplace=True), nn.Dropout(),
               nn.Linear(4096, 4096), nn.ReLU(inplace=True), nn.Dropout(),
               nn.Linear(4096, classes)]
    return nn.Sequential(*layers)


def unit(channels, width, kernel, stride=1):
    return [nn.Conv2d(channels, width, kernel, stride, padding=kernel // 2, bias=False),
            nn.BatchNorm2d(width)]


class Bottleneck(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        self.inner = nn.Sequential(*unit(channels, width, 1), nn.ReLU(inplace=True),
                                   *unit(width, width, 3, stride), nn.ReLU(inplace=True),
                                   *unit(width, 4 * width, 1))
        has_projection = stride != 1 or channels != 4 * width
        self.shortcut = nn.Sequential(*(unit(channels, 4 * width, 1, stride)
                                        if has_projection else []))

    def forward(self, x):
        return torch.relu_(self.inner(x).add_(self.shortcut(x)))


class BasicBlock(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        self.inner = nn.Sequential(*unit(channels, width, 3, stride), nn.ReLU(inplace=True),
                                   *unit(width, width, 3))
        self.shortcut = nn.Sequential(*(unit(channels, width, 1, stride) if stride != 1 else []))

    def forward(self, x):
        return torch.relu_(self.inner(x).add_(self.shortcut(x)))


def resnet(block, expansion, depths, classes):
    layers = [*unit(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, padding=1)]
    channels = 64
    for stage, blocks in enumerate(depths):
        width = 64 << stage
        for i in range(blocks):
            layers.append(block(channels, width, 2 if stage > 0 and i == 0 else 1))
            channels = expansion * width
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes)]
    return nn.Sequential(*layers)


def resnet18(classes):
    return resnet(BasicBlock, 1, [2, 2, 2, 2], classes)


def resnet50(classes):
    return resnet(Bottleneck, 4, [3, 4, 6, 3], classes)


NETWORKS = {"vgg16": vgg16, "resnet18": resnet18, "resnet50": resnet50}


class LanguageModel(nn.Module):
    """transformers' GPT-2, by its loss: each token is to tell the next one."""

    def __init__(self):
        super().__init__()
        import transformers  # pylint: disable=import-outside-toplevel
        transformers.logging.set_verbosity_error()
        self.model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
            embd_pdrop=0.0, attn_pdrop=0.0, resid_pdrop=0.0, use_cache=False))

    def forward(self, tokens):
        return self.model(input_ids=tokens, labels=tokens).loss


def vit_b16(classes):
    import torchvision  # pylint: disable=import-outside-toplevel
    return torchvision.models.vit_b_16(num_classes=classes)


TRANSFORMERS = ("gpt2", "vit-b16")


def network_and_loss(options, image_size, place):
    """What is trained, and a function that gives its loss when it is called with it."""
    if options.net == "gpt2":
        tokens = torch.randint(50257, (options.batch, options.sequence_length))
        tokens = tokens.to(place["device"])
        return LanguageModel(), lambda model: model(tokens)
    make = vit_b16 if options.net == "vit-b16" else NETWORKS[options.net]
    network = make(options.classes)
    images = torch.randn(options.batch, 3, image_size, image_size).to(**place)
    labels = torch.randint(options.classes, (options.batch,)).to(place["device"])
    criterion = nn.CrossEntropyLoss()
    return network, lambda model: criterion(model(images), labels)


def optimizer_of(options, parameters):
    if options.optimizer == "adamw":
        return torch.optim.AdamW(parameters, lr=options.lr, weight_decay=options.weight_decay)
    return torch.optim.SGD(parameters, lr=options.lr, momentum=0.9,
                           weight_decay=options.weight_decay)


def loaded_blas():
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return sorted({line.split()[-1] for line in maps if "blas" in line.split()[-1]})


def train(options, *, image_size=224, device="cpu", channels_last=False,
          wrap=lambda network: network, hooks=contextlib.nullcontext,
          precision=contextlib.nullcontext):
    """Parameters, and of each step of a network its seconds and loss.

    `wrap` returns what is trained in a network's place. Each forward pass runs in a context of
    `hooks()` and one of `precision()`.
    """
    torch.manual_seed(1)
    torch.set_num_threads(options.threads)
    place = {"device": device,
             "memory_format": torch.channels_last if channels_last else torch.contiguous_format}
    network, loss_of = network_and_loss(options, image_size, place)
    network = wrap(network).to(**place).train()
    optimizer = optimizer_of(options, network.parameters())
    seconds, losses = [], []
    for _ in range(options.steps):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with hooks(), precision():
            loss = loss_of(network)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if device == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
    return {"parameters": sum(p.numel() for p in network.parameters()),
            "seconds": seconds, "losses": losses}


def add_step_flags(parser):
    """Those that train() reads, and --channels-last."""
    parser.add_argument("--net", choices=sorted([*NETWORKS, *TRANSFORMERS]), required=True)
    parser.add_argument("--optimizer", choices=["sgd", "adamw"], default="sgd")
    parser.add_argument("--sequence-length", type=int, default=256)
    for name in ("--batch", "--classes", "--threads", "--steps"):
        parser.add_argument(name, type=int, required=True)
    for name in ("--lr", "--weight-decay"):
        parser.add_argument(name, type=float, required=True)
    parser.add_argument("--channels-last", action="store_true")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    add_step_flags(parser)
    parser.add_argument("--bf16", action="store_true", help="autocast")
    parser.add_argument("--compile", action="store_true", help="by torch.compile")
    options = parser.parse_args()
    steps = train(options, channels_last=options.channels_last,
                  wrap=torch.compile if options.compile else lambda network: network,
                  precision=lambda: torch.autocast("cpu", torch.bfloat16, enabled=options.bf16))
    print(json.dumps({"pytorch": torch.__version__, "python": torch.__file__,
                      "blas": loaded_blas(), **steps}))


if __name__ == "__main__":
    main()
