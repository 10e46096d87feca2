#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The report of a sweep: its numbers are those of the database, its plots are well-formed and have axes with units, and it says what
is wrong with a database that it cannot use."""
import json
import os
import re
import sqlite3
import unittest
import xml.etree.ElementTree as ElementTree

from fixture import METRICS, Case, Sweep, signalling

SVG = "{http://www.w3.org/2000/svg}"


class Values(Case):
    def test_every_number_of_the_database_is_in_the_table_of_points(self):
        signalling(self.directory)
        rows = self.page().tables["point-table"]
        self.assertEqual([c[1] for c in rows[0]][:4], ["point", "CQ depth CQEs", "CQ mod WRs per signaled WR", "verdict"])
        with sqlite3.connect(os.path.join(self.directory, "sweep.sqlite")) as db:
            points = db.execute("SELECT point, verdict FROM point ORDER BY point").fetchall()
            self.assertEqual(len(rows), 1 + len(points))
            for row, (point, verdict) in zip(rows[1:], points):
                values = [v for v, in db.execute("SELECT value FROM point_value WHERE point = ? ORDER BY parameter", (point,))]
                numbers = [v for v, in db.execute("SELECT value FROM point_metric WHERE point = ? ORDER BY metric", (point,))]
                self.assertEqual([c[0] and float(c[0]) for c in row], [float(point), *values, None, *numbers])
                self.assertEqual(row[3][1], verdict)

    def test_with_replications_the_means_and_each_point(self):
        signalling(self.directory, depths=(8, 16), ratios=(1, 2, 4), replications=3)
        tables = self.page().tables
        self.assertEqual((len(tables["combination-table"]), len(tables["point-table"])), (7, 19))
        with sqlite3.connect(os.path.join(self.directory, "sweep.sqlite")) as db:
            (mean,) = db.execute(
                "SELECT avg(value) FROM point_metric m JOIN point p USING (point) WHERE p.combination = 2 AND m.metric = 0"
            ).fetchone()
        self.assertAlmostEqual(float(tables["combination-table"][3][5][0]), mean, places=12)

    def test_the_distributions_and_stages_are_those_of_the_database(self):
        signalling(self.directory, depths=(8, 16, 32), ratios=(1,))
        tables = self.page().tables
        with sqlite3.connect(os.path.join(self.directory, "sweep.sqlite")) as db:
            quantiles = db.execute("SELECT 100 * share, latency_ns FROM quantile ORDER BY point, share").fetchall()
            stages = db.execute("SELECT stage, mean_ns, p50_ns FROM breakdown ORDER BY point, position").fetchall()
        self.assertEqual([(float(r[1][0]), float(r[2][0])) for r in tables["cdf-table-0"][1:]], quantiles)
        self.assertEqual([(r[1][1], float(r[2][0]), float(r[3][0])) for r in tables["stage-table-0"][1:]], stages)

    def test_messages_of_points_that_failed_are_not_drawn(self):
        sweep = Sweep(self.directory, [("a", "", 1)], METRICS)
        for i, verdict in enumerate(("ok", "cq_overrun", "unmet", "deadlock")):
            sweep.add([(str(i), i)], [1, 2, 3], verdict, latency=1000 * (i + 1))
        sweep.close()
        tables = self.page().tables
        self.assertEqual(sorted({r[0][1] for r in tables["cdf-table-0"][1:]}), ["a = 0", "a = 2"])
        self.assertEqual(sorted({r[0][1] for r in tables["stage-table-0"][1:]}), ["a = 0", "a = 2"])

    def test_plots_tell_each_value_under_the_pointer(self):
        signalling(self.directory, depths=(8, 16, 32), ratios=(1, 2))
        self.report()
        with open(os.path.join(self.directory, "report", "line_message_rate_mpps.svg"), encoding="utf-8") as f:
            titles = re.findall(r"<title>(CQ depth = .*?)</title>", f.read())
        rate = 5 * 1 / 4 * 8 / 20
        self.assertIn(f"CQ depth = 8, CQ mod = 1: message rate {rate:.4g} million messages/s", titles)
        self.assertEqual(len(titles), 5, "the sixth point overran its CQ")

    def test_two_reports_of_one_database_are_the_same_bytes(self):
        signalling(self.directory, depths=(8, 16, 32), ratios=(1, 2, 4))

        def everything():
            self.report()
            out = {}
            for file in self.svg_files() + [os.path.join(self.directory, "report.html")]:
                with open(file, "rb") as f:
                    out[file] = f.read()
            return out

        self.assertEqual(everything(), everything())


class Plots(Case):
    def test_are_well_formed_and_name_each_axis_with_its_unit(self):
        signalling(self.directory)
        self.report()
        names = [os.path.basename(f) for f in self.svg_files()]
        self.assertEqual(
            names,
            ["breakdown_0.svg", "latency_cdf_0.svg"]
            + [f"line_{m}.svg" for m in sorted(n for n, _ in METRICS)]
            + [f"map_{m}.svg" for m in sorted(n for n, _ in METRICS)]
            + ["verdict.svg"],
        )
        for file in self.svg_files():
            root = ElementTree.parse(file).getroot()
            self.assertEqual(root.tag, SVG + "svg")
            self.assertTrue(root.find(SVG + "title").text)
            self.assertTrue(root.find(SVG + "desc").text)
            texts = [t.text for t in root.iter(SVG + "text")]
            with_unit = [t for t in texts if t and re.fullmatch(r".* \([^()]+\)", t)]
            # The vertical axis of stacked bars is a list of points.
            self.assertGreaterEqual(len(with_unit), 1 if "breakdown" in file else 2, f"{file}: {texts}")

    def test_verdicts_show_by_letter_and_hatch(self):
        signalling(self.directory)
        self.report()
        with open(os.path.join(self.directory, "report", "verdict.svg"), encoding="utf-8") as f:
            text = f.read()
        deadlocks = sum(ratio > depth for depth in (8, 16, 32, 64, 128, 256) for ratio in (1, 2, 4, 8, 16, 32))
        self.assertEqual(len(re.findall(r">D</text>", text)), deadlocks)
        self.assertEqual(len(re.findall(r">CO</text>", text)), 1)
        self.assertEqual(len(re.findall(r">ok</text>", text)), 36 - deadlocks - 1 + 1, "each cell and the legend")
        self.assertIn("<pattern", text)

    def test_of_an_earlier_report_that_are_no_longer_made_go_away_and_other_files_stay(self):
        signalling(self.directory)
        self.report()
        own = os.path.join(self.directory, "report", "drawing.svg")
        with open(own, "w", encoding="utf-8") as f:
            f.write("<svg/>")
        self.report("--metric=latency_p50_ns", self.directory)
        names = [os.path.basename(f) for f in self.svg_files()]
        self.assertEqual(
            names,
            [
                "breakdown_0.svg",
                "drawing.svg",
                "latency_cdf_0.svg",
                "line_latency_p50_ns.svg",
                "map_latency_p50_ns.svg",
                "verdict.svg",
            ],
        )

    def test_the_axis_can_be_chosen(self):
        signalling(self.directory)
        self.assertIn("Along CQ mod", self.page("--x=cq_mod", self.directory).text["h2"])

    def test_of_a_random_design_are_clouds(self):
        sweep = Sweep(self.directory, [("a", "", 1), ("delay", "ns", 1)], METRICS, "random")
        for i in range(20):
            sweep.add(
                [(str((i * 7) % 20), (i * 7) % 20), (f"{(i * 3) % 20} ns", (i * 3) % 20)], [5 - (i * 7) % 20 / 5, 1000, None]
            )
        sweep.close()
        page = self.page()
        self.assertEqual(
            [f["id"].removeprefix("plot-") for f in page.figures],
            ["cloud_message_rate_mpps_a", "cloud_message_rate_mpps_delay"],
        )
        self.assertIn("rank correlation (Spearman) with a -1.00", page.text["li"])


class Structure(Case):
    def check(self, page):
        self.assertEqual((page.stray, page.stack), ([], []))
        self.assertEqual(len(page.ids), len(set(page.ids)), "an id stands twice")
        self.assertEqual([i for i in page.labelled if i not in page.ids], [])
        self.assertEqual(
            [x for x in page.links if not x.startswith("#") and x != "data:,"], [], "the page needs something outside itself"
        )
        self.assertEqual([x for x in page.links if x.startswith("#") and x[1:] not in page.ids], [])
        self.assertEqual(set(page.svg_roles) - {"img"}, set())
        self.assertTrue(all(f.get("tabindex") == "0" for f in page.figures))

    def test_the_page_is_whole_and_needs_nothing_else(self):
        signalling(self.directory)
        page = self.page()
        self.check(page)
        self.assertEqual(page.text["pre"].strip(), '{\n  "seed": 7\n}')

    def test_text_from_outside_is_text(self):
        evil = '<script>alert("x")</script> & $x_1$ \u4e2d \x01'
        sweep = Sweep(
            self.directory,
            [("a", "", 1), ('w<b>"', "", 0)],
            [("m<i>&_ns", "/x")],
            description=evil,
            teaches=evil,
            scenario=evil,
        )
        for i in range(6):
            sweep.add(
                [(str(i // 2), i // 2), (evil if i % 2 else "plain", None)],
                [i],
                "ok" if i else "<b>",
                why=evil,
                latency=100 + i,
            )
        sweep.close()
        page = self.page()
        self.check(page)
        self.assertEqual(page.text["h1"].strip()[: len("<script>")], "<script>")
        for file in self.svg_files():
            ElementTree.parse(file)

    def test_one_point(self):
        sweep = Sweep(self.directory, [("size", "bytes", 1)], METRICS)
        sweep.add([("64 B", 64)], [1.5, 2000.5, None], latency=2000)
        sweep.close()
        page = self.page()
        self.check(page)
        self.assertEqual([f["id"].removeprefix("plot-") for f in page.figures], ["latency_cdf_0", "breakdown_0"])
        self.assertEqual(page.tables["point-table"][1][-2][0], "2000.5")

    def test_all_points_failed(self):
        sweep = Sweep(self.directory, [("a", "", 1), ("b", "", 1)], METRICS)
        for i in range(9):
            sweep.add(
                [(str(i // 3), i // 3), (str(i % 3), i % 3)], [None] * 3, "crashed", why="the simulator was ended by signal 9"
            )
        sweep.close()
        page = self.page()
        self.check(page)
        self.assertIn("No point ended ok", page.text["li"])
        self.assertEqual([f["id"].removeprefix("plot-") for f in page.figures], ["verdict"])
        self.assertEqual(len(page.tables["failure-table"]), 10)

    def test_expectations_of_the_whole(self):
        signalling(self.directory, depths=(8, 16, 32), ratios=(1, 2, 4))
        good = {"condition": "verdict == 'ok', where cq_mod < 4", "met": True, "failures": []}
        bad = {
            "condition": "message_rate_mpps rising along cq_mod",
            "met": False,
            "because": "fewer CQEs",
            "failures": ["point 8: 1", "point 9: 2"],
        }
        for conditions, verdict in (([good], "as expected"), ([good, bad], "1 of 2 expectations not met")):
            with open(os.path.join(self.directory, "results.json"), "w", encoding="utf-8") as f:
                json.dump({"scenario_hash": "0123abcd", "expectations": conditions}, f)
            page = self.page()
            self.check(page)
            self.assertIn(verdict, page.text["span"])
            self.assertIn(f"1 of {len(conditions)} expectations of the sweep are met", page.text["li"])
        self.assertEqual(
            [c[1] for c in page.tables["expectation-table"][2]],
            [bad["condition"], "not met", "fewer CQEs", "point 8: 1\npoint 9: 2"],
        )
        with open(os.path.join(self.directory, "results.json"), "w", encoding="utf-8") as f:
            json.dump({"scenario_hash": "another", "expectations": [bad]}, f)
        self.assertNotIn("expectation-table", self.page().tables)

    def test_a_sweep_that_is_under_way(self):
        sweep = Sweep(self.directory, [("a", "", 1)], METRICS)
        for i in range(5):
            sweep.add([(str(i), i)], [i + 1, 5, 6] if i < 3 else [None] * 3, "ok" if i < 3 else None)
        sweep.close()
        page = self.page()
        self.assertEqual(len(page.tables["point-table"]), 4)
        self.assertIn("2 of 5 points of the sweep are missing", page.text["li"])

    def test_missing_metrics_leave_gaps(self):
        sweep = Sweep(self.directory, [("a", "", 1)], METRICS)
        for i in range(5):
            sweep.add([(str(i), i)], [i + 1, None, None if i == 2 else 100 + i])
        sweep.close()
        page = self.page()
        self.check(page)
        self.assertEqual(
            [f["id"].removeprefix("plot-") for f in page.figures], ["line_message_rate_mpps", "line_client_cpu_ns_per_message"]
        )
        self.assertEqual(page.tables["point-table"][3][-1], [None, "–"])

    def test_thousands_of_points(self):
        sweep = Sweep(self.directory, [("a", "", 1), ("b", "", 1)], METRICS[:1])
        for i in range(3000):
            sweep.add([(str(i // 50), i // 50), (str(i % 50), i % 50)], [1 + i % 50], latency=100 + i)
        sweep.close()
        page = self.page()
        self.check(page)
        self.assertEqual(len(page.tables["point-table"]), 3001)
        self.assertLess(os.path.getsize(os.path.join(self.directory, "report.html")), 12_000_000)


class Errors(Case):
    def test_no_sweep_and_no_run(self):
        self.assertIn("has neither sweep.sqlite", self.report(code=2))
        self.assertIn("there is no such directory", self.report(os.path.join(self.directory, "none"), code=2))
        self.assertIn("is not a directory", self.report(__file__, code=2))

    def test_a_file_that_is_no_database(self):
        with open(os.path.join(self.directory, "sweep.sqlite"), "wb") as f:
            f.write(b"no database at all" * 100)
        self.assertIn("sweep.sqlite: cannot be read as the database of a sweep: file is not a database", self.report(code=2))

    def test_a_damaged_database(self):
        signalling(self.directory)
        with open(os.path.join(self.directory, "sweep.sqlite"), "r+b") as f:
            f.seek(4096)
            f.write(b"\xff" * 20000)
        self.assertIn("cannot be read as the database of a sweep: ", self.report(code=2))

    def test_an_empty_database(self):
        open(os.path.join(self.directory, "sweep.sqlite"), "w").close()
        self.assertIn("has no table `sweep`", self.report(code=2))

    def test_a_database_of_another_version(self):
        Sweep(self.directory, [], [], schema="rdmasim-sweep/9").close()
        self.assertIn('has the schema "rdmasim-sweep/9", this version reads "rdmasim-sweep/1"', self.report(code=2))

    def test_no_point_has_finished(self):
        sweep = Sweep(self.directory, [("a", "", 1)], METRICS)
        sweep.add([("1", 1)], [], None)
        sweep.close()
        self.assertIn("no point of the sweep has finished (1 are planned)", self.report(code=2))

    def test_unknown_names(self):
        signalling(self.directory, depths=(8, 16), ratios=(1, 2))
        self.assertIn(
            '--x: the sweep does not vary "depth" (it varies cq_depth, cq_mod)',
            self.report("--x=depth", self.directory, code=2),
        )
        self.assertIn(
            '--metric: the sweep has no metric "rate" (it has message_rate_mpps, ',
            self.report("--metric=rate", self.directory, code=2),
        )

    def test_a_place_that_cannot_be_written(self):
        signalling(self.directory, depths=(8, 16), ratios=(1, 2))
        self.assertIn("/proc/report.html", self.report("--out=/proc/report.html", self.directory, code=2))
        self.assertFalse(os.path.exists(os.path.join(self.directory, "report.html")))


if __name__ == "__main__":
    unittest.main()
