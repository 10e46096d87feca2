#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Knees, optima, failing regions, correlations, confidence intervals: numbers that can be worked out by hand."""
import unittest

from fixture import PROGRAM  # noqa: F401  (puts the program on the path)

import findings
from lines import cut
from metrics import metric
from model import Point, Study, Value

RATE, LATENCY = metric("message_rate_mpps"), metric("latency_p50_ns")


def study(points, metrics=(RATE, LATENCY), **more):
    return Study("s", points, list(metrics), planned=len(points), **more)


def point(number, parameters, numbers, verdict="ok", combination=None):
    values = {n: Value(str(v), v if isinstance(v, (int, float)) else None) for n, v in parameters.items()}
    return Point(number, number if combination is None else combination, 0, number, verdict, values, numbers)


def curve(xs, rates):
    return study([point(i, {"depth": x}, {"message_rate_mpps": r}) for i, (x, r) in enumerate(zip(xs, rates))])


class Knee(unittest.TestCase):
    def test_of_two_straight_pieces_is_where_they_meet(self):
        found = findings.knee([0, 1, 2, 3, 4, 10], [0, 2, 4, 6, 8, 8])
        self.assertEqual(found.index, 4)
        self.assertEqual(found.share, 1.0)
        self.assertAlmostEqual(found.distance, 0.6)

    def test_of_a_rise_is_where_it_begins(self):
        found = findings.knee([0, 1, 2, 3, 4, 5], [1, 1, 1, 1, 6, 11])
        self.assertEqual(found.index, 3)
        self.assertEqual(found.share, 0.0)

    def test_of_a_falling_curve(self):
        self.assertEqual(findings.knee([1, 2, 3, 4, 5], [100, 20, 10, 5, 0]).index, 1)

    def test_is_none_for_straight_short_flat_and_wavy_curves(self):
        self.assertIsNone(findings.knee([0, 1, 2, 3, 4], [0, 1, 2, 3, 4]))
        self.assertIsNone(findings.knee([0, 1, 2, 3], [0, 5, 5, 5]))
        self.assertIsNone(findings.knee([0, 1, 2, 3, 4], [100, 101, 101, 101, 101]))
        self.assertIsNone(findings.knee([0, 1, 2, 3, 4], [0, 5, 1, 5, 6]))

    def test_of_a_power_law_is_none_as_it_is_straight_on_the_axes_that_show_it(self):
        xs = [1, 2, 4, 8, 16, 32, 64]
        self.assertIsNotNone(findings.knee(xs, [64 / x for x in xs]))
        s = curve(xs, [64 / x for x in xs])
        c = cut(s)
        self.assertEqual(findings.knee_findings(c, [RATE]), [])

    def test_of_a_straight_line_is_none_though_a_logarithmic_axis_bends_it(self):
        self.assertIsNone(findings.knee([1, 2, 4, 8, 16, 32, 64], [11, 12, 14, 18, 26, 42, 74], log_x=True))

    def test_is_where_the_curve_turns_on_the_axes_as_drawn(self):
        xs = [2**k for k in range(12)]
        self.assertEqual(xs[findings.knee(xs, [1000 / max(x, 32) for x in xs], True, True).index], 32)

    def test_tells_on_which_side_the_change_lies(self):
        s = curve([10, 20, 30, 40, 50, 60], [1, 1, 1, 1, 1, 9])
        c = cut(s)
        text = findings.knee_findings(c, [RATE])[0].text
        self.assertEqual(text, "message rate: knee at depth = 50; beyond it lies 100 % of the whole change.")

    def test_is_told_with_its_parameter(self):
        s = curve([8, 16, 32, 64, 128, 256], [1, 2, 4, 4.1, 4.2, 4.3])
        c = cut(s)
        text = findings.knee_findings(c, [RATE])[0].text
        self.assertEqual(text, "message rate: knee at depth = 32; up to there lies 91 % of the whole change.")


class Optimum(unittest.TestCase):
    def test_is_the_highest_rate_and_the_lowest_latency(self):
        s = study(
            [
                point(i, {"depth": d}, {"message_rate_mpps": r, "latency_p50_ns": l})
                for i, (d, r, l) in enumerate([(8, 1.0, 2000), (16, 4.0, 2500), (32, 3.0, 8000)])
            ]
        )
        texts = [f.text for f in findings.optimum_findings(s, s.metrics)]
        self.assertEqual(
            texts[0],
            "message rate: highest is 4 million messages/s at depth = 16; the lowest is 1 million messages/s, a factor of 4.",
        )
        self.assertEqual(texts[1], "latency p50: lowest is 2 µs at depth = 8; the highest is 8 µs, a factor of 4.")

    def test_leaves_out_points_that_did_not_end_well(self):
        s = study(
            [
                point(0, {"depth": 8}, {"message_rate_mpps": 1.0}),
                point(1, {"depth": 16}, {"message_rate_mpps": 2.0}, "unmet"),
                point(2, {"depth": 32}, {"message_rate_mpps": 9.0}, "deadlock"),
            ]
        )
        self.assertEqual(findings.optimum(RATE, s.combinations).points[0].number, 1)

    def test_there_is_none_of_a_metric_that_has_no_better(self):
        neutral = metric("bottleneck_utilisation")
        s = study([point(i, {"depth": i}, {"bottleneck_utilisation": i / 10}) for i in range(3)], [neutral])
        self.assertEqual(findings.optimum_findings(s, [neutral]), [])


