# SPDX-License-Identifier: Apache-2.0
"""What a sweep shows, in words: how the points ended and where they fail, the best point of each metric, the knees of its curves."""
import math
from dataclasses import dataclass

from model import parameter_text
from units import scale_for, short

MOST_FAILURES = 15
KNEE_POINTS = 5  # a knee of fewer points is a guess
KNEE_DISTANCE = 0.15  # of the curve from its chord as drawn; a parabola has 0.25
KNEE_BEND = 0.1  # the same on linear axes


@dataclass(frozen=True)
class Finding:
    kind: str  # "verdict", "failure", "optimum", "knee", "correlation"
    text: str


@dataclass(frozen=True)
class Knee:
    index: int  # of the point on the curve
    share: float  # of the whole change that has happened up to it
    distance: float  # from the chord


def _distances(xs, ys):
    """How far each point of a curve lies from the chord of its ends, with both axes scaled to 0..1."""
    width, height = xs[-1] - xs[0], ys[-1] - ys[0]
    return [abs((y - ys[0]) / height - (x - xs[0]) / width) for x, y in zip(xs, ys)]


def knee(xs, ys, log_x=False, log_y=False):
    """The point farthest from the chord of the curve's ends, on the axes as they are drawn, scaled to 0..1 (the idea of Kneedle,
    Satopää et al. 2011, without its smoothing). There the curve is as steep as it is on average. None when the curve is short,
    flat, or does not go one way; nor when it is close to straight as drawn (a power law on logarithmic axes) or on linear axes (a
    straight line that a logarithmic axis bends)."""
    if len(xs) < KNEE_POINTS or len(set(xs)) < len(xs):
        return None
    height = ys[-1] - ys[0]
    if abs(height) <= 0.02 * max(abs(y) for y in ys):
        return None
    against = sum(max(0.0, (a - b) * math.copysign(1, height)) for a, b in zip(ys, ys[1:]))
    if against > 0.1 * abs(height) or max(_distances(xs, ys)) < KNEE_BEND:
        return None
    drawn = _distances([math.log(x) for x in xs] if log_x else xs, [math.log(y) for y in ys] if log_y else ys)
    best = max(range(1, len(xs) - 1), key=drawn.__getitem__)
    return Knee(best, (ys[best] - ys[0]) / height, drawn[best]) if drawn[best] >= KNEE_DISTANCE else None


def value_text(metric, value):
    """The value with its unit, times in a readable one."""
    divisor, unit = scale_for(metric.unit, [value])
    return f"{short(value / divisor)} {unit}" if not unit.startswith(("number", "share")) else short(value / divisor)


def point_text(metric, combination, parameters):
    """The mean of a combination, with its interval if there is one."""
    where = parameter_text({p.name: combination.value(p) for p in parameters})
    ci = combination.ci95(metric)
    interval = f" ± {value_text(metric, ci)} (95 % CI, n = {len(combination.values(metric))})" if ci is not None else ""
    return f"{where}: {metric.label} {value_text(metric, combination.mean(metric))}{interval}"


def optimum(metric, combinations):
    """The combination with the best mean, the first of several; None when there is no best or nothing was measured."""
    measured = [s for s in combinations if s.mean(metric) is not None]
    if not measured or metric.better is None:
        return None
    return (max if metric.better == "high" else min)(measured, key=lambda s: s.mean(metric))


def rank_correlation(xs, ys):
    """Spearman's rho, with mean ranks for ties; None for constant data."""

    def ranks(values):
        order = sorted(range(len(values)), key=values.__getitem__)
        out, i = [0.0] * len(values), 0
        while i < len(order):
            j = i
            while j + 1 < len(order) and values[order[j + 1]] == values[order[i]]:
                j += 1
            for k in order[i : j + 1]:
                out[k] = (i + j) / 2
            i = j + 1
        return out

    a, b = ranks(xs), ranks(ys)
    mean = (len(xs) - 1) / 2
    spread = math.sqrt(sum((v - mean) ** 2 for v in a) * sum((v - mean) ** 2 for v in b))
    return sum((v - mean) * (w - mean) for v, w in zip(a, b)) / spread if spread else None


def verdict_findings(study):
    counts, total = study.verdicts, len(study.points)
    if total == 0:
        return []
    text = ", ".join(f"{short(n)} {name}" for name, n in sorted(counts.items(), key=lambda c: (c[0] != "ok", -c[1], c[0])))
    out = [Finding("verdict", f"{short(total)} {'point' if total == 1 else 'points'}: {text}.")]
    if study.expectations:
        met = sum(e.met for e in study.expectations)
        out.append(Finding("verdict", f"{met} of {len(study.expectations)} expectations of the sweep are met."))
    if study.planned > total:
        out.append(
            Finding(
                "verdict",
                f"{short(study.planned - total)} of {short(study.planned)} points of the sweep are missing; "
                "`rdmasim sweep --resume` runs them.",
            )
        )
    return out


