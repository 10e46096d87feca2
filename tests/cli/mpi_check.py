#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mpi_check.py RDMASIM MPIEXEC: a sweep on three local ranks leaves the same database as processes of one machine do, also when a
rank dies on the way, and when the whole job is killed and resumed."""
import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

SWEEP = {
    "workloads": [{"op": "write_bw", "size": "64 B", "iters": 2000}],
    "sweep": {
        "parameters": [{"path": "workloads.0.size", "values": "1 B..512 B x2"}, {"path": "workloads.0.cq_mod", "values": [1, 2, 4, 8]}],
        "expect": [{"holds": "verdict == 'ok'"}],
    },
}
POINTS = 40


def content(directory):
    db = sqlite3.connect(os.path.join(directory, "sweep.sqlite"))
    out = db.execute("SELECT point, seed, verdict, as_expected, why, version, sim_time_ns, config_hash, scenario_hash FROM point ORDER BY point").fetchall()
    for table in ("point_value", "point_metric", "flow", "breakdown", "quantile"):
        out += db.execute(f"SELECT * FROM {table} ORDER BY 1, 2, 3").fetchall()
    db.close()
    return out


def finished(directory):
    try:
        with contextlib.closing(sqlite3.connect(f"file:{os.path.join(directory, 'sweep.sqlite')}?mode=ro", uri=True)) as db:
            return db.execute("SELECT count(*) FROM point WHERE verdict IS NOT NULL").fetchone()[0]
    except sqlite3.Error:
        return 0


def ranks_of(mpirun):
    """Process numbers of the ranks below mpirun, by rank."""
    out = {}
    for name in os.listdir("/proc"):
        try:
            environment = open(f"/proc/{name}/environ", "rb").read().split(b"\0")
            parent = int(open(f"/proc/{name}/stat").read().rsplit(")", 1)[1].split()[1])
        except (OSError, ValueError, IndexError):
            continue
        rank = [e for e in environment if e.startswith(b"OMPI_COMM_WORLD_RANK=")]
        if rank and parent == mpirun:
            out[int(rank[0].split(b"=")[1])] = int(name)
    return out


def main(rdmasim, mpiexec):
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1",
                       OMPI_MCA_btl="self,vader,tcp", OMPI_MCA_btl_vader_single_copy_mechanism="none")
    with tempfile.TemporaryDirectory() as top:
        scenario = os.path.join(top, "sweep.json")
        with open(scenario, "w", encoding="utf-8") as f:
            json.dump(SWEEP, f)

        def mpi(out, *more, options=()):
            return subprocess.Popen([mpiexec, *options, "-n", "3", rdmasim, "sweep", scenario, "--out", os.path.join(top, out), *more],
                                    env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

        def end(process, what, code=0):
            out, err = process.communicate(timeout=100)
            assert process.returncode == code, f"{what}: exit code {process.returncode}\n{out}\n{err}"
            return out, err

        whole = os.path.join(top, "whole")
        subprocess.run([rdmasim, "sweep", scenario, "--out", whole, "-j2", "--quiet"], check=True)
        expected = content(whole)

        out, _ = end(mpi("ranks"), "three ranks")
        assert out.count("sweep of sweep: 40 points") == 1, out
        assert content(os.path.join(top, "ranks")) == expected, "three ranks find something else than processes of one machine"

        _, err = end(mpi("ranks"), "a second sweep in the directory", 2)
        assert err.count("has a sweep already") == 1, err

        # A rank dies.
        directory = os.path.join(top, "death")
        process = mpi("death", options=("--enable-recovery",))
        while finished(directory) < 3:
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        victim = ranks_of(process.pid)[2]
        os.kill(victim, signal.SIGKILL)
        out, err = process.communicate(timeout=100)
        assert finished(directory) == POINTS, f"a rank died: {finished(directory)} points, exit code {process.returncode}\n{out}\n{err}"
        assert content(directory) == expected, "a rank died: something else was found"

        # All of them die.
        directory = os.path.join(top, "end")
        process = mpi("end")
        while finished(directory) < 3:
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        os.kill(ranks_of(process.pid)[0], signal.SIGKILL)
        process.communicate(timeout=100)
        kept = finished(directory)
        assert 3 <= kept < POINTS, kept
        end(mpi("end", "--resume"), "resumed")
        assert content(directory) == expected, "after a resume: something else was found"
    print("three ranks, a dead rank, a dead job: the same 40 points")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
