# SPDX-License-Identifier: Apache-2.0
"""The page: what a report consists of, and the one HTML file that it becomes."""
import os
import re
from dataclasses import dataclass, field

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

import svg
from units import short

_HERE = os.path.dirname(os.path.abspath(__file__))


@dataclass
class Cell:
    """Text for people; `value` is the whole number or text behind it, to sort by and to copy."""

    text: str
    value: object = None
    head: bool = False  # names its row
    mark: str = ""  # CSS class


@dataclass
class Table:
    name: str
    caption: str
    columns: list  # (label, unit or "", whether it holds numbers)
    rows: list  # lists of Cell
    folded: bool = False
    sortable: bool = False


@dataclass
class Section:
    name: str
    title: str
    text: str = ""
    plots: list = field(default_factory=list)
    tables: list = field(default_factory=list)

    def __bool__(self):
        return bool(self.plots or self.tables)


@dataclass
class Report:
    title: str
    kind: str  # "sweep" or "run"
    description: str
    teaches: str
    facts: list  # (name, text)
    verdict: str  # in a few words
    good: bool
    findings: list
    sections: list
    scenario: str  # resolved scenario, "" if unknown
    version: str

    @property
    def plots(self):
        return [p for s in self.sections for p in s.plots]


def number_cell(value, mark=""):
    """A measured number: rounded to read, whole to sort and compare."""
    return Cell(short(value), value, mark=mark)


def _code(text):
    """Words between backquotes as <code>; everything else escaped."""
    parts = re.split(r"`([^`]+)`", str(text))
    return Markup("").join(
        Markup("<code>{}</code>").format(p) if i % 2 else Markup("{}").format(p) for i, p in enumerate(parts)
    )


def _value(value):
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)


def html(report):
    env = Environment(
        loader=FileSystemLoader(os.path.join(_HERE, "templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters.update(code=_code, value=_value, inline=lambda plot: Markup(svg.inline_text(plot)))
    env.globals["source"] = lambda name: Markup(open(os.path.join(_HERE, "templates", name), encoding="utf-8").read())
    return env.get_template("report.html").render(report=report)


def write(report, file, folder):
    """Writes the page and its plots; returns the files. Each appears whole or not at all. Plots of an earlier report that this
    one does not have are removed."""
    os.makedirs(os.path.dirname(file) or ".", exist_ok=True)
    written = [_put(file, html(report))]
    if report.plots:
        os.makedirs(folder, exist_ok=True)
    for plot in report.plots:
        written.append(_put(os.path.join(folder, plot.name + ".svg"), svg.file_text(plot)))
    if os.path.isdir(folder):
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if name.endswith(".svg") and path not in written and _is_ours(path):
                os.remove(path)
    return written


def _is_ours(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return svg.MADE_BY in f.read(200)


def _put(path, text):
    part = path + ".part"
    try:
        with open(part, "w", encoding="utf-8") as f:
            f.write(text)
        os.replace(part, path)
    except BaseException:
        if os.path.exists(part):
            os.remove(part)
        raise
    return path