def ranges(axis, cells):
    """Neighbouring values with the same verdict: [(verdict, first, last)]; `cells` maps a value to a combination."""
    out = []
    for value in axis.values:
        if value not in cells:
            continue
        verdict = cells[value].verdict
        if out and out[-1][0] == verdict:
            out[-1] = (verdict, out[-1][1], value)
        else:
            out.append((verdict, value, value))
    return out


def together(lines):
    """What tells lines from the others: `cq_mod = 1, 2, 4`, panel by panel."""
    panels = {}
    for line in lines:
        panels.setdefault((line.of, line.panel), []).append(line.short_text)
    texts = []
    for (of, panel), values in panels.items():
        texts.append(", ".join(t for t in (f"{of} = {', '.join(values)}" if of else "", panel) if t))
    return "; ".join(t for t in texts if t)


def failure_findings(study, x, lines):
    """Per line of the grid, where the verdict changes along `x`. Lines that change alike are told together."""
    if x is None or all(s.ok for s in study.combinations):
        return []
    if not any(s.ok for s in study.combinations):
        return [Finding("failure", "No point ended ok, so there is nothing to plot but the verdicts.")]
    told = {}
    for line in lines:
        found = tuple(ranges(x, line.cells))
        told.setdefault(found, []).append(line)
    out = []
    for found, same in told.items():
        if len(found) == 1 and found[0][0] == "ok":
            continue
        parts = [
            f"{verdict} {'at' if a == b else 'from'} {a.text}" + ("" if a == b else f" to {b.text}") for verdict, a, b in found
        ]
        where = together(same)
        out.append(Finding("failure", f"{where + ': ' if where else ''}{x.label}: {', '.join(parts)}."))
    if len(out) > MOST_FAILURES:
        out[MOST_FAILURES:] = [
            Finding("failure", f"{len(out) - MOST_FAILURES} further lines fail somewhere; the table of points has all.")
        ]
    return out


def optimum_findings(study, metrics):
    out = []
    for metric in metrics:
        best = optimum(metric, study.combinations)
        values = [s.mean(metric) for s in study.combinations if s.mean(metric) is not None]
        if best is None or len(values) < 2:
            continue
        value = best.mean(metric)
        worst = (min if metric.better == "high" else max)(values)
        if worst == value:
            continue
        varied = {p.name: best.value(p) for p in study.parameters}
        extreme = "highest" if metric.better == "high" else "lowest"
        alike = sum(v == value for v in values)
        text = f"{metric.label}: {extreme} is {value_text(metric, value)} at {parameter_text(varied)}"
        text += (
            f" (and {alike - 1} more)" if alike > 1 else ""
        ) + f"; the {'lowest' if metric.better == 'high' else 'highest'} is "
        text += value_text(metric, worst)
        low, high = sorted((abs(value), abs(worst)))
        if low > 0:
            text += f", a factor of {short(round(high / low, 3))}"
        out.append(Finding("optimum", text + "."))
    return out


def knee_findings(cut, metrics):
    """One per metric, value, and side of it on which most of the change lies: the lines that have their knee there."""
    out = []
    for metric in metrics:
        at = {}
        for line, value, found in cut.knees(cut.lines, metric):
            at.setdefault((value, found.share >= 0.5), []).append((line, found.share))
        for (value, before), same in at.items():
            shares = sorted(round(100 * (share if before else 1 - share)) for _, share in same)
            span = f"{shares[0]}" if shares[0] == shares[-1] else f"{shares[0]} to {shares[-1]}"
            where = together([line for line, _ in same])
            name = metric.label + (f" ({where})" if where else "")
            side = "up to there" if before else "beyond it"
            out.append(
                Finding("knee", f"{name}: knee at {cut.x.label} = {value.text}; {side} lies {span} % of the whole change.")
            )
    return out


def correlation_findings(study, metrics):
    """For designs without lines: which parameter each metric follows most."""
    out = []
    for metric in metrics:
        measured = [s for s in study.combinations if s.mean(metric) is not None]
        if len(measured) < 8:
            continue
        found = []
        for p in study.axes:
            if p.numeric:
                rho = rank_correlation([p.number(s.value(p)) for s in measured], [s.mean(metric) for s in measured])
                if rho is not None:
                    found.append((rho, p))
        found.sort(key=lambda f: -abs(f[0]))
        if found:
            text = ", ".join(f"{p.label} {round(rho, 2) + 0.0:+.2f}" for rho, p in found)
            out.append(Finding("correlation", f"{metric.label}: rank correlation (Spearman) with {text}."))
    return out
