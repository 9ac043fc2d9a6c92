"""What autograd saves, kept in files: the pattern of PyTorch's documentation.

As in the tutorial "Hooks for autograd saved tensors", section "Saving tensors to disk", with its
thresholds: parameters and small tensors stay where they are.
"""

import os
import tempfile

import torch

SMALLEST = 64 << 10  # bytes; what is smaller stays in memory


def stays(tensor):
    """What is left where it is: parameters, and what is small."""
    return (tensor.is_leaf and tensor.requires_grad
            or tensor.numel() * tensor.element_size() < SMALLEST)


class SelfDeletingTempFile:
    def __init__(self, tensor, folder, names):
        handle, self.name = tempfile.mkstemp(dir=folder)
        os.close(handle)
        torch.save(tensor, self.name)
        self.names = names
        self.names.add(self.name)

    def __del__(self):
        self.names.remove(self.name)
        os.remove(self.name)


def saved_in_files(folder, names=None):
    """A context: what a forward pass in it saves is in files in `folder` until the way back.

    `names` is a set that has the paths of those that are there.
    """
    names = set() if names is None else names

    def pack(tensor):
        # Detached: a saved output that kept its own graph alive would never be freed.
        return tensor.detach() if stays(tensor) else SelfDeletingTempFile(tensor, folder, names)

    def unpack(packed):
        return packed if isinstance(packed, torch.Tensor) else torch.load(packed.name)

    return torch.autograd.graph.saved_tensors_hooks(pack, unpack)
