"""Kinds of program that train a small model, for tools/bench/pytorch_promises.

Each is a function of `run`, a Run: run.line() makes a call of a model, in plain PyTorch or within a
budget, run.steps() are the training's. It returns the model, whose final state is compared.
"""

import contextlib
import copy
import os
import tempfile
import threading

import torch
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

MIB = 1 << 20


class Blocks(nn.Module):
    """Layers of one width, and a head."""

    def __init__(self, layers=6, width=128, classes=10, body=None):
        super().__init__()
        self.body = body or nn.Sequential(*[each for _ in range(layers) for each in (
            nn.Linear(width, width), nn.GELU())])
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.body(x)).square().mean()


class Recurrent(Blocks):
    """An nn.LSTM between layers."""

    def __init__(self):
        super().__init__(2)
        self.recurrent = nn.LSTM(128, 128, batch_first=True)

    def forward(self, x):
        return super().forward(self.recurrent(x.view(-1, 16, 128))[0])


class Looping(Blocks):
    """A break in a loop, for which Dynamo gives the whole call up."""

    def forward(self, x):
        for layer in self.body:
            x = layer(x)
            if x[0, 0].item() > 1e9:
                break
        return self.head(x).square().mean()


class Halved(Blocks):
    """A number is read midway."""

    def __init__(self):
        super().__init__()
        self.other = Blocks()

    def forward(self, x):
        x = self.body(x)
        return self.other(x * 2 if x.mean().item() > 0 else x)


class Texts(nn.Module):
    """Attention over sequences of any length; gradients of its embedding may be sparse."""

    def __init__(self, sparse=False):
        super().__init__()
        self.words = nn.Embedding(200, 64, sparse=sparse)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(64, 4, 256, 0.1, batch_first=True)
                                    for _ in range(2))
        self.last = nn.Linear(64, 200)

    def forward(self, text):
        x = self.words(text)
        for layer in self.layers:
            x = layer(x)
        return functional.cross_entropy(self.last(x).flatten(0, 1), text.flatten())


def numbers(seed, count=1024):
    """A batch for Blocks."""
    return torch.randn(count, 128, generator=torch.Generator().manual_seed(seed))


def text(seed, length=64):
    """A batch for Texts."""
    return torch.randint(200, (8, length), generator=torch.Generator().manual_seed(seed))


def train(run, model, call, optimizer, batch=numbers, steps=4):
    """Steps of one batch each; those after the first are measured."""
    for number in run.steps(steps):
        torch.manual_seed(number)
        optimizer.zero_grad()
        run.note(loss := call(batch(number)))
        loss.backward()
        optimizer.step()
    return model


def plain(run, make=Blocks, batch=numbers, **options):
    """The model's own loop."""
    model = run.made(make)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    return train(run, model, run.line(model, **options), optimizer, batch)


def late_optimizer(run):
    """Made after the first call."""
    model = run.made(lambda: Blocks(width=256))
    call = run.line(model, budget=13 * MIB)
    call(torch.ones(1024, 256)).backward()
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    return train(run, model, call, optimizer, lambda seed: torch.randn(
        1024, 256, generator=torch.Generator().manual_seed(seed)), 6)


def moving_average(run):
    """A copy of the weights that is made after the plan."""
    model = run.made(lambda: Blocks(width=256))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    call, average = run.line(model, budget=11 * MIB), None
    for number in run.steps(6, measured_from=3):
        optimizer.zero_grad()
        run.note(loss := call(torch.full((1024, 256), 1.0 + number)))
        loss.backward()
        optimizer.step()
        average = average or torch.optim.swa_utils.AveragedModel(model)
        average.update_parameters(model)
    return model


def one_element_head(run):
    """As of regressions and of GANs' critics."""
    return plain(run, lambda: Blocks(classes=1))


def lstm(run):
    """Which Dynamo does not capture."""
    return plain(run, Recurrent)


def break_in_a_loop(run):
    """Nothing is captured."""
    return plain(run, Looping)


def item_midway(run):
    """Two graphs."""
    return plain(run, Halved)


def compiled_function(run):
    """In place of a model; nothing of it is captured."""
    model = run.made(Looping)
    call = run.line(lambda batch: model(batch) * 2)
    return train(run, model, call, torch.optim.AdamW(model.parameters(), foreach=False))


@contextlib.contextmanager
def one_process():
    """A process group of one."""
    with tempfile.TemporaryDirectory() as folder:
        torch.distributed.init_process_group("gloo", rank=0, world_size=1, store=(
            torch.distributed.FileStore(os.path.join(folder, "store"), 1)))
        try:
            yield
        finally:
            torch.distributed.destroy_process_group()


