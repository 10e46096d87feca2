# SPDX-License-Identifier: Apache-2.0
"""A strict reader of VCD files: what IEEE 1800 and GTKWave allow, and an AssertionError at anything else."""
import gzip
import re

WIDTH = {"wire": 64, "string": 1, "event": 1}
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class Vcd:
    def __init__(self, path, written_by_us=True):
        self.names, self.types, self.changes, self.comments, self.initial = {}, {}, [], [], {}
        self.ours = written_by_us
        self.timescale = None
        scope, self.t, self.body, self.dump = [], -1, False, False
        opener = gzip.open if path.endswith(".gz") else open
        with opener(path, "rt", encoding="utf-8") as file:
            lines = iter(file)
            for line in lines:
                words = line.split()
                if not words:
                    continue
                if words[0] in ("$version", "$comment", "$timescale", "$date"):
                    while "$end" not in line:
                        line += next(lines)
                    text = " ".join(line.split()[1:-1])
                    self.comments += [text] if words[0] == "$comment" else []
                    self.timescale = text.replace(" ", "") if words[0] == "$timescale" else self.timescale
                elif words[0].startswith("$"):
                    self._declaration(words, scope)
                elif words[0].startswith("#"):
                    assert self.body and int(words[0][1:]) > self.t, f"time goes back: {line}"
                    self.t = int(words[0][1:])
                else:
                    self._change(words, line)
        assert self.body and self.timescale == "1ps" and not self.dump

    def _declaration(self, words, scope):
        if words[0] == "$scope":
            assert words[1] == "module" and words[3:] == ["$end"] and not self.body
            scope.append(words[2])
        elif words[0] == "$upscope":
            scope.pop()
        elif words[0] == "$var":
            assert not self.body and words[-1] == "$end" and (int(words[2]) == WIDTH[words[1]] or not self.ours)
            assert not self.ours or all(NAME.match(part) for part in [*scope, words[4]]), words
            name = ".".join([*scope, words[4].split("[")[0]])
            assert words[3] not in self.names and name not in self.names.values(), f"declared twice: {name}"
            self.names[words[3]], self.types[words[3]] = name, words[1]
        elif words[0] == "$enddefinitions":
            assert not scope, "unbalanced scopes"
            self.body = True
        elif words[0] in ("$dumpvars", "$end"):
            self.dump = words[0] == "$dumpvars"
        else:
            raise AssertionError(f"unknown keyword {words[0]}")

    def _change(self, words, line):
        assert self.body, line
        kind = words[0][0]
        if kind in "bs":
            code, value = words[1], words[0][1:]
            assert len(words) == 2
        else:
            code, value = words[0][1:], kind
            assert len(words) == 1
        assert self.types[code] == {"b": "wire", "s": "string"}.get(kind, "event"), line
        if self.dump:
            self.initial[self.names[code]] = value
            return
        if kind == "b":
            assert 0 < len(value) <= 64 and set(value) <= {"0", "1"} | (set() if self.ours else {"x"}), line
            value = value.lstrip("0") or "0"
        assert self.t >= 0
        self.changes.append((self.t, self.names[code], value))
