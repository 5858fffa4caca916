"""``crosswalk parse``: a validated value from a model's text, and the way it was found."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import orjson

from crosswalk import structured
from crosswalk.cli.parser import Parser
from crosswalk.cli.terminal import FAILED, OK, UsageError, say, write_json
from crosswalk.errors import CrosswalkError
from crosswalk.schemas.values import value_to_json
from crosswalk.structured import ParseResult, Partial, ResponseParser, StructuredAnswerError, StructuredParser
from crosswalk.text import clean_message, json_type_name
from crosswalk.types.json import dump_json, load_json

_SHIPPED_PARSERS: Final[dict[str, Callable[[], StructuredParser[Any]]]] = {
    "StructuredResponse": ResponseParser,
    "StructuredResponseV1_1": lambda: StructuredParser(structured.RESPONSE_VERSIONS, version="1.1"),
    "StructuredResponseV2": lambda: StructuredParser(structured.RESPONSE_VERSIONS, version="2.0"),
}


def add_arguments(parser: Parser) -> None:
    """Describe the command and add its arguments."""
    parser.describe(
        description="""Read a value of a schema out of a text: directly, extracted from fences and prose, or repaired;
            or give the reason. Write the value, the stage that gave it and the reason as one JSON object.""",
        epilog="Exit status: 0 there is a valid value, 1 there is none, 2 nothing could be tried.",
        examples=("crosswalk parse answer.txt --schema my_module:Weather",),
    )
    parser.add_argument(
        "file", nargs="?", default="-", metavar="FILE", help="the text; '-' or nothing for standard input"
    )
    parser.add_argument(
        "--schema",
        default="StructuredResponse",
        metavar="NAME",
        help="StructuredResponse (the default), StructuredResponseV2, or module:Class for an attrs class, a Schema, "
        "SchemaVersions or a parser of yours (the module is imported), or a file with a JSON Schema, such as book.json",
    )
    parser.add_argument(
        "--partial",
        choices=("refuse", "close", "accept"),
        default="refuse",
        help="what to do with a text that ends in the middle: refuse it, give it where only brackets are missing, or "
        "give what is there; what is given is marked (default: refuse)",
    )
    parser.add_argument(
        "--value", action="store_true", help="write the value alone; the stage goes to standard error"
    )


def run(arguments: argparse.Namespace) -> int:
    """Parse one answer; write its value, the stage that found it and the reason. A failure makes the command fail.

    Raises:
        UsageError: the file cannot be read, or the schema does not exist.
    """
    parser = _parser(arguments.schema)
    data = _read(arguments.file)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        say(f"{arguments.file}: not UTF-8 at byte {error.start}")
        return FAILED
    result = parser.parse(text, partial=Partial(arguments.partial))
    try:
        value = None if result.value is None else value_to_json(result.value, indent=arguments.value)
    except TypeError as error:  # a user's class may hold any value
        say(f"the value cannot be written: {clean_message(str(error), 200)}")
        return FAILED
    if not arguments.value:
        write_json(_report(result, value))
    elif value is not None:
        write_json(value + b"\n")
    if result.value is None and not result.errors:
        try:
            result.unwrap()
        except StructuredAnswerError as error:
            say(str(error))
    if arguments.value:
        for problem in result.errors:
            say(problem)
        say(result.fallback_used + (" (partial)" if result.partial else ""))
    return OK if result.value is not None else FAILED


def _report(result: ParseResult[Any], value: bytes | None) -> bytes:
    report = {
        "stage": result.stage,
        "reason": result.reason,
        "partial": result.partial,
        "schema_version": result.schema_version,
        "violations": result.errors,
        "value": None if value is None else orjson.Fragment(value),
    }
    return dump_json(load_json(orjson.dumps(report)), option=orjson.OPT_INDENT_2) + b"\n"


def _read(file: str) -> bytes:
    if file == "-":
        if sys.stdin.isatty():
            say("reading an answer from the terminal; end it with Ctrl-D")
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror or type(error).__name__}") from None


def _parser(name: str) -> StructuredParser[Any]:
    shipped_factory = _SHIPPED_PARSERS.get(name)
    if shipped_factory is not None:
        return shipped_factory()
    schema_or_parser = _loaded(name) if name.endswith(".json") else _imported(name)
    if isinstance(schema_or_parser, StructuredParser):
        return schema_or_parser
    try:
        return StructuredParser(schema_or_parser)
    except CrosswalkError as error:
        raise UsageError(f"schema {name!r}: {error}") from None


def _loaded(file: str) -> Any:
    """The JSON Schema in a file, also of one that holds a ``response_format``."""
    try:
        schema: Any = load_json(_read(file))
    except orjson.JSONDecodeError as error:
        raise UsageError(f"{file}: not JSON ({error.msg} at character {error.pos})") from None
    for key in ("json_schema", "schema"):
        inner_schema = schema.get(key) if isinstance(schema, dict) else None
        schema = inner_schema if isinstance(inner_schema, dict) else schema
    if not isinstance(schema, dict):
        raise UsageError(f"{file}: a JSON Schema is an object, not {json_type_name(schema)}")
    return schema


def _imported(name: str) -> Any:
    module, _, attribute = name.partition(":")
    if not attribute:
        shipped_names = ", ".join(_SHIPPED_PARSERS)
        raise UsageError(
            f"no schema {name!r}: there are {shipped_names}, any class as module:Class, and a JSON Schema as a file .json"
        )
    sys.path.insert(0, "")  # as for python -m: modules in the working directory can be imported
    try:
        imported_object: Any = import_module(module)
        for part in attribute.split("."):
            imported_object = getattr(imported_object, part)
        return imported_object
    except (Exception, SystemExit) as error:  # another author's module may raise anything, or exit
        raise UsageError(
            f"schema {name!r}: {type(error).__name__}: {clean_message(str(error), 200)}"
        ) from None
    finally:
        sys.path.remove("")
