# SPDX-License-Identifier: Apache-2.0
"""Maps of a grid: a cell for each pair of values of two parameters."""
import math
from collections import Counter

from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

import style
from axes import slant, tick_texts, value_axis
from findings import optimum, point_text, value_text
from hatching import hatch
from lines import spread
from model import parameter_text
from svg import Plot
from units import scale_for, short, wide

MOST_TOLD = 2500  # cells that are told under the pointer
HATCH = "#8a949e"  # seen on light and on dark ground
MIXED = "mixed"  # verdict of a cell whose points do not agree


def heat_map(study, cut, panel, metric, name):
    """A metric over both parameters of a grid; cells that did not end ok carry the verdict's hatch and letters. `metric` None:
    the verdicts alone. None if all cells are alike."""
    x, y, rows = cut.x, cut.second, len(panel.lines)
    cells = [
        (column, row, line.cells[v])
        for row, line in enumerate(panel.lines)
        for column, v in enumerate(x.values)
        if v in line.cells
    ]
    means = {c.mean(metric) for _, _, c in cells} - {None} if metric else set()
    if metric and len(means) < 2:
        return None
    figure = Figure(figsize=(style.WIDTH, min(7.5, max(style.HEIGHT, 1.6 + 0.3 * rows))))
    ax = figure.add_subplot()
    ax.grid(False)
    title = f"{metric.label if metric else 'verdict'} by {x.label} and {y.label}" + (f", {panel.text}" if panel.text else "")
    plot = Plot(name, title, _summary(cells, rows, len(x.values), metric, means), figure)
    everywhere = cut.means(metric) if metric else []
    paint, divisor = _colors(figure, ax, metric, everywhere) if metric else (None, 1.0)
    marks = letters_of({_verdict(c) for _, _, c in cells if not c.ok})
    faces = _draw_cells(ax, cells, metric, paint)
    if len(cells) <= MOST_TOLD:
        plot.tips["cells"] = [_told(study, c, metric) for _, _, c in cells]
    texts = [_cell_text(c, metric, divisor, marks) for _, _, c in cells]
    size = _font_size(texts, len(x.values), rows)
    if size:
        for (column, row, _), text, face in zip(cells, texts, faces):
            _letter(ax, column, row, text, size, face)
    _hatch_failures(ax, cells, len(x.values), rows)
    if metric:
        _frame_best(ax, cells, optimum(metric, study.combinations), plot)
    _cell_axis(ax.xaxis, x, x.values)
    present = {c.value(y) for _, _, c in cells}
    _cell_axis(ax.yaxis, y, [v for v in y.values if v in present])
    ax.set(xlim=(-0.5, len(x.values) - 0.5), ylim=(-0.5, rows - 0.5))
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    _legend(ax, marks, metric)
    return plot


def _verdict(combination):
    return combination.verdict if len(combination.verdicts) == 1 else MIXED


def _summary(cells, rows, columns, metric, means):
    counts = Counter(_verdict(c) for _, _, c in cells)
    text = f"{rows} × {columns} cells: " + ", ".join(f"{n} {v}" for v, n in counts.most_common()) + "."
    return text + (
        f" {metric.label} from {value_text(metric, min(means))} to {value_text(metric, max(means))}." if metric else ""
    )


def _colors(figure, ax, metric, values):
    """(value -> colour, divisor), and the colour bar."""
    divisor, unit = scale_for(metric.unit, values)
    scaled = [v / divisor for v in values]
    norm = (LogNorm if wide(scaled) else Normalize)(min(scaled), max(scaled))
    colors = colormaps[style.HEAT]
    bar = figure.colorbar(ScalarMappable(norm, colors), ax=ax, pad=0.02, aspect=28)
    bar.solids.set(rasterized=False, edgecolor="face")
    bar.outline.set_visible(False)
    value_axis(bar.ax.yaxis, metric.label, unit, scaled, log=wide(scaled))
    bar.ax.grid(False)
    return lambda value: colors(norm(value / divisor)), divisor


def _draw_cells(ax, cells, metric, paint):
    """All cells as one artist, which keeps large maps quick; returns their colours."""
    faces, corners = [], []
    for column, row, c in cells:
        value = c.mean(metric) if metric else None
        faces.append(paint(value) if value is not None else "none" if c.ok else style.FAILED)
        corners.append([(column + dx, row + dy) for dx, dy in ((-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5))])
    line = 0.5 if len(cells) <= MOST_TOLD else 0
    ax.add_collection(PolyCollection(corners, facecolors=faces, edgecolors=style.FAINT, linewidths=line, gid="cells"))
    return faces


