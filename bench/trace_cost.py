#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""trace_cost.py: what tracing costs, as ratios to the same run without it. Builds what it compares, prints Markdown tables.

CPU time of whole processes (user and system, files included), runs of all variants taking turns, medians of the ratios within one
turn: machines are noisy, and only what ran at nearly the same time can be compared. With valgrind also instructions, which are not
noisy at all, of a run without traces by a build with and one without trace points."""
import argparse
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SCENARIOS = {"4 KiB SEND ping-pong": ("rc_send_pingpong.json", 1000), "8 B WRITE stream": ("bench/write_stream_8b.json", 10000)}
FILES = {"json": "trace.jsonl", "perfetto": "trace.perfetto.json", "vcd": "trace.vcd", "pcap": "trace.pcapng"}
TRACES = {
    "native": ["--trace", "json", "--trace-bytes", "0"],
    "native with bytes (the default)": ["--trace", "json"],
    "Perfetto": ["--trace", "perfetto"],
    "VCD": ["--trace", "vcd"],
    "pcapng": ["--trace", "pcap"],
    "pcapng, 66 bytes a frame": ["--trace", "pcap", "--pcap-snaplen", "66"],
    "native, compressed": ["--trace", "json", "--trace-compress"],
    "Perfetto, compressed": ["--trace", "perfetto", "--trace-compress"],
    "VCD, compressed": ["--trace", "vcd", "--trace-compress"],
}
PARTS = {
    "native, one queue pair": ["--trace", "json", "--trace-qpn", "host0:{qpn}"],
    "native, ten messages": ["--trace", "json", "--trace-msg", "100..109"],
    "native, a window of 100 us": ["--trace", "json", "--trace-window", "2ms..2100us"],
    "native, the last 100 us": ["--trace", "json", "--trace-last", "100us"],
}


def limited():
    """In a child before it runs: a run that goes wrong must not fill the disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 30, 2 << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (300, 300))


class Bench:
    def __init__(self, binary, out):
        self.binary, self.out = binary, out
        self.environment = {**os.environ, "SYSTEMC_DISABLE_COPYRIGHT_MESSAGE": "1"}

    def words(self, scenario, iterations, trace):
        file, _ = SCENARIOS[scenario]
        return ["run", os.path.join(ROOT, "scenarios", file), "--set", f"workloads.0.iters={iterations}", "--quiet",
                *trace, *(["--out", self.out] if trace else [])]

    def run(self, binary, scenario, iterations, trace=()):
        """CPU seconds and the most memory in MB; the files stay until the next run."""
        shutil.rmtree(self.out, ignore_errors=True)
        with subprocess.Popen([binary, *self.words(scenario, iterations, trace)], env=self.environment,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=limited) as process:
            errors = process.stderr.read().decode()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        # 1: the run is longer or shorter than the scenario expects.
        if process.returncode not in (0, 1):
            raise SystemExit(f"exit code {process.returncode}: {errors}")
        return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024

    def written(self):
        size = sum(os.path.getsize(os.path.join(self.out, f)) for f in os.listdir(self.out) if f.startswith("trace."))
        return size

    def instructions(self, binary, scenario, iterations):
        done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", binary, *self.words(scenario, iterations, [])],
                              env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        return int(re.search(r"Collected : (\d+)", done.stderr).group(1))

    def spans(self, scenario, iterations):
        """Number of spans and of frames, and a queue pair of host 0."""
        self.run(self.binary, scenario, iterations, TRACES["native"])
        qpn, points = None, {}
        with open(os.path.join(self.out, FILES["json"]), encoding="utf-8") as file:
            for text in file:
                line = json.loads(text)
                if line.get("k") == "point":
                    points[line["id"]] = line["name"]
                if line.get("k") == "span" and qpn is None:
                    qpn = next((line["a0"][i] for i, p in enumerate(line["point"]) if points[p] == "hca.wqe"), None)
        return line["spans"], line["packets"], qpn


def row(*cells):
    print("| " + " | ".join(str(c) for c in cells) + " |")


def head(*cells):
    row(*cells)
    row(*["---"] + ["---:"] * (len(cells) - 1))


def time_ratios(bench, without, scenario, iterations, turns):
    ratios = {name: [] for name in ["no trace points", *TRACES]}
    size = {}
    for _ in range(turns):
        base, _ = bench.run(bench.binary, scenario, iterations)
        ratios["no trace points"].append(bench.run(without, scenario, iterations)[0] / base)
        for name, trace in TRACES.items():
            ratios[name].append(bench.run(bench.binary, scenario, iterations, trace)[0] / base)
            size[name] = bench.written()
    return {name: statistics.median(r) for name, r in ratios.items()}, size


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=11, help="runs of each variant (default 11)")
    parser.add_argument("--build", default=os.path.join(ROOT, "build/release"), help="build directory with trace points")
    parser.add_argument("--no-build", action="store_true", help="take the binaries that are there")
    options = parser.parse_args()
    without = os.path.join(ROOT, "build/no_trace")
    if not options.no_build:
        for directory, preset in ((options.build, "release"), (without, "no_trace")):
            if not os.path.exists(os.path.join(directory, "build.ninja")):
                subprocess.run(["cmake", "--preset", preset], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
            subprocess.run(["ninja", "--quiet", "-C", directory, "rdmasim"], check=True)
    without = os.path.join(without, "rdmasim")
    with tempfile.TemporaryDirectory(prefix="rdmasim_cost_") as scratch:
        bench = Bench(os.path.join(options.build, "rdmasim"), os.path.join(scratch, "out"))
        for scenario, (_, few) in SCENARIOS.items():
            many = 10 * few
            spans, frames, qpn = bench.spans(scenario, many)
            print(f"\n{scenario}: {spans} spans, {frames} frames\n")
            if shutil.which("valgrind"):
                a, b = bench.instructions(bench.binary, scenario, few), bench.instructions(without, scenario, few)
                print(f"Instructions without a trace, with trace points over without: {a / b:.4f}\n")
            ratios, size = time_ratios(bench, without, scenario, many, options.turns)
            head("", "CPU time", "bytes a span", f"memory, MB, of {few} iterations", f"of {many}")
            alone = [bench.run(bench.binary, scenario, n)[1] for n in (few, many)]
            row("no trace", "1.00", "", *(f"{m:.1f}" for m in alone))
            row("no trace, built without trace points", f"{ratios['no trace points']:.2f}", "", "", "")
            for name, trace in {**TRACES, **PARTS}.items():
                words = [w.format(qpn=qpn) for w in trace]
                memory = [f"{bench.run(bench.binary, scenario, n, words)[1] - m:+.1f}" for n, m in zip((few, many), alone)]
                each = "" if name not in size or "pcapng" in name else f"{size[name] / spans:.0f}"
                row(name, f"{ratios[name]:.2f}" if name in ratios else "", each, *memory)


if __name__ == "__main__":
    main()
