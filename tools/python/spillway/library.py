"""libspillway_um.so through ctypes: the functions and structs of um/dropin/spillway_um.h."""

import ctypes
import os
import pathlib

STATUS_NAMES = ("OK", "INVALID_ARGUMENT", "INVALID_SPACE", "NOT_ALLOCATED", "OUT_OF_MEMORY",
                "FAILED", "INTERNAL")
OPTIONS_VERSION = 1
COUNTERS_VERSION = 1
LEARNED_COUNTERS_VERSION = 1
ACCESS = {"read": 1, "write": 2, "read write": 3}
ADVICE = {"none": 0, "prefer near": 1, "prefer far": 2, "read mostly": 3}
FILE_NAME = "libspillway_um.so"


class Error(RuntimeError):
    """A call that failed; the text says why, `status` is one of STATUS_NAMES, or None."""

    def __init__(self, sentence, status=None):
        super().__init__(sentence)
        self.status = status


class Options(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("oversubscribe", ctypes.c_int32),
                ("device", ctypes.c_char_p), ("near_bytes", ctypes.c_uint64),
                ("capacity_bytes", ctypes.c_uint64), ("page_bytes", ctypes.c_uint64),
                ("far_path", ctypes.c_char_p), ("link_bytes_per_second", ctypes.c_double),
                ("paging", ctypes.c_int32)]


class Handle(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint64)]


class FarHandle(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint64)]


def counter_fields(*names):
    return [("version", ctypes.c_uint32), ("reserved", ctypes.c_uint32)] + [
        (name, ctypes.c_uint64) for name in names]


class CounterValues(ctypes.Structure):
    _fields_ = counter_fields(
        "allocations", "frees", "allocated_bytes", "near_bytes", "near_peak_bytes", "faults",
        "fault_nanoseconds", "evictions", "bytes_prefetched", "bytes_offloaded",
        "discarded_pages", "refused_hints", "touches")


class LearnedCounterValues(ctypes.Structure):
    _fields_ = counter_fields(
        "iterations", "recorded", "followed", "abandoned", "idle", "lessons", "touches", "hits",
        "misses", "unguided", "late", "prefetches", "offloads")


ADDRESS, SIZE, POINTER = ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER
STATUS_FUNCTIONS = {  # each returns a status; after spillway_um_
    "create": [POINTER(Options), POINTER(Handle)],
    "destroy": [Handle],
    "allocate": [Handle, SIZE, SIZE, POINTER(ADDRESS)],
    "free": [Handle, ADDRESS],
    "prefetch": [Handle, ADDRESS, SIZE],
    "offload": [Handle, ADDRESS, SIZE],
    "discard": [Handle, ADDRESS, SIZE],
    "advise": [Handle, ADDRESS, SIZE, ctypes.c_int],
    "touch": [Handle, ADDRESS, SIZE, ctypes.c_int],
    "synchronize": [Handle],
    "prepare_thread": [Handle],
    "mark_iteration": [Handle],
    "get_learned_counters": [Handle, POINTER(LearnedCounterValues)],
    "learned_status": [Handle, ctypes.c_char_p, SIZE],
    "near_bytes": [Handle, ADDRESS, SIZE, POINTER(ctypes.c_uint64)],
    "get_counters": [Handle, POINTER(CounterValues)],
    "set_default": [POINTER(Options)],
    "default": [POINTER(Handle)],
    "far_create": [ctypes.c_char_p, ctypes.c_uint64, POINTER(FarHandle)],
    "far_destroy": [FarHandle],
    "far_write": [FarHandle, ctypes.c_uint64, ADDRESS, SIZE],
    "far_read": [FarHandle, ctypes.c_uint64, ADDRESS, SIZE],
}


class Library:
    """The loaded library; `path` is what it was loaded by."""

    def __init__(self, path):
        self.path = str(path)
        self.handle = ctypes.CDLL(self.path)
        for name, arguments in STATUS_FUNCTIONS.items():
            function = getattr(self.handle, "spillway_um_" + name)
            function.argtypes, function.restype = arguments, ctypes.c_int
            setattr(self, name, self.checked(function))
        for name in ("last_error", "version"):
            function = getattr(self.handle, "spillway_um_" + name)
            function.argtypes, function.restype = [], ctypes.c_char_p
        init = self.handle.spillway_um_options_init
        init.argtypes, init.restype = [POINTER(Options)], None

    def checked(self, function):
        def call(*arguments):
            status = function(*arguments)
            if status != 0:
                sentence = self.handle.spillway_um_last_error().decode(errors="replace")
                raise Error(sentence, STATUS_NAMES[status])
        return call

    def version(self):
        return self.handle.spillway_um_version().decode()

    def address(self, name):
        """Of an exported function, for frameworks that call it themselves."""
        return ctypes.cast(getattr(self.handle, name), ctypes.c_void_p).value

    def options(self, near, capacity, device, far, page, oversubscribe):
        """What spillway_um_create() takes; sizes in bytes."""
        options = Options()
        self.handle.spillway_um_options_init(ctypes.byref(options))
        if options.version != OPTIONS_VERSION:
            raise Error(f"{self.path} has options of version {options.version}, and this package "
                        f"knows version {OPTIONS_VERSION}; take both from the same release")
        options.device = device.encode()
        options.near_bytes, options.capacity_bytes, options.page_bytes = near, capacity, page
        options.far_path = os.fsencode(far) if far is not None else None
        options.oversubscribe = bool(oversubscribe)
        return options


def candidates():
    """Where the library may be, in the order of trial: paths of files, then names for ld.so."""
    named = os.environ.get("SPILLWAY_UM_LIBRARY")
    if named:
        return [named]  # and nothing else: whoever names one does not mean another
    package = pathlib.Path(__file__).resolve().parent
    result = [package / FILE_NAME] if (package / FILE_NAME).exists() else []
    result += [FILE_NAME]
    built = package.parent.parent.parent / "build" / "release" / "bin" / FILE_NAME
    return result + ([built] if built.exists() else [])


def load(path=None):
    """The library at `path`, or the first that is found. A process needs only one."""
    failures = []
    for candidate in [path] if path is not None else candidates():
        try:
            return Library(candidate)
        except OSError as error:
            failures.append(str(error))
        except AttributeError as error:
            raise Error(f"{candidate} is not the drop-in allocator of this package's release: "
                        f"{error}") from error
    raise Error(f"cannot load {FILE_NAME} ({failures[-1]}); build it with 'ninja -C build/release "
                "spillway_um_dropin' and set SPILLWAY_UM_LIBRARY to its path")


def version():
    """Of the library that load() finds: three numbers with dots between."""
    return load().version()
