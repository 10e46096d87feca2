# SPDX-License-Identifier: Apache-2.0
"""What a report is about, free of how a database writes it: points, combinations, parameters, metrics."""
import math
import statistics
from collections import Counter
from dataclasses import dataclass, field

from metrics import label_of
from units import unit_of_name

# Two-sided 95 % quantiles of Student's t by degrees of freedom; beyond, the normal one is close enough (1 % at 60).
_T95 = (
    12.706,
    4.303,
    3.182,
    2.776,
    2.571,
    2.447,
    2.365,
    2.306,
    2.262,
    2.228,
    2.201,
    2.179,
    2.160,
    2.145,
    2.131,
    2.120,
    2.110,
    2.101,
    2.093,
    2.086,
    2.080,
    2.074,
    2.069,
    2.064,
    2.060,
    2.056,
    2.052,
    2.048,
    2.045,
    2.042,
)

OK = "ok"
MEASURED = ("ok", "unmet")  # verdicts of points that came to their end, so that what they measured can be plotted
ABSENT = "–"


class ReportError(Exception):
    """A mistake of the user, or input that is no sweep or result; the text is for people."""


@dataclass(frozen=True)
class Value:
    """Of a parameter: as people write it, and the number in the parameter's unit (None for a word)."""

    text: str
    number: float | None = None


@dataclass
class Distribution:
    """Latencies of the messages of one workload or program of a point."""

    name: str
    cdf: list = field(default_factory=list)  # (share of the messages from 0 to 1, ns), ascending
    breakdown: list = field(default_factory=list)  # (stage, mean ns, ns of the median message)

    @property
    def median(self):
        return next(t for share, t in self.cdf if share >= 0.5)


@dataclass
class Point:
    """One run of a sweep."""

    number: int
    combination: int
    replication: int
    seed: int | None
    verdict: str
    parameters: dict  # name -> Value
    metrics: dict  # name -> number or None
    detail: str = ""
    distributions: list = field(default_factory=list)

    @property
    def ok(self):
        return self.verdict == OK

    @property
    def measured(self):
        return self.verdict in MEASURED

    def value(self, parameter):
        return self.parameters.get(parameter.name, Value(ABSENT))


@dataclass
class Combination:
    """The points that share all parameters and differ in the seed."""

    points: list

    @property
    def verdicts(self):
        return Counter(p.verdict for p in self.points)

    @property
    def verdict(self):
        """That of all points; "ok 2 of 3" if they differ, by how often each occurs."""
        counts = self.verdicts
        if len(counts) == 1:
            return next(iter(counts))
        return ", ".join(f"{name} {n} of {len(self.points)}" for name, n in sorted(counts.items(), key=lambda c: (-c[1], c[0])))

    @property
    def ok(self):
        return all(p.ok for p in self.points)

    @property
    def measured(self):
        return any(p.measured for p in self.points)

    def value(self, parameter):
        return self.points[0].value(parameter)

    def values(self, metric):
        """Numbers of the points that came to their end. Those of a point that did not are in the table, not in the plots."""
        found = (p.metrics.get(metric.name) for p in self.points if p.measured)
        return [v for v in found if v is not None and math.isfinite(v)]

    def mean(self, metric):
        values = self.values(metric)
        return statistics.fmean(values) if values else None

    def ci95(self, metric):
        """Half the width of the 95 % confidence interval of the mean; None from fewer than two points."""
        values = self.values(metric)
        if len(values) < 2:
            return None
        t = _T95[len(values) - 2] if len(values) - 2 < len(_T95) else 1.96
        return t * statistics.stdev(values) / math.sqrt(len(values))


