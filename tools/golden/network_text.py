"""Reads networks as `spillway nets NAME --dump` writes them (nets/README.md)."""

import dataclasses

# The parameters of layers and their defaults; of those that are left out here, 0.
DEFAULTS = {
    "convolution": {"kernel": (1, 1), "stride": (1, 1), "padding": (0, 0), "bias": True,
                    "dilation": (1, 1), "groups": 1},
    "transposed-convolution": {"kernel": (1, 1), "stride": (1, 1), "padding": (0, 0), "bias": True,
                               "dilation": (1, 1), "groups": 1, "output-padding": (0, 0)},
    "batch-norm": {"epsilon": 1e-5, "momentum": 0.1},
    "pool": {"kind": "max", "kernel": (2, 2), "stride": (2, 2), "padding": (0, 0),
             "counts-padding": False, "rounds-up": False},
    "local-response-norm": {"size": 5, "alpha": 1e-4, "beta": 0.75, "k": 1.0},
    "linear": {"bias": True},
    "dropout": {"probability": 0.5},
    "crop": {"centred": True, "offset": (0, 0)},
    "softmax-cross-entropy": {"weight": 1.0},
    "gelu": {"tanh": False},
    "position-embedding": {"positions": 0, "segments": 0},
    "layer-norm": {"epsilon": 1e-5},
    "rms-norm": {"epsilon": 1e-5},
    "rotary": {"kv-heads": 0, "base": 10000.0},
    "attention": {"kv-heads": 0, "causal": True, "dropout": 0.0},
    "image-tokens": {"class-token": True},
    "vocabulary-loss": {"bias": False},
}
EXTENTS = "kernel", "stride", "padding", "dilation", "output-padding", "offset"
COUNTS = ("channels", "features", "groups", "size", "vocabulary", "positions", "segments", "heads",
          "kv-heads")
FLAGS = "bias", "counts-padding", "rounds-up", "centred", "tanh", "causal", "class-token"


@dataclasses.dataclass
class Layer:
    name: str
    kind: str
    inputs: list  # names of layers
    fields: dict
    reads_sequence: bool = False  # what it reads first is one


@dataclasses.dataclass
class Network:
    image: tuple  # channels, height, width
    has_tokens: bool  # in the place of an image: (1, tokens, 1)
    classes: int
    layers: list


def _value(word, text, classes):
    if text == "classes":
        return classes
    if word in EXTENTS:
        sides = tuple(int(side) for side in text.split("x"))
        return sides * 2 if len(sides) == 1 else sides
    if word in COUNTS:
        return int(text)
    if word in FLAGS:
        return {"yes": True, "no": False}[text]
    return text if word == "kind" else float(text)


def read_layer(name, words, before, classes):
    """The layer `words` say, which reads `before` unless they say more."""
    kind, *rest = words
    fields = dict(DEFAULTS.get(kind, {}))
    for word in rest:
        if "=" in word:
            key, _, text = word.partition("=")
            fields[key] = _value(key, text, classes)
    inputs = [word for word in rest if "=" not in word] or [before]
    return Layer(name, kind, inputs, fields)


def read_network(text):
    rows = [line.partition("#")[0].split() for line in text.splitlines()]
    header = {row[0]: row[1:] for row in rows[:5] if row}
    classes = int(header["classes"][0])
    size, *rest = header["input"]
    has_tokens = rest == ["tokens"]
    image = (1, int(size), 1) if has_tokens else tuple(int(n) for n in size.split("x"))
    network = Network(image, has_tokens, classes, [])
    before = "image"
    for row in rows[rows.index(["classes", str(classes)]) + 1:]:
        if row:
            network.layers.append(read_layer(row[0], row[1:], before, classes))
            before = row[0]
    return network
