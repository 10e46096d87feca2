# SPDX-License-Identifier: Apache-2.0
"""Reads sweep.sqlite, whose tables docs/sweep.md describes."""
import json
import os
import sqlite3
import urllib.parse

from metrics import metric
from model import Distribution, Expectation, Point, ReportError, Study, Value

FILE = "sweep.sqlite"
SCHEMA = "rdmasim-sweep/1"
_UNITS = {"gbps": "Gb/s"}  # of the column `unit`, where a plot writes it otherwise


def load(path):
    """The sweep in the database, or a ReportError that says what is wrong with the file. It may be at work still."""
    try:
        connection = _open(path)
        try:
            connection.execute("BEGIN")  # one state of the database for all that is read
            study = _study(connection, path)
            study.expectations = _expectations(os.path.join(os.path.dirname(path), "results.json"), study)
            return study
        finally:
            connection.close()
    except sqlite3.DatabaseError as e:
        raise ReportError(f"{path}: cannot be read as the database of a sweep: {e}") from e


def _expectations(path, study):
    """Whether the expectations of the sweep are met, which is in the results that it writes at its end; none before."""
    try:
        with open(path, encoding="utf-8") as f:
            results = json.load(f)
        if results["scenario_hash"] != study.scenario_hash:
            return []
        return [
            Expectation(e["condition"], e["met"], e.get("because", ""), tuple(e["failures"])) for e in results["expectations"]
        ]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise ReportError(f"{path}: cannot be read as the results of a sweep: {e!r}") from e


def _open(path):
    uri = "file:" + urllib.parse.quote(path) + "?mode=ro"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=10)
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        return connection
    except sqlite3.OperationalError:
        # In a directory that cannot be written, a database in WAL mode opens only if nobody may change it.
        connection.close()
        return sqlite3.connect(uri + "&immutable=1", uri=True, isolation_level=None)


def _study(db, path):
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'sweep'").fetchone():
        raise ReportError(f"{path}: has no table `sweep`, so it is not the database of a sweep")
    facts = dict(db.execute("SELECT key, value FROM sweep"))
    if facts.get("schema") != SCHEMA:
        raise ReportError(f"{path}: has the schema {json.dumps(facts.get('schema'))}, this version reads \"{SCHEMA}\"")
    rows = db.execute(
        "SELECT point, combination, replication, seed, verdict, why FROM point ORDER BY combination, replication, point"
    ).fetchall()
    finished = [r for r in rows if r[4] is not None]
    if not finished:
        raise ReportError(
            f"{path}: no point of the sweep has finished ({len(rows)} are planned); `rdmasim sweep --resume` runs them"
        )
    parameters = {
        i: (name, unit, bool(numeric))
        for i, name, unit, numeric in db.execute("SELECT parameter, name, unit, numeric FROM parameter ORDER BY parameter")
    }
    metrics = dict(db.execute("SELECT metric, name FROM metric ORDER BY metric"))
    values, measured, distributions = _values(db, parameters), _metrics(db, metrics), _distributions(db)
    points = [
        Point(
            point,
            combination,
            replication,
            seed,
            verdict,
            values.get(point, {}),
            measured.get(point, {}),
            why or "",
            list(distributions.get(point, {}).values()),
        )
        for point, combination, replication, seed, verdict, why in finished
    ]
    return Study(
        name=facts.get("scenario", ""),
        points=points,
        metrics=[metric(name, source) for name, source in db.execute("SELECT name, source FROM metric ORDER BY metric")],
        units={name: _UNITS.get(unit, unit) for name, unit, _ in parameters.values() if unit},
        design=_design(facts),
        description=facts.get("description", ""),
        teaches=facts.get("teaches", ""),
        versions=[
            v
            for v, in db.execute(
                "SELECT DISTINCT version FROM point WHERE verdict IS NOT NULL AND version IS NOT NULL ORDER BY version"
            )
        ],
        scenario_hash=facts.get("scenario_hash", ""),
        scenario=_pretty(facts.get("config", "")),
        planned=len(rows),
    )


def _design(facts):
    try:
        return json.loads(facts.get("design", "{}")).get("design", "")
    except (ValueError, AttributeError):
        return ""


def _pretty(text):
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False) if text else ""
    except ValueError:
        return text


def _values(db, parameters):
    out = {}
    for point, parameter, value, text in db.execute(
        "SELECT point, parameter, value, text FROM point_value ORDER BY point, parameter"
    ):
        name, _, numeric = parameters[parameter]
        out.setdefault(point, {})[name] = Value(text, value if numeric else None)
    return out


def _metrics(db, metrics):
    out = {}
    for point, number, value in db.execute("SELECT point, metric, value FROM point_metric ORDER BY point, metric"):
        out.setdefault(point, {})[metrics[number]] = value
    return out


def _distributions(db):
    """Point -> flow -> Distribution."""
    out = {}
    for point, flow, name in db.execute("SELECT point, flow, name FROM flow ORDER BY point, flow"):
        out.setdefault(point, {})[flow] = Distribution(name)
    for point, flow, share, latency in db.execute(
        "SELECT point, flow, share, latency_ns FROM quantile ORDER BY point, flow, share"
    ):
        out[point][flow].cdf.append((share, latency))
    for point, flow, stage, mean, median in db.execute(
        "SELECT point, flow, stage, mean_ns, p50_ns FROM breakdown ORDER BY point, flow, position"
    ):
        out[point][flow].breakdown.append((stage, mean, median))
    return out
