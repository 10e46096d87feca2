#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lines of a hatch: inside their box, at the distance that was asked for."""
import unittest

from fixture import PROGRAM  # noqa: F401  (puts the program on the path)

from hatching import segments


class Segments(unittest.TestCase):
    def test_stay_in_their_box(self):
        for kind in "/\\x-|+":
            for width, height in ((30, 10), (10, 30), (1, 50), (0.5, 0.5)):
                for ends in segments(kind, width, height, 7):
                    for x, y in ends:
                        self.assertTrue(-1e-9 <= x <= width + 1e-9 and -1e-9 <= y <= height + 1e-9, (kind, width, height, x, y))

    def test_slants_are_diagonals_at_the_distance(self):
        lines = segments("/", 30, 10, 5)
        self.assertEqual(len(lines), 8)  # y = x - c for c from -7.5 to 27.5
        self.assertTrue(all(x1 - x0 == y1 - y0 for (x0, y0), (x1, y1) in lines))
        self.assertEqual(sorted(lines)[2:4], [((2.5, 0.0), (12.5, 10.0)), ((7.5, 0.0), (17.5, 10.0))])

    def test_the_other_slant_is_the_mirror_image_and_the_cross_both(self):
        mirrored = [((30 - a, b), (30 - c, d)) for (a, b), (c, d) in segments("/", 30, 10, 5)]
        self.assertEqual(segments("\\", 30, 10, 5), mirrored)
        self.assertEqual(segments("x", 30, 10, 5), segments("/", 30, 10, 5) + mirrored)

    def test_straight_lines_are_evenly_spread(self):
        self.assertEqual(segments("-", 30, 14, 10), [((0, 3.5), (30, 3.5)), ((0, 10.5), (30, 10.5))])
        self.assertEqual([a[0] for a, _ in segments("|", 28, 14, 10)], [3.5, 10.5, 17.5, 24.5])


if __name__ == "__main__":
    unittest.main()
