"""Amounts of memory as people write them, in the library's own spelling (um/bytes.h)."""

import re

UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
         **dict.fromkeys("kK", 1 << 10), **dict.fromkeys("mM", 1 << 20),
         **dict.fromkeys("gG", 1 << 30), **dict.fromkeys("tT", 1 << 40),
         "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
PATTERN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")


def byte_count(size):
    """Bytes of `size`: a whole number, or text such as "4096", "512MiB", "1.5 GiB", "40GB"."""
    if isinstance(size, int) and not isinstance(size, bool):
        if size >= 0:
            return size
    elif isinstance(size, str):
        match = PATTERN.fullmatch(size)
        if match and match[2] in UNITS and (UNITS[match[2]] > 1 or "." not in match[1]):
            return round(float(match[1]) * UNITS[match[2]])
    raise ValueError(f"{size!r} is no amount of memory; give a number of bytes, or \"2GiB\", say")


def size_text(count):
    """Bytes for people."""
    for unit in ("GiB", "MiB", "KiB"):
        if count >= UNITS[unit]:
            return f"{count / UNITS[unit]:.2f} {unit}"
    return f"{count} B"
