"""Trains a network with PyTorch's DistributedDataParallel (gloo) as `spillway train --micro-batches`
does: the same first weights, images, order and micro-batches, one rank each. Prints the losses, means
over all ranks, and the norms of the gradients, as JSON. What rank_training runs."""

import argparse
import json
import os
import tempfile

import torch
import torchvision
from safetensors.torch import load_file
from torch import distributed, multiprocessing, nn
from torch.nn import functional

from fashion_mnist import read_split

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("network", choices=("lenet", "resnet50"))
    add("--weights", required=True)
    add("--idx", required=True)
    add("--batch", type=int, required=True)
    add("--ranks", type=int, required=True)
    add("--steps", type=int, required=True)
    add("--side", type=int, required=True)
    add("--seed", type=int, required=True)
    add("--lr", type=float, default=0.01)
    add("--momentum", type=float, default=0.9)
    add("--double", action="store_true", help="compute in double precision")
    return parser.parse_args()


def mix(x):
    """SplitMix64's finalizer, as src/io/random.h has it."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & MASK
    return x ^ (x >> 31)


def shuffled(count, seed, epoch):
    """The order of an epoch, as src/io/random.cpp draws it."""
    state = 0
    for part in (seed, epoch):
        state = mix(state + GOLDEN + mix(part + GOLDEN & MASK) & MASK)
    keys = []
    for _ in range(6):
        state = state + GOLDEN & MASK
        keys.append(mix(state))
    bits = (count - 1).bit_length()
    half = (bits + 1) // 2 if bits > 2 else 1
    mask = (1 << half) - 1

    def encipher(x):
        left, right = x >> half, x & mask
        for key in keys:
            left, right = right, left ^ (mix(right + key & MASK) & mask)
        return left << half | right

    order = []
    for place in range(count):
        x = encipher(place)
        while x >= count:
            x = encipher(x)
        order.append(x)
    return order


def lenet():
    """With the names that spillway gives to layers."""
    class LeNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
            self.conv2 = nn.Conv2d(6, 16, 5)
            self.fc3 = nn.Linear(400, 120)
            self.fc4 = nn.Linear(120, 84)
            self.fc5 = nn.Linear(84, 10)

        def forward(self, x):
            for convolution in (self.conv1, self.conv2):
                x = functional.max_pool2d(functional.relu(convolution(x)), 2)
            x = functional.relu(self.fc4(functional.relu(self.fc3(x.flatten(1)))))
            return self.fc5(x)

    return LeNet()


def load(options):
    """The network with the weights of a checkpoint of spillway's, which may hold more than these."""
    model = lenet() if options.network == "lenet" else torchvision.models.resnet50(num_classes=10)
    stored = load_file(options.weights)
    own = model.state_dict()
    names = {name: name for name in own if name in stored}
    wanted = [name for name in own if not name.endswith("num_batches_tracked")]
    missing = sorted(set(wanted) - set(names))
    if missing:
        raise SystemExit(f"{options.weights} has no tensor {missing[0]}")
    model.load_state_dict({name: stored[name] for name in names}, strict=False)
    return model.double() if options.double else model


def prepared(options):
    images, labels = read_split(options.idx, "train")
    numbers = images.double() / 255
    mean, deviation = numbers.mean().float(), numbers.std(correction=0).float()
    images = ((images.float() / 255 - mean) / deviation).unsqueeze(1)
    if options.double:  # the same numbers
        images = images.double()
    channels = 1 if options.network == "lenet" else 3
    assert images.shape[-1] == options.side, "images are not resized here"
    return images.expand(-1, channels, -1, -1), labels


def work(rank, options, rendezvous):
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank,
                                   world_size=options.ranks)
    images, labels = prepared(options)
    model = nn.parallel.DistributedDataParallel(load(options))
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr, momentum=options.momentum)
    in_epoch = len(labels) // options.batch
    of_rank = options.batch // options.ranks
    losses, norms = [], []
    for step in range(options.steps):
        if step % in_epoch == 0:
            order = shuffled(len(labels), options.seed, step // in_epoch)
        first = step % in_epoch * options.batch + rank * of_rank
        chosen = order[first:first + of_rank]
        loss = functional.cross_entropy(model(images[chosen]), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        norms.append(nn.utils.get_total_norm(each.grad for each in model.parameters()).item())
        optimizer.step()
        mean = loss.detach().clone()
        distributed.all_reduce(mean)
        losses.append(mean.item() / options.ranks)
    if rank == 0:
        print(json.dumps({"losses": losses, "gradient_norms": norms,
                          "torch": torch.__version__}), flush=True)
    distributed.destroy_process_group()


def main():
    options = parse_arguments()
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(work, (options, os.path.join(folder, "ranks")), options.ranks)


if __name__ == "__main__":
    main()