def _hatch_failures(ax, cells, columns, rows):
    failed = {}
    for column, row, combination in cells:
        if not combination.ok:
            failed.setdefault(_hatch(_verdict(combination)), []).append((column - 0.5, row - 0.5, 1, 1))
    for kind, boxes in failed.items():
        hatch(ax, kind, boxes, (72 * 5.2 / columns, 72 * 4.2 / rows), HATCH)


def _hatch(verdict):
    return style.VERDICT_HATCHES.get(verdict, style.OTHER_HATCH)


def _told(study, combination, metric):
    if metric and combination.mean(metric) is not None:
        return point_text(metric, combination, study.parameters)
    return f"{parameter_text({p.name: combination.value(p) for p in study.parameters})}: {combination.verdict}"


def _cell_text(combination, metric, divisor, marks):
    """The number of a cell with three digits, or the verdict's mark."""
    value = combination.mean(metric) if metric else None
    if value is not None:
        number = value / divisor
        digits = min(6, max(0, 2 - math.floor(math.log10(abs(number))))) if number else 0
        return short(float(f"{number:.{digits}f}"))
    return marks[_verdict(combination)] if not combination.ok else "" if metric else "ok"


def _font_size(texts, columns, rows):
    """The largest size in which the widest text fits its cell, None if it would be too small to read."""
    width, height = 72 * 5.2 / columns, 72 * 4.2 / rows  # of a cell, in points
    size = min(8, 0.9 * width / (0.64 * max(1, *map(len, texts))), 0.8 * height)
    return size if size >= 5 else None


def _letter(ax, column, row, text, size, face):
    """A number in black or white on the colour of its cell, a mark on a ground of its own, so that the hatch does not cross it."""
    if isinstance(face, tuple):
        ax.text(column, row, text, ha="center", va="center", fontsize=size, color=_readable_on(face))
    else:
        ground = {"bbox": {"facecolor": style.FAILED, "edgecolor": "none", "pad": 0.8}} if face == style.FAILED else {}
        weight = "bold" if ground else "normal"
        ax.text(column, row, text, ha="center", va="center", fontsize=size, fontweight=weight, **ground)


def _readable_on(face):
    """Black or white, whichever contrasts more (WCAG 2: relative luminance)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in face[:3]]
    return "#000000" if 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] > 0.179 else "#ffffff"


def _frame_best(ax, cells, best, plot):
    for column, row, combination in cells:
        if combination is best:
            for color, width in (("#ffffff", 4.0), ("#000000", 1.8)):  # seen on every colour of the map
                ax.add_patch(
                    Rectangle(
                        (column - 0.46, row - 0.46), 0.92, 0.92, facecolor="none", edgecolor=color, linewidth=width, zorder=4
                    )
                )
            plot.notes.append("The framed cell is the best.")


def letters_of(verdicts):
    """A short mark for each verdict: its initials; where those are taken already, its beginning."""
    out = {}
    for verdict in sorted(verdicts):
        initials = "".join(word[0] for word in verdict.split("_") if word).upper()
        candidates = [initials] + [verdict[:n].capitalize() for n in range(2, len(verdict) + 1)] + [f"{initials}{len(out)}"]
        out[verdict] = next(mark for mark in candidates if mark not in out.values())
    return out


def _cell_axis(axis, parameter, values):
    shown = set(spread(values, 16))
    places = [i for i, v in enumerate(values) if v in shown]
    texts, unit = tick_texts(parameter, [values[i] for i in places])
    axis.set_ticks(places, labels=texts)
    axis.set_label_text(parameter.axis(unit))
    slant(axis, texts, 60)


def _legend(ax, marks, metric):
    if not marks:
        return
    handles = [
        Patch(facecolor=style.FAILED, edgecolor=HATCH, hatch=3 * _hatch(v), label=f"{mark}: {v}") for v, mark in marks.items()
    ]
    if not metric:
        handles.append(Patch(facecolor="none", edgecolor=style.FAINT, label="ok"))
    ax.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1.01), ncol=min(4, len(handles)), borderaxespad=0)
