# SPDX-License-Identifier: Apache-2.0
"""Plots of a metric along a parameter: lines through the points of a grid, clouds of random designs."""
from matplotlib.figure import Figure

import style
from axes import parameter_axis, value_axis
from findings import optimum, point_text, value_text
from lines import MOST_LINES, spread
from svg import Plot

MOST_MARKED = 60  # points of a line that get a marker
MOST_TOLD = 2500  # points of a cloud that are told under the pointer


def line_plot(study, cut, panel, metric, name):
    """A metric along the horizontal axis, one line for each value of the second parameter, with 95 % confidence intervals of
    replications. Knees are ringed, the best point is starred. None if there is nothing to draw."""
    x = cut.x
    measured = [line for line in panel.lines if line.curve(x, metric)]
    if not measured:
        return None
    shown = spread(measured, MOST_LINES)
    figure = Figure(figsize=(style.WIDTH, style.HEIGHT))
    ax = figure.add_subplot()
    values = cut.means(metric)
    divisor = value_axis(ax.yaxis, metric.label, metric.unit, values)
    parameter_axis(ax.xaxis, x)
    plot = Plot(
        name, f"{metric.label} by {x.label}" + (f", {panel.text}" if panel.text else ""), _summary(x, measured, metric), figure
    )
    handles = [_draw(ax, x, line, metric, divisor, i, study, plot) for i, line in enumerate(shown)]
    _ring_knees(ax, cut, shown, metric, divisor, plot)
    _star_best(ax, x, shown, metric, divisor, study, plot)
    _mark_failures(ax, x, panel)
    _set_limits(ax, [v / divisor for v in values])
    if len(shown) > 1:
        ax.legend(
            handles,
            [line.short_text for line in shown],
            title=cut.second.label,
            loc="upper left",
            bbox_to_anchor=(1.01, 1.0),
            borderaxespad=0,
            alignment="left",
        )
    if len(shown) < len(measured):
        plot.notes.append(f"{len(shown)} of {len(measured)} values of {cut.second.label} are drawn; the table has all.")
    if any(c.ci95(metric) for line in shown for _, c in line.curve(x, metric)):
        plot.notes.append("Bars are 95 % confidence intervals of the mean over replications.")
    return plot


def _summary(x, lines, metric):
    curve = [c for line in lines for c in line.curve(x, metric)]
    (low_at, low), (high_at, high) = (f(curve, key=lambda c: c[1].mean(metric)) for f in (min, max))
    return (
        f"{len(lines)} {'line' if len(lines) == 1 else 'lines'}; {metric.label} from {value_text(metric, low.mean(metric))} "
        f"(at {x.label} = {low_at.text}) to {value_text(metric, high.mean(metric))} (at {x.label} = {high_at.text})."
    )


def _draw(ax, x, line, metric, divisor, i, study, plot):
    """One line, its markers and intervals; returns its handle for the legend."""
    curve = line.curve(x, metric)
    xs, ys = [x.place(v) for v, _ in curve], [c.mean(metric) / divisor for _, c in curve]
    marked = len(xs) <= MOST_MARKED
    (handle,) = ax.plot(
        xs,
        ys,
        color=style.SERIES[i],
        linestyle=style.DASHES[i] if x.numeric else "none",
        marker=style.MARKERS[i] if marked else "",
        gid=f"line{i}",
    )
    if marked:
        plot.tips[f"line{i}"] = [point_text(metric, c, study.parameters) for _, c in curve]
    intervals = [(c.ci95(metric) or 0) / divisor for _, c in curve]
    if any(intervals):
        ax.errorbar(xs, ys, yerr=intervals, fmt="none", ecolor=style.SERIES[i], elinewidth=1, capsize=2.5)
    return handle


def _ring_knees(ax, cut, lines, metric, divisor, plot):
    found = cut.knees(lines, metric)
    for line, value, _ in found:
        at = [cut.x.place(value)], [line.cells[value].mean(metric) / divisor]
        look = {"markersize": 11, "markerfacecolor": "none", "markeredgecolor": style.INK, "markeredgewidth": 1.3}
        ax.plot(*at, marker="o", linestyle="none", **look)
    if found:
        plot.notes.append("A ring marks a knee.")


def _star(ax, at, color, plot):
    ax.plot(
        [at[0]],
        [at[1]],
        marker="*",
        markersize=13,
        color=color,
        markeredgecolor=style.INK,
        markeredgewidth=0.9,
        linestyle="none",
    )
    plot.notes.append("The star marks the best point.")


def _star_best(ax, x, lines, metric, divisor, study, plot):
    best = optimum(metric, study.combinations)
    for i, line in enumerate(lines):
        for value, combination in line.curve(x, metric):
            if combination is best:
                _star(ax, (x.place(value), best.mean(metric) / divisor), style.SERIES[i], plot)


def _mark_failures(ax, x, panel):
    """A cross at the foot of the plot where no line has a point that came to its end: there is nothing to draw there."""
    at = {v: [line.cells[v] for line in panel.lines if v in line.cells] for v in x.values}
    missing = [v for v, combinations in at.items() if combinations and not any(c.measured for c in combinations)]
    if missing and len(x.values) <= MOST_MARKED:
        ax.plot(
            [x.place(v) for v in missing],
            [0.02] * len(missing),
            transform=ax.get_xaxis_transform(),
            linestyle="none",
            marker="x",
            color=style.INK,
            markersize=6,
            clip_on=False,
        )
        ax.annotate("× failed", (1, 0.035), xycoords="axes fraction", ha="right", va="bottom", fontsize=7.5)


def _set_limits(ax, values):
    """Limits with room for markers. Linear axes of positive numbers that come near zero begin there."""
    low, high = min(values), max(values)
    if ax.get_yscale() == "log":
        ax.set_ylim(low / 1.25, high * 1.25)
        return
    room = 0.06 * (high - low) or 0.05 * abs(high) or 1
    ax.set_ylim(0 if 0 <= low < 0.35 * high else low - room, high + room)


def cloud(study, parameter, metric, name):
    """A metric of every point of a random design against one parameter."""
    points = [(parameter.place(c.value(parameter)), c) for c in study.combinations if c.mean(metric) is not None]
    if len(points) < 2:
        return None
    values = [c.mean(metric) for _, c in points]
    figure = Figure(figsize=(style.WIDTH, style.HEIGHT))
    ax = figure.add_subplot()
    divisor = value_axis(ax.yaxis, metric.label, metric.unit, values)
    parameter_axis(ax.xaxis, parameter)
    ax.plot(
        [place for place, _ in points],
        [v / divisor for v in values],
        linestyle="none",
        marker="o",
        markersize=4,
        alpha=0.75,
        color=style.SERIES[0],
        gid="points",
    )
    _set_limits(ax, [v / divisor for v in values])
    summary = (
        f"{len(points)} points; {metric.label} from {value_text(metric, min(values))} to {value_text(metric, max(values))}."
    )
    plot = Plot(name, f"{metric.label} by {parameter.label}", summary, figure)
    plot.notes.append("Every point has values of its own for the other parameters.")
    best = optimum(metric, study.combinations)
    if best is not None:
        _star(ax, (parameter.place(best.value(parameter)), best.mean(metric) / divisor), style.SERIES[1], plot)
    if len(points) <= MOST_TOLD:
        plot.tips["points"] = [point_text(metric, c, study.parameters) for _, c in points]
    return plot
