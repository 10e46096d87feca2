# SPDX-License-Identifier: Apache-2.0
"""How a grid is cut into figures: the axis of the plots, a line for each value of the second parameter, a panel for what is left."""
from dataclasses import dataclass, field

import findings
from model import ReportError
from units import wide
from metrics import label_of

MOST_LINES = 8  # as many as there are colours with markers
MOST_PANELS = 6


@dataclass
class Line:
    """Combinations that differ in the horizontal axis only."""

    of: str  # label of the second parameter, "" when there is one line
    short_text: str  # its value
    panel: str  # what the lines of the panel share beside
    cells: dict = field(default_factory=dict)  # value of the horizontal axis -> Combination

    def curve(self, x, metric):
        """[(value, combination)] where the metric was measured, along the axis."""
        return [(v, self.cells[v]) for v in x.values if v in self.cells and self.cells[v].mean(metric) is not None]


@dataclass
class Panel:
    text: str  # what its lines share beside the axes, "" when there is one panel
    lines: list


@dataclass
class Cut:
    x: object  # Parameter of the horizontal axis, None when nothing varies
    second: object  # Parameter that tells lines apart, or None
    panels: list
    left_out: int = 0  # panels beyond the most that are drawn

    @property
    def lines(self):
        return [line for panel in self.panels for line in panel.lines]

    def means(self, metric):
        """Of all points that are drawn, in all panels, which share an axis."""
        return [c.mean(metric) for line in self.lines for _, c in line.curve(self.x, metric)]

    def knees(self, lines, metric):
        """[(line, value of the horizontal axis, Knee)] of those lines that have one, on the axes as they are drawn."""
        out, log_y = [], wide(self.means(metric))
        for line in lines if self.x.numeric else []:
            curve = line.curve(self.x, metric)
            xs, ys = [self.x.number(v) for v, _ in curve], [c.mean(metric) for _, c in curve]
            found = findings.knee(xs, ys, self.x.scale == "log", log_y)
            out += [(line, curve[found.index][0], found)] if found else []
        return out


def choose_axes(study, wanted):
    """The horizontal axis, the second parameter and the rest. Unless told, the numeric parameter with the most values comes first."""
    axes = list(study.axes)
    if wanted:
        known = {a.name: a for a in axes}
        known.update({label_of(name): a for name, a in list(known.items())})
        known.update({p.name: a for a in axes for p in a.tied})
        if wanted not in known:
            raise ReportError(
                f"--x: the sweep does not vary \"{wanted}\" (it varies {', '.join(a.name for a in axes) or 'nothing'})"
            )
        x = known[wanted]
    else:
        x = max(axes, key=lambda a: (a.numeric, len(a.values)), default=None)
    rest = sorted((a for a in axes if a is not x), key=lambda a: (-a.numeric, -len(a.values)))
    return x, (rest[0] if rest else None), rest[1:]


def cut(study, wanted=None):
    x, second, rest = choose_axes(study, wanted)
    if x is None:
        return Cut(None, None, [Panel("", [Line("", "", "", {})])])
    panels = {}
    for s in study.combinations:
        shared = tuple(s.value(p) for p in rest)
        of_line = s.value(second) if second else None
        panels.setdefault(shared, {}).setdefault(of_line, {}).setdefault(s.value(x), s)
    order = {p.name: {v: i for i, v in enumerate(p.values)} for p in study.axes}
    out = []
    for shared in sorted(panels, key=lambda k: [order[p.name][v] for p, v in zip(rest, k)]):
        text = ", ".join(f"{p.label} = {v.text}" for p, v in zip(rest, shared))
        lines = []
        for value in second.values if second else [None]:
            if value in panels[shared]:
                lines.append(Line(second.label if second else "", value.text if second else "", text, panels[shared][value]))
        out.append(Panel(text, lines))
    return Cut(x, second, out[:MOST_PANELS], max(0, len(out) - MOST_PANELS))


def spread(items, most):
    """At most `most` of the items, evenly spread, the first and the last among them."""
    if len(items) <= most:
        return list(items)
    if most == 1:
        return [items[0]]
    return [items[round(i * (len(items) - 1) / (most - 1))] for i in range(most)]
