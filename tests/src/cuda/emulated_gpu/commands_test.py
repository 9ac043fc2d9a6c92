"""Other commands than train use the emulated GPU with the host's results, and refuse what it cannot do."""

import json
import pathlib
import random
import struct
import tempfile
import unittest

from emulated_runs import EXACT, PROGRAM, call, profile, start, train, train_on_host, words
from families import FAMILIES

LENET = "--net lenet --batch 32"
GPT = "--net gpt:2,2,32,32 --vocabulary 256 --batch 4"
# Flags of a training, the emulated GPU, and words of the sentence.
REFUSED = [
    ("--device cuda:7", {"devices": 2}, "there is no cuda:7; the GPUs are cuda:0 to cuda:1"),
    ("--device cuda", {"devices": 0}, "the NVIDIA driver finds no GPU"),
    ("--device cuda", {"driver": 11000}, "the NVIDIA driver is too old: it knows CUDA 11.0"),
    ("--device cuda --memory copy --budget min --link-bandwidth 1GB/s", {},
     "a GPU's link cannot be slowed down"),
    ("--device cuda --memory managed --budget min --paging memfd", {}, "a GPU pages by itself"),
    ("--device cuda --memory managed --budget min --planner on-demand", {},
     "page faults alone keep no budget"),
    ("--device cuda --memory managed --budget min --managed-limit 16GiB,0.00001%", {},
     "of unified memory"),
    ("--device cuda --memory managed --budget min --managed-limit 50% --managed-limit 64KiB", {},
     "the limit of 64.0 KiB"),
]


