"""The first images of a folder in MNIST's format, each pixel repeated: larger images for programs
that read that format. Needs nothing but Python."""

import gzip
import pathlib
import struct

COUNTS = {"train": 2048, "t10k": 128}  # of images


def read(folder, name):
    """The bytes of a file of the folder, which may be compressed there."""
    plain = pathlib.Path(folder) / name
    return (plain.read_bytes() if plain.exists()
            else gzip.decompress(plain.with_name(name + ".gz").read_bytes()))


def enlarged_row(row, factor):
    return b"".join(row[i:i + 1] * factor for i in range(len(row))) * factor


def enlarge(source, destination, factor):
    """Writes the folder `destination`, of images that are `factor` times as high and as wide."""
    for split, most in COUNTS.items():
        content = read(source, f"{split}-images-idx3-ubyte")
        magic, count, height, width = struct.unpack(">4I", content[:16])
        count = min(count, most)
        with (pathlib.Path(destination) / f"{split}-images-idx3-ubyte").open("wb") as file:
            file.write(struct.pack(">4I", magic, count, factor * height, factor * width))
            for place in range(16, 16 + count * height * width, width):
                file.write(enlarged_row(content[place:place + width], factor))
        labels = read(source, f"{split}-labels-idx1-ubyte")
        (pathlib.Path(destination) / f"{split}-labels-idx1-ubyte").write_bytes(
            labels[:4] + struct.pack(">I", count) + labels[8:8 + count])
