"""What a plan cannot be made for, and why."""


class Unsupported(Exception):
    """A graph that runs without a plan instead; the text completes "... because"."""
