#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""python3 tools/report DIR: writes the report of a sweep or a run. `rdmasim report` starts it; docs/report.md describes it."""
import argparse
import os
import sys

try:
    import jinja2  # noqa: F401
    import matplotlib  # noqa: F401
except ImportError as missing:
    sys.exit(
        print(
            f"rdmasim: the report needs the Python package {missing.name}, which {sys.executable} does not have; on Debian: "
            "apt-get install python3-matplotlib python3-jinja2 (RDMASIM_PYTHON names another interpreter)",
            file=sys.stderr,
        )
        or 2
    )

import page
import result_file
import run_report
import style
import sweep_database
import sweep_report
from model import ReportError


def parsed(arguments):
    parser = argparse.ArgumentParser(prog="rdmasim report", allow_abbrev=False)
    parser.add_argument("directory", metavar="DIR")
    parser.add_argument("--out", metavar="FILE")
    parser.add_argument("--x", metavar="PARAMETER")
    parser.add_argument("--metric", metavar="NAME", action="append", default=[])
    parser.add_argument("--quiet", action="store_true")
    return parser.parse_args(arguments)


def report_of(options):
    directory = options.directory
    if not os.path.isdir(directory):
        raise ReportError(
            f"{directory}: "
            + ("is not a directory" if os.path.exists(directory) else "there is no such directory")
            + "; expected the --out directory of `rdmasim sweep` or `rdmasim run`"
        )
    database, result = os.path.join(directory, sweep_database.FILE), os.path.join(directory, "result.json")
    if os.path.exists(database):
        return sweep_report.build(sweep_database.load(database), options.x, options.metric)
    if os.path.exists(result):
        if options.x or options.metric:
            raise ReportError("--x and --metric choose plots of a sweep; this is the result of one run")
        try:
            return run_report.build(result_file.load(result))
        except KeyError as e:
            raise ReportError(f'{result}: lacks "{e.args[0]}", which a result of {result_file.SCHEMA} has') from e
    raise ReportError(
        f"{directory}: has neither {sweep_database.FILE} (of `rdmasim sweep`) nor result.json (of `rdmasim run --out`)"
    )


def main(arguments):
    options = parsed(arguments)
    file = options.out or os.path.join(options.directory, "report.html")
    try:
        style.apply()
        report = report_of(options)
        written = page.write(report, file, os.path.splitext(file)[0])
    except ReportError as e:
        print(f"rdmasim: {e}", file=sys.stderr)
        return 2
    except OSError as e:
        print(f"rdmasim: {e.filename or file}: {e.strerror}", file=sys.stderr)
        return 2
    if not options.quiet:
        print(
            f"wrote {written[0]}"
            + (f" and {len(written) - 1} plots in {os.path.splitext(file)[0]}/" if len(written) > 1 else "")
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
