# SPDX-License-Identifier: Apache-2.0
"""Databases of sweeps for tests, with the tables of docs/sweep.md, and what a page says, read back from its HTML."""
import contextlib
import html.parser
import io
import json
import os
import runpy
import sqlite3
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.path.join(ROOT, "tools", "report")
sys.path.insert(0, PROGRAM)

TABLES = """
CREATE TABLE sweep (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE parameter (parameter INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, path TEXT NOT NULL, unit TEXT NOT NULL,
                        numeric INTEGER NOT NULL);
CREATE TABLE metric (metric INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, source TEXT NOT NULL);
CREATE TABLE point (point INTEGER PRIMARY KEY, combination INTEGER NOT NULL, replication INTEGER NOT NULL, seed INTEGER NOT NULL,
                    config_hash TEXT NOT NULL, scenario_hash TEXT NOT NULL,
                    verdict TEXT, as_expected INTEGER, why TEXT, version TEXT, sim_time_ns REAL, wall_s REAL);
CREATE TABLE point_value (point INTEGER NOT NULL, parameter INTEGER NOT NULL, value REAL, text TEXT NOT NULL, PRIMARY KEY (point, parameter));
CREATE TABLE point_metric (point INTEGER NOT NULL, metric INTEGER NOT NULL, value REAL, PRIMARY KEY (point, metric));
CREATE TABLE flow (point INTEGER NOT NULL, flow INTEGER NOT NULL, name TEXT NOT NULL, messages INTEGER NOT NULL, mean_ns REAL NOT NULL,
                   PRIMARY KEY (point, flow));
CREATE TABLE breakdown (point INTEGER NOT NULL, flow INTEGER NOT NULL, position INTEGER NOT NULL, stage TEXT NOT NULL, mean_ns REAL NOT NULL,
                        p50_ns REAL NOT NULL, PRIMARY KEY (point, flow, position));
CREATE TABLE quantile (point INTEGER NOT NULL, flow INTEGER NOT NULL, share REAL NOT NULL, latency_ns REAL NOT NULL,
                       PRIMARY KEY (point, flow, share));
"""
STAGES = (
    ("cpu_post", 65),
    ("pcie_down", 126),
    ("wqe_fetch", 30),
    ("payload_dma", 682),
    ("packetise", 80),
    ("wire", 400),
    ("receive", 95),
    ("scatter", 35),
    ("cqe_write", 25),
    ("visible", 441),
    ("poll", 46),
)


class Sweep:
    """A database that grows point by point. `parameters` are (name, unit, numeric), `metrics` are (name, source)."""

    def __init__(self, directory, parameters, metrics, design="grid", **facts):
        self.file = os.path.join(directory, "sweep.sqlite")
        self.parameters, self.metrics = parameters, metrics
        self.db = sqlite3.connect(self.file)
        self.db.executescript(TABLES)
        known = {
            "schema": "rdmasim-sweep/1",
            "scenario": "signalling",
            "description": "CQ depth by signalling ratio",
            "teaches": "signal within the depth",
            "scenario_hash": "0123abcd",
            "design": json.dumps({"design": design}),
            "config": json.dumps({"seed": 7}),
            "version": "0.1.0 (abc)",
        }
        self.db.executemany("INSERT INTO sweep VALUES (?, ?)", {**known, **facts}.items())
        self.db.executemany(
            "INSERT INTO parameter VALUES (?, ?, ?, ?, ?)",
            [(i, n, "workloads.0." + n, u, num) for i, (n, u, num) in enumerate(parameters)],
        )
        self.db.executemany("INSERT INTO metric VALUES (?, ?, ?)", [(i, n, s) for i, (n, s) in enumerate(metrics)])
        self.count = 0

    def add(self, values, metrics, verdict="ok", combination=None, replication=0, seed=1, why="", latency=None):
        """`values` are (text, number or None); `latency` in ns makes a flow of that median."""
        point, self.count = self.count, self.count + 1
        self.db.execute(
            "INSERT INTO point VALUES (?, ?, ?, ?, 'c', '0123abcd', ?, ?, ?, ?, 1000.0, 0.1)",
            (
                point,
                point if combination is None else combination,
                replication,
                seed,
                verdict,
                verdict == "ok",
                why,
                None if verdict is None else "0.1.0 (abc)",
            ),
        )
        self.db.executemany(
            "INSERT INTO point_value VALUES (?, ?, ?, ?)", [(point, i, number, text) for i, (text, number) in enumerate(values)]
        )
        self.db.executemany("INSERT INTO point_metric VALUES (?, ?, ?)", [(point, i, v) for i, v in enumerate(metrics)])
        if latency:
            self.db.execute("INSERT INTO flow VALUES (?, 0, 'load', 100, ?)", (point, latency * 1.1))
            scale = latency / sum(ns for _, ns in STAGES)
            self.db.executemany(
                "INSERT INTO breakdown VALUES (?, 0, ?, ?, ?, ?)",
                [(point, i, s, ns * scale * 1.1, ns * scale) for i, (s, ns) in enumerate(STAGES)],
            )
            self.db.executemany(
                "INSERT INTO quantile VALUES (?, 0, ?, ?)",
                [(point, q, latency * (0.9 + 0.2 * q)) for q in (0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1)],
            )
        return point

    def close(self):
        self.db.commit()
        self.db.close()


