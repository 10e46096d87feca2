#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""schema_check.py ROOT: every shipped scenario and profile is valid under its JSON Schema, and the schema refuses mistakes."""
import glob
import json
import os
import re
import sys

import jsonschema

STRING_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/', re.S)


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.loads(STRING_OR_COMMENT.sub(lambda m: m.group() if m.group()[0] == '"' else " ", f.read()))


def errors(schema, document):
    return [f"{'/'.join(map(str, e.absolute_path))}: {e.message}" for e in jsonschema.Draft7Validator(schema).iter_errors(document)]


def main(root):
    scenarios = os.path.join(root, "scenarios")
    schemas = {kind: load(os.path.join(scenarios, "schema", f"{kind}.schema.json")) for kind in ("scenario", "profile")}
    bad = 0
    for schema in schemas.values():
        jsonschema.Draft7Validator.check_schema(schema)
    files = sorted(glob.glob(os.path.join(scenarios, "**", "*.json"), recursive=True))
    for path in files:
        top = os.path.relpath(path, scenarios).split(os.sep)[0]
        if top == "schema":
            continue
        for error in errors(schemas["profile" if top == "profiles" else "scenario"], load(path)):
            print(f"{path}: {error}")
            bad += 1
    for mistake in ({"workload": []}, {"seed": "one"}, {"seed": -1}, {"expect": [{"equals": 1}]}, []):
        if not errors(schemas["scenario"], mistake):
            print(f"the schema accepts {mistake}")
            bad += 1
    print(f"{len(files)} files, {bad} errors")
    return 1 if bad or not files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
