"""How golden files write numbers."""

import json


def rounded(value, digits=8):
    """Each float in `value`, which may be nested, with so many digits."""
    if isinstance(value, dict):
        return {key: rounded(part, digits) for key, part in value.items()}
    if isinstance(value, list):
        return [rounded(part, digits) for part in value]
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value


def lines(value, between=", "):
    """JSON with a line for each case: each entry of a dictionary in `value` that holds cases. `between`:
    what separates two items."""
    def line(part):
        return json.dumps(part, separators=(between, ": "))

    def entry(key, part):
        if not isinstance(part, dict) or not any(isinstance(v, (dict, list)) for v in part.values()):
            return f"  {json.dumps(key)}: {line(part)}"
        cases = ",\n".join(f"    {json.dumps(name)}: {line(case)}" for name, case in part.items())
        return f"  {json.dumps(key)}: {{\n{cases}\n  }}"

    return "{\n" + ",\n".join(entry(key, part) for key, part in value.items()) + "\n}"
