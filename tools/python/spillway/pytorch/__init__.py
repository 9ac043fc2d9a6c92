"""A peak-byte budget for PyTorch models: capture, plan, run. Needs PyTorch 2.6 or newer."""

from torch._dynamo import list_backends, register_backend

from .backend import spillway

if "spillway" not in list_backends(exclude_tags=()):
    register_backend(spillway, name="spillway")
