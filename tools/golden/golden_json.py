"""How golden files write numbers."""

import json


def rounded(value, digits=8):
    """Each float in `value`, which may be nested, with so many digits."""
    if isinstance(value, dict):
        return {key: rounded(part, digits) for key, part in value.items()}
    if isinstance(value, list):
        return [rounded(part, digits) for part in value]
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value


def lines(value, indent="", between=", "):
    """JSON with a line for each list of numbers, `between` two of which stands so much."""
    if not isinstance(value, dict) or not any(isinstance(v, (dict, list)) for v in value.values()):
        return json.dumps(value, separators=(between, ": "))
    inner = indent + "  "
    body = ",\n".join(f"{inner}{json.dumps(key)}: {lines(part, inner, between)}"
                      for key, part in value.items())
    return "{\n" + body + "\n" + indent + "}"
