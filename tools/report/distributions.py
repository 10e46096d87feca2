# SPDX-License-Identifier: Apache-2.0
"""Plots of the messages of single runs: the distribution of their latency, and the stages where the time goes."""
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

import style
from axes import value_axis
from hatching import hatch
from svg import Plot
from units import short, time_scale, wide

MOST_CURVES = 6
MOST_BARS = 14  # of a plot of stages
MOST_STAGES = 7  # with a colour and a hatch of their own; the rest is one part of the bar


def cdf_plot(curves, name, title):
    """Cumulative distributions: `curves` is [(label, cdf)]. A point (p, t): the share p of the messages took at most t."""
    curves = [(label, cdf) for label, cdf in curves if cdf]
    if not curves:
        return None
    figure = Figure(figsize=(style.WIDTH, style.HEIGHT))
    ax = figure.add_subplot()
    times = [t for _, cdf in curves for _, t in cdf]
    divisor = value_axis(ax.xaxis, "latency of a message", "ns", times)
    for i, (label, cdf) in enumerate(curves):
        ax.plot(
            [t / divisor for _, t in cdf],
            [100 * p for p, _ in cdf],
            color=style.SERIES[i],
            linestyle=style.DASHES[i],
            label=label,
        )
        at = [min(range(len(cdf)), key=lambda k: abs(cdf[k][0] - q)) for q in (0.5, 0.99)]
        ax.plot(
            [cdf[k][1] / divisor for k in at],
            [100 * cdf[k][0] for k in at],
            linestyle="none",
            marker=style.MARKERS[i],
            color=style.SERIES[i],
        )
    ax.set_ylabel("messages that took at most so long (%)")
    ax.set_ylim(-2, 102)
    ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: short(v)))
    if len(curves) > 1:
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncol=1 if max(len(l) for l, _ in curves) > 40 else 2)
    scale, unit = time_scale(times)
    text = "; ".join(
        f"{label}: half within {short(_at(cdf, 0.5) / scale)} {unit}, 99 % within {short(_at(cdf, 0.99) / scale)} {unit}"
        for label, cdf in curves
    )
    plot = Plot(name, title, text + ".", figure)
    plot.notes.append(
        f"Straight between {max(len(cdf) for _, cdf in curves)} quantiles; markers are at the median and at 99 %."
    )
    if wide(times):
        plot.notes.append("The axis of time is logarithmic.")
    return plot


def _at(cdf, share):
    return next(t for p, t in cdf if p >= share - 1e-12)


def main_stages(bars):
    """The stages with the largest share of any bar, in the order of a message; (named, those of the rest)."""
    order = list(dict.fromkeys(stage for _, stages in bars for stage, _ in stages))
    largest = {s: 0.0 for s in order}
    for _, stages in bars:
        total = sum(t for _, t in stages) or 1.0
        for stage, t in stages:
            largest[stage] = max(largest[stage], t / total)
    present = [s for s in order if largest[s] > 0]
    if len(present) <= MOST_STAGES + 1:
        return present, []
    kept = set(sorted(present, key=lambda s: -largest[s])[:MOST_STAGES])
    return [s for s in present if s in kept], [s for s in present if s not in kept]


def _draw_bar(ax, row, bar, times, parts, divisor, longest, plot):
    """One bar: its parts (label, stages that it sums up), the wide ones with their share. Returns a box for each."""
    boxes, before, total = [], 0.0, sum(times.values())
    for i, (label, stages) in enumerate(parts):
        width, gid = sum(times.get(stage, 0) for stage in stages), f"bar-{row}-{i}"
        box = (before / divisor, row - 0.36, width / divisor, 0.72)
        boxes.append(box)
        ax.barh(row, box[2], left=box[0], height=box[3], color=style.SERIES[i], edgecolor="#ffffff", linewidth=0.6)[0].set_gid(
            gid
        )
        share = 100 * width / total
        plot.tips[gid] = [f"{bar}: {label} {short(width)} ns of {short(total)} ns, {short(round(share, 1))} %"]
        if width > 0.07 * longest:
            look = {"color": "#000000", "bbox": {"facecolor": "#ffffff", "edgecolor": "none", "pad": 1.2}}
            ax.text((before + width / 2) / divisor, row, f"{share:.0f} %", ha="center", va="center", fontsize=7.5, **look)
        before += width
    return boxes


