"""The backend of torch.compile: torch.compile(model, backend="spillway", options={...})."""

import logging

import torch

from .options import without_owning
from .region import Region


def spillway(module, example_inputs, *, options=None, **_):
    """Compiles a graph of Dynamo's; the plan is made at its first call, with all that is held."""
    del example_inputs
    return Region(module, without_owning(options))


def ignore_warnings_given_once():
    """transformers warns once of a loss that its configuration does not name; for that, Dynamo
    would cut the model in two."""
    if hasattr(logging.Logger, "warning_once"):
        torch._dynamo.config.ignore_logging_functions.add(logging.Logger.warning_once)


spillway._dynamo_backend_init = ignore_warnings_given_once  # whenever a model is compiled
