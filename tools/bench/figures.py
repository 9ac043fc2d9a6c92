"""Figures for people, and for programs."""

import json
import statistics
import sys


def spread(values):
    """The distance from the smallest to the largest, as a part of the median."""
    return (max(values) - min(values)) / statistics.median(values)


def size(count):
    """Bytes as text."""
    if count >= 1 << 30:
        return f"{count / (1 << 30):.2f} GiB"
    return f"{count / (1 << 20):.1f} MiB"


def duration(seconds):
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.1f} ms"


def table(rows):
    """Rows of texts as lines: the first column to the left, the rest to the right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join(
        "  ".join(cell.rjust(width) if i else cell.ljust(width)
                  for i, (cell, width) in enumerate(zip(row, widths))).rstrip()
        for row in rows)


def expect_writable(path, make_folder=False):
    """Exits with a sentence when `path` cannot be written: before hours of work, not after."""
    if path is None:
        return
    try:
        if make_folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8"):
            pass
    except OSError as error:
        sys.exit(f"{sys.argv[0]}: cannot write {path}: {error.strerror}")


def write_json(path, result):
    if path is not None:
        path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


class Progress:
    """A line on standard error: what runs, how much is done, how long the rest will take."""

    def __init__(self, keys):
        """`keys` names each run to come, in order; runs of equal key take about equally long."""
        self.pending = list(keys)
        self.total = len(self.pending)
        self.times = {}
        self.is_terminal = sys.stderr.isatty()

    def show(self, text):
        """The first pending run begins."""
        line = f"[{self.total - len(self.pending) + 1}/{self.total}] {text}{self.time_left()}"
        print(f"\r{line}\x1b[K" if self.is_terminal else line, file=sys.stderr, flush=True,
              end="" if self.is_terminal else "\n")

    def advance(self, seconds):
        """The first pending run has taken so long; None: it was skipped or failed."""
        key = self.pending.pop(0)
        if seconds is not None:
            self.times.setdefault(key, []).append(seconds)
        if self.is_terminal and not self.pending:
            print(file=sys.stderr)

    def time_left(self):
        if not self.times:
            return ""
        known = {key: statistics.mean(values) for key, values in self.times.items()}
        usual = statistics.mean(known.values())
        left = sum(known.get(key, usual) for key in self.pending)
        return f", {left / 60:.0f} min left" if left >= 90 else f", {left:.0f} s left"
