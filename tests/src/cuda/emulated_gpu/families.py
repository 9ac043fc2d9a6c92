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
    steps: int = 10
    close: float = CLOSE
    budget: str = "min+30%"
    moves: bool = True  # False: so small that plans move nothing
    has_dropout: bool = False
    is_text: bool = False
    is_wide: bool = False  # has weights that are large enough to be updated on the far side

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
    "lenet": Family("lenet", 96, steps=5),
    "wide": Family(lambda: network_file(WIDE), 64, has_dropout=True, is_wide=True),
    "residual": Family(lambda: network_file(RESIDUAL), 32, steps=5),
    "alexnet": Family(part("alexnet", 8, "--image-size 67"), 32, has_dropout=True),
    "overfeat": Family(part("overfeat", 8, "--image-size 71"), 32, has_dropout=True),
    "vgg11": Family(part("vgg11", 8), 32, has_dropout=True),
    "googlenet": Family(part("googlenet", 8), 16, has_dropout=True),
    "inception-v3": Family(part("inception-v3", 8, "--image-size 75"), 4, has_dropout=True),
    "inception-v4": Family(part("inception-v4", 8, "--image-size 75"), 4, has_dropout=True),
    "resnet18": Family(part("resnet18", 8), 32),
    "resnet50": Family(part("resnet50", 8), 16),
    "densenet121": Family(part("densenet121", 8), 8),
    "squeezenet": Family(part("squeezenet", 4, "--image-size 33"), 32, has_dropout=True),
    "fcn8s": Family(part("fcn8s", 16), 2, has_dropout=True),
    "vit": Family(part("vit-b16", 8, layers=2), 80, has_dropout=True),
    "gpt": Family("gpt:2,2,128,16", 32, "--vocabulary 256", has_dropout=True, is_text=True),
    "llama": Family("llama:2,4,2,128,256,16", 32, "--vocabulary 256", has_dropout=True,
                    is_text=True),
    "bert": Family(part("bert-base", 8, TEXT, layers=2), 64, has_dropout=True, is_text=True),
}
