"""The process's default space, and what PyTorch and CuPy allocate from it on a GPU."""

import ctypes
import weakref

from .library import Error, Handle, load
from .sizes import byte_count
from .space import Space


def set_default(near, capacity, device="cuda", far=None, oversubscribe=False, library=None):
    """Says what the default space is made of, before it is first used; see Space.

    Without it the environment does: SPILLWAY_UM_NEAR and SPILLWAY_UM_CAPACITY.
    """
    library = library or load()
    options = library.options(byte_count(near), byte_count(capacity), device, far, 0, oversubscribe)
    library.set_default(ctypes.byref(options))


def default_space(library=None):
    """The default Space, made now if it was not; it ends with the process, or by close()."""
    library = library or load()
    handle = Handle()
    library.default(ctypes.byref(handle))
    return DefaultSpace(library, handle)


class DefaultSpace(Space):
    """The default space as a Space that frameworks own: it outlives this object."""

    def __init__(self, library, handle):  # pylint: disable=super-init-not-called
        self.library, self.handle, self.saved_blocks = library, handle, None
        self.near = self.capacity = None  # the library does not say
        self.views = weakref.WeakValueDictionary()

    def __del__(self):
        pass  # the frameworks' memory is in it


def torch_cuda(feature, since):
    """torch.cuda when it has `feature` and a GPU, else Error."""
    try:
        import torch
    except ImportError as error:
        raise Error(f"PyTorch does not load: {error}") from error
    if not hasattr(torch.cuda.memory, feature) and not hasattr(torch.cuda, feature):
        raise Error(f"PyTorch {torch.__version__} has no {feature}; it came with {since}")
    if not torch.cuda.is_available():
        raise Error("PyTorch sees no GPU; on the host use saved_tensors() with a host Space")
    return torch.cuda


def cuda_allocator(library=None):
    """The default space as a torch.cuda.memory.CUDAPluggableAllocator (PyTorch 2.0 or newer)."""
    cuda = torch_cuda("CUDAPluggableAllocator", "2.0")
    library = library or load()
    return cuda.memory.CUDAPluggableAllocator(library.path, "spillway_torch_malloc",
                                              "spillway_torch_free")


def cuda_mem_pool(library=None):
    """A torch.cuda.MemPool over the default space (PyTorch 2.5 or newer).

    For `with torch.cuda.use_mem_pool(pool):`, with PyTorch's own caching on top.
    """
    cuda = torch_cuda("MemPool", "2.5")
    return cuda.MemPool(cuda_allocator(library).allocator())


def cupy_allocator(library=None):
    """The default space as a function for cupy.cuda.set_allocator()."""
    try:
        import cupy
    except ImportError as error:
        raise Error(f"CuPy does not load: {error}") from error
    library = library or load()
    return cupy.cuda.memory.CFunctionAllocator(
        0, library.address("spillway_cupy_malloc"), library.address("spillway_cupy_free"),
        library).malloc
