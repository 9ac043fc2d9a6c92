"""Blocks that go far and come back: the same bits, whichever way they take."""

import gc
import sys
import tempfile
import threading
import unittest
import unittest.mock

from pytorch_case import PyTorchCase, spillway, torch
from spillway.pytorch.far.far_memory import BLOCKS, SMALL, FarMemory

MIB = 1 << 20


class FarMemories(PyTorchCase):
    def far_folders(self):
        """RAM, and a folder for a file."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return None, folder.name

    def there_and_back(self, memory, tensors):
        """Stores all, then brings all."""
        expected = [t.clone() for t in tensors]
        handles = [memory.store(t) for t in tensors]
        tensors.clear()
        for handle, value in zip(handles, expected, strict=True):
            BLOCKS[int(handle)].prefetch()
            back = BLOCKS[int(handle)].wait()
            self.assertTrue(torch.equal(back, value))
            self.assertEqual(back.stride(), value.stride())

    def test_sizes_and_views_keep_their_bits(self):
        for folder in self.far_folders():
            for near in (256 << 10, 4 * MIB):  # through slots, and as whole tensors
                memory = FarMemory(near, folder)
                whole = torch.randn(3, 1000, 100)
                self.there_and_back(memory, [
                    torch.randn(5), torch.randn(SMALL // 4), torch.randn(SMALL // 4 + 3),
                    torch.randn(1 << 19), torch.empty(0), whole.transpose(0, 2),
                    torch.randint(0, 255, (SMALL + 7,), dtype=torch.uint8), torch.randn(600000),
                    torch.randn(33, 7).to(torch.bfloat16)])

    def test_tensors_on_their_way_take_no_more_than_was_given(self):
        memory = FarMemory(4 * MIB, None)
        most = 0
        for _ in range(40):
            memory.store(torch.randn(1 << 17))
            held = sum(each.near.numel() * 4 for each in memory.leaving)
            self.assertEqual(held, memory.leaving_bytes)
            most = max(most, held)
        self.assertLessEqual(most + memory.slot_bytes(), memory.near)
        self.assertGreater(most, 0)

    def test_what_the_step_writes_beside_a_tensor_does_no_harm(self):
        memory = FarMemory(16 * MIB, None)
        whole = torch.zeros(MIB // 4 * 2)
        part = whole[100:100 + MIB // 4]
        part.copy_(torch.randn(MIB // 4))
        expected, stop = part.clone(), threading.Event()

        def write():
            while not stop.is_set():
                whole[:100].add_(1)

        writer = threading.Thread(target=write)
        writer.start()
        handles = [memory.store(part) for _ in range(20)]
        found = [BLOCKS[int(h)].wait() for h in handles]
        stop.set()
        writer.join()
        self.assertTrue(all(torch.equal(f, expected) for f in found))

    def test_a_write_that_fails_reaches_the_program_once(self):
        for near in (256 << 10, 8 * MIB):
            memory = FarMemory(near, None)
            handle = memory.store(torch.randn(MIB // 4))
            BLOCKS[int(handle)].wait()
            with unittest.mock.patch.object(type(memory.stores[0]), "write",
                                            side_effect=spillway.Error("the disk is gone")):
                failed = memory.store(torch.randn(16384 + 1))
                with self.assertRaisesRegex(spillway.Error, "the disk is gone"):
                    BLOCKS[int(failed)].wait()
            del failed
            gc.collect()
            handle = memory.store(torch.ones(MIB // 4))
            self.assertEqual(float(BLOCKS[int(handle)].wait().sum()), MIB // 4)

    def test_threads_that_move_blocks_at_once_get_their_own_back(self):
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(1e-6)
        for size in (100, SMALL // 4, MIB // 4):  # the last goes through slots
            memory, found = FarMemory(256 << 10, None), []

            def step(number, size=size, memory=memory, found=found):
                values = [torch.full((size,), float(number + 3 * place)) for place in range(150)]
                handles = [memory.store(value) for value in values]
                found.append(all(torch.equal(BLOCKS[int(handle)].wait(), value)
                                 for handle, value in zip(handles, values)))

            threads = [threading.Thread(target=step, args=(number,)) for number in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(found, [True] * 3)

    def test_a_block_that_two_threads_wait_for_comes_to_both(self):
        memory = FarMemory(4 * MIB, None)
        for _ in range(30):
            value = torch.randn(SMALL)
            handle, found = memory.store(value), []
            threads = [threading.Thread(target=lambda handle=handle, found=found: found.append(
                BLOCKS[int(handle)].wait())) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual([torch.equal(f, value) for f in found], [True, True])


if __name__ == "__main__":
    unittest.main()