class Failures(unittest.TestCase):
    def test_first_and_last_value_of_each_verdict_line_by_line(self):
        points, depths, ratios = [], (8, 16, 32, 64), (1, 16, 32)
        for d in depths:
            for r in ratios:
                ok = r <= d
                points.append(
                    point(
                        len(points),
                        {"depth": d, "ratio": r},
                        {"message_rate_mpps": 1.0 + d} if ok else {},
                        "ok" if ok else "deadlock",
                    )
                )
        s = study(points)
        c = cut(s)
        self.assertEqual(
            [f.text for f in findings.failure_findings(s, c.x, c.lines)],
            [
                "ratio = 16: depth: deadlock at 8, ok from 16 to 64.",
                "ratio = 32: depth: deadlock from 8 to 16, ok from 32 to 64.",
            ],
        )

    def test_counts_of_verdicts_and_of_missing_points(self):
        s = study([point(0, {"d": 1}, {}, "deadlock"), point(1, {"d": 2}, {}), point(2, {"d": 3}, {})])
        s.planned = 5
        self.assertEqual(
            [f.text for f in findings.verdict_findings(s)],
            ["3 points: 2 ok, 1 deadlock.", "2 of 5 points of the sweep are missing; `rdmasim sweep --resume` runs them."],
        )


class Statistics(unittest.TestCase):
    def test_confidence_interval_is_that_of_student(self):
        s = study([point(i, {"d": 1}, {"message_rate_mpps": v}, combination=0) for i, v in enumerate([1.0, 2.0, 3.0])])
        self.assertEqual(s.combinations[0].mean(RATE), 2.0)
        self.assertAlmostEqual(s.combinations[0].ci95(RATE), 4.303 * 1.0 / 3**0.5, places=3)

    def test_rank_correlation(self):
        self.assertAlmostEqual(findings.rank_correlation([1, 2, 3, 4], [1, 4, 9, 16]), 1.0)
        self.assertAlmostEqual(findings.rank_correlation([1, 2, 3, 4], [4, 3, 2, 1]), -1.0)
        self.assertAlmostEqual(findings.rank_correlation([1, 2, 3, 4], [1, 3, 2, 4]), 0.8)
        self.assertAlmostEqual(findings.rank_correlation([1, 1, 2, 2], [1, 2, 1, 2]), 0.0)
        self.assertIsNone(findings.rank_correlation([1, 2], [5, 5]))

    def test_mixed_verdicts_of_one_combination(self):
        s = study([point(i, {"d": 1}, {}, v, combination=0) for i, v in enumerate(["ok", "deadlock", "ok"])])
        self.assertEqual(s.combinations[0].verdict, "ok 2 of 3, deadlock 1 of 3")
        self.assertFalse(s.combinations[0].ok)


class Design(unittest.TestCase):
    def test_values_that_go_together_share_an_axis(self):
        s = study(
            [
                point(10 * k + i, {"size": 2**i, "depth": 100 - i, "mode": m}, {})
                for k, m in enumerate(("poll", "event"))
                for i in range(4)
            ]
        )
        self.assertEqual([a.name for a in s.axes], ["size", "mode"])
        self.assertEqual([p.name for p in s.axes[0].tied], ["depth"])

    def test_a_random_design_is_no_grid_and_ties_nothing(self):
        s = study([point(i, {"a": (i * 7) % 11, "b": (i * 5) % 11}, {}) for i in range(11)])
        self.assertEqual([a.name for a in s.axes], ["a", "b"])
        self.assertFalse(s.is_grid)

    def test_scales(self):
        def scale(values):
            return study([point(i, {"p": v}, {}) for i, v in enumerate(values)]).parameters[0].scale

        self.assertEqual(scale([8, 16, 32, 64]), "log")
        self.assertEqual(scale([10, 20, 30, 40]), "linear")
        self.assertEqual(scale([0, 1, 10, 100, 1000]), "ordinal")
        self.assertEqual(scale(["poll", "event"]), "ordinal")

    def test_units_come_from_names_and_sources(self):
        self.assertEqual(metric("slot_reuse", "/workloads/0/latency_ns/p50").unit, "ns")
        self.assertEqual(
            metric("cqe_cost", "/counters/host0.pcie.link.up.wire_bytes per /workloads/0/messages").unit, "bytes/message"
        )
        self.assertEqual(metric("wire_bytes_per_payload_byte").unit, "bytes/byte")
        self.assertEqual(metric("server_cpu_share", "/a/on_cpu_ns per /a/span_ns").unit, "share, 0 to 1")
        self.assertEqual(metric("doorbells_per_message").unit, "doorbells/message")
        self.assertEqual(metric("rnr_naks", "/counters/host1.hca.responder.rnr_naks_sent").unit, "naks")
        self.assertEqual(metric("reuse_us", "/workloads/0/latency_ns/p50 x 0.001").unit, "µs")
        self.assertEqual(metric("client_cpu_ns_per_message").unit, "ns/message")
        self.assertEqual((RATE.unit, RATE.better, LATENCY.unit, LATENCY.better), ("million messages/s", "high", "ns", "low"))


if __name__ == "__main__":
    unittest.main()
