#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""plugins_check.py RDMASIM VERBS_LIBRARY ROOT: programs of a user, built as docs/plugins.md says, run as simulated processes."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

RDMASIM, VERBS_LIBRARY, ROOT = map(os.path.abspath, sys.argv[1:4])


def sh(command, cwd):
    env = dict(os.environ, PATH=os.path.dirname(RDMASIM) + ":" + os.environ["PATH"])
    return subprocess.run(command, shell=True, cwd=cwd, env=env, capture_output=True, text=True, timeout=60)


class Plugins(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="rdmasim_plugins_")
        self.addCleanup(shutil.rmtree, self.dir)

    def build(self, source, name="program", compiler="gcc -x c"):
        with open(os.path.join(self.dir, name + ".c"), "w", encoding="utf-8") as f:
            f.write(source)
        made = sh(f"{compiler} {name}.c -o {name}.so $(rdmasim config --plugin-flags)", self.dir)
        self.assertEqual(made.returncode, 0, made.stderr)

    def run_scenario(self, programs, *options, **rest):
        with open(os.path.join(self.dir, "scenario.json"), "w", encoding="utf-8") as f:
            json.dump({"programs": programs, **rest}, f)
        return subprocess.run([RDMASIM, "run", "scenario.json", *options], cwd=self.dir, capture_output=True, text=True, timeout=60)

    def run_one(self, source, *options, argv=(), exit_code=0, compiler="gcc -x c"):
        self.build(source, compiler=compiler)
        return self.run_scenario({"p": {"plugin": {"file": "program.so", "argv": list(argv), "exit_code": exit_code}}}, *options)

    def test_the_example_as_its_documentation_builds_it(self):
        shutil.copytree(os.path.join(ROOT, "examples"), os.path.join(self.dir, "examples"), ignore=shutil.ignore_patterns("*.so"))
        with open(os.path.join(ROOT, "docs/plugins.md"), encoding="utf-8") as f:
            command = next(line.strip() for line in f if "examples/ping_pong.so" in line)
        made = sh(command, self.dir)
        self.assertEqual((made.returncode, made.stderr), (0, ""))
        runs = [sh(f"rdmasim run examples/ping_pong.json --format json --engine {e}", self.dir) for e in ("run_ahead", "tick")]
        results = [json.loads(r.stdout) for r in runs]
        for r in results:
            del r["simulator"]
        self.assertEqual(results[0], results[1])
        client = results[0]["programs"]["client"]
        self.assertEqual((runs[0].returncode, client["messages"], client["exit_code"]), (0, 1000, 0))
        # What the program has measured by its own clock: two messages one way, and what the loop costs between them.
        round_trip = float(re.search(r"64 bytes: (\d+) ns per round trip", runs[0].stderr).group(1))
        one_way = client["latency_ns"]["mean"] + results[0]["programs"]["server"]["latency_ns"]["mean"]
        self.assertGreaterEqual(round_trip, one_way)
        self.assertLess(round_trip, one_way * 1.1)

    def test_each_process_has_static_variables_of_its_own(self):
        self.build("#include <stdlib.h>\nstatic int calls; int main(int c, char** v) { return ++calls == atoi(v[1]) ? 0 : 1; }")
        program = {"plugin": {"file": "program.so", "argv": ["1"]}}
        self.assertEqual(self.run_scenario({"a": program, "b": program}).returncode, 0)

    def test_exit_ends_the_process_from_anywhere(self):
        source = "#include <stdlib.h>\nstatic void deep(int n) { if (n == 0) exit(3); deep(n - 1); }\nint main() { deep(9); return 0; }"
        self.assertEqual(self.run_one(source, exit_code=3).returncode, 0)
        r = self.run_one(source)
        self.assertEqual(r.returncode, 1)
        self.assertIn("scenario.json:1:", r.stdout)
        self.assertIn("main() ended with 3, not 0", r.stdout)

    def test_an_exception_fails_the_program_alone(self):
        r = self.run_one("#include <stdexcept>\nint main() { throw std::runtime_error(\"too hot\"); }", compiler="g++ -x c++")
        self.assertEqual(r.returncode, 1)
        self.assertIn("main() ended by an exception: too hot", r.stdout)

    def test_clocks_and_sleeps_are_simulated(self):
        r = self.run_one("""
#include <stdio.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include "verbs_frontend/program.h"
int main() {
  struct timespec a, b, day = {86400, 0};
  struct timeval v;
  clock_gettime(CLOCK_MONOTONIC, &a);
  nanosleep(&day, NULL);
  usleep(250);
  rdmasim_compute(750000);
  clock_gettime(CLOCK_REALTIME, &b);
  gettimeofday(&v, NULL);
  printf("%ld %d\\n", (b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000, v.tv_sec == b.tv_sec);
  return 0;
}""")
        self.assertEqual((r.returncode, r.stderr.strip().splitlines()[-1]), (0, "86400001 1"))

    def test_a_write_of_the_peer_ends_a_spin_on_memory(self):
        r = self.run_one("""
#include <infiniband/verbs.h>
#include <stdlib.h>
#include "verbs_frontend/program.h"
#define CHECK(x) if (!(x)) return __LINE__
int main() {
  struct ibv_context* c = ibv_open_device(ibv_get_device_list(NULL)[0]);
  struct ibv_pd* pd = ibv_alloc_pd(c);
  volatile char* m = memset(aligned_alloc(4096, 4096), 0, 4096);
  struct ibv_mr* mr = ibv_reg_mr(pd, (void*)m, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  struct ibv_cq* cq = ibv_create_cq(c, 4, NULL, NULL, 0);
  struct ibv_qp_init_attr i = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
  struct ibv_qp* qp = ibv_create_qp(pd, &i);
  CHECK(qp);
  struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
  CHECK(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
  a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_256, .dest_qp_num = qp->qp_num};
  a.ah_attr.is_global = 1, a.ah_attr.port_num = 1, a.ah_attr.grh.sgid_index = 3;
  CHECK(!ibv_query_gid(c, 1, 3, &a.ah_attr.grh.dgid));
  CHECK(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
  a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS};
  CHECK(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                       IBV_QP_MAX_QP_RD_ATOMIC));
  m[0] = 42;
  struct ibv_sge s = {(uintptr_t)m, 1, mr->lkey};
  struct ibv_send_wr w = {.sg_list = &s, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE}, *bad;
  w.wr.rdma.remote_addr = (uintptr_t)m + 64, w.wr.rdma.rkey = mr->rkey;
  CHECK(!ibv_post_send(qp, &w, &bad));
  while (m[64] == 0) rdmasim_wait_for_write((void*)(m + 64), 1, 10);
  return m[64];
}""".replace("#include <stdlib.h>", "#include <stdlib.h>\n#include <string.h>"), exit_code=42)
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)

    def test_what_a_simulated_process_does_not_have_is_refused_by_name(self):
        r = self.run_one("#include <unistd.h>\nint main() { return fork(); }")
        self.assertEqual((r.returncode, r.stderr), (2, "rdmasim: program.so: cannot be run as a program: it calls fork(), "
                                                       "and a simulated process has no such thing\n"))
        r = self.run_one("#include <thread>\nint main() { std::thread([] {}).join(); }", compiler="g++ -x c++")
        self.assertEqual(r.returncode, 1)
        self.assertIn("a program calls pthread_create(), and a simulated process has one thread", r.stderr)
        self.assertIn("main() ended by an exception: Function not implemented", r.stdout)
        r = self.run_one("int not_here(void); int main() { return not_here(); }")
        self.assertIn("program.so: undefined symbol: not_here", r.stderr)
        r = self.run_one("int side() { return 0; }")
        self.assertEqual((r.returncode, r.stderr), (2, "rdmasim: program.so: cannot be run as a program: it has no main()\n"))
        with open(os.path.join(self.dir, "program.so"), "w", encoding="utf-8") as f:
            f.write("text")
        r = self.run_scenario({"p": {"plugin": {"file": "program.so"}}})
        self.assertEqual(r.returncode, 2)
        self.assertIn("program.so: file too short", r.stderr)

    def test_mistakes_in_the_scenario_are_shown_where_they_are(self):
        r = self.run_scenario({"p": {"plugin": {"file": "gone.so"}, "steps": [{"sleep": "1 us"}], "at_end": "exit"}})
        self.assertEqual(r.returncode, 2)
        self.assertRegex(r.stderr, r"scenario.json:1:\d+: programs.p.plugin: there is no file gone.so")
        self.assertIn("makes its objects itself and has no steps", r.stderr)
        self.assertIn("async_events and at_end are of steps", r.stderr)
        r = self.run_scenario({"p": {"plugin": {}}})
        self.assertIn("programs.p.plugin.file: is missing", r.stderr)

    def test_the_whole_verbs_library_is_in_the_executable(self):
        def defined(arguments):
            listed = subprocess.run(["nm", *arguments], capture_output=True, text=True, check=True).stdout
            return set(re.findall(r" T ((?:ibv_|mlx5dv_|verbs_|rdmasim_|__wrap_)\w+)", listed))
        wanted = defined([VERBS_LIBRARY])
        self.assertGreater(len(wanted), 60)
        self.assertEqual(wanted - defined(["-D", RDMASIM]), set())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
