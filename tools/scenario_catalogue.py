#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scenario_catalogue.py RDMASIM: prints docs/scenarios.md, every scenario of the tree with what it shows and teaches."""
import glob
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDERS = {
    "": ("The beginning", "The usual tests of perftest, with their defaults."),
    "cases": ("Cases from the field", "Each is a mistake that people made, or a rule that surprises. The expectations say what happens."),
    "events": ("Polling and events", "See [poll_or_events.md](poll_or_events.md)."),
    "sweeps": ("Sweeps", "For `rdmasim sweep`; see [sweep.md](sweep.md)."),
    "bench": ("Benchmarks", "What `bench/` measures the simulator with."),
}


def cell(text):
    return text.replace("|", "\\|")


def main(rdmasim):
    print("# Scenarios of the tree\n\nWritten by `./dev docs` from the files themselves. `rdmasim list scenarios` prints the short form, "
          "`rdmasim run scenarios/NAME` runs one.")
    for folder, (title, introduction) in FOLDERS.items():
        files = sorted(glob.glob(os.path.join(ROOT, "scenarios", folder, "*.json")))
        if not files:
            continue
        print(f"\n## {title}\n\n{introduction}\n\n| scenario | shows | teaches |\n| --- | --- | --- |")
        for path in files:
            shown = subprocess.run([rdmasim, "config", path], capture_output=True, text=True, check=True).stdout
            config = json.loads(shown)
            name = os.path.relpath(path, os.path.join(ROOT, "scenarios"))
            print(f"| [{name[:-5]}](../scenarios/{name}) | {cell(config['description'])} | {cell(config['teaches'])} |")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