class Parameter:
    """A parameter that the sweep varies, with its values in ascending order (words: in the order of the points)."""

    def __init__(self, name, values, unit=""):
        self.name = name
        distinct = list(dict.fromkeys(values))
        self.numeric = all(v.number is not None for v in distinct)
        if self.numeric:
            distinct.sort(key=lambda v: v.number)
        self.values = distinct
        self.unit = (unit or unit_of_name(name)) if self.numeric else ""
        self.tied = []  # parameters that change with this one, and nothing else
        self._place = {v: v.number if self.numeric else float(i) for i, v in enumerate(distinct)}
        self.numbers = list(self._place.values())

    @property
    def label(self):
        return label_of(self.name)

    def axis(self, unit=None):
        """Text of an axis: label and unit, and what changes along with it."""
        text = f"{self.label} ({unit or self.unit or 'choice'})"
        return text + "".join(f", with {p.label}" for p in self.tied)

    @property
    def scale(self):
        """ "linear", "log" for values that grow by factors, "ordinal" for words and for factors that start at zero."""
        n = self.numbers
        if not self.numeric or len(n) < 2:
            return "ordinal" if not self.numeric else "linear"
        # Even steps have their median in the middle; factors have it near the low end.
        if statistics.median(n) - n[0] > 0.3 * (n[-1] - n[0]):
            return "linear"
        return "log" if n[0] > 0 else "ordinal"

    def number(self, value):
        """The number of a value; of a word, its place in the order."""
        return self._place[value]

    def place(self, value):
        """Where a value lies on an axis of this scale, in the coordinates of the plot."""
        return float(self.values.index(value)) if self.scale == "ordinal" else self._place[value]


def parameter_text(parameters):
    """Values of the parameters as `a = 1, b = 2`, in the order in which they stand."""
    return ", ".join(f"{label_of(name)} = {value.text}" for name, value in parameters.items()) or "the only point"


@dataclass(frozen=True)
class Expectation:
    """A condition on the whole sweep; `failures` are lines of text."""

    condition: str
    met: bool
    because: str
    failures: tuple


@dataclass
class Study:
    """A sweep, read completely."""

    name: str
    points: list
    metrics: list
    description: str = ""
    teaches: str = ""
    versions: list = field(default_factory=list)
    scenario_hash: str = ""
    scenario: str = ""  # the resolved scenario, JSON text
    planned: int = 0  # points that the sweep asks for
    units: dict = field(default_factory=dict)  # of parameters that are quantities, by name
    expectations: list = field(default_factory=list)
    design: str = ""  # how the points were chosen: grid, zip, random, latin_hypercube

    def __post_init__(self):
        self.combinations = _combinations_of(self.points)
        self.parameters = _varied(self.combinations, self.units)
        self.axes = _independent(self.parameters, self.combinations)
        self.replicated = any(len(c.points) > 1 for c in self.combinations)

    @property
    def verdicts(self):
        return Counter(p.verdict for p in self.points)

    @property
    def is_grid(self):
        """Whether lines through the points mean something: at least half of all combinations of the axes exist."""
        return len(self.axes) <= 1 or len(self.combinations) * 2 >= math.prod(len(p.values) for p in self.axes)


def _combinations_of(points):
    groups = {}
    for p in points:
        groups.setdefault(p.combination, []).append(p)
    return [Combination(group) for group in groups.values()]


def _varied(combinations, units):
    """Parameters that take more than one value, in the order in which the points name them."""
    names = list(dict.fromkeys(name for s in combinations for name in s.points[0].parameters))
    values = {name: [s.points[0].parameters.get(name, Value(ABSENT)) for s in combinations] for name in names}
    return [Parameter(name, values[name], units.get(name, "")) for name in names if len(set(values[name])) > 1]


def _follows(p, leader, combinations):
    """Whether `p` takes one value for each of the leader's: a zip. Where every point has values of its own, as in a random
    design, that says nothing unless both also rise or fall together."""
    pairs = {(leader.number(s.value(leader)), p.number(s.value(p))) for s in combinations}
    if not len(pairs) == len(leader.values) == len(p.values):
        return False
    followers = [b for _, b in sorted(pairs)]
    return len(pairs) < len(combinations) or followers in (sorted(followers), sorted(followers, reverse=True))


def _independent(parameters, combinations):
    """Parameters without those that follow another one value by value, which become its `tied`."""
    axes = []
    for p in parameters:
        leader = next((a for a in axes if _follows(p, a, combinations)), None)
        if leader:
            leader.tied.append(p)
        else:
            axes.append(p)
    return axes
