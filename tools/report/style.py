# SPDX-License-Identifier: Apache-2.0
"""How plots look: colours that people with colour vision deficiencies can tell apart, each with a marker, a dash and a hatch of
its own, and settings that give the same bytes every time."""
import logging

import matplotlib

# Colour of the SVG file (on white) -> CSS variable of the page, which has a second value for dark screens (report.css).
SERIES = ["#0072b2", "#d55e00", "#00795a", "#b8568f", "#9a6f00", "#3a8fc4", "#5b4da8", "#595959"]
INK, FAINT, FAILED = "#1c2126", "#d8dde2", "#eceff2"
VARIABLES = {color: f"--series-{i + 1}" for i, color in enumerate(SERIES)} | {
    INK: "--ink",
    FAINT: "--faint",
    FAILED: "--failed",
}

MARKERS = ["o", "s", "^", "D", "v", "P", "X", "*"]
DASHES = [
    "-",
    (0, (5, 2)),
    (0, (1.5, 1.5)),
    (0, (6, 2, 1.5, 2)),
    (0, (8, 3)),
    (0, (3, 1.5)),
    (0, (4, 1.5, 1, 1.5, 1, 1.5)),
    (0, (1, 3)),
]
HATCHES = ["", "/", "\\", "", "x", "-", "", "|"]
# Beside letters, so that a verdict shows without colour.
VERDICT_HATCHES = {
    "deadlock": "x",
    "cq_overrun": "\\",
    "failed": "/",
    "time_limit": "|",
    "wall_limit": "|",
    "unmet": "-",
    "refused": "-",
}
OTHER_HATCH = "+"

HEAT = "viridis"  # rises evenly in lightness, so it reads in grey and without red or green

WIDTH, HEIGHT = 6.6, 4.1  # inches: two columns of a page, or a column of the report


def apply():
    matplotlib.rcParams.update(
        {
            "svg.fonttype": "none",
            "svg.hashsalt": "rdmasim",
            "text.parse_math": False,
            "axes.unicode_minus": True,
            "font.family": "sans-serif",
            "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "Helvetica"],
            "font.size": 9,
            "axes.titlesize": 10,
            "axes.titleweight": "bold",
            "axes.titlelocation": "left",
            "axes.labelsize": 9,
            "axes.edgecolor": INK,
            "axes.labelcolor": INK,
            "axes.titlecolor": INK,
            "text.color": INK,
            "xtick.color": INK,
            "ytick.color": INK,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.linewidth": 0.8,
            "axes.axisbelow": True,
            "axes.grid": True,
            "grid.color": FAINT,
            "grid.linewidth": 0.6,
            "xtick.labelsize": 8,
            "ytick.labelsize": 8,
            "legend.fontsize": 8,
            "legend.frameon": False,
            "legend.title_fontsize": 8,
            "legend.handlelength": 3.2,
            "lines.linewidth": 1.6,
            "lines.markersize": 5,
            "hatch.linewidth": 0.6,
            "hatch.color": INK,
            "figure.facecolor": "none",
            "axes.facecolor": "none",
            "savefig.facecolor": "none",
            "figure.constrained_layout.use": True,
        }
    )
    # A label in a script that the layout font lacks is drawn by the reader's own font.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
