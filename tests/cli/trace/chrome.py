# SPDX-License-Identifier: Apache-2.0
"""The Chrome trace: read by the rules of Perfetto's importer, most of which it does not enforce but answers with a bent picture."""
import gzip
import json
from collections import defaultdict

KEYS = {  # of an event: those that must be there, those that may
    "M": ({"pid", "name", "args"}, {"tid"}),
    "X": ({"pid", "tid", "ts", "dur", "name"}, {"bind_id", "flow_in", "flow_out", "args"}),
    "i": ({"pid", "tid", "ts", "s", "name", "args"}, set()),
    "C": ({"pid", "ts", "name", "args"}, set()),
    "b": ({"pid", "cat", "name", "id", "ts", "args"}, set()),
    "e": ({"pid", "cat", "name", "id", "ts", "args"}, set()),
    "s": ({"pid", "tid", "ts", "id", "cat", "name"}, set()),
    "f": ({"pid", "tid", "ts", "id", "cat", "name", "bp"}, set()),
}


def ns(microseconds):
    exact = microseconds * 1000
    assert abs(exact - round(exact)) < 1e-3, f"{microseconds} us is no whole nanosecond"
    return round(exact)


class Chrome:
    def __init__(self, path):
        opener = gzip.open if path.endswith(".gz") else open
        with opener(path, "rt", encoding="utf-8") as file:
            text = file.read()
        self.document = json.loads(text)
        assert self.document["displayTimeUnit"] == "ns"
        lines = text.splitlines()
        assert lines[-1].startswith('],"metadata":')
        self.events = [json.loads(line.removesuffix(",")) for line in lines[1:-1]]
        assert self.events == self.document["traceEvents"], "one event a line"
        self.by_ph = defaultdict(list)
        for order, event in enumerate(self.events):
            self._well_formed(event)
            event["order"] = order
            self.by_ph[event["ph"]].append(event)
        self.spans = [e for e in self.by_ph["X"] if "span" in e.get("args", {})]
        self.states = [e for e in self.by_ph["X"] if "args" not in e]
        assert len(self.spans) + len(self.states) == len(self.by_ph["X"])
        self._threads_have_names()
        self._slices_nest()
        self._chains()
        self._arrows()
        self._messages()

    @staticmethod
    def _well_formed(event):
        must, may = KEYS[event["ph"]]
        keys = event.keys() - {"ph"}
        assert must <= keys <= must | may, f"keys of {event}"
        assert isinstance(event["pid"], int) and 0 < event["pid"] < 1 << 31
        assert 0 < event.get("tid", 1) < 1 << 31
        if "ts" in event:
            event["t"] = ns(event["ts"])
            event["end"] = event["t"] + ns(event.get("dur", 0))
            assert 0 <= event["t"] <= event["end"]
        if event["ph"] == "C":
            assert event["args"] and all(type(v) in (int, float) for v in event["args"].values()), f"{event}"
        if event["ph"] == "i":
            assert event["s"] == "t"

    def _threads_have_names(self):
        names = {}
        for e in self.by_ph["M"]:
            if e["name"] in ("process_name", "thread_name"):
                key = (e["pid"], e.get("tid"))
                assert key not in names, f"{key} is named twice"
                assert e["args"]["name"]
                names[key] = e["args"]["name"]
        for e in self.events:
            assert (e["pid"], None) in names, f"process {e['pid']} has no name"
            assert e.get("tid") is None or (e["pid"], e["tid"]) in names, f"thread {e['tid']} has no name"
        self.names = names

    def _slices_nest(self):
        lanes = defaultdict(list)
        for e in self.by_ph["X"]:
            lanes[e["pid"], e["tid"]].append((e["t"], -e["end"]))
        for key, slices in lanes.items():
            stack = []
            for start, end in sorted(slices):
                while stack and stack[-1] <= start:
                    stack.pop()
                assert not stack or -end <= stack[-1], f"slices of {self.names[key]} overlap at {start} ns"
                stack.append(-end)

    # As the importer does it: carriers of one bind_id in order of time, then of the file.
    def _chains(self):
        tails = {}
        for e in sorted(self.by_ph["X"], key=lambda e: (e["t"], e["order"])):
            if "bind_id" not in e:
                assert "flow_in" not in e and "flow_out" not in e
                continue
            assert e.get("flow_in") or e.get("flow_out"), "flow_without_direction"
            if e.get("flow_in"):
                assert tails.get(e["bind_id"]), f"flow_end_without_start: {e}"
            else:
                assert e["bind_id"] not in tails, f"flow_duplicate_id: {e}"
            tails[e["bind_id"]] = bool(e.get("flow_out"))
        self.chains = len(tails)

    def _arrows(self):
        slices = defaultdict(list)
        for e in self.by_ph["X"]:
            slices[e["pid"], e["tid"]].append((e["t"], e["end"]))
        starts = {}
        for e in self.by_ph["s"]:
            assert e["id"] not in starts, "an arrow begins twice"
            starts[e["id"]] = e
        for e in self.by_ph["f"]:
            start = starts.pop(e["id"])
            assert (start["t"], start["order"]) < (e["t"], e["order"]), f"the arrow {e['id']} points back"
            assert e["bp"] == "e" and e["cat"] == start["cat"] and e["name"] == start["name"]
            for end in (start, e):
                assert any(a <= end["t"] <= b for a, b in slices[end["pid"], end["tid"]]), f"flow_no_enclosing_slice: {end}"
        assert not starts, "an arrow has no end"

    def _messages(self):
        begins = {e["id"]: e for e in self.by_ph["b"]}
        ends = {e["id"]: e for e in self.by_ph["e"]}
        assert len(begins) == len(self.by_ph["b"]) and begins.keys() == ends.keys() and len(ends) == len(self.by_ph["e"])
        for i, e in begins.items():
            assert e["t"] <= ends[i]["t"] and e["name"] == ends[i]["name"] and e["cat"] == ends[i]["cat"]
