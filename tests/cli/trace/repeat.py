#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""repeat.py RDMASIM ROOT: two runs of a scenario, in two processes with other addresses, write the same trace."""
import filecmp
import glob
import os
import subprocess
import sys
import tempfile


def main(rdmasim, root):
    different = []
    files = sorted(glob.glob(os.path.join(root, "scenarios/[ce]*/*.json")))
    assert len(files) > 30
    with tempfile.TemporaryDirectory(prefix="rdmasim_repeat_") as scratch:
        for file in files:
            traces = []
            for run in "ab":
                out = os.path.join(scratch, run)
                subprocess.run([rdmasim, "run", file, "--quiet", "--trace", "json", "--trace-window", "..3ms", "--out", out], timeout=60,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
                traces.append(os.path.join(out, "trace.jsonl"))
            if os.path.getsize(traces[0]) < 1000 or not filecmp.cmp(*traces, shallow=False):
                different.append(os.path.basename(file))
    assert not different, different


if __name__ == "__main__":
    main(*sys.argv[1:3])
