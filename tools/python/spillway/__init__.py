"""A peak-byte budget for PyTorch models, and memory that is larger than what is near.

    model = torch.compile(model, backend="spillway", options={"budget": "6GiB", "far": "/scratch"})

or, around code that compiles nothing:

    with spillway.budget(model, "6GiB", far="/scratch"):
        ...

Below that are the planners (plan, needs, capture) and the drop-in allocator:

    with spillway.Space(near="1GiB", capacity="16GiB", far="/scratch") as space:
        saved = spillway.saved_tensors(space, keep=model)

Needs libspillway_um.so and libspillway_plan.so: in the files that SPILLWAY_UM_LIBRARY and
SPILLWAY_PLAN_LIBRARY name, beside this package, where the system finds libraries, or in the
build/release of the tree that this package lies in.
"""

from .frameworks import cuda_allocator, cuda_mem_pool, cupy_allocator, default_space, set_default
from .library import Error, load, version
from .planning import BudgetTooSmall, PlannedStep, needs, plan
from .sizes import byte_count
from .space import Block, Space

__all__ = ["Block", "BudgetTooSmall", "Error", "PlannedStep", "Space", "budget", "byte_count",
           "capture", "cuda_allocator", "cuda_mem_pool", "cupy_allocator", "default_space",
           "explain", "load", "needs", "optimizer", "plan", "saved_tensors", "set_default",
           "version"]


def saved_tensors(space, keep=(), smallest="64KiB"):
    """Keeps what autograd saves in `space`; see spillway.torch_hooks.SavedTensors."""
    try:
        from . import torch_hooks  # only here: everything else works without PyTorch
    except ImportError as error:
        raise Error(f"saved_tensors needs PyTorch, which does not load: {error}") from error
    return torch_hooks.SavedTensors(space, keep, byte_count(smallest))


def budget(model, limit, *, optimizer=None, far=None, **options):
    """A context in which training steps of `model` keep to `limit`; see pytorch.budget."""
    return with_pytorch("budget").budget(model, limit, optimizer=optimizer, far=far, **options)


def capture(model, inputs, optimizer=None, **options):
    """The training step of a model as a spillway-trace; see pytorch.capture."""
    return with_pytorch("capture").capture(model, inputs, optimizer, **options)


def explain(model, timeline=None):
    """Prints and returns what a compiled model's plan does; see pytorch.explain."""
    return with_pytorch("explain").explain(model, timeline)


def optimizer(plain, near="64MiB", far=None, clip_norm=None, as_gradients_come=False):
    """`plain`, a torch.optim.AdamW or the like, with its state in far memory; the same bits.

    `near` bytes hold the parts of the state that are on their way; `far` is a folder, or None for
    other RAM. `clip_norm` is torch.nn.utils.clip_grad_norm_() before each step. With
    `as_gradients_come` a parameter is updated, and its gradient gone, during the backward pass.
    """
    module = with_pytorch("optimizer", "far.far_optimizer")
    return module.optimizer(plain, near, far, clip_norm, as_gradients_come)


def with_pytorch(name, module=None):
    """The module of spillway.pytorch that has a function. Throws: Error where PyTorch is missing or
    too old."""
    import importlib  # pylint: disable=import-outside-toplevel
    try:
        return importlib.import_module(f"{__name__}.pytorch.{module or name}")
    except ImportError as error:
        raise Error(f"spillway.{name} needs PyTorch 2.6 or newer, which does not load: {error}"
                    ) from error
