# SPDX-License-Identifier: Apache-2.0
"""The report of one run."""
import json

import distributions as plots
import result_file
from findings import Finding
from page import Cell, Report, Section, Table, number_cell
from svg import slug
from units import short, time_scale

MOST_BUSY = 12
LEAST_BUSY = 0.001  # share of the time from which on a resource is worth a bar
CPU_PARTS = (("on_cpu", "on the core"), ("asleep", "asleep"), ("interrupted", "interrupted"))


def time_text(ns):
    divisor, unit = time_scale([ns])
    return f"{short(ns / divisor)} {unit}"


def build(result):
    unmet = [e for e in result["expectations"] if not e["met"]]
    config = result["config"]
    verdict, expected = result["verdict"], bool(result["expectations"])
    makers = (_workloads, _latency, _programs, _busy, _events, _expectations, _counters)
    return Report(
        title=result["scenario"],
        kind="run",
        description=config.get("description", ""),
        teaches=config.get("teaches", ""),
        facts=[
            ("seed", str(result["seed"])),
            ("simulated time", time_text(result["sim_time_ns"])),
            ("version", result["version"]),
        ],
        verdict=verdict + (", not as expected" if unmet else ", as expected" if expected and verdict != "ok" else ""),
        good=not unmet and (verdict == "ok" or expected),
        findings=_findings(result, unmet),
        sections=[s for s in (make(result) for make in makers) if s],
        scenario=json.dumps(config, indent=2, ensure_ascii=False),
        version=result["version"],
    )


def _findings(result, unmet):
    expected = len(result["expectations"])
    text = f"; {expected - len(unmet)} of {expected} expectations are met" if expected else ""
    out = [Finding("verdict", f"The verdict is {result['verdict']}{text}.")]
    out += [Finding("verdict", line) for line in result["outstanding"]]
    for name, p in result["programs"].items():
        out += [Finding("failure", f"{name}: {f['at']}: {f['step']}: {f['message']}") for f in p["failures"]]
    for e in unmet:
        because = f" ({e['because']})" if e.get("because") else ""
        out.append(Finding("failure", f"Expected {e['expected']} at {e['at']}, got {e['actual']}{because}."))
    b = result["bottleneck"]
    if b["resource"] and b["utilisation"] >= LEAST_BUSY:
        limit = (
            "it is saturated and limits the rate"
            if b["saturated"]
            else "none is saturated, so latency or the programs limit the run"
        )
        share = short(round(100 * b["utilisation"], 1))
        out.append(Finding("limit", f"The busiest resource is {b['resource']}, {share} % of the time; {limit}."))
    for w in result["workloads"]:
        stages = sorted(w["breakdown_ns"], key=lambda s: -s["mean"])[:3]
        total = sum(s["mean"] for s in w["breakdown_ns"])
        if total:
            text = ", ".join(f"{s['stage']} {short(round(100 * s['mean'] / total, 1))} %" for s in stages)
            out.append(Finding("latency", f"{w['name']}: the time of a message goes to {text}."))
    return out


def _workloads(result):
    columns = [
        ("workload", "", False),
        ("operation", "", False),
        ("messages", "messages", True),
        ("payload", "bytes", True),
        ("bandwidth", "Gb/s", True),
        ("message rate", "million/s", True),
    ]
    rows = [
        [Cell(w["name"], head=True), Cell(w["op"])]
        + [number_cell(v) for v in (w["messages"], w["bytes"], w["bandwidth_gbps"], w["message_rate_mpps"])]
        for w in result["workloads"]
    ]
    tables = [Table("workload-table", "What each workload achieved", columns, rows)] if rows else []
    status = [
        [Cell(w["name"], head=True), Cell(name), number_cell(n)]
        for w in result["workloads"]
        for name, n in w["wc_status"].items()
    ]
    if status:
        tables.append(
            Table(
                "status-table",
                "Work completions by status",
                [("workload", "", False), ("status", "", False), ("completions", "WCs", True)],
                status,
            )
        )
    return Section("workloads", "Workloads", tables=tables)


def _latency(result):
    out = Section("latency", "Latency, and where the time goes")
    loads = [w for w in result["workloads"] if w["breakdown_ns"]]
    for i, w in enumerate(loads):
        plot = plots.cdf_plot(
            [(w["name"], result_file.cdf_of(w))], f"latency_cdf_{i}_{slug(w['name'])}", f"Latency of {w['name']}, distribution"
        )
        if w["percentiles"] == "sampled":
            plot.notes.append("From a uniform sample of the messages.")
        out.plots.append(plot)
    bars = [
        (f"{w['name']}, {label}", [(s["stage"], s[key]) for s in w["breakdown_ns"]])
        for w in loads
        for label, key in (("mean", "mean"), ("median message", "p50"))
    ]
    plot = plots.stage_plot(bars, "breakdown", "Stages of a message", "latency of a message")
    if loads:
        out.tables.append(_latency_table(loads))
    if plot:
        out.plots.append(plot)
        out.tables.append(_stage_table(loads))
    rows = [
        [Cell(w["name"], head=True)] + [number_cell(v) for v in (100 * p, t)] for w in loads for p, t in result_file.cdf_of(w)
    ]
    if rows:
        out.tables.append(
            Table(
                "cdf-table",
                "The distributions as a table",
                [("workload", "", False), ("messages", "%", True), ("took at most", "ns", True)],
                rows,
                folded=True,
            )
        )
    return out


