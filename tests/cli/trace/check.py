#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check.py RDMASIM ROOT FILE [--set PATH=VALUE]... [--frames KIND...]: runs a scenario with every trace format and reads each
file with its consumer. The files must agree record by record. FRAMES are opcodes that must have crossed the wires, with the
kind of syndrome and error code behind them if they carry one: 17/3/2 is a NAK for a remote access error."""
import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections import Counter

from chrome import Chrome
from native import Native
from pcapng import Capture
from vcd import Vcd

FILES = {"json": "trace.jsonl", "perfetto": "trace.perfetto.json", "vcd": "trace.vcd", "pcap": "trace.pcapng"}


def same(what, a, b):
    assert a == b, f"{what}: {len(a)} and {len(b)} kinds; only in one {list((a - b).items())[:3]}, only in the other {list((b - a).items())[:3]}"


def to_ns(ps):
    return (ps + 500) // 1000


def limited():
    """In a child before it runs: a run that does not end must not fill the disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (60, 60))


def run(rdmasim, arguments, out, code=0):
    done = subprocess.run([rdmasim, "run", *arguments, "--out", out], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          preexec_fn=limited)
    assert code is None or done.returncode == code, f"exit code {done.returncode}: {done.stderr}"
    return done


def perfetto_agrees(native, chrome):
    same("spans", Counter((s["span"], s.get("msg", 0), to_ns(s["t"]), to_ns(s["end"]), s.get("wait", 0), s["point"]["name"], tuple(s["args"].items()))
                          for s in native.records["span"]),
         Counter((e["args"]["span"], e["args"]["msg"], e["t"], e["end"], e["args"]["wait_ps"], e["name"],
                  tuple((k, v) for k, v in e["args"].items() if k not in ("msg", "span", "wait_ps"))) for e in chrome.spans))
    same("instants", Counter((to_ns(i["t"]), i["point"]["name"], i.get("msg", 0), tuple(i["args"].values())) for i in native.records["instant"]),
         Counter((e["t"], e["name"], e["args"]["msg"], tuple(v for k, v in e["args"].items() if k != "msg")) for e in chrome.by_ph["i"]))
    same("counters", Counter((to_ns(c["t"]), c["lane"]["path"], c.get("v", 0)) for c in native.records["counter"]),
         Counter((e["t"], e["name"], *e["args"].values()) for e in chrome.by_ph["C"]))
    same("states", Counter((to_ns(s["t"]), s["lane"]["states"][s.get("v", 0)]) for s in native.records["state"]),
         Counter((e["t"], e["name"]) for e in chrome.states))
    stages, poster = native.header["stages"], ("bytes", "wr_id", "qpn", "host", "status", "op", "flow")
    same("messages", Counter((m["id"], to_ns(m["t"]), to_ns(m["end"]), *(m.get(k, 0) for k in poster),
                              tuple((s, m[s]) for s in stages if m.get(s, 0) != 0)) for m in native.records["msg"]),
         Counter((b["id"], b["t"], e["t"], *(b["args"][k] for k in poster), tuple(e["args"]["stages"].items())) for b, e in
                 zip(sorted(chrome.by_ph["b"], key=lambda e: e["id"]), sorted(chrome.by_ph["e"], key=lambda e: e["id"]))))
    hosts = native.header["hosts"]
    processes = {name for (_, tid), name in chrome.names.items() if tid is None}
    assert processes == {*hosts, "fabric", "messages"}, processes


def scoped(record):
    def plain(text):
        return "".join(c if c.isascii() and c.isalnum() else "_" for c in text)
    return ".".join([*map(plain, record["lane"]["path"].split(".")), plain(record["point"]["name"].split(".", 1)[1])])


def vcd_agrees(native, vcd):
    assert not any("too late" in c for c in vcd.comments), vcd.comments
    spans = native.records["span"]
    lanes = {"".join(c if c.isascii() and (c.isalnum() or c == ".") else "_" for c in s["lane"]["path"]) for s in spans}
    of_spans = {f"{lane}.{name}" for lane in lanes for name in ("active", "current")}
    same("levels, states and events",
         Counter([(r["t"], scoped(r), bin(r.get("v", 0) % 2**64)[2:]) for r in native.records["counter"]] +
                 [(r["t"], scoped(r), r["lane"]["states"][r.get("v", 0)].replace(" ", "_")) for r in native.records["state"]] +
                 [(r["t"], scoped(r), "1") for k in ("instant", "packet") for r in native.records[k]]),
         Counter(c for c in vcd.changes if c[1] not in of_spans))
    same("beginnings of spans", Counter((s["t"], s["point"]["name"] + (f"#{s['msg']}" if s.get("msg") else "")) for s in spans),
         Counter((t, v) for t, name, v in vcd.changes if name in of_spans and name.endswith(".current") and v != "-"))
    active = {lane + ".active": 0 for lane in lanes}
    for _, name, value in vcd.changes:
        if name in active:
            assert abs(int(value, 2) - active[name]) == 1, f"{name} jumps"
            active[name] = int(value, 2)
    assert not any(active.values()), "spans have no end"
    assert sum(name in active for _, name, _ in vcd.changes) == 2 * len(spans), "edges of spans"


