"""Ways to train in less memory: Spillway's, and PyTorch's own.

A way is written WAY, or WAY:SETTING, where it has one:

    plain                 PyTorch as it is
    compiled:BUDGET       torch.compile(model, backend="spillway", ...)
    far_state:BUDGET      the same, with the state of the optimizer far: spillway.optimizer()
    context:BUDGET        with spillway.budget(...), around code that compiles nothing
    saved_tensors:BYTES   spillway.saved_tensors() in a space with so much near memory
    checkpoint            torch.utils.checkpoint around each block of the model
    partitioner:PART      AOTAutograd's min-cut partitioner with activation_memory_budget = PART
    files                 hooks for saved tensors that write each to a file
    dynamo                torch.compile(model, backend="eager"): what Dynamo alone takes
"""

import contextlib

import torch
from torch.utils.checkpoint import checkpoint

from disk_hooks import saved_in_files
from pytorch_models import blocks_of


class Plain:
    """PyTorch as it is. `call` is what the step calls in the model's place, `optimizer` what
    updates it."""

    def __init__(self, model, optimizer, setting, far):
        del setting, far
        self.call, self.optimizer = model, optimizer

    def training(self):
        """A context of all steps."""
        return contextlib.nullcontext()

    def forward(self):
        """A context of each forward pass."""
        return contextlib.nullcontext()

    def near_beside_tensors(self):
        """Bytes of near memory that are no tensors of PyTorch's, such as a space's."""
        return 0

    def facts(self):
        """What else is worth knowing."""
        return {}


class Compiled(Plain):
    """The backend of torch.compile."""

    def __init__(self, model, optimizer, setting, far):
        super().__init__(model, optimizer, setting, far)
        import spillway.pytorch  # noqa: F401 pylint: disable=import-outside-toplevel,unused-import
        self.model = model
        self.call = torch.compile(model, backend="spillway", dynamic=False, options={
            "budget": setting, "far": far, "optimizer": optimizer})

    def models(self):
        """Spillway's, of the model."""
        from spillway.pytorch.models import models_of  # pylint: disable=import-outside-toplevel
        return models_of(self.model)

    def plans(self):
        """All that there are."""
        return [plan for each in self.models() for plan in each.plans]

    def near_beside_tensors(self):
        return sum(each.memory.slot_bytes() for each in self.models() if each.memory is not None)

    def facts(self):
        plans = self.plans()
        if not plans:
            return {}
        figures = plans[0].planned.figures
        return {"budget_bytes": plans[0].budget,
                "plans": len(plans), "passage_bytes": plans[0].passage,
                "nodes": sum(len(graph.graph.nodes) for graph in plans[0].written),
                "figures": figures, "needs": plans[0].planned.needs}


class FarState(Compiled):
    """The backend, and an optimizer whose state is far."""

    def __init__(self, model, optimizer, setting, far):
        import spillway  # pylint: disable=import-outside-toplevel
        super().__init__(model, spillway.optimizer(optimizer, far=far), setting, far)


class Context(Compiled):
    """The context for code that compiles nothing."""

    def __init__(self, model, optimizer, setting, far):
        super().__init__(model, optimizer, setting, far)
        self.call = model
        self.given = {"limit": setting, "optimizer": optimizer, "far": far}

    def training(self):
        import spillway  # pylint: disable=import-outside-toplevel
        return spillway.budget(self.call, **self.given)


class SavedTensors(Plain):
    """Hooks over a space, in the order of the step before."""

    def __init__(self, model, optimizer, setting, far):
        super().__init__(model, optimizer, setting, far)
        import spillway  # pylint: disable=import-outside-toplevel
        self.near = spillway.byte_count(setting)
        space = spillway.Space(near=self.near, capacity="32GiB" if far else "8GiB", far=far)
        self.saved = spillway.saved_tensors(space, keep=model)

    def forward(self):
        return self.saved

    def near_beside_tensors(self):
        return self.near

    def facts(self):
        return {"saved": self.saved.counters()}


class Checkpointed(Plain):
    """Each block of the model runs again in the backward pass."""

    def __init__(self, model, optimizer, setting, far):
        super().__init__(model, optimizer, setting, far)
        for block in blocks_of(model):
            def again(*args, forward=block.forward, **kwargs):
                return checkpoint(forward, *args, use_reentrant=False, **kwargs)
            block.forward = again


class Partitioned(Plain):
    """AOTAutograd's own trade of memory for time, which is told a part of the activations."""

    def __init__(self, model, optimizer, setting, far):
        super().__init__(model, optimizer, setting, far)
        torch._functorch.config.activation_memory_budget = float(setting)
        self.call = torch.compile(model, backend="aot_eager_decomp_partition", dynamic=False)


class InFiles(Plain):
    """Each saved tensor in a file."""

    def __init__(self, model, optimizer, setting, far):
        super().__init__(model, optimizer, setting, far)
        self.far = far

    def forward(self):
        return saved_in_files(self.far)


class Captured(Plain):
    """Only Dynamo's work."""

    def __init__(self, model, optimizer, setting, far):
        super().__init__(model, optimizer, setting, far)
        self.call = torch.compile(model, backend="eager", dynamic=False)


WAYS = {"plain": Plain, "compiled": Compiled, "far_state": FarState, "context": Context,
        "saved_tensors": SavedTensors, "checkpoint": Checkpointed, "partitioner": Partitioned,
        "files": InFiles, "dynamo": Captured}


def way_of(text, model, optimizer, far):
    """The way that a text names, with what it does to the model done."""
    name, _, setting = text.partition(":")
    return WAYS[name](model, optimizer, setting, far)
