# SPDX-License-Identifier: Apache-2.0
"""Units: the one that a name implies, numbers for people, and scales that fit an axis."""
import math
import re

# What a word in the name of a metric or parameter says about its unit; the first that matches counts.
_UNITS = [
    (r"(^|_)mpps(_|$)", "million messages/s"),
    (r"(^|_)gbps(_|$)", "Gb/s"),
    (r"(^|_)ps(_|$)", "ps"),
    (r"(^|_)ns(_|$)", "ns"),
    (r"(^|_)us(_|$)", "µs"),
    (r"(^|_)ms(_|$)", "ms"),
    (r"(^|_)s$", "s"),
    (r"bytes(_|$)", "bytes"),
    (r"(^|_)percent(_|$)", "%"),
    (r"utilisation|(^|_)share(_|$)|hit_rate|miss_rate", "share, 0 to 1"),
]
_RATIO = re.compile(r"(?:^|_)([a-z]+)_per_(?:\w+_)?([a-z]+)$")  # cpu_ns_per_message, wire_bytes_per_payload_byte
# What the thing itself is counted in.
_THINGS = [
    (r"(^|_)messages?(_|$)|(^|_)iters?(_|$)", "messages"),
    (r"cq_depth|(^|_)cqes?(_|$)", "CQEs"),
    (r"[tr]x_depth|max_(send|recv)_wr|(^|_)wqes?(_|$)", "WQEs"),
    (r"cq_mod|signal", "WRs per signaled WR"),
    (r"post_list", "WRs per post"),
    (r"(^|_)qps?(_|$)|num_qp", "QPs"),
    (r"iotlb|entries", "entries"),
    (r"max_(dest_)?rd_atomic", "READs in flight"),
    (r"rate_limit", "messages/s"),
    (r"mtu|(^|_)size|inline", "bytes"),
    (r"retry|retries", "retries"),
    (r"min_rnr_timer|(^|_)timeout$", "code"),
    (r"(^|_)(reads|packets|misses|timeouts|naks|interrupts|doorbells)(_|$)", r"\2"),
    (r"transmissions", "packets"),
]


def _matched(name, patterns):
    """The unit of the last part of a path that has one."""
    for part in reversed(re.split(r"[./]", name)):
        if ratio := _RATIO.search(part):
            return f"{'µs' if ratio[1] == 'us' else ratio[1]}/{ratio[2]}"
        for pattern, unit in patterns:
            if match := re.search(pattern, part):
                return match.expand(unit)
    return None


def says_unit(name):
    """Whether a name has a unit in it, as `latency_ns`."""
    return _matched(name, _UNITS) is not None


def unit_of_name(name):
    """Unit that the last telling part of a path implies, "number" if none does."""
    return _matched(name, _UNITS + _THINGS) or "number"


def short(value):
    """A number for people: four significant digits, no needless zeros."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, (int, float)):
        return str(value)
    if not math.isfinite(value):
        return str(value)
    if isinstance(value, int) or (value == int(value) and abs(value) < 1e7):
        return f"{int(value):,}".replace(",", "\N{NARROW NO-BREAK SPACE}") if abs(value) >= 10000 else str(int(value))
    if 1e-3 <= abs(value) < 1e7:
        digits = max(0, 3 - math.floor(math.log10(abs(value))))
        return f"{value:.{digits}f}".rstrip("0").rstrip(".") if digits else f"{value:.0f}"
    return f"{value:.4g}"


def size_text(number):
    """Bytes with the largest binary unit that divides them."""
    for unit, worth in (("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024)):
        if number >= worth and number % worth == 0:
            return f"{int(number // worth)} {unit}"
    return f"{short(number)} B"


def time_scale(numbers):
    """(divisor, unit) that brings times in ns to a readable size: by their geometric middle."""
    positive = [n for n in numbers if n and n > 0]
    if not positive:
        return 1.0, "ns"
    middle = math.sqrt(min(positive) * max(positive)) if max(positive) / min(positive) > 100 else max(positive)
    for divisor, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if middle >= 2 * divisor:
            return divisor, unit
    return 1.0, "ns"


def scale_for(unit, numbers):
    """(divisor, unit to print) for an axis whose numbers are in `unit`."""
    if unit == "ns":
        return time_scale(numbers)
    if unit in ("bytes", "number", "messages"):
        largest = max((abs(n) for n in numbers if n is not None), default=0)
        for divisor, prefix in ((1e9, "10⁹ "), (1e6, "10⁶ ")):
            if largest >= 20 * divisor:
                return divisor, prefix + unit
    return 1.0, unit


def wide(values):
    """Whether numbers span so much that only a logarithmic axis shows them all."""
    positive = [v for v in values if v > 0]
    return len(positive) == len(values) > 1 and max(positive) / min(positive) >= 30
