"""From measured facts to a machine file (prefetch/README.md), to plan for the card without it."""

CARDS = {  # peaks by data sheet and efficiencies, as in prefetch/files/machine.cpp
    "H200": {"flops_per_second": 67e12, "compute_efficiency": 0.65,
             "memory_bytes_per_second": 4800e9, "memory_efficiency": 0.75},
    "H100": {"flops_per_second": 67e12, "compute_efficiency": 0.65,
             "memory_bytes_per_second": 3350e9, "memory_efficiency": 0.75},
}
DUPLEX = 0.75  # part of its rate that a direction keeps beside the other one, to be called so


class Unknown(Exception):
    """No machine file can be made; the text is one sentence."""


def machine_of(driver, memory):
    """The machine that driver_facts measured, with the link of `memory`: managed or copy."""
    name = driver["facts"]["name"]
    card = next((peaks for word, peaks in CARDS.items() if word in name), None)
    if card is None:
        raise Unknown(f"the peaks of {name} are not known; add them to CARDS in machine_file.py")
    return {"format": "spillway-machine", "version": 1,
            "name": f"{name}, measured, {memory}",
            "near_memory_bytes": driver["facts"]["memory_bytes"], **card,
            "link": link_of(driver, memory)}


def link_of(driver, memory):
    rates = driver.get("streaming", {}).get(memory, {})
    if "in" not in rates:
        raise Unknown(f"the link of --memory {memory} was not measured: "
                      f"{rates.get('why_not', 'run the stage facts again')}")
    median = {way: rates[way]["median"]
              for way in ("in", "out", "in_while_out", "out_while_in")}
    link = {"offload_bytes_per_second": round(median["out"]),
            "prefetch_bytes_per_second": round(median["in"]),
            "latency_ns": latency(driver, memory, median),
            "duplex": (median["in_while_out"] >= DUPLEX * median["in"]
                       and median["out_while_in"] >= DUPLEX * median["out"]),
            # The GPU loses sight of unified memory that goes to the host.
            "copies_while_read": memory == "copy"}
    fault = fault_ns(driver, median["in"])
    if fault is not None:
        link["fault_ns"] = fault
    return link


def latency(driver, memory, rates):
    """What the smallest move takes beyond its bytes, in the slower direction."""
    kind = {"managed": "managed", "copy": "pinned"}[memory]
    lines = [line for line in driver["links"]
             if line["memory"] == kind and line["stream"] == "idle"]
    smallest = min(line["size_bytes"] for line in lines)
    beyond = [smallest / line["bytes_per_second"]["median"] - smallest / rates[line["way"]]
              for line in lines if line["size_bytes"] == smallest]
    return max(0, round(1e9 * max(beyond)))


def fault_ns(driver, rate):
    """What a page fault costs beside its bytes; None where the reads caused none."""
    try:
        counts, times = driver["fault_counts"], driver["faults"]
        faults = (counts["touched"]["by_device"]["device_faults"]
                  - counts["budgeted"]["device_faults"]) / counts["size_bytes"]
        seconds = times["read_far"]["stream_seconds"]["median"] / times["size_bytes"] - 1 / rate
    except KeyError:
        return None
    return round(1e9 * seconds / faults) if faults > 0 and seconds > 0 else None
