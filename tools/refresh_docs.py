#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""refresh_docs.py RDMASIM: runs scenarios and puts what they report into the documents: the ping-pong into README.md, its median
message into life_of_a_send.md, a sweep over the rate into poll_or_events.md."""
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SCENARIO = "scenarios/rc_send_pingpong.json"
SWEEP = "scenarios/events/poll_or_events.json"


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


def sweep(rdmasim):
    """Markdown table of latency and CPU time of both manners of waiting, by rate."""
    table = "| messages/s | wait | p50, ns | on the core, ns | interrupts, ns | together, ns | asleep |\n"
    table += "| ---: | --- | ---: | ---: | ---: | ---: | ---: |\n"
    for rate in (5000, 20000, 50000, 100000, 200000, 400000, 0):
        for wait in ("poll", "event"):
            sets = ["--set", f"workloads.0.rate_limit={rate}", "--set", f"workloads.0.completion={wait}"]
            # Expectations are those of the scenario as it is, so the exit code says nothing.
            out = subprocess.run([rdmasim, "run", SWEEP, "--format", "json", *sets], cwd=ROOT, capture_output=True, text=True).stdout
            result = json.loads(out)
            load, core = result["workloads"][0], result["cores"]["host1.cpu0"]["kernel_ns"]
            cpu, n = load["cpu_ns"]["server"], load["messages"]
            table += (f"| {rate or 'no limit'} | {wait} | {load['latency_ns']['p50']:.1f} | {cpu['on_cpu'] / n:.1f} | {core / n:.1f} | "
                      f"{(cpu['on_cpu'] + core) / n:.1f} | {100 * cpu['asleep'] / cpu['span']:.1f} % |\n")
    return table


def main(rdmasim):
    report = subprocess.run([os.path.abspath(rdmasim), "run", SCENARIO], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    lines = "\n".join(line.rstrip() for line in report.rstrip().splitlines())
    replace("README.md", "output", f"```text\n{lines}\n```\n")
    replace("docs/life_of_a_send.md", "times", breakdown(report))
    replace("docs/poll_or_events.md", "sweep", sweep(os.path.abspath(rdmasim)))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
