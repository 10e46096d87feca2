#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run_report_test.py RDMASIM: `rdmasim report` on runs and sweeps that the simulator makes: the page has the numbers of result.json and
results.csv, a run that fails is told, and mistakes are refused."""
import csv
import json
import os
import re
import sqlite3
import subprocess
import sys
import unittest
import xml.etree.ElementTree as ElementTree

from fixture import ROOT, TABLES, Case, Page

RDMASIM = None


def rdmasim(*arguments, **environment):
    return subprocess.run(
        [RDMASIM, *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "SYSTEMC_DISABLE_COPYRIGHT_MESSAGE": "1", **environment},
    )


class RunReport(Case):
    def run_and_report(self, scenario, *more):
        rdmasim("run", f"scenarios/{scenario}", "--out", self.directory, "--quiet", *more)
        done = rdmasim("report", self.directory)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn(f"wrote {self.directory}/report.html", done.stdout)
        with open(os.path.join(self.directory, "result.json"), encoding="utf-8") as f:
            result = json.load(f)
        with open(os.path.join(self.directory, "report.html"), encoding="utf-8") as f:
            page = Page(f.read())
        self.assertEqual((page.stray, page.stack), ([], []))
        self.assertEqual(len(page.ids), len(set(page.ids)))
        self.assertEqual([x for x in page.links if not x.startswith("#") and x != "data:,"], [])
        return result, page

    def test_the_ping_pong(self):
        result, page = self.run_and_report("rc_send_pingpong.json", "--set", "workloads.0.iters=50")
        load = result["workloads"][0]
        row = page.tables["workload-table"][1]
        rates = [load["messages"], load["bytes"], load["bandwidth_gbps"], load["message_rate_mpps"]]
        self.assertEqual([float(c[0]) for c in row[2:]], rates)
        for row, key in zip(page.tables["latency-table"][1:], ("latency_ns", "half_round_trip_ns")):
            self.assertEqual(
                [float(c[0]) for c in row[2:]], [load[key][q] for q in ("min", "mean", "p50", "p99", "p999", "max")]
            )
        quantiles = [(100 * q["share"], q["latency_ns"]) for q in load["latency_quantiles"]]
        self.assertEqual([(float(r[1][0]), float(r[2][0])) for r in page.tables["cdf-table"][1:]], quantiles)
        stages = [(s["stage"], s["p50"], s["mean"]) for s in load["breakdown_ns"] if s["p50"] or s["mean"]]
        self.assertEqual([(r[1][1], float(r[2][0]), float(r[3][0])) for r in page.tables["stage-table"][1:]], stages)
        busy = {r[0][1]: float(r[1][0]) for r in page.tables["utilisation-table"][1:]}
        self.assertEqual(busy, {name: 100 * share for name, share in result["utilisation"].items() if share > 0})
        counters = {r[0][1]: int(r[1][0]) for r in page.tables["counter-table"][1:]}
        self.assertEqual(counters, {name: n for name, n in result["counters"].items() if n})
        self.assertEqual(
            [f["id"].removeprefix("plot-") for f in page.figures], ["latency_cdf_0_pingpong", "breakdown", "cpu", "utilisation"]
        )
        self.assertIn("RC SEND ping-pong", page.text["p"])
        self.assertEqual(json.loads(page.text["pre"])["workloads"][0]["iters"], 50)
        self.assertIn(f"{result['version']}", page.text["dd"])

    def test_plots_name_their_axes_and_units(self):
        self.run_and_report("rc_send_pingpong.json", "--set", "workloads.0.iters=50")
        axes = {"breakdown.svg": 1, "cpu.svg": 1, "utilisation.svg": 1, "latency_cdf_0_pingpong.svg": 2}
        self.assertEqual({os.path.basename(f) for f in self.svg_files()}, set(axes))
        for file in self.svg_files():
            texts = [t.text for t in ElementTree.parse(file).iter("{http://www.w3.org/2000/svg}text")]
            self.assertEqual(
                len([t for t in texts if t and re.fullmatch(r".* \([^()]+\)", t)]), axes[os.path.basename(file)], texts
            )

    def test_a_program_of_steps_with_events(self):
        result, page = self.run_and_report("cases/cq_16_overruns.json")
        self.assertEqual([r[2][1] for r in page.tables["event-table"][1:]], [e["type"] for e in result["async_events"]])
        self.assertEqual([r[0][1] for r in page.tables["program-table"][1:]], list(result["programs"]))
        self.assertEqual([r[1][1] for r in page.tables["expectation-table"][1:]], ["met"] * len(result["expectations"]))

    def test_a_deadlock_says_who_waits(self):
        result, page = self.run_and_report("cases/all_unsignaled_and_a_poll_for_ever.json")
        self.assertEqual(result["verdict"], "deadlock")
        self.assertEqual(page.text["h1"].split(), ["all_unsignaled_and_a_poll_for_ever"])
        self.assertIn("deadlock", page.text["span"])
        self.assertTrue(all(line in page.text["li"] for line in result["outstanding"]))

    def test_mistakes(self):
        self.assertEqual(rdmasim("report").returncode, 2)
        self.assertIn("missing DIR", rdmasim("report").stderr)
        for text, why in (
            ("", "is not JSON"),
            ("[1]", "its schema is null"),
            ('{"schema": "rdmasim-result/9"}', 'its schema is "rdmasim-result/9"'),
        ):
            with open(os.path.join(self.directory, "result.json"), "w", encoding="utf-8") as f:
                f.write(text)
            done = rdmasim("report", self.directory)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(why, done.stderr)
        with open(os.path.join(self.directory, "result.json"), "w", encoding="utf-8") as f:
            f.write('{"schema": "rdmasim-result/1"}')
        self.assertIn("--x and --metric choose plots of a sweep", rdmasim("report", self.directory, "--x", "size").stderr)
        self.assertIn('lacks "', rdmasim("report", self.directory).stderr)

    def test_a_python_without_the_libraries_is_told_what_to_install(self):
        script = os.path.join(self.directory, "python")
        with open(script, "w", encoding="utf-8") as f:
            f.write(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')  # without site-packages
        os.chmod(script, 0o700)
        done = rdmasim("report", self.directory, RDMASIM_PYTHON=script)
        self.assertEqual(done.returncode, 2)
        self.assertIn("apt-get install python3-matplotlib python3-jinja2", done.stderr)
        done = rdmasim("report", self.directory, RDMASIM_PYTHON="/nonexistent/python")
        self.assertEqual(done.returncode, 2)
        self.assertIn("/nonexistent/python: cannot be started", done.stderr)


class SweepReport(Case):
    def sweep(self, *more):
        done = rdmasim(
            "sweep",
            "scenarios/rc_send_bw.json",
            "--set",
            "workloads.0.iters=100",
            "--vary",
            "workloads.0.size=64 B..4 KiB x4",
            "--vary",
            "workloads.0.cq_mod=1,4,16",
            "--quiet",
            "--out",
            self.directory,
            *more,
        )
        self.assertIn(done.returncode, (0, 1), done.stderr)  # 1: the scenario expects a rate that not every point has

    def test_its_numbers_are_those_of_the_results(self):
        self.sweep()
        page = self.page()
        with open(os.path.join(self.directory, "results.csv"), encoding="utf-8", newline="") as f:
            results = list(csv.DictReader(f))
        rows = page.tables["point-table"]
        with sqlite3.connect(os.path.join(self.directory, "sweep.sqlite")) as db:
            metrics = [name for name, in db.execute("SELECT name FROM metric")]
        self.assertEqual((len(results), len(rows), len(rows[0])), (12, 13, 4 + len(metrics)))
        for row, result in zip(rows[1:], results):
            self.assertEqual([float(c[0]) for c in row[:3]], [float(result[k]) for k in ("point", "size_bytes", "cq_mod")])
            self.assertEqual(row[3][1], result["verdict"])
            told = sorted(float(c[0]) for c in row[4:])
            self.assertEqual(told, sorted(float(result[m]) for m in metrics))
        self.assertIn("latency_cdf_0", {f["id"].removeprefix("plot-") for f in page.figures})
        self.assertEqual(json.loads(page.text["pre"])["workloads"][0]["iters"], 100)

    def test_replications_are_points_of_a_combination(self):
        self.sweep("--replications", "2")
        tables = self.page().tables
        self.assertEqual((len(tables["combination-table"]), len(tables["point-table"])), (13, 25))

    def test_the_databases_of_the_tests_have_the_tables_of_a_real_one(self):
        self.sweep()
        with sqlite3.connect(os.path.join(self.directory, "sweep.sqlite")) as real, sqlite3.connect(":memory:") as ours:
            ours.executescript(TABLES)
            for (name,) in ours.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                columns = [[c[1:3] for c in db.execute(f"PRAGMA table_info({name})")] for db in (real, ours)]
                self.assertEqual(columns[0], columns[1], name)
            keys = {k for k, in real.execute("SELECT key FROM sweep")}
            self.assertLessEqual({"schema", "scenario", "description", "teaches", "scenario_hash", "design", "config"}, keys)


if __name__ == "__main__":
    RDMASIM = os.path.abspath(sys.argv.pop())
    unittest.main()
