"""From the measured link to a machine file, with which `spillway plan` plans where no GPU is."""

GIB = 1 << 30
CARDS = {  # near memory, peaks and efficiencies, as in prefetch/files/machine.cpp
    "V100": (16 * GIB, 15.7e12, 0.65, 900e9, 0.8),
    "A100": (40 * GIB, 19.5e12, 0.65, 1555e9, 0.75, 156e12, 312e12),
    "H100": (80 * GIB, 67e12, 0.65, 3350e9, 0.75, 494e12, 989e12),
    "H200": (141 * GIB, 67e12, 0.65, 4800e9, 0.75, 494e12, 989e12),
}
KEYS = ("near_memory_bytes", "flops_per_second", "compute_efficiency", "memory_bytes_per_second",
        "memory_efficiency", "tf32_flops_per_second", "bf16_flops_per_second")
LINKS = {"managed": "prefetch", "copy": "pinned_copy"}  # memory mode: way of `bench link`


def largest(rows, way, direction):
    """The row of the largest move."""
    return max((row for row in rows if row["way"] == way and row["direction"] == direction),
               key=lambda row: row["bytes"])


def link_of(rows, memory):
    """The link of a machine file, from the rows of `spillway bench link`."""
    way = LINKS[memory]
    rates = {direction: largest(rows, way, direction)["bytes_per_second"]
             for direction in ("in", "out", "both")}
    return {"offload_bytes_per_second": round(rates["out"]),
            "prefetch_bytes_per_second": round(rates["in"]),
            "latency_ns": latency(rows, way, rates),
            "duplex": is_duplex(rates),
            # A GPU loses sight of unified memory that goes to the host.
            "copies_while_read": memory == "copy"}


def is_duplex(rates):
    """Whether a byte each way at once takes closer to the slower way's time than to both in turn,
    as src/run/link_profiler has it."""
    times = [1 / rates["in"], 1 / rates["out"]]
    return 2 / rates["both"] < max(times) + min(times) / 2


def latency(rows, way, rates):
    """What the smallest move takes beyond its bytes, in the slower direction."""
    single = [row for row in rows if row["way"] == way and row["direction"] != "both"]
    smallest = min(row["bytes"] for row in single)
    beyond = [smallest / row["bytes_per_second"] - smallest / rates[row["direction"]]
              for row in single if row["bytes"] == smallest]
    return max(0, round(1e9 * max(beyond)))


def machine_of(card, memory, link):
    """The machine file for a card with this name; nothing for cards with unknown peaks."""
    peaks = next((peaks for name, peaks in CARDS.items() if name in card), None)
    if peaks is None:
        return None
    return {"format": "spillway-machine", "version": 1, "name": f"{card}, measured, {memory}",
            **dict(zip(KEYS, peaks)), "link": link}
