"""Memory that is larger than what is near, by Spillway's drop-in allocator.

    with spillway_um.Space(near="1GiB", capacity="16GiB", far="/scratch") as space:
        saved = spillway_um.saved_tensors(space, keep=model)
        for images, labels in batches:
            with saved:
                loss = criterion(model(images), labels)
            loss.backward()

Needs libspillway_um.so: in the file that SPILLWAY_UM_LIBRARY names, beside this package, where the
system finds libraries, or in the build/release of the tree that this package lies in.
"""

from .block import Block
from .frameworks import cuda_allocator, cuda_mem_pool, cupy_allocator, default_space, set_default
from .library import Error, load, version
from .sizes import byte_count
from .space import Space

__all__ = ["Block", "Error", "Space", "byte_count", "cuda_allocator", "cuda_mem_pool",
           "cupy_allocator", "default_space", "load", "saved_tensors", "set_default", "version"]


def saved_tensors(space, keep=(), smallest="64KiB"):
    """Keeps what autograd saves in `space`; see spillway_um.torch_hooks.SavedTensors."""
    try:
        from . import torch_hooks  # only here: everything else works without PyTorch
    except ImportError as error:
        raise Error(f"saved_tensors needs PyTorch, which does not load: {error}") from error
    return torch_hooks.SavedTensors(space, keep, byte_count(smallest))
