#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""install_check.py BUILD_DIR ROOT: what `cmake --install` and the Debian package put into place works away from the checkout."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD, ROOT = map(os.path.abspath, sys.argv[1:3])


def run(*command, **rest):
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **rest)


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="rdmasim_install_")
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        made = run("cpack", "-G", "DEB", "-B", cls.dir, "--config", os.path.join(BUILD, "CPackConfig.cmake"), cwd=cls.dir)
        assert made.returncode == 0, made.stdout + made.stderr
        cls.package = next(os.path.join(cls.dir, f) for f in os.listdir(cls.dir) if f.endswith(".deb"))
        cls.root = os.path.join(cls.dir, "root")
        assert run("dpkg-deb", "-x", cls.package, cls.root).returncode == 0
        cls.rdmasim = os.path.join(cls.root, "usr/bin/rdmasim")

    def test_the_package_says_what_it_needs(self):
        fields = run("dpkg-deb", "-f", self.package).stdout
        version = run(self.rdmasim, "--version").stdout
        self.assertIn("Version: " + version.split()[1], fields)
        for needed in ("libsystemc", "libc6", "libspdlog"):
            self.assertRegex(fields, r"(?m)^Depends: .*" + needed)
        listed = run("dpkg-deb", "-c", self.package).stdout
        self.assertEqual([l for l in listed.splitlines() if not re.search(r" \./(usr(/|$)|$)", l)], [])

    def test_it_finds_its_scenarios(self):
        names = run(self.rdmasim, "list", "scenarios", cwd=self.dir).stdout
        self.assertIn("rc_send_pingpong.json", names)
        scenario = os.path.join(self.root, "usr/share/rdmasim/scenarios/rc_send_pingpong.json")
        ran = run(self.rdmasim, "run", scenario, "--format", "json", cwd=self.dir)
        self.assertEqual((ran.returncode, json.loads(ran.stdout)["verdict"]), (0, "ok"))

    def test_it_makes_a_report(self):
        out = os.path.join(self.dir, "out")
        run(self.rdmasim, "run", os.path.join(self.root, "usr/share/rdmasim/scenarios/rc_send_pingpong.json"), "--quiet", "--out", out)
        program = os.path.join(self.root, "usr/share/rdmasim/report")
        os.rename(os.path.join(program, "templates", "report.css"), os.path.join(program, "templates", "hidden.css"))
        self.assertNotEqual(run(self.rdmasim, "report", out).returncode, 0, "another program than the installed one")
        os.rename(os.path.join(program, "templates", "hidden.css"), os.path.join(program, "templates", "report.css"))
        made = run(self.rdmasim, "report", out)
        self.assertEqual((made.returncode, made.stderr), (0, ""))
        self.assertIn("python3-matplotlib", run("dpkg-deb", "-f", self.package, "Recommends").stdout)

    def test_a_plugin_is_built_with_the_installed_headers(self):
        flags = run(self.rdmasim, "config", "--plugin-flags").stdout.split()
        self.assertIn("-I" + os.path.join(self.root, "usr/include/rdmasim"), flags)
        examples = os.path.join(self.root, "usr/share/rdmasim/examples")
        made = run("g++", "ping_pong.cpp", "-o", "ping_pong.so", *flags, cwd=examples)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertEqual(run(self.rdmasim, "run", os.path.join(examples, "ping_pong.json")).returncode, 0)

    def test_the_manual_page_has_every_command_and_option(self):
        page = os.path.join(self.root, "usr/share/man/man1/rdmasim.1")
        shown = run("groff", "-Kutf8", "-man", "-Tutf8", "-ww", page)
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        text = re.sub(r"\x1b\[[0-9;]*m|.\x08", "", shown.stdout)
        for command in self.commands():
            self.assertIn("rdmasim " + command, text)
            for option in self.options(command):
                self.assertIn(option, text)

    def test_bash_completes_commands_options_and_choices(self):
        def complete(*words):
            script = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _rdmasim; printf "%s\\n" "${COMPREPLY[@]}"'
            file = os.path.join(self.root, "usr/share/bash-completion/completions/rdmasim")
            return set(run("bash", "-c", script, "bash", file, *words, cwd=self.dir).stdout.split())
        self.assertEqual(complete("rdmasim", ""), set(self.commands()) | {"--help", "--version"})
        self.assertEqual(complete("rdmasim", "run", "--format", ""), {"table", "json"})
        for command in self.commands():
            self.assertEqual(complete("rdmasim", command, "--"), self.options(command), command)
        self.assertIn("root", complete("rdmasim", "run", "--out", "r"))

    def commands(self):
        return re.findall(r"(?m)^  ([a-z]\S*) ", run(self.rdmasim, "--help").stdout)

    def options(self, command):
        return set(re.findall(r"(?m)^  (?:-\w \[ )?(--[a-z][a-z-]*)", run(self.rdmasim, command, "--help").stdout))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
