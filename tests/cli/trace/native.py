# SPDX-License-Identifier: Apache-2.0
"""The native trace: read by its JSON Schema and by the rules of docs/trace_format.md that a schema cannot say."""
import gzip
import json
from collections import Counter

import jsonschema

KINDS = {"span": "spans", "instant": "instants", "counter": "counters", "state": "states", "packet": "packets", "msg": "messages"}
WITH_POINT = ("span", "instant", "counter", "state", "packet")
MESSAGE = {"id", "t", "total", "flow", "op", "bytes", "wr_id", "qpn", "host", "status"}


def opened(path):
    return gzip.open(path, "rt") if path.endswith(".gz") else open(path, encoding="utf-8")


class Native:
    """Records of a whole trace, each a dictionary with its times made absolute."""

    def __init__(self, path, schema):
        validator = jsonschema.Draft7Validator(schema)
        self.lanes, self.paths, self.points, self.end = {}, set(), {}, None
        self.records = {k: [] for k in KINDS}
        with opened(path) as file:
            for number, text in enumerate(file, 1):
                assert text.endswith("\n"), f"{path}:{number}: cut short"
                line = json.loads(text)
                for error in validator.iter_errors(line):
                    raise AssertionError(f"{path}:{number}: {'/'.join(map(str, error.absolute_path))}: {error.message}")
                assert self.end is None, f"{path}:{number}: a line after the end"
                try:
                    self._take(line, number)
                except AssertionError as error:
                    raise AssertionError(f"{path}:{number}: {error}") from None
        assert self.end is not None, f"{path}: no end"
        for k, name in KINDS.items():
            assert self.end[name] == len(self.records[k]), f"{path}: the end tells of {self.end[name]} {name}, not {len(self.records[k])}"
        self._spans_hang_together()

    def _take(self, line, number):
        if number == 1:
            self.header = line
            for lane in line["lanes"]:
                self._lane(lane)
            return
        k = line["k"]
        if k == "end":
            self.end = line
        elif k == "lane":
            self._lane(line)
        elif k == "point":
            assert line["id"] == len(self.points), "points are numbered from 0"
            assert line.get("mark_if", 0) < max(len(line["args"]), 1), "mark_if is no argument"
            self.points[line["id"]] = line
        else:
            self._block(k, line)

    def _lane(self, lane):
        assert lane["id"] not in self.lanes, f"the lane {lane['path']} is declared twice"
        self.paths.add(lane["path"])
        assert -1 <= lane["host"] < len(self.header["hosts"])
        self.lanes[lane["id"]] = lane

    def _block(self, k, block):
        n = block["n"]
        columns = {}
        for name, column in block.items():
            if not isinstance(column, list):
                continue
            assert len(column) == n, f"column {name} has {len(column)} values, not {n}"
            assert any(column), f"column {name} is all zero"
            columns[name] = column
        if k == "msg":
            assert columns.keys() <= MESSAGE | set(self.header["stages"]), "a column of no stage"
        rows = [{name: column[i] for name, column in columns.items()} for i in range(n)]
        t = block["t0"]
        for i, row in enumerate(rows):
            t += row.get("ts" if k == "span" else "t", 0)
            row["t"] = t
            row["end"] = t + row.get("dur", row.get("total", 0)) if k in ("span", "msg") else t
            if k == "span":
                row["span"] = block["id0"] + i + row.get("id", 0)
            self._row(k, row)
        assert block["t0"] == min(r["t"] for r in rows)
        assert k == "msg" or block["t1"] == max(r["end"] for r in rows)
        self.records[k] += rows

    def _row(self, k, row):
        if k == "msg":
            if row.get("status", 0) == 0:
                assert sum(row.get(s, 0) for s in self.header["stages"]) == row.get("total", 0), f"stages of message {row['id']}"
            return
        row["lane"] = self.lanes[row.get("lane", 0)]
        row["point"] = self.points[row.get("point", 0)]
        assert row["point"]["kind"] == k, f"{row['point']['name']} in a block of {k}"
        row["args"] = dict(zip(row["point"]["args"], (row.get(f"a{i}", 0) for i in range(4))))
        if k == "state":
            assert row.get("v", 0) < len(row["lane"]["states"]), "a state without a name"

    def _spans_hang_together(self):
        ids = [s["span"] for s in self.records["span"]]
        assert len(set(ids)) == len(ids), "a span id is there twice"
        known, busy = set(ids), {}
        for s in self.records["span"]:
            up = s.get("up", 0)
            assert up == 0 or (up > 0 and s["span"] - up in known), f"span {s['span']} is caused by a span that is not there"
            if s["lane"]["kind"] == "exclusive":
                busy.setdefault((s["lane"]["id"], s["lane"]["path"]), []).append((s["t"], s["end"]))
        for (_, path), intervals in busy.items():
            under_way = []
            for start, minus_end in sorted((start, -end) for start, end in intervals):
                while under_way and under_way[-1] <= start:
                    under_way.pop()
                assert not under_way or -minus_end <= under_way[-1], f"spans of the exclusive lane {path} overlap at {start} ps"
                under_way.append(-minus_end)

    def counts(self):
        return {name: len(self.records[k]) for k, name in KINDS.items()}

    def named(self, point):
        return [r for k in WITH_POINT for r in self.records[k] if r["point"]["name"] == point]

    def by(self, k, *names):
        return Counter(tuple(r.get(n, 0) for n in names) for r in self.records[k])
