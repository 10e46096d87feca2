# SPDX-License-Identifier: Apache-2.0
"""Reads what `rdmasim run --out` writes (docs/result.md)."""
import json

from model import ReportError

SCHEMA = "rdmasim-result/1"


def load(path):
    """The result, checked to be one."""
    try:
        with open(path, encoding="utf-8") as f:
            result = json.load(f)
    except OSError as e:
        raise ReportError(f"{path}: cannot be read: {e.strerror}") from e
    except (ValueError, RecursionError) as e:
        raise ReportError(f"{path}: is not JSON: {e}") from e
    schema = result.get("schema") if isinstance(result, dict) else None
    if schema != SCHEMA:
        raise ReportError(
            f'{path}: is not a result that this version reads: its schema is {json.dumps(schema)}, expected "{SCHEMA}"'
        )
    return result


def cdf_of(workload):
    """[(share, ns)] of a workload of a result: the quantiles that it has, ascending."""
    latency = workload.get("latency_ns")
    if not latency:
        return []
    return [
        (0.0, latency["min"]),
        (0.5, latency["p50"]),
        (0.99, latency["p99"]),
        (0.999, latency["p999"]),
        (1.0, latency["max"]),
    ]
