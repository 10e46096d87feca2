#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the tree keeps the rules of its architecture: check.py ROOT CHECK, where CHECK is a name in CHECKS.

Prints one line per violation and exits 1 if there is any. Each check is a generator of such lines, so that
check_test.py can run it on small trees.
"""
import os
import re
import subprocess
import sys

# Library -> folder. Include roots are the repository and models/.
FOLDERS = {name: f"models/{name}" for name in ("memory", "cpu", "pcie", "iommu", "fabric", "hca", "kernel")}
FOLDERS.update({name: name for name in ("sim", "verbs_frontend", "system", "experiment", "cli")})

# Who may include whom: a library, or single headers of one. Each may include itself.
ALLOWED = {
    "sim": [],
    "memory": ["sim"],
    "fabric": ["sim"],
    "pcie": ["memory", "sim"],
    "iommu": ["pcie", "memory", "sim"],
    "cpu": ["memory", "pcie", "sim"],
    "hca": ["pcie", "fabric", "sim", "memory/address.h"],
    "kernel": ["cpu", "pcie", "memory", "sim", "hca/prm.h", "iommu/iommu_prm.h"],
    "verbs_frontend": ["cpu", "memory", "sim", "hca/prm.h", "kernel/syscalls.h"],
    "system": ["verbs_frontend", "kernel", "hca", "fabric", "iommu", "pcie", "cpu", "memory", "sim"],
    "experiment": ["system", "sim"],
    "cli": ["experiment", "system", "sim"],
}

SOURCES = (".cpp", ".h", ".c")
MAX_LINES = 600
UNFINISHED = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")) + r")\b")
FOREIGN = re.compile("|".join((r"\.\./" + "shared", "/" + "work/", "/" + "farm/")))


def files(root):
    """Paths of the tree relative to root: what git tracks or would track, or everything outside a git checkout."""
    if os.path.exists(os.path.join(root, ".git")):
        listed = subprocess.run(["git", "-C", root, "ls-files", "-coz", "--exclude-standard"], check=True,
                                capture_output=True).stdout.decode().split("\0")
        return sorted({f for f in listed if f and os.path.isfile(os.path.join(root, f))})
    found = []
    for folder, _, names in os.walk(root):
        found += [os.path.relpath(os.path.join(folder, n), root) for n in names]
    return sorted(found)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
        return f.read()


def library_of(path):
    for name, folder in FOLDERS.items():
        if path.startswith(folder + "/"):
            return name
    return None


def check_includes(root):
    for path in files(root):
        library = library_of(path)
        if library is None or not path.endswith(SOURCES):
            continue
        for number, line in enumerate(read(root, path).splitlines(), 1):
            m = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
            if not m:
                continue
            header = m.group(1)
            if not any(os.path.isfile(os.path.join(root, base, header)) for base in ("", "models")):
                yield f'{path}:{number}: "{header}" is neither under the repository root nor under models/'
                continue
            target = header.split("/")[0]
            if target != library and target not in ALLOWED[library] and header not in ALLOWED[library]:
                yield f'{path}:{number}: {library} may not include "{header}"'


def check_orphans(root):
    for path in files(root):
        if not path.endswith((".cpp", ".c")):
            continue
        folder = os.path.dirname(path)
        while True:
            lists = os.path.join(folder, "CMakeLists.txt")
            if os.path.isfile(os.path.join(root, lists)):
                name = os.path.relpath(path, folder or ".")
                if re.search(r"(?<![\w./-])" + re.escape(name) + r"(?![\w./-])", read(root, lists)):
                    break
            if not folder:
                yield f"{path}: no CMakeLists.txt compiles it"
                break
            folder = os.path.dirname(folder)


def check_spdx(root):
    for path in files(root):
        name = os.path.basename(path)
        if not (path.endswith(SOURCES + (".cmake", ".py", ".sh", ".ts")) or name == "CMakeLists.txt"
                or path in ("dev", ".ci/run")):
            continue
        head = read(root, path).split("\n", 2)[:2]
        line = head[1] if head[0].startswith("#!") and len(head) > 1 else head[0]
        if "SPDX-License-Identifier: Apache-2.0" not in line:
            yield f"{path}: no SPDX line at its head"


def check_marks(root):
    for path in files(root):
        if path == "LICENSE" or path.endswith((".png", ".svg", "package-lock.json")):
            continue
        source = path.endswith(SOURCES + (".cmake", ".py", ".ts", "CMakeLists.txt"))
        for number, line in enumerate(read(root, path).splitlines(), 1):
            if source and UNFINISHED.search(line):
                yield f"{path}:{number}: mark of unfinished work"
            if FOREIGN.search(line):
                yield f"{path}:{number}: names a place outside the project"


def check_sizes(root):
    for path in files(root):
        if path.endswith(SOURCES + (".py", ".ts")):
            lines = read(root, path).count("\n")
            if lines > MAX_LINES:
                yield f"{path}: {lines} lines, at most {MAX_LINES}"


def table_rows(root, path, columns):
    """(line number, cells) of the rows of the Markdown tables in `path`; heads and rules left out."""
    lines = read(root, path).splitlines()
    for number, line in enumerate(lines, 1):
        if not line.startswith("|") or re.match(r"\|\s*:?-", line):
            continue
        if number < len(lines) and re.match(r"\|\s*:?-", lines[number]):
            continue
        cells = [c.strip() for c in line.strip().strip("|").split("|")]
        yield number, cells if len(cells) == columns else None


def quoted(cell):
    return re.findall(r"`([^`]+)`", cell)


def place_error(root, place):
    """Error text for a `path:symbol` (or `path`) that does not exist, None if it does."""
    path, _, symbol = place.partition(":")
    if not os.path.isfile(os.path.join(root, path)):
        return f"no file {path}"
    if symbol:
        text = read(root, path)
        for word in re.split(r"::|\.", symbol):
            if not re.search(r"(?<!\w)" + re.escape(word) + r"(?!\w)", text):
                return f"{path} has no {word}"
    return None


def test_error(root, place):
    """As place_error, for a test: `tests/x/y_test.cpp:Suite.Name` or a scenario file."""
    path, _, name = place.partition(":")
    if not path.startswith(("tests/", "scenarios/", "tools/")):
        return f"{path} is not a test"
    if not name or not path.endswith(".cpp"):
        return place_error(root, place)
    if not os.path.isfile(os.path.join(root, path)):
        return f"no file {path}"
    suite, _, case = name.partition(".")
    if not re.search(r"\bTEST(_F|_P)?\(\s*" + re.escape(suite) + r"\s*,\s*" + (re.escape(case) if case else r"\w+") + r"\s*\)",
                     read(root, path)):
        return f"{path} has no test {name}"
    return None


def field_error(root, key):
    """Error text for a config key (`section.field`) that no fields() list names."""
    section, _, rest = key.partition(".")
    under = FOLDERS.get(section, "")
    field = (rest or section).split(".")[-1]
    for path in files(root):
        if path.endswith((".h", ".cpp")) and path.startswith(under) and not path.startswith("tests/"):
            if re.search(r'\bv\(\s*"' + re.escape(field) + '"', read(root, path)):
                return None
    return f"no config field {key}"


def trace_points(root):
    """(path, category, name) of every declared trace point."""
    for path in files(root):
        if path.endswith("trace_points.h"):
            for name, category in re.findall(r'Point\s+\w+\s*\{\s*"([^"]+)"\s*,\s*(?:[\w:]*::)?(\w+)', read(root, path)):
                yield path, category, name


def point_error(root, point):
    """Error text for a trace point that no trace_points.h declares."""
    if any(name == point for _, _, name in trace_points(root)):
        return None
    return f"no trace point {point}"


def check_where(root):
    path = "docs/where.md"
    seen = set()
    for number, cells in table_rows(root, path, 5):
        at = f"{path}:{number}:"
        if cells is None:
            yield f"{at} a row has five cells: term, where, config, trace points, tests"
            continue
        term, where, config, points, tests = cells
        if term in seen:
            yield f"{at} second row for {term}"
        seen.add(term)
        if not quoted(where) or not quoted(tests):
            yield f"{at} {term} needs a place and a test"
        for check, cell in ((place_error, where), (field_error, config), (point_error, points), (test_error, tests)):
            for item in quoted(cell):
                error = check(root, item)
                if error:
                    yield f"{at} {error}"


def check_conformance(root):
    path = "docs/conformance.md"
    seen = set()
    for number, cells in table_rows(root, path, 4):
        at = f"{path}:{number}:"
        if cells is None:
            yield f"{at} a row has four cells: rule, in our words, where, test"
            continue
        rule, words, where, tests = cells
        if not re.fullmatch(r"(S-[A-Z]+-\d+[a-z]?|A-\d+)", rule):
            yield f"{at} \"{rule}\" is not a rule id"
        if rule in seen:
            yield f"{at} second row for {rule}"
        seen.add(rule)
        if not words or not quoted(where) or not quoted(tests):
            yield f"{at} {rule} needs words, a place and a test"
        for check, cell in ((place_error, where), (test_error, tests)):
            for item in quoted(cell):
                error = check(root, item)
                if error:
                    yield f"{at} {error}"


def check_stages(root):
    names = re.search(r"kNames\{(.*?)\}", read(root, "sim/journey.cpp"), re.S)
    life = read(root, "docs/life_of_a_send.md")
    for stage in re.findall(r'"(\w+)"', names.group(1)):
        if f"`{stage}`" not in life:
            yield f"docs/life_of_a_send.md: does not explain stage {stage}"


def check_trace_points(root):
    seen = set()
    for path, category, name in trace_points(root):
        library = library_of(path)
        if category != ("verbs" if library == "verbs_frontend" else library):
            yield f"{path}: {name} has category {category} in library {library}"
        if not re.fullmatch(category + r"\.[A-Za-z][A-Za-z0-9_]*", name):
            yield f"{path}: {name} is not {category}.NAME"
        if name in seen:
            yield f"{path}: second trace point {name}"
        seen.add(name)


def check_links(root):
    for path in files(root):
        if not path.endswith(".md"):
            continue
        text = re.sub(r"```.*?```", "", read(root, path), flags=re.S)
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
            if "://" in target or target.startswith("mailto:"):
                continue
            if not os.path.exists(os.path.join(root, os.path.dirname(path), target)):
                yield f"{path}: broken link {target}"


CHECKS = {name[len("check_"):]: f for name, f in list(globals().items()) if name.startswith("check_")}


def main():
    if len(sys.argv) != 3 or sys.argv[2] not in CHECKS:
        sys.exit(f"usage: check.py ROOT ({' | '.join(sorted(CHECKS))})")
    violations = list(CHECKS[sys.argv[2]](sys.argv[1]))
    print("\n".join(violations) if violations else "no violation")
    sys.exit(1 if violations else 0)


if __name__ == "__main__":
    main()
