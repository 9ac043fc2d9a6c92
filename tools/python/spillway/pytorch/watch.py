"""Watches optimizers step, and says which parameters no plan knows of: of models that were compiled
with a budget, but run outside of the graphs that Dynamo captures, in part or as a whole."""

import contextlib
import functools
import inspect
import types
import warnings
import weakref

import torch
from torch._dynamo.eval_frame import innermost_backend
from torch.nn.parallel import DistributedDataParallel
from torch.optim.optimizer import register_optimizer_step_pre_hook

from . import promises
from .compiled_model import is_parameter
from .held import unwrapped
from .models import COMPILED_AS, MODELS, UNCOUNTED, known_model, new_model
from .options import without_owning
from .program_objects import MOMENT, ThreadsBusy, is_looked_at, objects_of, stillness

STEPS = weakref.WeakKeyDictionary()  # of each optimizer


@functools.cache
def begin():
    """From now on, in this process."""
    register_optimizer_step_pre_hook(before_step)


def before_step(optimizer, args, kwargs):
    """Of any optimizer; looks at its steps 1, 2, 3, 5, 9, ..., and lets no failure into them."""
    del args, kwargs
    if getattr(optimizer, "steps_over_parts", False):
        return  # it is inside a FarOptimizer
    steps = STEPS[optimizer] = STEPS.get(optimizer, 0) + 1
    if not is_looked_at(steps):
        return
    try:
        look_at(optimizer)
    except ThreadsBusy:
        pass  # a later step is looked at
    except Warning:
        raise  # the program has made errors of them
    except Exception as why:  # pylint: disable=broad-exception-caught
        warnings.warn("spillway: cannot tell whether a budget counts what "
                      f"{type(optimizer).__name__} trains ({type(why).__name__}: {why})",
                      stacklevel=2)


def look_at(optimizer):
    """Tells what no plan knows of, of an optimizer that is about to step. Throws: ThreadsBusy."""
    trained = [p for group in optimizer.param_groups for p in group["params"]
               if is_parameter(p) and p.grad is not None]
    models = {model for p in trained for model in MODELS.get(p, ())}
    for model in models:
        model.note_step_of(unwrapped(optimizer))
    inputs = set().union(*(model.graph_inputs for model in models))
    outside = {id(p) for p in trained if id(p) not in inputs and p not in UNCOUNTED}
    if outside:
        with stillness(MOMENT):
            tell_of(outside)


def tell_of(outside):
    """Warns of parameters, by id, that were trained outside of all graphs."""
    for module, given in compiled_modules():
        names = [name for name, p in module.named_parameters() if id(p) in outside]
        if names:
            model = owner_of(module, given)
            model.tell_unkept(reason_of(module, names, model))
            if model.graph_inputs:
                model.cut()
    for module in objects_of(torch.nn.Module):
        if is_copy(module) and any(id(p) in outside for p in module.parameters()):
            owner_of(module, {}).tell_unkept(promises.COPIED)


def reason_of(module, names, model):
    """Why these parameters of a compiled module are in no graph."""
    has_ddp = any(isinstance(m, DistributedDataParallel) for m in module.modules())
    hint = promises.INSIDE_DDP if has_ddp else ""
    if not model.graph_inputs:
        return promises.NOTHING_CAPTURED + hint
    some = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return promises.OUTSIDE_GRAPHS.format(some) + hint


def owner_of(module, given):
    """The CompiledModel of a module under these options, a new one where none of it is captured."""
    parameters = [p for p in module.parameters() if p.requires_grad]
    return known_model(parameters, given) or new_model(parameters, given)


def compiled_modules():
    """Modules that were compiled by the backend, and those of functions that were, with options."""
    found = []
    for function in objects_of(types.FunctionType):
        if "_torchdynamo_orig_callable" in function.__dict__:
            given = options_of(closed_over(function).get("callback"))
            if given is not None:
                found += [(m, given) for m in modules_of(function._torchdynamo_orig_callable)]
    return found


def modules_of(function):
    """Modules that a function or a method uses by name."""
    values = [getattr(function, "__self__", None)]
    if inspect.isfunction(function):
        names = function.__code__.co_names
        values += [*closed_over(function).values(),
                   *(function.__globals__[name] for name in names if name in function.__globals__)]
    return [value for value in values if isinstance(value, torch.nn.Module)]


def closed_over(function):
    """Values by name, of variables that there still are."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # of a variable that was deleted
            found[name] = cell.cell_contents
    return found


def options_of(callback):
    """What spillway was given as torch.compile()'s options; None for other backends."""
    wrapper = innermost_backend(callback) if callable(callback) else None
    if getattr(wrapper, "compiler_name", None) != "spillway":
        return None
    kwargs = getattr(wrapper, "kwargs", {})
    return without_owning(kwargs.get("options"))


def is_copy(module):
    """Whether it was compiled when it was copied, and is not now."""
    was = module.__dict__.get(COMPILED_AS)
    return was is not None and was != id(module) and module._compiled_call_impl is None
