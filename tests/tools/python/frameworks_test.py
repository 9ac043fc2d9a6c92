"""What PyTorch and CuPy are given, by stand-ins that take notes."""

import os
import pathlib
import subprocess
import sys
import types
import unittest
from unittest import mock

import importing
import spillway_um


def torch_with(has_gpu=True, **features):
    cuda = types.SimpleNamespace(is_available=lambda: has_gpu, memory=types.SimpleNamespace(),
                                 **features)
    return types.SimpleNamespace(cuda=cuda, __version__="9.9")


class PyTorch(unittest.TestCase):
    def setUp(self):
        self.made = []

    def allocator(self, *arguments):
        self.made.append(arguments)
        return types.SimpleNamespace(allocator=lambda: "raw")

    def with_torch(self, torch):
        return mock.patch.dict(sys.modules, {"torch": torch})

    def test_gets_the_library_and_both_functions(self):
        torch = torch_with()
        torch.cuda.memory.CUDAPluggableAllocator = self.allocator
        with self.with_torch(torch):
            spillway_um.cuda_allocator()
        path, *functions = self.made[0]
        self.assertTrue(pathlib.Path(path).name.startswith("libspillway_um.so"))
        self.assertEqual(functions, ["spillway_torch_malloc", "spillway_torch_free"])
        library = spillway_um.load(path)
        for function in functions:
            self.assertGreater(library.address(function), 0)

    def test_gets_a_pool_of_that(self):
        torch = torch_with(MemPool=lambda allocator: ("pool", allocator))
        torch.cuda.memory.CUDAPluggableAllocator = self.allocator
        with self.with_torch(torch):
            self.assertEqual(spillway_um.cuda_mem_pool(), ("pool", "raw"))

    def test_that_cannot_is_told_why(self):
        without_gpu = torch_with(has_gpu=False, MemPool=None, CUDAPluggableAllocator=None)
        for torch, sentence in ((without_gpu, "sees no GPU; on the host use saved_tensors"),
                                (torch_with(), "PyTorch 9.9 has no MemPool; it came with 2.5"),
                                (None, "PyTorch does not load")):
            with self.with_torch(torch), self.assertRaisesRegex(spillway_um.Error, sentence):
                spillway_um.cuda_mem_pool()
        with self.with_torch(None), self.assertRaisesRegex(spillway_um.Error,
                                                           "saved_tensors needs PyTorch"):
            spillway_um.saved_tensors(None)


class CuPy(unittest.TestCase):
    def test_gets_the_addresses_of_both_functions(self):
        made = []

        def make(*arguments):
            made.append(arguments)
            return types.SimpleNamespace(malloc="malloc")
        memory = types.SimpleNamespace(CFunctionAllocator=make)
        cupy = types.SimpleNamespace(cuda=types.SimpleNamespace(memory=memory))
        with mock.patch.dict(sys.modules, {"cupy": cupy}):
            self.assertEqual(spillway_um.cupy_allocator(), "malloc")
        param, malloc, free, owner = made[0]
        self.assertEqual(param, 0)
        self.assertEqual((malloc, free), (owner.address("spillway_cupy_malloc"),
                                          owner.address("spillway_cupy_free")))

    def test_that_is_missing_is_told(self):
        with mock.patch.dict(sys.modules, {"cupy": None}), \
                self.assertRaisesRegex(spillway_um.Error, "CuPy does not load"):
            spillway_um.cupy_allocator()


class DefaultSpace(unittest.TestCase):
    """There is one in a process, so each test has a process."""

    def run_python(self, text, **environment):
        text = "import importing, ctypes, spillway_um\nlibrary = spillway_um.load()\n" + text
        inherited = {name: value for name, value in os.environ.items()
                     if name not in ("SPILLWAY_UM_NEAR", "SPILLWAY_UM_CAPACITY")}
        done = subprocess.run([sys.executable, "-B", "-c", text], capture_output=True, text=True,
                              cwd=pathlib.Path(__file__).parent, check=False,
                              env={**inherited, **environment})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_is_what_was_set_and_serves_frameworks(self):
        printed = self.run_python(
            "spillway_um.set_default('1MiB', '8MiB', device='host')\n"
            "malloc = library.handle.spillway_torch_malloc\n"
            "malloc.argtypes = [ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]\n"
            "malloc.restype = ctypes.c_void_p\n"
            "address = malloc(4096, 0, None)\n"
            "space = spillway_um.default_space()\n"
            "del space\n"  # which leaves the memory alone
            "ctypes.memset(address, 1, 4096)\n"
            "print(spillway_um.default_space().counters()['allocated_bytes'])")
        self.assertEqual(printed, "4096\n")

    def test_holds_no_saved_blocks(self):
        printed = self.run_python(
            "from spillway_um.saved_blocks import SavedBlocks\n"
            "spillway_um.set_default('1MiB', '8MiB', device='host')\n"
            "try: SavedBlocks.of(spillway_um.default_space())\n"
            "except spillway_um.Error as error: print(error)")
        self.assertIn("does not say how much of it is near; make a Space", printed)

    def test_is_not_changed_once_in_use(self):
        printed = self.run_python(
            "spillway_um.set_default('1MiB', '8MiB', device='host')\n"
            "space = spillway_um.default_space()\n"
            "try: spillway_um.set_default('2MiB', '8MiB', device='host')\n"
            "except spillway_um.Error as error: print(error)")
        self.assertIn("the default space is in use", printed)

    def test_is_of_the_environment_otherwise(self):
        printed = self.run_python(
            "print(spillway_um.default_space().counters()['allocations'])",
            SPILLWAY_UM_NEAR="1MiB", SPILLWAY_UM_CAPACITY="8MiB", SPILLWAY_UM_DEVICE="host")
        self.assertEqual(printed, "0\n")

    def test_needs_a_size(self):
        printed = self.run_python("try: spillway_um.default_space()\n"
                                  "except spillway_um.Error as error: print(error)")
        self.assertIn("SPILLWAY_UM_NEAR=2GiB", printed)
