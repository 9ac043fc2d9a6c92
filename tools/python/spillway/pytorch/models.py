"""Which model a graph's call belongs to."""

import threading
import warnings
import weakref

import torch
from torch._dynamo import OptimizedModule
from torch._dynamo.convert_frame import compile_lock
from torch.utils.weak import WeakTensorKeyDictionary

from . import promises
from .compiled_model import CompiledModel, is_parameter
from .program_objects import objects_of

MODELS = WeakTensorKeyDictionary()  # by parameter: a CompiledModel for each set of options
UNCOUNTED = WeakTensorKeyDictionary()  # parameters of graphs that have run as they are
COMPILED_AS = "_spillway_compiled"  # an attribute of compiled modules: their id(), not a copy's
LATEST = threading.local()


def model_of(args, given, root=None):
    """The CompiledModel that the parameters among `args` belong to, under the options `given`, and
    `root`, the module that was compiled, unless that is to be looked for.

    A graph without parameters, such as one after a graph break, is of the model that ran last.
    Throws: ThreadsBusy where the module is looked for.
    """
    parameters = [a for a in args if is_parameter(a)]
    latest = getattr(LATEST, "model", None)
    if not parameters and latest is not None and latest.given == given:
        return latest
    found = known_model(parameters, given)
    if found is None:
        with compile_lock:  # threads that call one model for the first time share it
            found = known_model(parameters, given) or new_model(parameters, given, root)
    for parameter in parameters[:1]:
        add(parameter, found)
    LATEST.model = found
    return found


def models_of(module):
    """The CompiledModels that a module's parameters belong to, the latest last."""
    found = [model for p in module.parameters() for model in MODELS.get(p, ())]
    return list(dict.fromkeys(found))


def known_model(parameters, given):
    """The CompiledModel of one of these under the options `given`, or None."""
    return next((model for parameter in parameters for model in MODELS.get(parameter, ())
                 if model.given == given), None)


def add(parameter, model):
    known = MODELS.setdefault(parameter, [])
    if model not in known:
        known.append(model)


def new_model(parameters, given, root=None):
    """Known by all parameters of the module that was compiled. Throws: ThreadsBusy."""
    if root is None and parameters:
        root = root_of(parameters[0])
    if root is not None and root._compiled_call_impl is not None:
        root.__dict__[COMPILED_AS] = id(root)
    model = CompiledModel(given, weakref.ref(root) if root is not None else None)
    model.unkept += [promises.BUSY for p in parameters[:1] if p in UNCOUNTED]
    for parameter in [*parameters, *(root.parameters() if root is not None else ())]:
        add(parameter, model)
    return model


def tell_uncounted(args):
    """Warns, once of the same parameters, of a graph that runs as it is: whose it is cannot be
    looked for now."""
    new = [a for a in args if is_parameter(a) and a not in UNCOUNTED]
    UNCOUNTED.update((parameter, True) for parameter in new)
    if new:
        warnings.warn(f"spillway: {promises.UNKEPT}{promises.BUSY}", stacklevel=2)


def root_of(parameter):
    """The module that was compiled and has `parameter`; the largest that has it where none was, as
    when a function is compiled. None for a parameter outside modules."""
    having = [each for each in objects_of(torch.nn.Module)
              if any(p is parameter for p in each.parameters())]
    compiled = [m._orig_mod for m in having if isinstance(m, OptimizedModule)]
    compiled += [m for m in having if m._compiled_call_impl is not None]
    return max(compiled or having, key=lambda m: sum(1 for _ in m.modules()), default=None)