def _hatch_parts(ax, rows, right):
    """Hatches the parts of all bars; `rows` has a list of boxes for each bar. The vertical axis runs downwards, so slants turn round."""
    points = (72 * 4.5 / right, 72 * 0.29)
    for i, boxes in enumerate(zip(*rows)):
        if style.HATCHES[i]:
            kind = {"/": "\\", "\\": "/"}.get(style.HATCHES[i], style.HATCHES[i])
            hatch(ax, kind, [box for box in boxes if box[2] > 0], points, "#ffffff")


def stage_plot(bars, name, title, axis_label):
    """Stacked bars: `bars` is [(label, [(stage, ns)])], each bar as long as the mean latency."""
    bars = [(label, stages) for label, stages in bars if sum(t for _, t in stages) > 0]
    if not bars:
        return None
    named, rest = main_stages(bars)
    longest = max(sum(t for _, t in stages) for _, stages in bars)
    divisor, unit = time_scale([longest])
    figure = Figure(figsize=(style.WIDTH, 1.7 + 0.34 * len(bars)))
    ax = figure.add_subplot()
    ax.grid(False, axis="y")
    plot = Plot(name, title, "", figure)
    parts = [(stage, (stage,)) for stage in named] + ([(f"{len(rest)} others", tuple(rest))] if rest else [])
    rows = [_draw_bar(ax, row, bar, dict(stages), parts, divisor, longest, plot) for row, (bar, stages) in enumerate(bars)]
    _hatch_parts(ax, rows, 1.05 * longest / divisor)
    ax.set_yticks(range(len(bars)), labels=[label for label, _ in bars])
    ax.set_ylim(len(bars) - 0.5, -0.5)
    ax.set_xlabel(f"{axis_label} ({unit})")
    ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: short(float(f"{v:.6g}"))))
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    handles = [
        Patch(facecolor=style.SERIES[i], edgecolor="#ffffff", hatch=2 * style.HATCHES[i], label=label)
        for i, (label, _) in enumerate(parts)
    ]
    place = {"loc": "lower left", "bbox_to_anchor": (0, 1.01), "borderaxespad": 0}
    ax.legend(handles=handles, ncol=4, handlelength=1.8, handleheight=1.1, **place)
    if rest:
        plot.notes.append(f"The others are {', '.join(rest)}; the table of stages has each.")
    first = bars[0]
    largest = max(first[1], key=lambda s: s[1])
    plot.summary = f"{len(bars)} {'bar' if len(bars) == 1 else 'bars'}; "
    plot.summary += f"in the first the largest stage is {largest[0]} with {short(largest[1])} ns."
    return plot


def busy_plot(shares, name, title):
    """How busy the busiest resources were: `shares` is [(resource, share)], the busiest first."""
    if not shares:
        return None
    figure = Figure(figsize=(style.WIDTH, 1.1 + 0.27 * len(shares)))
    ax = figure.add_subplot()
    ax.grid(False, axis="y")
    plot = Plot(name, title, f"The busiest is {shares[0][0]}, {short(round(100 * shares[0][1], 2))} % of the time.", figure)
    for row, (resource, share) in enumerate(shares):
        ax.barh(row, 100 * share, height=0.66, color=style.SERIES[0])[0].set_gid(f"busy-{row}")
        plot.tips[f"busy-{row}"] = [f"{resource}: {short(round(100 * share, 3))} %"]
        ax.text(100 * share + 1, row, f"{short(round(100 * share, 1))} %", va="center", fontsize=7.5)
    ax.axvline(90, color=style.INK, linewidth=0.9, linestyle=(0, (4, 3)))
    ax.text(90, -0.62, "saturated ", ha="right", va="bottom", fontsize=7.5)
    ax.set_yticks(range(len(shares)), labels=[r for r, _ in shares])
    ax.set(xlim=(0, 108), ylim=(len(shares) - 0.5, -0.6))
    ax.set_xticks(range(0, 101, 20))
    ax.set_xlabel("busy (% of the time)")
    ax.tick_params(axis="y", length=0)
    return plot
