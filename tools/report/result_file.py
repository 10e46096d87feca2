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
    """[(share, ns)] of a workload of a result, ascending."""
    return [(q["share"], q["latency_ns"]) for q in workload["latency_quantiles"]]
