# SPDX-License-Identifier: Apache-2.0
"""From a matplotlib figure to SVG: a file for papers, and the same picture to stand in a page, where it takes the page's colours,
has a name for screen readers and tells values under the pointer."""
import io
import re
import warnings
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field

from matplotlib.backends.backend_svg import FigureCanvasSVG

from style import VARIABLES

_SVG, _LINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
ElementTree.register_namespace("", _SVG)
ElementTree.register_namespace("xlink", _LINK)
MADE_BY = "made by rdmasim report"
_DECIMALS = re.compile(r"-?\d+\.\d{4,}")  # more than a plot shows
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def slug(text):
    """A text as part of a file name."""
    return "".join(c if c.isascii() and c.isalnum() else "_" for c in text).strip("_") or "plot"


@dataclass
class Plot:
    """A figure and what is told about it. `tips` maps the gid of an artist to the texts of its parts, in drawing order."""

    name: str  # file name without extension, unique in the report
    title: str
    summary: str  # one sentence for who cannot see it
    figure: object
    tips: dict = field(default_factory=dict)
    notes: list = field(default_factory=list)  # what is left out of the picture


def _printable(text):
    """Without the characters that XML does not have."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def _tree(plot, background):
    plot.figure.set_facecolor(background)
    out = io.StringIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # glyphs that the layout font lacks
        FigureCanvasSVG(plot.figure).print_svg(out, metadata={"Date": None, "Creator": "rdmasim report"})
    root = ElementTree.fromstring(_printable(out.getvalue()))
    for metadata in root.findall(f"{{{_SVG}}}metadata"):
        root.remove(metadata)
    groups = {g.get("id"): g for g in root.iter(f"{{{_SVG}}}g")}
    for gid, texts in plot.tips.items():
        marks = groups[gid].findall(f".//{{{_SVG}}}use") or groups[gid].findall(f".//{{{_SVG}}}path")
        for mark, text in zip(marks, texts):
            ElementTree.SubElement(mark, f"{{{_SVG}}}title").text = _printable(text)
    for element in root.iter():
        for key in ("x", "y", "d"):
            if key in element.attrib:
                element.set(key, _DECIMALS.sub(lambda m: f"{float(m[0]):.3f}".rstrip("0").rstrip("."), element.get(key)))
    for tag, text in (("desc", plot.summary), ("title", plot.title)):
        element = ElementTree.Element(f"{{{_SVG}}}{tag}")
        element.text = _printable(text)
        root.insert(0, element)
    root.set("role", "img")
    return root


def file_text(plot):
    """The SVG file."""
    return (
        f'<?xml version="1.0" encoding="utf-8"?>\n<!-- {MADE_BY} -->\n'
        + ElementTree.tostring(_tree(plot, "white"), encoding="unicode")
        + "\n"
    )


def inline_text(plot):
    """The <svg> element for a page: ids are unique in the page, and colours are variables of its style sheet."""
    root, prefix = _tree(plot, "none"), f"svg-{plot.name}-"
    del root.attrib["width"], root.attrib["height"]
    for element in root.iter():
        for key, value in list(element.attrib.items()):
            if key == "id":
                element.set(key, prefix + value)
            elif key == f"{{{_LINK}}}href" and value.startswith("#"):
                element.set(key, f"#{prefix}{value[1:]}")
            else:
                value = value.replace("url(#", f"url(#{prefix}")
                if key == "style":
                    value = re.sub("|".join(VARIABLES), lambda m: f"var({VARIABLES[m[0]]}, {m[0]})", value)
                elif key in ("fill", "stroke") and value in VARIABLES:  # an attribute takes no variable, a style does
                    del element.attrib[key]
                    key, value = "style", f"{element.get('style', '')}; {key}: var({VARIABLES[value]}, {value})".lstrip("; ")
                element.set(key, value)
    root[0].set("id", prefix + "title")
    root[1].set("id", prefix + "desc")
    root.set("aria-labelledby", f"{prefix}title {prefix}desc")
    return ElementTree.tostring(root, encoding="unicode")