def gtkwave_reads(path, vcd):
    """The converters of GTKWave find the same changes; the save file names signals that exist."""
    fst, back = path + ".fst", path + ".back"
    subprocess.run(["vcd2fst", path, fst], check=True, stdout=subprocess.DEVNULL)
    with open(back, "w", encoding="utf-8") as file:
        subprocess.run(["fst2vcd", fst], check=True, stdout=file)
    theirs = Vcd(back, written_by_us=False)
    assert set(theirs.names.values()) == set(vcd.names.values()), "names of signals"
    # At time 0 the format knows initial values only, and of several changes of a signal at one time it keeps the last.
    def last(changes):
        return {(t, name): value for t, name, value in changes if t > 0}
    kept = last(theirs.changes)
    assert {k: v for k, v in last(vcd.changes).items() if kept.get(k) != v} == {}, "changes are lost"
    signals = []
    with open(path.replace(".vcd", ".gtkw"), encoding="utf-8") as save:
        signals = [line.split("[")[0].strip() for line in save if line.strip() and line[0] not in "@[-*"]
    assert sorted(signals) == sorted(vcd.names.values()), "signals of the save file"


def capture_agrees(native, capture):
    packets = native.records["packet"]
    same("frames", Counter((to_ns(p["t"]), p["lane"]["path"], p["len"], p.get("frame", 0), f"msg={p['msg']}" if p.get("msg") else "",
                            "0x00000002" if p.get("tx") else "0x00000001") for p in packets),
         Counter((f["ns"], f["frame.interface_name"], int(f["frame.len"]), int(f["frame.packet_id"], 0), f["frame.comment"],
                  f["frame.packet_flags_direction"]) for f in capture.frames))
    same("bytes of frames", Counter((p["frame"], p["bytes"]) for p in packets if p.get("tx")),
         Counter((int(f["frame.packet_id"], 0), f["bytes"].hex()) for f in capture.frames if f["frame.packet_flags_direction"] == "0x00000002"))
    sent = {int(f["frame.packet_id"], 0): f for f in capture.frames if f["frame.packet_flags_direction"] == "0x00000002"}
    for f in capture.frames:
        if f["frame.packet_flags_direction"] == "0x00000001":
            assert sent[int(f["frame.packet_id"], 0)]["ns"] < f["ns"], "a frame arrives before it leaves"
    same("headers and the wire's spans",
         Counter((s["args"]["qpn"], s["args"]["psn"], s["args"]["opcode"]) for s in native.named("fabric.wire")),
         Counter((int(f["infiniband.bth.destqp"], 0), int(f["infiniband.bth.psn"]), int(f["infiniband.bth.opcode"])) for f in sent.values()))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rdmasim"), parser.add_argument("root"), parser.add_argument("file")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--frames", nargs="*", default=[])
    options = parser.parse_args()
    with open(os.path.join(options.root, "docs/trace.schema.json"), encoding="utf-8") as file:
        schema = json.load(file)
    with tempfile.TemporaryDirectory(prefix="rdmasim_trace_") as out:
        sets = [word for s in options.set for word in ("--set", s)]
        # A shorter run than the scenario expects exits with 1.
        run(options.rdmasim, [os.path.join(options.root, "scenarios", options.file), *sets, "--trace", ",".join(FILES), "--trace-bytes", "9000"], out,
            1 if options.set else 0)
        paths = {k: os.path.join(out, f) for k, f in FILES.items()}
        native = Native(paths["json"], schema)
        assert all(native.counts()[k] for k in ("spans", "instants", "counters", "packets", "messages")), native.counts()
        perfetto_agrees(native, Chrome(paths["perfetto"]))
        vcd = Vcd(paths["vcd"])
        vcd_agrees(native, vcd)
        gtkwave_reads(paths["vcd"], vcd)
        capture = Capture(paths["pcap"])
        capture_agrees(native, capture)
        missing = set(options.frames) - capture.kinds()
        assert not missing, f"no frame of kind {missing} among {capture.kinds()}"
        print(native.counts(), sorted(capture.kinds()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
