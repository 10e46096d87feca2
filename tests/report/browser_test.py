#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""browser_test.py RDMASIM: the page in a real Chromium. Nothing on the console, nothing from outside the file, all plots and tables
reached by the keyboard, tables that sort, two colour schemes, and paper. REPORT_SCREENSHOTS=DIR keeps pictures of it."""
import os
import subprocess
import sys
import unittest

from browser import Browser
from fixture import METRICS, ROOT, Case, Sweep, signalling

RDMASIM = None


# Texts of plots that lie on each other, by more than a rounding. The boxes of slanted ones say nothing.
OVERLAPS = """(() => {
  const found = [];
  for (const svg of document.querySelectorAll('figure svg')) {
    const texts = [...svg.querySelectorAll('text')].filter(t => t.textContent.trim() && !/rotate\\(-35/.test(t.getAttribute('transform')));
    const boxes = texts.map(t => [t.textContent.trim(), t.getBoundingClientRect()]);
    boxes.forEach(([a, p], i) => boxes.slice(i + 1).forEach(([b, q]) => {
      const width = Math.min(p.right, q.right) - Math.max(p.left, q.left);
      const height = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
      if (width > 2 && height > 3) found.push(`${svg.parentElement.id}: ${a} / ${b}`);
    }));
  }
  return found;
})()"""


class OtherPages(Case):
    """Runs, random designs, words on an axis, long texts: their texts keep apart, and they too leave the console empty."""

    def check(self, name):
        self.report()
        browser = Browser()
        self.addCleanup(browser.close)
        browser.open(os.path.join(self.directory, "report.html"))
        self.assertEqual((browser.console, browser.errors), ([], []))
        self.assertEqual(browser.evaluate(OVERLAPS), [])
        self.assertLessEqual(browser.evaluate("document.documentElement.scrollWidth"), 1280)
        if folder := os.environ.get("REPORT_SCREENSHOTS"):
            browser.screenshot(os.path.join(folder, name + ".png"))

    def simulate(self, scenario):
        subprocess.run(
            [RDMASIM, "run", f"scenarios/{scenario}", "--out", self.directory, "--quiet"], cwd=ROOT, stderr=subprocess.DEVNULL
        )

    def test_a_ping_pong(self):
        self.simulate("rc_send_pingpong.json")
        self.check("run")

    def test_a_deadlock(self):
        self.simulate("cases/all_unsignaled_and_a_poll_for_ever.json")
        self.check("deadlock")

    def test_a_random_design(self):
        sweep = Sweep(self.directory, [("rate", "gbps", 1), ("delay", "ns", 1), ("wait", "", 0)], METRICS, "latin_hypercube")
        for i in range(60):
            a, b = (i * 37) % 60, (i * 23) % 60
            values = [(f"{a + 40} Gb/s", a + 40), (f"{b * 100} ns", b * 100), ("poll" if i % 2 else "event", None)]
            sweep.add(values, [1 + a / 20, 2000 + 7 * b, 90 + a + b], latency=1000 + 5 * b)
        sweep.close()
        self.check("random")

    def test_sizes_words_and_three_parameters(self):
        sweep = Sweep(self.directory, [("size", "bytes", 1), ("completion", "", 0), ("delay", "ns", 1)], METRICS)
        for delay in (100, 1000, 10000):
            for wait in ("poll", "event", "poll_then_event"):
                for k in range(3, 24):
                    text = f"{2**k} B" if k < 10 else f"{2**(k - 10)} KiB" if k < 20 else f"{2**(k - 20)} MiB"
                    numbers = [1e3 / (200 + 2**k), 1000 + delay + 2**k / 12, 100 + len(wait)]
                    sweep.add(
                        [(text, 2**k), (wait, None), (f"{delay} ns", delay)], numbers, latency=1000 + delay + 2**k / 12
                    )
        sweep.close()
        self.check("three")


class InChromium(Case):
    def setUp(self):
        super().setUp()
        signalling(self.directory)
        self.report()
        self.file = os.path.join(self.directory, "report.html")
        self.browser = Browser()
        self.addCleanup(self.browser.close)
        self.browser.open(self.file)

    def keep(self, name):
        if folder := os.environ.get("REPORT_SCREENSHOTS"):
            self.browser.screenshot(os.path.join(folder, name + ".png"))

    def test_the_console_stays_empty_and_nothing_else_is_loaded(self):
        self.browser.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 100)))")
        self.assertEqual((self.browser.console, self.browser.errors), ([], []))
        self.assertEqual(self.browser.requests, ["file://" + self.file])
        self.keep("light")

    def test_tab_reaches_every_plot_table_and_folded_part(self):
        wanted = set(
            self.browser.evaluate(
                "[...document.querySelectorAll('figure, details, .table > table')].filter("
                "e => e.closest('details') === null || e.tagName === 'DETAILS').map((e, i) => e.tagName + i)"
            )
        )
        reached = []
        for _ in range(200):
            self.browser.press("Tab", 9)
            at = self.browser.evaluate(
                """(() => {
              const all = [...document.querySelectorAll('figure, details, .table > table')].filter(
                e => e.closest('details') === null || e.tagName === 'DETAILS');
              const at = document.activeElement, e = at.matches('.table') ? at.firstElementChild : at.closest('figure, details');
              return at === document.body ? 'end' : e ? e.tagName + all.indexOf(e) : 'other';
            })()"""
            )
            if at == "end":
                break
            reached.append(at)
        self.assertEqual(wanted - set(reached), set())
        self.assertEqual(reached[0], "other", "the link that skips the navigation comes first")

    def test_the_focus_shows(self):
        self.browser.evaluate("document.querySelector('nav a').focus()")
        for _ in range(30):
            self.browser.press("Tab", 9)
            if self.browser.evaluate("document.activeElement.tagName") == "FIGURE":
                break
        self.assertEqual(self.browser.evaluate("getComputedStyle(document.activeElement).outlineStyle"), "solid")

    def column(self, index):
        return self.browser.evaluate(
            f"[...document.querySelectorAll('#point-table tbody tr')].map(r => r.cells[{index}].dataset.value ?? '')"
        )

    def test_headings_sort_by_number_with_the_keyboard(self):
        before = self.column(4)
        self.assertEqual(before.count(""), 4, "points without a rate")
        self.browser.evaluate("document.querySelectorAll('#point-table thead button')[4].focus()")
        self.browser.press("Enter", 13, "\r")
        rates = sorted(float(v) for v in before if v)
        self.assertEqual([v and float(v) for v in self.column(4)], rates + [""] * 4)
        self.assertEqual(
            self.browser.evaluate("document.querySelector('#point-table th[aria-sort]').getAttribute('aria-sort')"), "ascending"
        )
        self.browser.press("Enter", 13, "\r")
        self.assertEqual([v and float(v) for v in self.column(4)], rates[::-1] + [""] * 4)
        self.browser.evaluate("document.querySelectorAll('#point-table thead button')[0].click()")
        self.assertEqual(self.column(4), before)

    def test_nothing_is_wider_than_a_laptop_or_a_telephone(self):
        for width in (1280, 400):
            self.browser.send("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
            self.assertLessEqual(self.browser.evaluate("document.documentElement.scrollWidth"), width)

    def test_texts_of_a_plot_do_not_lie_on_each_other(self):
        self.assertEqual(self.browser.evaluate(OVERLAPS), [])

    def contrast(self):
        """Least contrast (WCAG 2) of the texts of the page and of plots, but for those in cells and bars, which are black or white on
        a ground of their own."""
        return self.browser.evaluate(
            """(() => {
          const parts = c => (c.match(/[\\d.]+/g) ?? []).map(Number);
          const light = c => parts(c).slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
            .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
          const ground = light(getComputedStyle(document.body).backgroundColor);
          const ratio = c => { const l = light(c); return (Math.max(l, ground) + 0.05) / (Math.min(l, ground) + 0.05); };
          const texts = [...document.querySelectorAll('svg text')].filter(t => t.getAttribute('style').includes('var('));
          return Math.min(...texts.map(t => ratio(getComputedStyle(t).fill)),
            ...[...document.querySelectorAll('p, td, th, a, li, dt, dd, .tag, .unit, .verdict')].map(t => ratio(getComputedStyle(t).color)));
        })()"""
        )

    def test_texts_are_readable_in_both_colour_schemes(self):
        for scheme in ("light", "dark"):
            self.browser.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            self.assertGreaterEqual(self.contrast(), 4.5, scheme)
            self.keep(scheme)

    def test_on_paper_all_parts_but_the_scenario_are_open(self):
        path = os.path.join(os.environ.get("REPORT_SCREENSHOTS", self.directory), "report.pdf")
        self.browser.evaluate(
            "window.opened = 0; addEventListener('beforeprint', () => { opened = document.querySelectorAll('details[open]').length })"
        )
        self.browser.pdf(path)
        with open(path, "rb") as f:
            self.assertEqual(f.read(5), b"%PDF-")
        self.assertLess(os.path.getsize(path), 4_000_000, "hatches became pictures")
        everything = self.browser.evaluate("document.querySelectorAll('details').length")
        self.assertEqual(self.browser.evaluate("opened"), everything - 1)
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('details[open]').length"), 0)


if __name__ == "__main__":
    RDMASIM = os.path.abspath(sys.argv.pop())
    unittest.main()
