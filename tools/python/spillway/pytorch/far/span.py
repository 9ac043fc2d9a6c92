"""The bytes of a storage that a tensor shows."""


def span(value):
    """First byte and end of a tensor in its storage."""
    begin = value.storage_offset() * value.element_size()
    if value.numel() == 0:
        return begin, begin
    last = sum((n - 1) * step for n, step in zip(value.shape, value.stride()))
    return begin, begin + (last + 1) * value.element_size()
