#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Each check of check.py finds what it is for in a small tree, and accepts the tree without it."""
import os
import tempfile
import unittest

import check


class Tree(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = self.folder.name

    def tearDown(self):
        self.folder.cleanup()

    def write(self, path, text):
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as f:
            f.write(text)

    def found(self, name):
        check.files.cache_clear()
        check.read.cache_clear()
        return list(check.CHECKS[name](self.root))

    def test_includes(self):
        for header in ("sim/units.h", "models/pcie/tlp.h", "models/kernel/mlx5/eq.h", "models/hca/prm.h", "models/hca/uar/uar.h"):
            self.write(header, "")
        self.write("models/hca/uar/uar.cpp", '#include "hca/uar/uar.h"\n#include "pcie/tlp.h"\n#include <vector>\n')
        self.write("models/kernel/mlx5/eq.cpp", '#include "hca/prm.h"\n#include "table.inc"\n')
        self.write("models/kernel/CMakeLists.txt", "add_custom_command(OUTPUT table.inc)")
        self.assertEqual(self.found("includes"), [])
        self.write("models/hca/bad.cpp", '#include "kernel/mlx5/eq.h"\n#include "uar.h"\n')
        self.write("models/kernel/bad.cpp", '#include "hca/uar/uar.h"\n')
        self.write("sim/bad.h", ' # include "pcie/tlp.h"\n')
        self.assertEqual(self.found("includes"), [
            'models/hca/bad.cpp:1: hca may not include "kernel/mlx5/eq.h"',
            'models/hca/bad.cpp:2: "uar.h" is neither under the repository root nor under models/',
            'models/kernel/bad.cpp:1: kernel may not include "hca/uar/uar.h"',
            'sim/bad.h:1: sim may not include "pcie/tlp.h"'])

    def test_orphans(self):
        self.write("CMakeLists.txt", "")
        self.write("models/hca/CMakeLists.txt", "rdmasim_library(hca SOURCES uar/uar.cpp\n  rnr.cpp)")
        self.write("models/hca/uar/uar.cpp", "")
        self.write("models/hca/rnr.cpp", "")
        self.write("tests/system/CMakeLists.txt", "add_library(programs OBJECT ${CMAKE_SOURCE_DIR}/tests/verbs/ping.c)")
        self.write("tests/verbs/ping.c", "")
        self.assertEqual(self.found("orphans"), [])
        self.write("models/hca/uar/rnr.cpp", "")
        self.write("models/hca/ar.cpp", "")
        self.assertEqual(self.found("orphans"), ["models/hca/ar.cpp: no CMakeLists.txt compiles it",
                                                 "models/hca/uar/rnr.cpp: no CMakeLists.txt compiles it"])

    def test_spdx(self):
        self.write("sim/a.h", "// SPDX-License-Identifier: Apache-2.0\n")
        self.write("dev", "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n")
        self.assertEqual(self.found("spdx"), [])
        self.write("sim/b.h", "// b\n// SPDX-License-Identifier: Apache-2.0\n")
        self.write("CMakeLists.txt", "")
        self.assertEqual(len(self.found("spdx")), 2)

    def test_marks(self):
        self.write("sim/a.cpp", "// HACKNEY, to do\nint kTodo;\n")
        self.assertEqual(self.found("marks"), [])
        self.write("sim/b.cpp", "int a;  // TO" + "DO later\n")
        self.write("docs/x.md", "see .." + "/shared/y\n")
        self.assertEqual(self.found("marks"), ["docs/x.md:1: names a place outside the project",
                                               "sim/b.cpp:1: mark of unfinished work"])

    def test_coroutines(self):
        self.write("sim/a.cpp", "if (a) {\n  if (co_await b() && c) while (d && e) co_await f();\n}\n")
        self.assertEqual(self.found("coroutines"), [])
        self.write("sim/b.cpp", "\nif (a &&\n    !co_await b()) {}\nbool c = d || (co_await e());\n")
        self.assertEqual([v.split(": ")[0] for v in self.found("coroutines")], ["sim/b.cpp:3", "sim/b.cpp:4"])
        self.write("sim/b.cpp", "auto& d = a.b->done;\nco_await d;\nco_await a.b->done;\n")
        self.assertEqual([v.split(": ")[0] for v in self.found("coroutines")], ["sim/b.cpp:3"])

    def test_sizes(self):
        self.write("sim/a.cpp", "\n" * check.MAX_LINES)
        self.assertEqual(self.found("sizes"), [])
        self.write("sim/a.cpp", "\n" * (check.MAX_LINES + 1))
        self.assertEqual(len(self.found("sizes")), 1)

    def where(self, row):
        self.write("models/hca/rnr.cpp", 'void Responder::send_rnr_nak() {} v("rnr_timer", 1)')
        self.write("models/hca/trace_points.h", 'Point a{"hca.rnr_nak", Category::hca};')
        self.write("tests/hca/rnr_test.cpp", "TEST_F(Rnr, WaitsForItsTimer) {}")
        self.write("docs/where.md", "| Term | Where | Config | Trace points | Tests |\n| --- | --- | --- | --- | --- |\n" + row)
        return self.found("where")

    def test_where(self):
        good = ["RNR", "`models/hca/rnr.cpp:Responder::send_rnr_nak`", "`hca.rnr_timer`", "`hca.rnr_nak`",
                "`tests/hca/rnr_test.cpp:Rnr.WaitsForItsTimer`"]
        row = lambda cells: "| " + " | ".join(cells) + " |\n"
        self.assertEqual(self.where(row(good)), [])
        for column, cell in ((1, "`models/hca/rnr.cpp:send_rnr`"), (1, "`models/hca/none.cpp`"), (1, "nowhere"),
                             (2, "`hca.timer`"), (2, "`cpu.rnr_timer`"), (3, "`hca.rnr`"),
                             (4, "`tests/hca/rnr_test.cpp:Rnr.Waits`"), (4, "`models/hca/rnr.cpp`"), (4, "-")):
            bad = list(good)
            bad[column] = cell
            self.assertEqual(len(self.where(row(bad))), 1, cell)
        self.assertEqual(len(self.where(row(good) + row(good))), 1)
        self.assertEqual(len(self.where(row(good[:4]))), 1)

    def test_conformance(self):
        self.write("sim/a.cpp", "void f() {}")
        self.write("tests/a_test.cpp", "TEST(A, B) {}")
        head = "| Rule | In our words | Where | Test |\n| --- | --- | --- | --- |\n"
        row = "| S-PS-4 | words | `sim/a.cpp:f` | `tests/a_test.cpp:A.B` |\n"
        self.write("docs/conformance.md", head + row)
        self.assertEqual(self.found("conformance"), [])
        for bad in (row + row, row.replace("S-PS-4", "S-4"), row.replace("A.B", "A.C"), row.replace("words", ""),
                    row.replace("a.cpp:f", "a.cpp:g")):
            self.write("docs/conformance.md", head + bad)
            self.assertEqual(len(self.found("conformance")), 1, bad)

    def test_stages(self):
        self.write("sim/journey.cpp", 'kNames{"wire", "poll"};')
        self.write("docs/life_of_a_send.md", "`wire`, `poll`")
        self.assertEqual(self.found("stages"), [])
        self.write("docs/life_of_a_send.md", "`wire`, poll")
        self.assertEqual(len(self.found("stages")), 1)
        self.write("sim/a.cpp", "void f() {}")
        self.write("docs/life_of_a_send.md", "`wire`, `poll`, `sim/a.cpp:f`")
        self.assertEqual(self.found("stages"), [])
        self.write("docs/life_of_a_send.md", "`wire`, `poll`, `sim/a.cpp:A::f`, `sim/b.cpp`")
        self.assertEqual(len(self.found("stages")), 2)

    def test_trace_points(self):
        self.write("models/hca/trace_points.h", 'inline constexpr Point a{"hca.a", Category::hca, Kind::span};')
        self.write("verbs_frontend/trace_points.h", 'inline constexpr Point a{"verbs.a", sim::trace::Category::verbs};')
        self.assertEqual(self.found("trace_points"), [])
        self.write("models/pcie/trace_points.h", 'inline constexpr Point a{"MWr", Category::pcie};')
        self.write("models/cpu/trace_points.h", 'inline constexpr Point a{"hca.b", Category::hca};')
        self.write("models/iommu/trace_points.h", 'Point a{"iommu.b", Category::iommu}; Point b{"iommu.b", Category::iommu};')
        self.assertEqual(len(self.found("trace_points")), 3)

    def test_links(self):
        self.write("docs/a.md", "[b](b.md) [c](https://example.org) [d](b.md#part)\n```\n[x](none)\n```\n")
        self.write("docs/b.md", "")
        self.assertEqual(self.found("links"), [])
        self.write("README.md", "[b](b.md)")
        self.assertEqual(self.found("links"), ["README.md: broken link b.md"])


if __name__ == "__main__":
    unittest.main()
