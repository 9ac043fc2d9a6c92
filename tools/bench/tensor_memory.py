"""How much memory a step of PyTorch takes, from two witnesses. Shares no code with what is measured.

The allocator: what PyTorch's profiler reports of each allocation, over what tensors held before.
The system: the peak of the process's resident set.
"""

import gc

import torch
from torch.profiler import ProfilerActivity, profile


def held_bytes():
    """Of all tensors that the program holds, and of their gradients; each storage once."""
    held = [t for t in gc.get_objects() if issubclass(type(t), torch.Tensor)
            and type(t).__name__ != "FakeTensor" and t.device.type == "cpu"]
    held += [t.grad for t in held if t.is_leaf and t.grad is not None]
    return sum({t.untyped_storage()._cdata: t.untyped_storage().nbytes() for t in held}.values())


def allocated_peak(step):
    """Runs `step`; the most bytes above the beginning that PyTorch's allocator gave out."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        step()
    events = [e for e in recorded.profiler.kineto_results.events() if e.name() == "[memory]"]
    now = peak = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        now += event.nbytes()
        peak = max(peak, now)
    return peak


def resident(name):
    """VmRSS, VmHWM or VmData of this process in bytes."""
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name))


def forget_resident_peak():
    """VmHWM begins anew."""
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


def peaks_of(step, near_beside_tensors):
    """Runs `step`. Its most bytes: those the allocator saw, with tensors held before and near memory
    that is no tensor; and the resident set's above what it has without all these."""
    gc.collect()
    held = held_bytes()
    base = resident("VmRSS") - held - near_beside_tensors
    forget_resident_peak()
    allocated = held + near_beside_tensors + allocated_peak(step)
    return {"held_bytes": held, "allocated_bytes": allocated,
            "resident_bytes": resident("VmHWM") - base}
