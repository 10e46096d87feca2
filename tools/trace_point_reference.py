#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""trace_point_reference.py RDMASIM: prints docs/trace_points.md, every trace point with its numbers and what the source says of it."""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LINE = re.compile(r"^(\S+)\s+(\S+)\s+(span|instant|level|state|packet)\s+(.*?)\s*(warning|error)?\s+(\S+/trace_points\.h)$")


def meanings(header):
    """Name of a point -> the comment above it."""
    with open(os.path.join(ROOT, header), encoding="utf-8") as f:
        text = f.read()
    out = {}
    for comment, name in re.findall(r'((?:^///[^\n]*\n)*)^inline constexpr Point \w+\{\s*"([^"]+)"', text, re.M):
        out[name] = " ".join(line.removeprefix("///").strip() for line in comment.splitlines())
    return out


def main(rdmasim):
    print("# Trace points\n\nWritten by `./dev docs` from the sources. [trace_format.md](trace_format.md) tells what kinds there are; "
          "a marked point tells of trouble.")
    category, known = None, {}
    for line in subprocess.run([rdmasim, "list", "trace-points"], capture_output=True, text=True, check=True).stdout.splitlines():
        found = LINE.match(line)
        if not found:
            sys.exit(f"not understood: {line}")
        if found[1] != category:
            category = found[1]
            print(f"\n## {category}\n\n| point | kind | numbers | mark | meaning |\n| --- | --- | --- | --- | --- |")
        header = found[6]
        known.setdefault(header, meanings(header))
        numbers = ", ".join(f"`{n}`" for n in found[4].split(", ") if n)
        meaning = known[header].get(found[2], "").replace("|", "\\|")
        print(f"| `{found[2]}` | {found[3]} | {numbers} | {found[5] or ''} | {meaning} |")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
