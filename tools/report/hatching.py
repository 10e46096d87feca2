# SPDX-License-Identifier: Apache-2.0
"""Hatches as lines. The hatches of matplotlib become SVG patterns, which browsers paint as pictures when they print: a map of some
hundred cells would be a PDF of some hundred megabytes."""
from matplotlib.patches import PathPatch
from matplotlib.path import Path

_STEPS = {"/": 1.0, "\\": 1.0, "x": 1.0, "-": 0.7, "|": 0.7, "+": 0.9}


def segments(kind, width, height, spacing):
    """Lines ((x, y), (x, y)) of a hatch in a box whose lower left corner is 0, 0; all numbers in the same unit."""
    step, out = spacing * _STEPS[kind], []
    if kind in "/x":
        out += _rising(width, height, step)
    if kind in "\\x":
        out += [((width - a, b), (width - c, d)) for (a, b), (c, d) in _rising(width, height, step)]
    if kind in "-+":
        out += [((0, y), (width, y)) for y in _inside(height, step)]
    if kind in "|+":
        out += [((x, 0), (x, height)) for x in _inside(width, step)]
    return out


def _rising(width, height, step):
    """Those of y = x - c that cross the box."""
    out, c = [], -height + step / 2
    while c < width:
        x, end = max(0.0, c), min(width, c + height)
        out.append(((x, x - c), (end, end - c)))
        c += step
    return out


def _inside(length, step):
    count = max(1, round(length / step))
    return [length * (i + 0.5) / count for i in range(count)]


def hatch(ax, kind, boxes, points, color, spacing=7.0):
    """Draws a hatch over boxes (left, bottom, width, height) in data coordinates; `points` says how many points a unit of each
    axis is long, about."""
    vertices = []
    for left, bottom, width, height in boxes:
        for ends in segments(kind, width * points[0], height * points[1], spacing):
            vertices += [(left + x / points[0], bottom + y / points[1]) for x, y in ends]
    if vertices:
        path = Path(vertices, [Path.MOVETO, Path.LINETO] * (len(vertices) // 2))
        ax.add_patch(PathPatch(path, facecolor="none", edgecolor=color, linewidth=0.6, zorder=1.5))
