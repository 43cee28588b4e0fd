#!/usr/bin/python3
"""Validate JSON files with a JSON Schema (draft 2020-12); without files, the schema with its own.

usage: validate.py SCHEMA [FILE...]

One line per file, `FILE: ok` or one `FILE: WRONG: where: what` for each error; exit status 1 if any is wrong.
Needs python3-jsonschema.
"""
import json
import sys

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from replay import Wrong, constant, unique_keys


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file, object_pairs_hook=unique_keys, parse_constant=constant)


def inline(part, definitions):
    """The schema with each reference to a definition replaced by it: to look them up takes most of the time."""
    if isinstance(part, list):
        return [inline(entry, definitions) for entry in part]
    if not isinstance(part, dict):
        return part
    rest = {name: inline(entry, definitions) for name, entry in part.items() if name != "$defs"}
    if "$ref" in rest:
        found = inline(definitions[rest.pop("$ref").removeprefix("#/$defs/")], definitions)
        return {"allOf": [found], **rest} if rest else found
    return rest


def errors(validator, document):
    """Text of each error, in the order of the document."""
    found = sorted(validator.iter_errors(document), key=lambda error: [str(part) for part in error.absolute_path])
    return [f"{error.json_path}: {error.message[:200]}" for error in found]


def check(path, schema):
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        print(f"{path}: WRONG: {error.json_path}: {error.message}")
        return 1
    print(f"{path}: ok")
    return 0


def main(schema_path, paths):
    wrong = 0
    schema = load(schema_path)
    if not paths:
        return check(schema_path, schema)
    validator = Draft202012Validator(inline(schema, schema.get("$defs", {})))
    for path in paths:
        try:
            found = errors(validator, load(path))
        except (Wrong, OSError, ValueError, RecursionError) as error:
            found = [str(error)]
        print("\n".join(f"{path}: WRONG: {text}" for text in found) or f"{path}: ok")
        wrong = wrong or bool(found)
    return int(wrong)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        sys.exit(2)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
