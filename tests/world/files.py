"""Networks, images and profiles that cases share, each made when first wanted."""

import fcntl
import pathlib
import random
import struct
import subprocess

import drawn_network

IMAGES = 48


class Files:
    """In a folder of their own; several processes may share it."""

    def __init__(self, folder, program):
        self.folder = pathlib.Path(folder)
        self.program = program
        self.folder.mkdir(parents=True, exist_ok=True)

    def network(self, number):
        return self.make(f"n{number}.net", lambda path: path.write_text(
            drawn_network.draw(random.Random(number), f"n{number}"), encoding="utf-8"))

    def images(self):
        """A folder of images in MNIST's format."""
        def write(folder):
            folder.mkdir()
            draw = random.Random(1)
            for name in ("train", "t10k"):
                (folder / f"{name}-images-idx3-ubyte").write_bytes(
                    struct.pack(">IIII", 0x803, IMAGES, 8, 8) + draw.randbytes(IMAGES * 64))
                (folder / f"{name}-labels-idx1-ubyte").write_bytes(
                    struct.pack(">II", 0x801, IMAGES) +
                    bytes(draw.randrange(2) for _ in range(IMAGES)))
        return self.make("images", write)

    def profile(self, case):
        """The times of a machine model, so that a seed has the same plan each time."""
        network = self.network(case.network)
        name = "-".join(map(str, case.profile_key())) + ".profile.json"

        def model(path):
            words = ["profile", "--machine", "host", "--net", network, "--batch", case.batch,
                     "--optimizer", case.optimizer, "--threads", case.threads, "--device", "host",
                     "--conv-algorithm", case.algorithm, "--out", path]
            subprocess.run([self.program, *map(str, words)], check=True, capture_output=True)
        return self.make(name, model)

    def text(self, name, make):
        """A text that make() returns, kept under this name."""
        path = self.make(name, lambda path: path.write_text(make(), encoding="utf-8"))
        return path.read_text(encoding="utf-8")

    def make(self, name, write):
        """The path of this name, which write(path) has made, in this process or another."""
        path = self.folder / name
        if path.exists():
            return path
        with open(self.folder / f"{name}.lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                unfinished = self.folder / f"{name}.unfinished"
                write(unfinished)
                unfinished.rename(path)
        return path
