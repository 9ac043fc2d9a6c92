"""Families of networks, small enough to train in a second or two on the emulated GPU."""

import dataclasses

from emulated_runs import network_file, thin, words

CLOSE = 1e-5  # how far a loss may be from the host's, as a part of it


@dataclasses.dataclass(frozen=True)
class Family:
    """A network, and how it trains."""
    net: object  # a name, or a function that returns a file
    batch: int
    more: str = ""
    steps: int = 3
    close: float = CLOSE
    compared: int = 100  # how many steps have the host's losses
    budget: str = "min+30%"
    moves: bool = False  # plans of this budget move blocks; others may be too small for that

    def flags(self):
        net = self.net if isinstance(self.net, str) else self.net()
        return words("--net", net, "--batch", self.batch, self.more)


def part(network, divisor, sizes="--image-size 32", layers=None):
    """A network with its channels divided."""
    return lambda: thin(network, divisor, sizes + " --classes 10" * ("image" in sizes), layers)


WIDE = """spillway-network 1
name wide
input 1x28x28
classes 10

conv1   convolution channels=8 kernel=3 padding=1
relu1   relu
pool1   pool
drop1   dropout probability=0
fc1     linear features=96
relu2   relu
fc2     linear features=classes
loss    softmax-cross-entropy
"""
RESIDUAL = """spillway-network 1
name residual
input 3x32x32
classes 10

conv1   convolution channels=8 kernel=3 padding=1 bias=no
bn1     batch-norm
relu1   relu
conv2   convolution channels=8 kernel=3 padding=1 bias=no
bn2     batch-norm
sum     add bn2 relu1
relu2   relu
conv3   convolution channels=16 kernel=3 stride=2 padding=1 bias=no
bn3     batch-norm
relu3   relu
mean    global-average-pool
fc      linear features=classes
loss    softmax-cross-entropy
"""
TEXT = "--sequence-length 8 --vocabulary 256"
FAMILIES = {
    "lenet": Family("lenet", 96, steps=5, moves=True),
    "wide": Family(lambda: network_file(WIDE), 64),
    "residual": Family(lambda: network_file(RESIDUAL), 32, moves=True),
    "alexnet": Family(part("alexnet", 8, "--image-size 67"), 8),
    "overfeat": Family(part("overfeat", 8, "--image-size 71"), 8),
    "vgg11": Family(part("vgg11", 8), 8),
    # Batch norm over a few pixels amplifies how sums in another order are rounded: within a step in
    # inception-v3, from step to step in the others.
    "googlenet": Family(part("googlenet", 8), 4, compared=1),
    "inception-v3": Family(part("inception-v3", 8, "--image-size 75"), 2, close=1e-2, compared=1),
    "resnet18": Family(part("resnet18", 8), 8),
    "resnet50": Family(part("resnet50", 8), 4, close=1e-4, compared=1),
    "densenet121": Family(part("densenet121", 8), 2, compared=1),
    "squeezenet": Family(part("squeezenet", 4, "--image-size 33"), 8),
    "fcn8s": Family(part("fcn8s", 16), 1),
    "vit": Family(part("vit-b16", 16, layers=2), 8),
    "gpt": Family("gpt:1,2,64,32", 16, "--vocabulary 256", moves=True),
    "llama": Family("llama:2,4,2,64,96,32", 4, "--vocabulary 256"),
    "bert": Family(part("bert-base", 16, TEXT, layers=2), 4),
}
