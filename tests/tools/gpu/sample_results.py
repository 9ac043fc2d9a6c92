"""Result files such as the stages of tools/gpu/run write, with round numbers."""

import copy


def spread(value):
    return {"median": value, "least": value, "most": value, "count": 3}


def time_of(seconds):
    return {"stream_seconds": spread(seconds), "host_seconds": spread(seconds)}


def link_line(memory, way, size, rate):
    return {"memory": memory, "way": way, "size_bytes": size, "stream": "idle",
            "bytes_per_second": spread(rate), "host_seconds": spread(1e-5)}


def streaming(rate_in, rate_out, beside):
    return {"in": spread(rate_in), "out": spread(rate_out),
            "in_while_out": spread(beside * rate_in), "out_while_in": spread(beside * rate_out)}


MB = 1_000_000
# 2 MB at 50 GB/s take 40 us; as single moves at 40 and 25 GB/s they take 50 and 80 us.
DRIVER = {
    "facts": {"name": "NVIDIA H200", "memory_bytes": 150_000 * MB},
    "links": [link_line("pinned", "in", 2 * MB, 50e9), link_line("pinned", "out", 2 * MB, 50e9),
              link_line("managed", "in", 2 * MB, 40e9), link_line("managed", "out", 2 * MB, 25e9),
              link_line("managed", "in", 512 * MB, 50e9)],
    "streaming": {"managed": streaming(50e9, 50e9, 0.5), "copy": streaming(50e9, 50e9, 0.9)},
    "free_memory": {"far_gives_back": False},
    "discard": {"renew_far": time_of(0.001), "bring_back_far": time_of(0.004)},
    # 100 MB: 2 ms by the link; 4 ms by 1000 faults, 2 us each.
    "faults": {"size_bytes": 100 * MB, "read_far": time_of(0.004)},
    "fault_counts": {
        "size_bytes": 100 * MB,
        "budgeted": {"device_faults": 0, "host_faults": 0, "out_by_eviction": 0},
        "touched": {"by_device": {"device_faults": 1000}}},
}


def training(**changes):
    summary = {"near_peak_bytes": 90, "budget_bytes": 100, "weights_sha256": "abc"}
    return {"summary": {**summary, **changes}, "steps": [{"loss": 1.5}]}


def about(stage, status="passed"):
    return {"format": f"spillway-gpu-{stage}", "version": 1, "quick": False, "status": status,
            "date": "2026-11-22T05:00:00+00:00", "gpu": {"description": "a card"},
            "build": {"from": "pack", "commit": "c0ffee"}}


def overhead_run(budget, over, **changes):
    return {**training(), "network": "resnet50", "memory": "managed", "budget": budget,
            "planner": "joint", "discards": True, **changes,
            "median_step_seconds": 0.2, "predicted_step_seconds": 0.2 / (1 + over),
            "over_prediction": over, "ratio_to_resident": 1.5}


RESULTS = {
    "tests": {**about("tests"),
              "programs": [{"program": "a", "status": 0, "tests": 7, "failures": 0}]},
    "facts": {**about("facts"), "driver": DRIVER,
              "card": {"text": "{}", "properties": {"deviceName": "NVIDIA H200"}}},
    "identity": {**about("identity"),
                 "precisions": {"fp32": {"resident": training(), "managed min": training()}}},
    "steady": {**about("steady"), "run": training(), "steady_faults": [0, 0],
               "steady_evictions": [0, 0]},
    "engines": {**about("engines"),
                "steps": [{"network": "resnet50", "precision": "bf16", "batch": 256,
                           "convolutions": [{"engines": [{}, {}, {}]}, {"engines": [{}]}],
                           "seconds_by_fastest": 0.05, "seconds_by_least_workspace": 0.07}]},
    "speed": {**about("speed"),
              "pairs": [{"network": "resnet50", "precision": "bf16", "batch": 256, "ratio": 1.25,
                         "ours": {"images_per_second": 2500},
                         "pytorch": {"images_per_second": 2000}}]},
    "overhead": {**about("overhead"),
                 "runs": [overhead_run("40%", 0.08), overhead_run("60%", 0.3),
                          overhead_run("40%", 0.5, planner="on-demand"),
                          overhead_run("40%", 0.2, discards=False)],
                 "large": {**overhead_run("25%", 0.2), "batch": 1600,
                           "is_more_than_the_card": True}},
}


def results():
    return copy.deepcopy(RESULTS)