class Commands(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.saved = pathlib.Path(folder.name) / "saved"

    def save(self, net, *flags):
        run = train(net, "--steps 2 --memory resident --checkpoint", self.saved, flags)
        self.assertEqual(run.status, 0, run.story())

    def answer(self, command, device, *flags):
        """What a command writes about the checkpoint, and the emulated GPU's report."""
        done, report = call(words(PROGRAM, command, self.saved, "--device", device, flags,
                                  "--deterministic --threads 1 --json -"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(report.get("mistakes"), 0 if device == "cuda" else None, done.stderr)
        return json.loads(done.stdout.splitlines()[-1]), report

    def test_evaluate_has_the_hosts_loss_in_each_mode(self):
        self.save(LENET)
        host, _ = self.answer("evaluate", "host", "--memory resident")
        resident, _ = self.answer("evaluate", "cuda", "--memory resident")
        self.assertLessEqual(abs(resident["loss"] - host["loss"]), 1e-5 * host["loss"])
        self.assertEqual(resident["accuracy"], host["accuracy"])
        for memory in ("managed", "copy"):
            found, _ = self.answer("evaluate", "cuda", "--budget min --memory", memory)
            self.assertEqual((found["loss"], found["top5"]), (resident["loss"], resident["top5"]))

    def test_evaluate_judges_averaged_weights(self):
        self.save(FAMILIES["residual"].flags(), "--ema 0.5")
        host, _ = self.answer("evaluate", "host", "--memory resident")
        found, _ = self.answer("evaluate", "cuda", "--memory resident")
        self.assertTrue(found["averaged"])
        self.assertLessEqual(abs(found["loss"] - host["loss"]), 1e-4 * host["loss"])

    def test_predict_names_the_hosts_classes(self):
        self.save(LENET)
        host, _ = self.answer("predict", "host", "--count 5")
        found, report = self.answer("predict", "cuda", "--count 5")
        self.assertEqual([each["class"] for each in found["items"]],
                         [each["class"] for each in host["items"]])
        self.assertGreater(report["counts"]["kernel"], 0)

    def test_sample_continues_as_the_host_does(self):
        text = self.saved.with_name("text")
        text.write_text("to be, or not to be: that is the question. " * 200, encoding="utf-8")
        self.save(GPT, f"--data text:{text}")
        host, _ = self.answer("sample", "host", "--tokens 5 --top-k 1")
        found, report = self.answer("sample", "cuda", "--tokens 5 --top-k 1")
        self.assertEqual(found["tokens"], host["tokens"])
        self.assertGreater(report["counts"]["kernel"], 0)

    def test_devices_says_that_it_is_emulated(self):
        done, _ = call(words(PROGRAM, "devices"), {"devices": 2})
        self.assertEqual(done.returncode, 0, done.stderr)
        for device in ("cuda:0", "cuda:1"):
            self.assertRegex(done.stdout, rf"(?m)^{device}: .*emulated GPU, a test double")
        self.assertIn("page faults and moves by cause, by CUPTI", done.stdout)

    def test_devices_says_how_the_host_is_reached(self):
        for kind, sentence in (("integrated", "near memory is the host's RAM"),
                               ("coherent", "NVLink-C2C, coherent")):
            done, _ = call(words(PROGRAM, "devices"), {"kind": kind})
            self.assertIn(sentence, done.stdout)

    def test_train_names_the_machine_by_whose_times_it_cuts_a_batch(self):
        run = train(LENET, "--steps 1 --memory copy --budget min+30% --micro-batches auto")
        self.assertEqual(run.status, 0, run.story())
        self.assertIn("emulated GPU, a test double", run.errors)
        self.assertIn("the batch is cut as for the machine 'a100'", run.errors)

    def test_train_goes_on_without_the_far_file_of_the_host(self):
        drivers = self.saved.parent
        (drivers / "libcuda.so.1").symlink_to(PROGRAM.parent / "libnccl.so.2")  # any library
        finds_driver = ("env", f"LD_LIBRARY_PATH={PROGRAM.parent}:{drivers}")
        flags = words(LENET, EXACT, "--eval-every 0 --checkpoint", self.saved)
        run = start(words(flags, "--device host --steps 1 --memory managed --budget min+50% --far",
                          f"file:{drivers}"))
        self.assertEqual(run.status, 0, run.story())
        run = start(words(flags, "--device auto --steps 2 --resume"), launcher=finds_driver)
        self.assertEqual(run.status, 0, run.story())
        self.assertIn("note: the checkpoint's far memory was a file in ", run.errors)
        self.assertIn("emulated GPU, a test double", run.errors)

    def test_train_reads_images_of_bytes(self):
        folder = self.saved.with_name("digits")
        folder.mkdir()
        chance = random.Random(1)
        for part, count in (("train", 64), ("t10k", 32)):
            (folder / f"{part}-images-idx3-ubyte").write_bytes(
                struct.pack(">4I", 0x803, count, 28, 28) + chance.randbytes(count * 784))
            (folder / f"{part}-labels-idx1-ubyte").write_bytes(
                struct.pack(">2I", 0x801, count) + bytes(chance.choices(range(10), k=count)))
        flags = words(LENET, "--steps 3 --data", f"idx:{folder}")
        host = train_on_host(flags)
        run = train(flags, "--memory copy --budget min+30%")
        self.assertEqual(run.status, 0, run.story())
        for loss, other in zip(run.losses(), host.losses(), strict=True):
            self.assertLessEqual(abs(loss - other), 1e-5 * other, run.story())

    def test_train_counts_page_faults(self):
        net = words("--net lenet --batch 96")
        flags = words(net, "--steps 3 --count-faults --recompute off --memory managed --budget min+30%",
                      "--profile", profile(*net))
        planned = train(flags)
        self.assertEqual((planned.status, planned.summary["faults"]), (0, 0), planned.story())
        self.assertGreater(planned.summary["bytes_offloaded"], 0)
        faulting = train(flags, card={"ignores-hints": "on"})
        self.assertEqual((faulting.status, faulting.bits()), (0, planned.bits()), faulting.story())
        self.assertGreater(faulting.summary["faults"], 0)
        self.assertLessEqual(faulting.summary["faults"], faulting.report["device_faults"])

    def test_train_refuses_in_one_sentence(self):
        for flags, card, sentence in REFUSED:
            with self.subTest(flags=flags, card=card):
                run = start(words(LENET, "--steps 1", flags), card)
                self.assertIn(run.status, (1, 2), run.story())
                self.assertEqual(len(run.sentences()), 1, run.story())
                self.assertIn(sentence, run.sentences()[0])


if __name__ == "__main__":
    unittest.main()