def _latency_table(loads):
    """One way, and for a ping-pong half the round trip, as perftest prints it."""
    rows = []
    for w in loads:
        for label, key in (("one way", "latency_ns"), ("half round trip", "half_round_trip_ns")):
            if w[key]:
                numbers = [number_cell(w[key][q]) for q in ("min", "mean", "p50", "p99", "p999", "max")]
                rows.append([Cell(w["name"], head=True), Cell(label)] + numbers)
    columns = [("workload", "", False), ("latency", "", False)] + [
        (q, "ns", True) for q in ("min", "mean", "p50", "p99", "p99.9", "max")
    ]
    return Table("latency-table", "Latency of a message", columns, rows)


def _stage_table(loads):
    rows = []
    for w in loads:
        total = sum(s["mean"] for s in w["breakdown_ns"])
        for s in w["breakdown_ns"]:
            if s["mean"] or s["p50"]:
                rows.append(
                    [
                        Cell(w["name"], head=True),
                        Cell(s["stage"]),
                        number_cell(s["p50"]),
                        number_cell(s["mean"]),
                        number_cell(100 * s["mean"] / total if total else None),
                    ]
                )
    columns = [
        ("workload", "", False),
        ("stage", "", False),
        ("median message", "ns", True),
        ("mean", "ns", True),
        ("share of the mean", "%", True),
    ]
    return Table("stage-table", "Stages of the median message, and the mean of all", columns, rows, sortable=True)


def _programs(result):
    rows = []
    for name, p in result["programs"].items():
        how = "killed" if p["killed"] else "finished" if p["finished"] else f"at {p['at']}"
        statuses = ", ".join(f"{n} {status}" for status, n in p["wc_status"].items())
        rows.append(
            [
                Cell(name, head=True),
                Cell(p["host"]),
                Cell(how),
                number_cell(p["steps"]),
                number_cell(p["messages"]),
                Cell(statuses),
                number_cell(p["started_ns"]),
                number_cell(p["ended_ns"]),
                number_cell((p["latency_ns"] or {}).get("p50")),
            ]
        )
    columns = [
        ("program", "", False),
        ("host", "", False),
        ("end", "", False),
        ("steps", "steps", True),
        ("messages", "messages", True),
        ("completions polled", "", False),
        ("started", "ns", True),
        ("ended", "ns", True),
        ("latency p50", "ns", True),
    ]
    return Section(
        "programs", "Programs", tables=[Table("program-table", "What each program did", columns, rows)] if rows else []
    )


def _busy(result):
    out = Section("utilisation", "Processors and resources")
    loads = [w for w in result["workloads"] if w["breakdown_ns"]]
    sides = [
        (f"{w['name']}, {side}", [(label, cpu[key]) for key, label in CPU_PARTS])
        for w in loads
        for side, cpu in w["cpu_ns"].items()
        if cpu["span"]
    ]
    plot = plots.stage_plot(sides, "cpu", "Time of the programs", "time of the measuring loop")
    if plot:
        out.plots.append(plot)
        out.tables.append(_cpu_table(loads))
    shares = sorted(((r, u) for r, u in result["utilisation"].items() if u > 0), key=lambda s: (-s[1], s[0]))
    if shares:
        shown = [s for s in shares if s[1] >= LEAST_BUSY][:MOST_BUSY]
        plot = plots.busy_plot(shown, "utilisation", "Busiest resources")
        if plot:
            if len(shown) < len(shares):
                plot.notes.append(f"The {len(shown)} busiest of {len(shares)}; the table has all.")
            out.plots.append(plot)
        columns = [("resource", "", False), ("busy", "% of the time", True)]
        rows = [[Cell(r, head=True), number_cell(100 * u)] for r, u in shares]
        out.tables.append(Table("utilisation-table", "All resources that were busy", columns, rows, folded=True))
    return out


def _cpu_table(loads):
    rows = [
        [Cell(w["name"], head=True), Cell(side)] + [number_cell(cpu[key]) for key, _ in CPU_PARTS] + [number_cell(cpu["span"])]
        for w in loads
        for side, cpu in w["cpu_ns"].items()
    ]
    columns = (
        [("workload", "", False), ("side", "", False)]
        + [(label, "ns", True) for _, label in CPU_PARTS]
        + [("together", "ns", True)]
    )
    return Table("cpu-table", "Time of the measuring loops", columns, rows, folded=True)


def _events(result):
    rows = [[number_cell(e["time_ns"]), Cell(e["host"]), Cell(e["type"]), Cell(e["object"])] for e in result["async_events"]]
    columns = [("time", "ns", True), ("host", "", False), ("event", "", False), ("object", "", False)]
    return Section(
        "events", "Asynchronous events", tables=[Table("event-table", "In the order of time", columns, rows)] if rows else []
    )


def _expectations(result):
    rows = [
        [
            Cell(e["at"], head=True),
            Cell("met" if e["met"] else "not met", mark="good" if e["met"] else "bad"),
            Cell(str(e["expected"]), mark="wide"),
            Cell(str(e["actual"]), mark="wide"),
            Cell(e.get("because") or "", mark="wide"),
        ]
        for e in result["expectations"]
    ]
    columns = [("at", "", False), ("is", "", False), ("expected", "", False), ("actual", "", False), ("because", "", False)]
    return Section(
        "expectations",
        "Expectations",
        tables=[Table("expectation-table", "What the scenario expects of the result", columns, rows)] if rows else [],
    )


def _counters(result):
    rows = [[Cell(path, head=True), number_cell(n)] for path, n in result["counters"].items() if n]
    return Section(
        "counters",
        "Counters",
        tables=[
            Table(
                "counter-table",
                f"{len(rows)} counters that are not zero",
                [("counter", "", False), ("count", "events or bytes", True)],
                rows,
                folded=True,
                sortable=True,
            )
        ]
        if rows
        else [],
    )
