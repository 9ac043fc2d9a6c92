"""Small networks, drawn: as network files, each with branches, sums and whatever a seed chose."""


def draw(random, name):
    """A network file's text. Images are 8 to 14 pixels wide, so that a step takes a millisecond."""
    channels = random.choice((4, 8, 12))
    width = random.choice((8, 10, 12, 14))
    lines = ["spillway-network 1", f"name {name}", f"input {random.choice((1, 3))}x{width}x{width}",
             f"classes {random.choice((2, 5, 10))}", "",
             f"stem convolution channels={channels} kernel=3 padding=1"]
    last = "stem"
    for number in range(random.randint(2, 6)):
        last, width = BLOCKS[random.randrange(len(BLOCKS))](lines, random, f"b{number}", last,
                                                            channels, width)
    lines += ["mean global-average-pool", "fc linear features=classes",
              "loss softmax-cross-entropy"]
    return "\n".join(lines) + "\n"


def residual(lines, random, name, last, channels, width):
    norm = random.random() < 0.5
    lines.append(f"{name}.conv convolution {last} channels={channels} kernel=3 padding=1")
    if norm:
        lines.append(f"{name}.norm batch-norm")
    lines += [f"{name}.relu relu", f"{name}.sum add {name}.relu {last}"]
    return f"{name}.sum", width


def plain(lines, random, name, last, channels, width):
    activation = random.choice(("relu", "gelu"))
    lines += [f"{name}.conv convolution {last} channels={channels} kernel=1",
              f"{name}.{activation} {activation}"]
    return f"{name}.{activation}", width


def pooled(lines, random, name, last, _channels, width):
    if width < 6:
        return last, width
    kind = random.choice(("max", "average"))
    lines.append(f"{name}.pool pool {last} kind={kind} kernel=2 stride=2")
    return f"{name}.pool", width // 2


def dropped(lines, random, name, last, _channels, width):
    lines.append(f"{name}.dropout dropout {last} probability={random.choice((0.1, 0.5))}")
    return f"{name}.dropout", width


def branched(lines, _random, name, last, channels, width):
    lines += [f"{name}.left convolution {last} channels={channels // 2} kernel=1",
              f"{name}.right convolution {last} channels={channels - channels // 2} kernel=3 padding=1",
              f"{name}.join concat {name}.left {name}.right"]
    return f"{name}.join", width


BLOCKS = (residual, residual, plain, pooled, dropped, branched)
