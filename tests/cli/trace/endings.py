#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""endings.py RDMASIM ROOT: traces of runs that do not end as they should, and compressed ones. A run that is interrupted leaves
complete files; one whose files cannot be written says which."""
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from check import FILES, limited, perfetto_agrees, run, vcd_agrees
from chrome import Chrome
from native import Native
from pcapng import Capture
from vcd import Vcd

SHORT = ["--set", "workloads.0.iters=20"]
LONG = ["--set", "workloads.0.iters=200000", "--set", "run.time_limit=100 s"]  # some seconds, and it would end by itself


class Endings:
    def __init__(self, rdmasim, root, scratch):
        self.rdmasim, self.scratch = rdmasim, scratch
        self.scenario = os.path.join(root, "scenarios/rc_send_pingpong.json")
        with open(os.path.join(root, "docs/trace.schema.json"), encoding="utf-8") as file:
            self.schema = json.load(file)

    def started(self, formats):
        """A long run, some way on."""
        out = os.path.join(self.scratch, "long")
        shutil.rmtree(out, ignore_errors=True)
        process = subprocess.Popen([self.rdmasim, "run", self.scenario, *LONG, "--trace", formats, "--trace-categories", "fabric,hca",
                                    "--out", out], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                   preexec_fn=limited)
        first = os.path.join(out, FILES[formats.split(",")[0]])
        if formats == "vcd":
            first += ".changes"  # before the declarations are known
        while process.poll() is None and not (os.path.exists(first) and os.path.getsize(first) > 100_000):
            time.sleep(0.01)
        return process, out

    def interrupted(self):
        process, out = self.started("json,perfetto,vcd,pcap")
        process.send_signal(signal.SIGINT)
        errors = process.communicate()[1]
        assert process.returncode == 130, errors
        native = Native(os.path.join(out, FILES["json"]), self.schema)
        assert native.counts()["spans"] > 4096
        perfetto_agrees(native, Chrome(os.path.join(out, FILES["perfetto"])))
        vcd_agrees(native, Vcd(os.path.join(out, FILES["vcd"])))
        assert len(Capture(os.path.join(out, FILES["pcap"])).frames) == native.counts()["packets"]

    def full_disk(self):
        for name, file in FILES.items():
            out = os.path.join(self.scratch, "full_" + name)
            os.mkdir(out)
            os.symlink("/dev/full", os.path.join(out, file))
            done = run(self.rdmasim, [self.scenario, "--trace", name], out, code=None)
            assert done.returncode not in (0, 1) and file in done.stderr and "No space left" in done.stderr, (done.returncode, done.stderr)

    def vanished_directory(self):
        for name in FILES:
            process, out = self.started(name)
            shutil.rmtree(out)
            process.send_signal(signal.SIGINT)
            errors = process.communicate()[1]
            assert process.returncode == 2 and out in errors, (process.returncode, errors)

    def compressed(self):
        plain, packed = (os.path.join(self.scratch, d) for d in ("plain", "packed"))
        for out, more in ((plain, []), (packed, ["--trace-compress"])):
            run(self.rdmasim, [self.scenario, *SHORT, "--trace", ",".join(FILES), *more], out, code=1)
        for file in FILES.values():
            with open(os.path.join(plain, file), "rb") as a, gzip.open(os.path.join(packed, file + ".gz"), "rb") as b:
                assert a.read() == b.read(), file
        native = Native(os.path.join(packed, FILES["json"] + ".gz"), self.schema)
        perfetto_agrees(native, Chrome(os.path.join(packed, FILES["perfetto"] + ".gz")))
        assert len(Capture(os.path.join(packed, FILES["pcap"] + ".gz")).frames) == native.counts()["packets"]
        with open(os.path.join(packed, "trace.gtkw"), encoding="utf-8") as save:
            assert '[dumpfile] "trace.vcd.gz"' in save.read()


def main(rdmasim, root):
    with tempfile.TemporaryDirectory(prefix="rdmasim_trace_") as scratch:
        endings = Endings(rdmasim, root, scratch)
        for test in (endings.compressed, endings.full_disk, endings.vanished_directory, endings.interrupted):
            print(test.__name__, flush=True)
            test()


if __name__ == "__main__":
    main(*sys.argv[1:])
