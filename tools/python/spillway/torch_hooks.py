"""Keeps the tensors that PyTorch's autograd saves in a host space."""

import collections
import sys
import weakref

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from .library import Error
from .saved_blocks import SavedBlocks
from .space import Counters

ALIGNMENT = 64  # bytes, of PyTorch's own CPU memory: kernels must see the same

Packed = collections.namedtuple("Packed", "saved dtype offset shape stride")
"""A strided view, in elements, of a SavedBlock."""
LeftAlone = collections.namedtuple("LeftAlone", "tensor version")


class SavedTensors:
    """A context manager; what autograd saves inside it is kept in `space` until it is used.

    Saved tensors are copied into the space, each piece of memory once, and come back as ordinary
    tensors of the same layout and bits. Leaves that require gradients, what is smaller than
    `smallest` bytes, and the memory of what is in `keep` stay where they are: `keep` is a module
    (its parameters and buffers), a tensor, or any number of these. From PyTorch 2 on, name the
    model there: its parameters cannot be told from other tensors.

    Use one for all steps, or a new one for each: what is learned belongs to the space. Each `with`
    that is not inside another begins a step. Backward may run inside or outside. Threads that train
    at once have one each; the order of uses is learned for one thread only.
    """

    def __init__(self, space, keep, smallest):
        self.space, self.keep, self.smallest = space, keep, smallest
        self.blocks = SavedBlocks.of(space)
        self.known = weakref.WeakValueDictionary()  # blocks by what they are a copy of
        self.kept = frozenset()  # storages
        self.entered = []
        self.in_hand = None  # a weak reference to the block that was used last

    def __enter__(self):
        self.space.expect_open()
        if not self.entered:
            self.kept = frozenset(storage_of(t)._cdata for t in tensors_in(self.keep))
            self.blocks.begin_step()
        hooks = torch.autograd.graph.saved_tensors_hooks(untraced(self.pack),
                                                         untraced(self.unpack))
        hooks.__enter__()
        self.entered.append(hooks)
        return self

    def __exit__(self, *error):
        self.entered.pop().__exit__(*error)

    def counters(self):
        """Steps, and those recognised; tensors saved, shared and left alone; uses, of which hits
        found all of their block near, late ones a hint under way, and misses neither; and uses in
        an order that was not expected. Of all that use this space."""
        return Counters(self.blocks.counts)

    def pack(self, tensor):
        region = self.region_to_move(tensor)
        if region is None:
            self.blocks.count(left_alone=1)
            return LeftAlone(tensor.detach(), tensor._version)  # itself would be a cycle
        storage = storage_of(tensor)
        begin, size = region
        key = (storage._cdata, begin, size, tensor._version)
        saved = self.known.get(key)
        if saved is not None:
            self.blocks.count(shared=1)
        else:
            saved = self.blocks.save(storage.data_ptr() + begin, size)
            saved.origin = StorageWeakRef(storage)  # keeps its _cdata from being given out again
            self.known[key] = saved
        offset = tensor.storage_offset() - begin // tensor.element_size()
        return Packed(saved, tensor.dtype, offset, tensor.shape, tensor.stride())

    def region_to_move(self, tensor):
        """First byte and bytes, in the tensor's storage, of what to copy; None: leave it alone."""
        if not is_plain(tensor) or is_leaf_to_train(tensor) or tensor.numel() == 0:
            return None
        last = sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride()))
        begin = tensor.storage_offset() * tensor.element_size()
        end = begin + (last + 1) * tensor.element_size()
        storage = storage_of(tensor)
        if end - begin < self.smallest or storage._cdata in self.kept:
            return None
        if 2 * (end - begin) >= storage.nbytes():
            return 0, storage.nbytes()  # for other views, too
        begin -= begin % ALIGNMENT
        return begin, end - begin

    def unpack(self, packed):
        if isinstance(packed, LeftAlone):
            if packed.tensor._version != packed.version:
                raise RuntimeError("a tensor that is needed for the gradient was modified in place "
                                   "after the forward pass")
            return packed.tensor
        copy = self.copy_of(packed.saved)
        odd_bytes = copy.numel() % torch.empty(0, dtype=packed.dtype).element_size()
        elements = copy[:copy.numel() - odd_bytes].view(packed.dtype)
        return elements.as_strided(packed.shape, packed.stride, packed.offset)

    def copy_of(self, saved):
        """The block's bytes in ordinary memory; those that were used last are still there."""
        copy = saved.copy
        if copy is not None and copy._version == 0:
            self.blocks.use_again(saved.entry)
            return copy
        latest = self.in_hand and self.in_hand()
        if latest is not None:
            latest.copy = None
        copy = torch.empty(saved.entry.size, dtype=torch.uint8)
        self.blocks.load(saved, copy.data_ptr())
        saved.copy, self.in_hand = copy, weakref.ref(saved)
        return copy


def untraced(function):
    """The function, which Dynamo leaves alone: it would trace hooks of code that it has given up."""
    if "torch._dynamo" not in sys.modules:
        return function
    return torch._dynamo.disable(function)


def storage_of(tensor):
    if hasattr(tensor, "untyped_storage"):  # PyTorch 2
        return tensor.untyped_storage()
    return tensor.storage().untyped()


def is_plain(tensor):
    """Whether its bytes in its storage are all there is to it."""
    return (type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.device.type == "cpu"
            and tensor.layout == torch.strided and not tensor.is_quantized
            and not tensor.is_conj() and not tensor.is_neg())


def is_leaf_to_train(tensor):
    """Whether it is, or is a view of, a leaf that requires a gradient."""
    owner = tensor if tensor._base is None else tensor._base
    return owner.requires_grad and owner.is_leaf


def tensors_in(keep):
    """The tensors of a module, of a tensor, or of any number of these."""
    if isinstance(keep, torch.Tensor):
        return [keep]
    if isinstance(keep, torch.nn.Module):
        return [*keep.parameters(), *keep.buffers()]
    try:
        return [tensor for each in keep for tensor in tensors_in(each)]
    except TypeError:
        raise Error(f"keep has a {type(keep).__name__}; give modules and tensors") from None
