"""A budget for code that is not compiled: the model is, while the context is entered."""

import contextlib

from ..library import Error
from .backend import spillway
from .options import Options, without_owning


@contextlib.contextmanager
def budget(model, optimizer, limit, far=None, **options):
    """Within `with`, training steps of `model` keep to `limit` bytes, "6GiB", or "60%".

    `options` are those of torch.compile(model, backend="spillway"). The plan is made at the first
    call that needs gradients. Throws: BudgetTooSmall then; Error, ValueError for what makes no
    sense, at once.
    """
    if not any(p.requires_grad for p in model.parameters()):
        raise Error(f"{type(model).__name__} has no parameter that requires a gradient; there is "
                    "no training step to plan")
    given = without_owning({"budget": limit, "far": far, "optimizer": optimizer, **options})
    Options(given)
    before = model._compiled_call_impl
    model.compile(backend=spillway, options=given, dynamic=False)
    try:
        yield model
    finally:
        model._compiled_call_impl = before
