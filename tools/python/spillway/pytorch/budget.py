"""A budget for code that is not compiled: the model is, while the context is entered."""

import contextlib

import torch

from ..library import Error
from .backend import runs, spillway
from .models import model_of
from .options import Options, without_owning
from .promises import NOTHING_CAPTURED, ONE_NOT_CAPTURED


@contextlib.contextmanager
def budget(model, limit, *, optimizer=None, far=None, **options):
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
    model._compiled_call_impl = Call(model, model._compiled_call_impl, given)
    try:
        yield model
    finally:
        model._compiled_call_impl = before


class Call:
    """What calls a model in budget(): compiled, and by hooks once nothing of it was captured."""

    def __init__(self, model, compiled, given):
        self.model, self.compiled, self.given = model, compiled, given
        self.is_captured = None  # True once something was; False if nothing was at first

    def __call__(self, *args, **kwargs):
        if not torch.is_grad_enabled():
            return self.compiled(*args, **kwargs)
        if self.is_captured is False:
            return self.hooked(args, kwargs)
        before = runs()
        result = self.compiled(*args, **kwargs)
        if runs() > before:
            self.is_captured = True
        elif self.is_captured:
            self.owner().tell_unkept(ONE_NOT_CAPTURED)
        elif any(p.requires_grad for p in self.model.parameters()):
            self.is_captured = False
            self.owner().tell_unkept(NOTHING_CAPTURED)
        return result

    def owner(self):
        """The CompiledModel, which says so in explain(), too."""
        return model_of(list(self.model.parameters()), self.given, self.model)

    def hooked(self, args, kwargs):
        """Not compiled, with what autograd saves in far memory."""
        return self.owner().hooked(lambda: self.model._call_impl(*args, **kwargs), (),
                                   NOTHING_CAPTURED, keep=[self.model, *args, *kwargs.values()])
