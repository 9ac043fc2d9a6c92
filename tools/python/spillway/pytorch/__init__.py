"""A peak-byte budget for PyTorch models: capture, plan, run. Needs PyTorch 2.6 or newer."""

import logging

import torch
from torch._dynamo import list_backends, register_backend

from .backend import spillway

if "spillway" not in list_backends(exclude_tags=()):
    register_backend(spillway, name="spillway")

# transformers warns once of a loss that its configuration does not name; for that, Dynamo would
# cut the model in two.
if hasattr(logging.Logger, "warning_once"):
    torch._dynamo.config.ignore_logging_functions.add(logging.Logger.warning_once)
