# SPDX-License-Identifier: Apache-2.0
"""What is known of a metric from its name: label, unit, and whether more of it is better."""
import re
from dataclasses import dataclass

from units import says_unit, unit_of_name

_BAD = re.compile(r"retrans|drop|lost|loss|miss|stall|nak|timeout|overrun|error")
_HIGHER = re.compile(r"gbps|mpps|bandwidth|rate|throughput|hit")
_LOWER = re.compile(r"latency|_ns$|cpu|reuse|_per_message|round_trip")
_NEUTRAL = re.compile(r"utilisation|sim_time|seed|events|first_post|last_done|span")

# The order in which plots appear; what matches none comes last, in the order of the database.
_FIRST = [r"mpps|message_rate", r"gbps|bandwidth", r"p50", r"p99(?!9)", r"p999", r"mean", r"cpu", r"per_message", r"reuse"]

_ACRONYMS = r"\b(ack|cpu|cqe|cq|eqe|iotlb|mtu|nak|pcie|qpc|qp|rnr|wqe|wr)(s?)\b"


@dataclass(frozen=True)
class Metric:
    """A column of numbers. `better` is "low", "high" or None when neither is."""

    name: str
    label: str
    unit: str
    better: str | None


def label_of(name):
    """A name in words; a path keeps the parts that tell something."""
    parts = [p for p in re.split(r"[./]", name) if p and not p.isdigit() and p not in ("workloads", "host", "hosts")]
    words = " ".join(parts).replace("_", " ")
    words = re.sub(r"\b(ns|ps|us|gbps|mpps)\b( ?)", "", words).strip()
    words = re.sub(r"(?<=\w) bytes$", "", words)
    words = re.sub(r"\bp999\b", "p99.9", words)
    words = re.sub(_ACRONYMS, lambda m: "PCIe" + m[2] if m[1] == "pcie" else m[1].upper() + m[2], words)
    return words or name


def metric(name, source=""):
    """The metric of that name. `source` is where its values come from, JSON pointers into the result as docs/sweep.md describes
    them: "A minus B per C x 2". It gives the unit of a name that says none."""
    kinds = ((_NEUTRAL, None), (_BAD, "low"), (_HIGHER, "high"), (_LOWER, "low"))
    better = next((kind for pattern, kind in kinds if pattern.search(name)), None)
    return Metric(name, label_of(name), _unit(name, source), better)


def _unit(name, source):
    if says_unit(name) or not source or " x " in source:
        return unit_of_name(name)
    above, _, below = source.partition(" per ")
    unit = unit_of_name(above.partition(" minus ")[0])
    if unit == "number":
        return unit_of_name(name)
    if not below:
        return unit
    of = unit_of_name(below)
    return "ratio" if unit == of else f"{unit}/{of.removesuffix('s')}"


def in_order(metrics):
    """The metrics people ask for first, first."""

    def place(m):
        return next((i for i, pattern in enumerate(_FIRST) if re.search(pattern, m.name)), len(_FIRST))

    return sorted(metrics, key=place)
