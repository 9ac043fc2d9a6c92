"""What PyTorch and CuPy do with the functions that the package spillway gives them, on a GPU.

Arguments: torch or cupy, and the device's number. Prints the default space's counters as JSON.
Neither framework is needed: this program calls in the order of their allocators.
"""

import ctypes
import json
import sys
import threading

import spillway

MIB = 1 << 20
DEFAULT, NON_BLOCKING = 4, 1  # cudaMemcpyDefault, cudaStreamNonBlocking


class Cuda:
    """The CUDA runtime of this process."""

    def __init__(self):
        self.library = ctypes.CDLL("libcudart.so.13")

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status != 0:
            raise RuntimeError(f"{name} failed: {status}")

    def stream(self):
        stream = ctypes.c_void_p()
        self.call("cudaStreamCreateWithFlags", ctypes.byref(stream), NON_BLOCKING)
        return stream

    def fill(self, address, byte, size, stream):
        self.call("cudaMemsetAsync", ctypes.c_void_p(address), byte, ctypes.c_size_t(size), stream)

    def copy(self, to, address, size, stream):
        self.call("cudaMemcpyAsync", to, ctypes.c_void_p(address), ctypes.c_size_t(size), DEFAULT,
                  stream)


def function(library, name, result, *arguments):
    return ctypes.CFUNCTYPE(result, *arguments)(library.address(name))


def is_all(buffer, byte):
    return bytes(buffer) == bytes([byte]) * len(buffer)


def check(is_so, what):
    if not is_so:
        sys.exit(f"not so: {what}")


def as_torch(cuda, library, device):
    """A MemPool's segments: allocated for the current stream under a device guard, freed by another
    thread while the GPU still works with them, given out again."""
    malloc = function(library, "spillway_torch_malloc", ctypes.c_void_p, ctypes.c_ssize_t,
                      ctypes.c_int, ctypes.c_void_p)
    free = function(library, "spillway_torch_free", None, ctypes.c_void_p, ctypes.c_ssize_t,
                    ctypes.c_int, ctypes.c_void_p)
    cuda.call("cudaSetDevice", device)
    streams = [cuda.stream(), cuda.stream()]
    sizes = [2 * MIB, 20 * MIB, 20 * MIB, 38 * MIB, 2 * MIB, 38 * MIB]
    for number, size in enumerate(sizes):
        stream = streams[number % 2]
        segment = malloc(size, device, stream)
        check(segment and segment % 512 == 0, "an aligned segment")
        back = (ctypes.c_ubyte * size)()
        cuda.fill(segment, number + 1, size, stream)
        cuda.copy(back, segment, size, stream)  # returns when it is done: pageable memory
        check(is_all(back, number + 1), "the segment's number comes back")
        cuda.fill(segment, 99, size, stream)
        backward = threading.Thread(target=free, args=(segment, size, device, stream))
        backward.start()
        backward.join()
    check(not malloc(200 * MIB, device, streams[0]), "more than the capacity is refused")
    check(not malloc(0, device, None), "nothing is nowhere")
    for stream in streams:
        cuda.call("cudaStreamSynchronize", stream)
        cuda.call("cudaStreamDestroy", stream)


def as_cupy(cuda, library, device):
    """A MemoryPool's chunks, in the order of the default stream."""
    malloc = function(library, "spillway_cupy_malloc", ctypes.c_void_p, ctypes.c_void_p,
                      ctypes.c_size_t, ctypes.c_int)
    free = function(library, "spillway_cupy_free", None, ctypes.c_void_p, ctypes.c_void_p,
                    ctypes.c_int)
    cuda.call("cudaSetDevice", device)
    for number, size in enumerate([512, 3 * MIB, 512, 40 * MIB, 40 * MIB]):
        chunk = malloc(None, size, device)
        check(chunk and chunk % 512 == 0, "an aligned chunk")
        back = (ctypes.c_ubyte * size)()
        cuda.fill(chunk, number + 1, size, None)
        cuda.copy(back, chunk, size, None)
        check(is_all(back, number + 1), "the chunk's number comes back")
        cuda.fill(chunk, 99, size, None)
        free(None, chunk, device)
    cuda.call("cudaDeviceSynchronize")


def main():
    framework, device = sys.argv[1], int(sys.argv[2])
    library = spillway.load()
    spillway.set_default(near="48MiB", capacity="64MiB", device=f"cuda:{device}", library=library)
    {"torch": as_torch, "cupy": as_cupy}[framework](Cuda(), library, device)
    json.dump(spillway.default_space(library).counters(), sys.stdout)


if __name__ == "__main__":
    main()