METRICS = [
    ("message_rate_mpps", "/workloads/0/message_rate_mpps"),
    ("latency_p50_ns", "/workloads/0/latency_ns/p50"),
    ("client_cpu_ns_per_message", "/workloads/0/cpu_ns/client/on_cpu per /workloads/0/messages"),
]


def signalling(directory, depths=(8, 16, 32, 64, 128, 256), ratios=(1, 2, 4, 8, 16, 32), replications=1):
    """Rates that flatten with the depth; a deadlock where no work request within the depth is signalled, an overrun at one ratio."""
    sweep = Sweep(directory, [("cq_depth", "", 1), ("cq_mod", "", 1)], METRICS)
    combination = 0
    for depth in depths:
        for ratio in ratios:
            for r in range(replications):
                verdict = "deadlock" if ratio > depth else "cq_overrun" if ratio == ratios[-1] and depth == depths[-1] else "ok"
                rate = 5 * ratio / (ratio + 3) * depth / (depth + 12) * (1 + 0.01 * r)
                numbers = (rate, 2000 + 10 * ratio + depth / 3, 50 + 300 / ratio) if verdict == "ok" else (None, None, None)
                sweep.add(
                    [(str(depth), depth), (str(ratio), ratio)],
                    numbers,
                    verdict,
                    combination,
                    r,
                    1 + r,
                    "" if verdict == "ok" else "no event is left; client waits",
                    2000 + 10 * ratio if verdict == "ok" else None,
                )
            combination += 1
    sweep.close()


class Page(html.parser.HTMLParser):
    """The tables, texts and structure of a page. `unclosed` and `stray` are tags that do not match."""

    VOID = {"meta", "link", "br", "hr", "img", "input"}

    def __init__(self, text):
        super().__init__()
        self.stack, self.stray, self.ids, self.tables, self.links, self.labelled = [], [], [], {}, [], []
        self.text, self.figures, self.svg_roles = {}, [], []
        self._table = self._cell = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag not in self.VOID:
            self.stack.append(tag)
        self._seen(tag, attrs)

    def handle_startendtag(self, tag, attrs):
        self._seen(tag, dict(attrs))

    def _seen(self, tag, attrs):
        if "id" in attrs:
            self.ids.append(attrs["id"])
        for key in ("href", "xlink:href", "src"):
            if key in attrs:
                self.links.append(attrs[key])
        self.labelled += attrs.get("aria-labelledby", "").split()
        if tag == "figure":
            self.figures.append(attrs)
        elif tag == "svg":
            self.svg_roles.append(attrs.get("role"))
        elif tag == "table":
            self._table = self.tables.setdefault(attrs["id"], [])
        elif tag == "tr" and self._table is not None:
            self._table.append([])
        elif tag in ("td", "th") and self._table is not None:
            self._cell = [attrs.get("data-value"), ""]
            self._table[-1].append(self._cell)

    def handle_endtag(self, tag):
        if not self.stack or self.stack[-1] != tag:
            self.stray.append(tag)
        else:
            self.stack.pop()
        if tag == "table":
            self._table = None
        elif tag in ("td", "th"):
            self._cell = None

    def handle_data(self, data):
        if self._cell is not None:
            self._cell[1] += data
        if self.stack:
            self.text[self.stack[-1]] = self.text.get(self.stack[-1], "") + data


class Case(unittest.TestCase):
    """A test with a directory of its own."""

    def setUp(self):
        self._directory = tempfile.TemporaryDirectory(prefix="rdmasim-report-")
        self.directory = self._directory.name
        self.addCleanup(self._directory.cleanup)

    def report(self, *arguments, code=0):
        """Runs the program on the directory and returns what it said on stderr (code != 0) or stdout."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            program = runpy.run_path(os.path.join(PROGRAM, "__main__.py"))
            ended = program["main"](list(arguments) or [self.directory])
        self.assertEqual(ended, code, err.getvalue())
        return err.getvalue() if code else out.getvalue()

    def page(self, *arguments):
        self.report(*arguments)
        with open(os.path.join(self.directory, "report.html"), encoding="utf-8") as f:
            return Page(f.read())

    def svg_files(self):
        folder = os.path.join(self.directory, "report")
        return sorted(os.path.join(folder, name) for name in os.listdir(folder))
