"""A line on standard error: what runs, how much is done, how long the rest will take."""

import statistics
import sys


class Progress:
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
