"""The layers of network files in PyTorch, on tensors (N, C, H, W); sequences are (N, C, tokens, 1)."""

import math

import numpy
import torch
import torch.nn.functional as F

SEED = 5  # of dropout
DROPOUT_GROUP = 4  # channels that draw together


def _philox(counter, key):
    """Philox4x32-10: four arrays of random words of four arrays, in 64 bits that hold 32."""
    low = 0xFFFFFFFF
    for _ in range(10):
        product0 = counter[0] * 0xD2511F53
        product1 = counter[2] * 0xCD9E8D57
        counter = [product1 >> 32 ^ counter[1] ^ key[0], product1 & low,
                   product0 >> 32 ^ counter[3] ^ key[1], product0 & low]
        key = [key[0] + 0x9E3779B9 & low, key[1] + 0xBB67AE85 & low]
    return counter


def dropout_factors(shape, probability, stream, seed, step):
    """What each element of (N, C, H, W) is multiplied by: 0, or 1 / (1 - probability). As
    src/ops/dropout_mask.h has it."""
    batch, channels, height, width = shape
    groups = -(-channels // DROPOUT_GROUP)
    place = numpy.arange(batch * height * width * groups, dtype=numpy.uint64)
    constant = numpy.zeros_like(place)
    words = _philox([place, constant, constant + numpy.uint64(step), constant + numpy.uint64(stream)],
                    [seed & 0xFFFFFFFF, seed >> 32])
    words = numpy.stack(words, 1).reshape(batch, height, width, groups * DROPOUT_GROUP)[..., :channels]
    threshold = math.ceil(float(numpy.float32(probability)) * 2**32)
    scale = numpy.float32(1) / (numpy.float32(1) - numpy.float32(probability))
    return numpy.where(words < threshold, 0.0, float(scale)).transpose(0, 3, 1, 2)


class Context:
    """What layers need to know of the step they are in."""

    def __init__(self, step, labels=None):
        self.step = step
        self.labels = labels  # (N, H, W), negative where one does not count
        self.stream = 0  # of the next dropout layer
        self.is_training = True


def trained_shapes(layer, x):
    """Of the arrays that a layer trains, in the order of src/ops/parameter.h; x is the shape it reads."""
    f = layer.fields
    if layer.kind in ("batch-norm", "layer-norm"):
        return [(x[1],), (x[1],)]
    tables = {
        "rms-norm": lambda: [(x[1],)],
        "embedding": lambda: [(f["vocabulary"], f["features"])],
        "position-embedding": lambda: [(rows, x[1]) for rows in (f["positions"] or x[2], f["segments"])
                                       if rows],
        "image-tokens": lambda: [(x[1],)] if f["class-token"] else [],
        "vocabulary-loss": lambda: (([(f["vocabulary"], x[1])] if len(layer.inputs) == 1 else []) +
                                    ([(f["vocabulary"],)] if f["bias"] else [])),
    }
    if layer.kind in tables:
        return tables[layer.kind]()
    if layer.kind == "convolution":
        out, weight = f["channels"], (f["channels"], x[1] // f["groups"], *f["kernel"])
    elif layer.kind == "transposed-convolution":
        out, weight = f["channels"], (x[1], f["channels"] // f["groups"], *f["kernel"])
    elif layer.kind == "linear":
        inputs = x[1] if layer.reads_sequence else math.prod(x[1:])
        out, weight = f["features"], (f["features"], inputs)
    else:
        return []
    return [weight, (out,)] if f["bias"] else [weight]


def _pool(x, f):
    if f["kind"] == "max":
        return F.max_pool2d(x, f["kernel"], f["stride"], f["padding"], ceil_mode=f["rounds-up"])
    return F.avg_pool2d(x, f["kernel"], f["stride"], f["padding"], ceil_mode=f["rounds-up"],
                        count_include_pad=f["counts-padding"])


def _crop(x, like, f):
    height, width = like.shape[2:]
    top, left = f["offset"]
    if f["centred"]:
        top, left = (x.shape[2] - height) // 2, (x.shape[3] - width) // 2
    return x[:, :, top:top + height, left:left + width]


def _drop(x, f, context):
    factors = dropout_factors(x.shape, f["probability"], context.stream, SEED, context.step)
    context.stream += 1
    return x * torch.tensor(factors, dtype=x.dtype)


def rows(x):
    """A sequence as (N, tokens, C)."""
    return x[..., 0].transpose(1, 2)


def sequence(x):
    return x.transpose(1, 2)[..., None]


def _embed_positions(x, trained):
    y = rows(x) + trained[0][:x.shape[2]]
    return sequence(y + trained[1][0] if len(trained) > 1 else y)


def _rms_norm(x, weight, epsilon):
    return x / (x.square().mean(-1, keepdim=True) + epsilon).sqrt() * weight


def _split_heads(x, f):
    """Queries, keys and values as (N, heads, tokens, width)."""
    keys = f["kv-heads"] or f["heads"]
    heads = rows(x).unflatten(2, (f["heads"] + 2 * keys, -1)).transpose(1, 2)
    return heads.split([f["heads"], keys, keys], 1)


def _turn(heads, base):
    width = heads.shape[-1]
    rates = base ** (-torch.arange(width // 2, dtype=torch.float64) * 2 / width)
    angles = torch.arange(heads.shape[2], dtype=torch.float64)[:, None] * rates
    cosine, sine = (torch.cat([g, g], 1).to(heads.dtype) for g in (angles.cos(), angles.sin()))
    low, high = heads.chunk(2, -1)
    return heads * cosine + torch.cat([-high, low], -1) * sine


def _rotate(x, f):
    query, key, value = _split_heads(x, f)
    parts = [_turn(query, f["base"]), _turn(key, f["base"]), value]
    return sequence(torch.cat(parts, 1).transpose(1, 2).flatten(2))


def _attend(x, f, context):
    query, key, value = _split_heads(x, f)
    share = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(share, 1), value.repeat_interleave(share, 1)
    scores = query @ key.transpose(2, 3) / math.sqrt(query.shape[-1])
    if f["causal"]:
        tokens = x.shape[2]
        scores = scores.masked_fill(torch.ones(tokens, tokens).triu(1) > 0, -math.inf)
    weights = scores.softmax(-1)
    if f["dropout"] > 0 and context.is_training:
        batch, heads, tokens, _ = weights.shape
        factors = dropout_factors((batch, tokens, heads, tokens), f["dropout"], context.stream, SEED,
                                  context.step)  # (N, key, head, query)
        context.stream += 1
        weights = weights * torch.tensor(factors.transpose(0, 2, 3, 1).copy(), dtype=x.dtype)
    return sequence((weights @ value).transpose(1, 2).flatten(2))


def _as_tokens(x, trained):
    tokens = x.flatten(2).transpose(1, 2)
    if trained:
        tokens = torch.cat([trained[0].expand(len(x), 1, -1), tokens], 1)
    return sequence(tokens)


def _vocabulary_loss(layer, inputs, trained, context):
    """Of two inputs, the second is the table."""
    table = inputs[1] if len(inputs) > 1 else trained[0]
    logits = F.linear(rows(inputs[0]), table, trained[-1] if layer.fields["bias"] else None)
    context.predictions = logits.argmax(2)[..., None]
    return F.cross_entropy(logits.transpose(1, 2), context.labels[..., 0], ignore_index=-1)


def makes_sequence(layer):
    """Whether what `layer`, which has been told what it reads, makes is one."""
    if layer.kind in ("embedding", "image-tokens"):
        return True
    return layer.reads_sequence and layer.kind != "first-token"


def forward(layer, inputs, trained, running, context):
    """What `layer` makes of `inputs`; a loss, if it is one."""
    f, x = layer.fields, inputs[0]
    weight, bias = [*trained, None, None][:2]
    functions = {
        "convolution": lambda: F.conv2d(x, weight, bias, f["stride"], f["padding"], f["dilation"],
                                        f["groups"]),
        "transposed-convolution": lambda: F.conv_transpose2d(
            x, weight, bias, f["stride"], f["padding"], f["output-padding"], f["groups"],
            f["dilation"]),
        "batch-norm": lambda: F.batch_norm(x, *running, weight, bias, context.is_training,
                                           f["momentum"], f["epsilon"]),
        "relu": lambda: F.relu(x),
        "gelu": lambda: F.gelu(x, approximate="tanh" if f["tanh"] else "none"),
        "embedding": lambda: sequence(F.embedding(x[:, 0, :, 0].long(), weight)),
        "position-embedding": lambda: _embed_positions(x, trained),
        "layer-norm": lambda: sequence(F.layer_norm(rows(x), weight.shape, weight, bias,
                                                    f["epsilon"])),
        "rms-norm": lambda: sequence(_rms_norm(rows(x), weight, f["epsilon"])),
        "swiglu": lambda: F.silu(x.chunk(2, 1)[0]) * x.chunk(2, 1)[1],
        "rotary": lambda: _rotate(x, f),
        "attention": lambda: _attend(x, f, context),
        "image-tokens": lambda: _as_tokens(x, trained),
        "first-token": lambda: x[:, :, :1],
        "vocabulary-loss": lambda: _vocabulary_loss(layer, inputs, trained, context),
        "flatten": lambda: x.flatten(1)[..., None, None],
        "global-average-pool": lambda: x.mean((2, 3), keepdim=True),
        "pool": lambda: _pool(x, f),
        "local-response-norm": lambda: F.local_response_norm(x, f["size"], f["alpha"], f["beta"],
                                                             f["k"]),
        "linear": lambda: (sequence(F.linear(rows(x), weight, bias)) if layer.reads_sequence
                           else F.linear(x.flatten(1), weight, bias)[..., None, None]),
        "dropout": lambda: _drop(x, f, context),
        "add": lambda: x + inputs[1],
        "concat": lambda: torch.cat(inputs, 1),
        "crop": lambda: _crop(x, inputs[1], f),
        "softmax-cross-entropy": lambda: f["weight"] * F.cross_entropy(x, context.labels,
                                                                       ignore_index=-1),
    }
    return functions[layer.kind]()


def best_two(f, x, y):
    """The two largest numbers of each window of a max pool, of the fields `f`, that made `y` of `x`."""
    padding = []
    for axis in (1, 0):  # behind the image as much as the last window needs
        kernel, stride, before = (f[key][axis] for key in ("kernel", "stride", "padding"))
        needed = (y.shape[2 + axis] - 1) * stride + kernel - before - x.shape[2 + axis]
        padding += [before, max(before, needed)]
    windows = F.pad(x, padding, value=-math.inf)
    for axis in (0, 1):
        windows = windows.unfold(2 + axis, f["kernel"][axis], f["stride"][axis])
    return windows.flatten(4).topk(2).values


def flat(parts):
    return torch.cat([part.detach().flatten() for part in parts]).tolist()


def distance(a, b):
    """Of two lists of numbers, relative to the norm of the second."""
    a, b = torch.tensor(a, dtype=torch.float64), torch.tensor(b, dtype=torch.float64)
    return float((a - b).norm() / b.norm())
