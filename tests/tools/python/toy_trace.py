"""A step so small that its plans can be told by hand."""

MIB = 1 << 20


def toy(recomputable=False):
    """Three blocks of 4 MiB that wait for a backward pass: 12 MiB near, 8 MiB at least."""
    names = ["f1", "f2", "f3", "b3", "b2", "b1"]
    reads, writes = [[], [1], [2], [3], [2], [1]], [[1], [2], [3], [], [], []]
    return {"format": "spillway-trace", "version": 1, "name": "toy",
            "tasks": [{"name": n, "reads": r, "writes": w, "duration_ns": 1000000,
                       "workspace_bytes": 0, "recomputable": recomputable}
                      for n, r, w in zip(names, reads, writes)],
            "data": [{"id": i, "bytes": 4 * MIB, "kind": "tensor"} for i in (1, 2, 3)]}