def ddp_around(run):
    """DistributedDataParallel around a model within a budget."""
    with one_process():
        model = run.made(Blocks)
        call = DistributedDataParallel(run.line_of(model))
        return train(run, model, call, torch.optim.AdamW(model.parameters(), foreach=False))


def ddp_inside(run):
    """DistributedDataParallel inside what is compiled."""
    with one_process():
        model = run.made(Blocks)
        call = run.line(DistributedDataParallel(model))
        return train(run, model, call, torch.optim.AdamW(model.parameters(), foreach=False))


def threads(run):
    """Two of them, one after another and at once."""
    model = run.made(Blocks)
    call, parameters = run.line(model), list(model.parameters())

    def one(seed):
        run.note(*torch.autograd.grad(call(numbers(seed)), parameters), order=seed)

    for number in run.steps(4):
        if number < 2:
            one(number)
            continue
        both = [threading.Thread(target=one, args=(10 * number + k,)) for k in range(2)]
        for each in both:
            each.start()
        for each in both:
            each.join()
    return model


def inside_a_profiler(run):
    """A batch of another size comes while the program profiles."""
    model = run.made(Blocks)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    call = run.line(model)
    train(run, model, call, optimizer)
    with torch.profiler.profile() as mine:
        train(run, model, call, optimizer, lambda seed: numbers(seed, 1000), 2)
    assert mine.events(), "the program's profile is lost"
    return model


def changing_lengths(run):
    """With dynamic=True."""
    return plain(run, Texts, lambda number: text(number, (64, 48, 64, 48)[number]), dynamic=True)


def sparse_gradients(run):
    """Of an embedding."""
    model = run.made(lambda: Texts(sparse=True))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    return train(run, model, run.line(model), optimizer, text)


def own_hooks(run):
    """Saved tensors are the program's matter."""
    model = run.made(Blocks)
    optimizer, call = torch.optim.AdamW(model.parameters(), foreach=False), run.line(model)

    def hooked(batch):
        with torch.autograd.graph.save_on_cpu():
            return call(batch)
    return train(run, model, hooked, optimizer)


def late_hooks(run):
    """A hook of a layer is registered after the first call."""
    model = run.made(Blocks)
    call, seen = run.line(model), []
    call(numbers(1)).backward()
    model.body[0].register_forward_hook(lambda layer, given, result: seen.append(1) or result * 2)
    train(run, model, call, torch.optim.AdamW(model.parameters(), foreach=False))
    assert seen, "the hook was ignored"
    return model


def retained_graph(run):
    """After ordinary steps."""
    model = run.made(Blocks)
    optimizer, call = torch.optim.AdamW(model.parameters(), foreach=False), run.line(model)
    train(run, model, call, optimizer)
    for number in run.steps(2):
        optimizer.zero_grad()
        loss = call(numbers(number))
        loss.backward(retain_graph=True)
        (loss * 2).backward()
        optimizer.step()
    return model


def gradient_scaler(run):
    """As with mixed precision."""
    model = run.made(Blocks)
    optimizer, call = torch.optim.AdamW(model.parameters(), foreach=False), run.line(model)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for number in run.steps(4):
        optimizer.zero_grad()
        run.note(loss := call(numbers(number)))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return model


def accumulation(run):
    """Of two batches a step, with more bytes of gradients than of activations."""
    model = run.made(lambda: Blocks(width=512))
    optimizer, call = torch.optim.SGD(model.parameters(), 0.1), run.line(model)
    for number in run.steps(4):
        optimizer.zero_grad()
        for part in range(2):
            run.note(loss := call(numbers(2 * number + part).view(256, 512)))
            loss.backward()
        optimizer.step()
    return model


def copied_model(run):
    """copy.deepcopy() of a model after compile(), which is then trained."""
    model = run.made(Blocks)
    run.line_of(model)(numbers(1)).backward()
    model = copy.deepcopy(model)
    return train(run, model, model, torch.optim.AdamW(model.parameters(), foreach=False))


PROGRAMS = {each.__name__.replace("_", " "): each for each in (
    late_optimizer, moving_average, one_element_head, lstm, break_in_a_loop, item_midway,
    compiled_function, ddp_around, ddp_inside, threads, inside_a_profiler, changing_lengths,
    sparse_gradients, own_hooks, late_hooks, retained_graph, gradient_scaler, accumulation,
    copied_model)}
