"""What becomes of the memory of single tensors; tensors that lie in a space."""

from hooks_case import Hooks

import spillway_um
import torch
from torch import nn


class SavedMemory(Hooks):
    def round_trip(self, tensor, **options):
        """What a pair of hooks makes of it."""
        saved = self.saved(**options)
        with saved:
            return saved, saved.unpack(saved.pack(tensor))

    def test_keeps_layout_and_bits_of_any_view(self):
        base = torch.arange(24 * 1024, dtype=torch.float32).view(24, 32, 32)
        images = torch.randn(2, 16, 8, 32).to(memory_format=torch.channels_last)
        for view in (base, base.transpose(0, 2), base[3:20], base[:, ::2], base[5, 3:, 1:],
                     base[0].expand(7, 32, 32), images, base[20:].permute(2, 0, 1)):
            saved, back = self.round_trip(view)
            self.assertTrue(torch.equal(back, view))
            self.assertEqual((back.stride(), back.dtype), (view.stride(), view.dtype))
            self.assertEqual(back.data_ptr() % 64, view.data_ptr() % 64)
            self.assertNotEqual(back.data_ptr(), view.data_ptr())
        self.assertEqual(saved.counters()["left_alone"], 0)

    def test_keeps_any_type(self):
        for dtype in (torch.bool, torch.int64, torch.bfloat16, torch.float64, torch.complex64,
                      torch.uint8):
            tensor = (torch.arange(5001) % 3).to(dtype)
            self.assertTrue(torch.equal(self.round_trip(tensor)[1], tensor))

    def test_is_copied_once_for_all_that_share_it(self):
        tensor = torch.randn(64, 64)
        saved = self.saved()
        with saved:
            packed = [saved.pack(each)
                      for each in (tensor, tensor.detach(), tensor.t(), tensor[1:])]
        self.assertEqual((saved.counters()["saved"], saved.counters()["shared"]), (1, 3))
        self.assertTrue(torch.equal(saved.unpack(packed[2]), tensor.t()))
        self.assertTrue(torch.equal(saved.unpack(packed[3]), tensor[1:]))
        self.assertEqual(saved.counters()["again"], 1)

    def test_is_copied_anew_after_a_write(self):
        tensor = torch.zeros(1024)
        saved = self.saved()
        with saved:
            before = saved.pack(tensor)
            tensor.add_(1)
            after = saved.pack(tensor)
        self.assertEqual((saved.unpack(before).sum(), saved.unpack(after).sum()), (0, 1024))

    def test_is_not_mistaken_for_what_lay_there_before(self):
        saved, packed = self.saved(), []
        with saved:
            for value in range(50):  # PyTorch gives the same memory out again
                packed.append(saved.pack(torch.full((1024,), float(value))))
        self.assertEqual(saved.counters()["shared"], 0)
        self.assertEqual([saved.unpack(each)[0].item() for each in packed], list(range(50)))

    def test_that_a_program_writes_to_is_read_anew(self):
        tensor = torch.ones(1024)
        saved = self.saved()
        with saved:
            packed = saved.pack(tensor)
        saved.unpack(packed).zero_()
        self.assertEqual(saved.unpack(packed).sum(), 1024)

    def test_of_small_parts_is_only_those(self):
        saved, back = self.round_trip(torch.zeros(1 << 20)[1000:2000])
        self.assertEqual(back.sum(), 0)
        self.assertLess(saved.counters()["saved_bytes"], 4064 + 64)

    def test_of_leaves_small_tensors_and_what_is_kept_stays(self):
        model = nn.Linear(64, 64)
        frozen = nn.Linear(64, 64).requires_grad_(False)
        images = torch.zeros(4096)
        saved = self.saved(keep=(frozen, [images]))
        with saved:
            for tensor in (model.weight, model.weight.t(), torch.zeros(255), torch.zeros(0),
                           frozen.weight, images[10:4000], torch.zeros(40, 40).to_sparse()):
                back = saved.unpack(saved.pack(tensor))
                if tensor.layout == torch.strided:
                    self.assertEqual(back.data_ptr(), tensor.data_ptr())
        self.assertEqual(saved.counters()["left_alone"], 7)
        self.expect_nothing_left()
        with self.assertRaisesRegex(spillway_um.Error, "keep has a int; give modules and tensors"):
            self.saved(keep=[3]).__enter__()

    def test_that_stays_must_not_be_written(self):
        tensor = torch.ones(8)
        saved = self.saved()
        with saved:
            packed = saved.pack(tensor)
        tensor.add_(1)
        with self.assertRaisesRegex(RuntimeError, "was modified in place after the forward pass"):
            saved.unpack(packed)


class Tensors(Hooks):
    def test_lie_in_a_space(self):
        tensor = self.space.empty(256, 64, dtype=torch.float64)
        tensor.fill_(2)
        self.space.offload(tensor)
        self.space.synchronize()
        self.assertEqual(self.space.near_bytes(tensor), 0)
        self.space.prefetch(tensor[:64])
        self.space.synchronize()
        self.assertEqual(self.space.near_bytes(tensor[:64]), 64 * 64 * 8)
        self.assertEqual(tensor.sum(), 2 * 256 * 64)
        self.assertEqual(self.space.empty(0, 3).shape, (0, 3))
        del tensor
        self.expect_nothing_left()
