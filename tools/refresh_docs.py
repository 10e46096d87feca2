#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""refresh_docs.py RDMASIM: runs the ping-pong and puts its report into README.md, its median message into life_of_a_send.md."""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SCENARIO = "scenarios/rc_send_pingpong.json"


def replace(path, marker, text):
    """Puts `text` between the `marker` comments of a file."""
    full = os.path.join(ROOT, path)
    with open(full, encoding="utf-8") as f:
        old = f.read()
    new, found = re.subn(rf"(<!-- {marker}:begin -->\n).*?(<!-- {marker}:end -->)", lambda m: m[1] + text + m[2], old, flags=re.S)
    if found != 1:
        sys.exit(f"{path}: wants one pair of {marker} markers, has {found}")
    with open(full, "w", encoding="utf-8") as f:
        f.write(new)


def breakdown(report):
    """Markdown table of the stages of the median message."""
    rows = re.search(r"^  stage .*?\n(.*?^  sum .*?)$", report, re.S | re.M)[1].splitlines()
    table = "| stage | ns | share |\n| --- | ---: | ---: |\n"
    for row in rows:
        stage, time, share = row.split()[:3]
        table += f"| {stage if stage == 'sum' else f'`{stage}`'} | {time} | {share} |\n"
    return table


def main(rdmasim):
    report = subprocess.run([os.path.abspath(rdmasim), "run", SCENARIO], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    lines = "\n".join(line.rstrip() for line in report.rstrip().splitlines())
    replace("README.md", "output", f"```text\n{lines}\n```\n")
    replace("docs/life_of_a_send.md", "times", breakdown(report))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
