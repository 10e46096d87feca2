#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tutorial_check.py RDMASIM DOCUMENT...: runs the `sh` blocks of each document, in order, in one directory with nothing but scenarios/, and looks for
each line of the `text` blocks in what the commands since the last `text` block, or the one before it, have printed."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.S | re.M)


def run(script, directory, path):
    shell = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=directory, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, env=dict(os.environ, PATH=path))
    return shell.returncode, shell.stdout


def check(document, rdmasim):
    with open(document, encoding="utf-8") as f:
        text = f.read()
    directory = tempfile.mkdtemp(prefix="rdmasim_tutorial_")
    os.symlink(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(document))), "scenarios"), os.path.join(directory, "scenarios"))
    path = os.path.dirname(os.path.abspath(rdmasim)) + ":" + os.environ["PATH"]
    output, bad, commands, compared = "", 0, 0, 0
    try:
        for block in FENCE.finditer(text):
            where = f"{document}:{text.count(chr(10), 0, block.start()) + 1}"
            if block[1] == "sh":
                code, output = run(block[2], directory, path)
                commands += 1
                if code != 0:
                    print(f"{where}: ended with {code}:\n{output}")
                    return 1
            elif block[1] == "text":
                have = {line.strip() for line in output.splitlines()}
                for line in block[2].splitlines():
                    compared += 1
                    if line.strip() not in have:
                        print(f"{where}: not in the output: {line}\n{output}")
                        bad += 1
    finally:
        shutil.rmtree(directory)  # not what the link leads to
    print(f"{document}: {commands} blocks of commands, {compared} lines of output")
    return bad


if __name__ == "__main__":
    sys.exit(min(1, sum(check(d, sys.argv[1]) for d in sys.argv[2:])))
