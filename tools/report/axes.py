# SPDX-License-Identifier: Apache-2.0
"""Axes of plots: places and texts of their ticks, in the words and units of the sweep."""
import math

from matplotlib.ticker import FixedFormatter, FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from lines import spread
from units import scale_for, short, size_text, wide

MOST_TICKS = 14
MOST_VALUES = 40  # that may have a tick each


def tick_texts(parameter, values):
    """(texts of parameter values, the unit that the axis names): sizes with binary prefixes, times in one readable unit."""
    if not parameter.numeric:
        return [v.text for v in values], "choice"
    numbers = [parameter.number(v) for v in values]
    if parameter.unit == "bytes":
        return [size_text(n).removesuffix(" B") for n in numbers], "bytes"
    divisor, unit = scale_for(parameter.unit, numbers) if parameter.unit == "ns" else (1.0, parameter.unit)
    return [short(float(f"{n / divisor:.6g}")) for n in numbers], unit


def _apart(parameter, values):
    """Those of the values that do not crowd on the axis: the first, each that is far enough from the one before, the last."""
    logarithmic = parameter.scale == "log"
    places = {v: math.log(parameter.place(v)) if logarithmic else parameter.place(v) for v in values}
    least = (places[values[-1]] - places[values[0]]) * 0.055
    kept = [values[0]]
    for v in values[1:]:
        if places[v] - places[kept[-1]] >= least:
            kept.append(v)
    if len(kept) > 1:
        kept[-1] = values[-1]  # the last is worth more than its neighbour
    return kept


def parameter_axis(axis, parameter):
    """Ticks at the values of the sweep, on the scale that suits them; at round numbers where the values are many."""
    scale = parameter.scale
    if scale == "log":
        axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    if parameter.numeric and scale != "ordinal" and len(parameter.values) > MOST_VALUES:
        divisor, unit = scale_for(parameter.unit, parameter.numbers) if parameter.unit == "ns" else (1.0, parameter.unit)
        axis.set_major_formatter(FuncFormatter(lambda v, _: short(float(f"{v / divisor:.6g}"))))
        axis.set_minor_formatter(NullFormatter())
        axis.set_label_text(parameter.axis(unit))
        return
    shown = spread(parameter.values, MOST_TICKS) if scale == "ordinal" else _apart(parameter, parameter.values)
    places = [parameter.place(v) for v in shown]
    texts, unit = tick_texts(parameter, shown)
    axis.set_major_locator(FixedLocator(places))
    axis.set_major_formatter(FixedFormatter(texts))
    axis.set_minor_locator(NullLocator())
    axis.set_label_text(parameter.axis(unit))
    slant(axis, texts, 70)


def slant(axis, texts, most):
    """Slants the texts below a horizontal axis when they are long."""
    if axis.axis_name == "x" and max(len(t) for t in texts) * len(texts) > most:
        for label in axis.axes.get_xticklabels():
            label.set(rotation=35, ha="right", rotation_mode="anchor")


def value_axis(axis, label, unit, values, log=None):
    """An axis for measured numbers in `unit`; returns what to divide them by."""
    divisor, shown = scale_for(unit, values)
    if wide(values) if log is None else log:
        axis.axes.set(**{f"{axis.axis_name}scale": "log"})
        decades = max(values) / min(v for v in values if v > 0)
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if decades < 2000 else (1,)))
        axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(FuncFormatter(lambda v, _: short(float(f"{v:.6g}"))))
    axis.set_label_text(f"{label} ({shown})")
    return divisor
