"""``crosswalk new-plugin``: writes the project of a provider plugin, complete and with passing tests."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath
from string import Template
from typing import Final

import orjson

from crosswalk.cli.parser import Parser
from crosswalk.cli.terminal import OK, UsageError, harmless, write_text
from crosswalk.drafts import made
from crosswalk.errors import ConfigurationError
from crosswalk.manifest import MANIFEST, STATEMENT_SUFFIX
from crosswalk.mapping.openai_chat import OpenAIChatDialect
from crosswalk.plugin.hooks import API
from crosswalk.plugin.registry import OUR_DISTRIBUTION, registry
from crosswalk.testing.captures import Capture, capture_files, load_capture, statement_file
from crosswalk.testing.recorded import NO_TABLE, TableDraft, draft_statement, draft_table
from crosswalk.text import counted
from crosswalk.version import __version__

_NAME_PATTERN: Final = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
_MAX_NAME_LENGTH: Final = 60
_CAPTURES_FOLDER: Final = PurePosixPath("tests/captures")
_EXAMPLE_FOLDERS: Final = {_CAPTURES_FOLDER, PurePosixPath("tests/snapshots")}


def add_arguments(parser: Parser) -> None:
    """Describe the command and add its arguments."""
    parser.describe(
        description="""Write a complete project for a provider plugin: package, entry point, two captures of an
            invented API, conformance test and snapshots. Its tests pass at once; make it yours from there.""",
        epilog="Exit status: 0 it is written, 2 it is not. Nothing is ever written over.",
        examples=("crosswalk new-plugin acme",),
    )
    parser.add_argument(
        "name", metavar="NAME", help="the provider id: lower-case letters, digits, and - or _ between them"
    )
    parser.add_argument(
        "--directory", metavar="DIR", help="where to write it (default: crosswalk-NAME, here)"
    )
    parser.add_argument(
        "--captures",
        metavar="DIR",
        help="""take the captures in DIR instead of the examples, and draft from their bytes a statement for each, and
            a table of fields if the wire is plain""",
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the project and print the next steps.

    Raises:
        UsageError: the name is not a provider id or is taken, or the folder is not empty.
    """
    name: str = arguments.name
    if not _NAME_PATTERN.fullmatch(name) or len(name) > _MAX_NAME_LENGTH:
        raise UsageError(
            f"{name[:_MAX_NAME_LENGTH]!r} is not a provider id: it takes lower-case letters, digits, and single - or _ "
            f"between them, {_MAX_NAME_LENGTH} characters at most"
        )
    if _distribution(name) == OUR_DISTRIBUTION:
        raise UsageError(f"{name!r} would be the package {OUR_DISTRIBUTION}, which is Crosswalk itself")
    for entry in registry.providers():
        if _package(entry.name) == _package(name):
            origin = f", from {entry.distribution}" if entry.distribution else ""
            raise UsageError(f"there is a provider {entry.name!r} already{origin}")
    folder = Path(arguments.directory or _distribution(name))
    quoted_folder = shlex.quote(str(folder))
    steps = [f"cd {quoted_folder} && pip install -e . && pytest"]
    if arguments.captures is None:
        contents: dict[PurePosixPath, str | bytes] = {**project_files(name)}
    else:
        captures, captured_files = _captured(Path(arguments.captures))
        draft = draft_table(one.body for one in captures if one.status < 400 and one.complete)
        contents = {
            path: text
            for path, text in project_files(name, draft, captures).items()
            if not _EXAMPLE_FOLDERS & set(path.parents)
        }
        contents |= captured_files
        module = f"{quoted_folder}/src/{_package(name)}/__init__.py"
        steps = [
            f"correct the drafts {quoted_folder}/{_CAPTURES_FOLDER}/*{STATEMENT_SUFFIX}",
            f"fill in each TODO of {module}" if draft.obstacle is None else f"write the mapping, {module}",
            f"{steps[0]} --snapshot-update",
        ]
    for file in _write(folder, contents):
        write_text(harmless(str(file)) + "\n")
    if arguments.captures is not None:
        write_text(harmless(_said(draft)) + "\n")
    for step in steps:
        write_text(harmless(f"next: {step}") + "\n")
    return OK


def _said(draft: TableDraft) -> str:
    if draft.obstacle is not None:
        return f"no table, for {draft.obstacle}: the mapping still reads the invented API"
    paths = counted(len(draft.unknown), "path")
    if not draft.is_chat:
        return f"a table of {counted(len(draft.rows), 'row')}, and {paths} to look at"
    others = f"; {counted(draft.others, 'answer')} of another API: join both with DialectFamily"
    return f"Chat Completions, which OpenAIChatDialect reads, and {paths} to look at{others * bool(draft.others)}"


def _captured(folder: Path) -> tuple[list[Capture], dict[PurePosixPath, bytes]]:
    """The captures in *folder*, and their files in the project: with requests, and a draft of each missing statement.

    Raises:
        UsageError: there are none, or a file cannot be read.
    """
    captures: list[Capture] = []
    contents: dict[PurePosixPath, bytes] = {}
    manifest_lines = b""
    try:
        for file in capture_files(folder):
            captures.append(capture := load_capture(file))
            request_name, statement_path = f"{capture.case}.request.json", statement_file(file, capture.case)
            draft = draft_statement(
                capture.body, request=capture.request, status=capture.status, complete=capture.complete
            )
            contents[_CAPTURES_FOLDER / file.name] = capture.body
            if capture.request is not None:
                contents[_CAPTURES_FOLDER / request_name] = capture.request
            contents[_CAPTURES_FOLDER / statement_path.name] = (
                statement_path.read_bytes()
                if statement_path.is_file()
                else orjson.dumps(draft, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
            )
            manifest_entry = {
                "file": file.name,
                "path": capture.path,
                "status": capture.status,
                "stream": capture.stream,
                "pair": capture.pair,
                "complete": capture.complete,
                "content_type": capture.content_type,
                "request": None if capture.request is None else request_name,
            }
            manifest_lines += orjson.dumps(manifest_entry, option=orjson.OPT_APPEND_NEWLINE)
    except (ConfigurationError, OSError) as error:
        raise UsageError(str(error)) from None
    if not captures:
        raise UsageError(f"{folder}: no captures in it")
    return captures, {**contents, _CAPTURES_FOLDER / MANIFEST: manifest_lines}


def project_files(
    name: str, draft: TableDraft = NO_TABLE, captures: Sequence[Capture] = ()
) -> dict[PurePosixPath, str]:
    """The files of the project of provider *name*, by their paths in it.

    Args:
        name: the provider id.
        draft: the table that its mapping gets. Without one it reads the invented API with hooks.
        captures: the answers of the table.
    """
    words = re.split("[-_]", name)
    values = {
        "name": name,
        "mark": "-".join(words),
        "distribution": _distribution(name),
        "package": _package(name),
        "class_name": "".join(word.capitalize() for word in words),
        "title": " ".join(word.capitalize() for word in words),
        "range": _range(__version__),
        "signs": " [type.model]" if draft.obstacle else " [choices]" if draft.is_chat else "",
        "now": _NOW if draft.obstacle else _NOW_OF_CHAT if draft.is_chat else _NOW_OF_TABLE,
        **_values(draft, captures),
    }
    folder_names = {"package": values["package"], "provider": name}
    project_texts = {}
    for path, text in _templates(files("crosswalk.cli") / "templates", PurePosixPath()):
        parts = [folder_names.get(part, part) for part in path.parts]
        project_texts[PurePosixPath(*parts).with_suffix("")] = Template(text).substitute(values)
    package_folder = PurePosixPath("src", values["package"])
    own_texts = {file: project_texts.pop(package_folder / file) for file in ("chat.py", "table.py")}
    if draft.obstacle is None:
        own_text = own_texts["chat.py" if draft.is_chat else "table.py"]
        project_texts[package_folder / "__init__.py"] = own_text
    return project_texts


_NOW: Final = "What it reads now is an invented API, small and complete."
_NOW_OF_TABLE: Final = (
    "Its table has the fields whose names are known. Whatever else was recorded is listed there as a comment.\n"
    "Rows are `TEXT`, `REASONING`, `REFUSAL`, `FINISH`, `ID`, `MODEL`, `CREATED`, `count(…)`, `calls(…)` and `same(…)`."
)
_NOW_OF_CHAT: Final = (
    "It reads Chat Completions, as OpenAI has them. Whatever else was recorded is listed there as a comment."
)


def _values(draft: TableDraft, captures: Sequence[Capture]) -> dict[str, str]:
    """The parts of the module with the table of *draft*, or with its differences from Chat Completions."""
    streams = [one.body for one in captures if one.stream and one.complete and one.status < 400]
    ends = [body.rstrip().endswith(b"[DONE]") for body in streams if b'"error"' not in body]
    is_unusual = bool(ends) and all(ends) != draft.is_chat
    sentinel = [f"sentinel = {all(ends)}"] * is_unusual
    rows = []
    for path, row in draft.rows.items():
        rows += [f"# TODO: this one, or {_quoted(rival)}?" for rival in draft.rivals.get(path, ())]
        rows.append(f"{_quoted(path)}: {row},")
    if "TEXT" not in draft.rows.values():
        rows.append("# TODO: no name is one of a text. Give the text its row, TEXT, and import it.")
    if "FINISH" not in draft.rows.values():
        rows.append("# TODO: no name is one of a finish word. Give it its row, FINISH, and import it.")
    times = [_quoted(path) for path, shown in draft.unknown.items() if _TIME.fullmatch(shown)]
    if times and "CREATED" not in draft.rows.values():
        rows.append(f"# TODO: is {' or '.join(times)} the time of creation? Its row is CREATED. Import it.")
    if draft.unknown:
        rows.append(
            "# TODO: a row for each of these that has a place in an answer. The others are kept as sent."
        )
    rows += _listed(draft.unknown, ": ...,  # ")
    words = [
        f"{_quoted(word)}: FinishReason.{reason.name},"
        for word, reason in draft.words.items()
        if reason is not None
    ]
    unknown_words = [_quoted(word) for word, reason in draft.words.items() if reason is None]
    if unknown_words or not words:
        words.append("# TODO: what each finish word means.")
    words += [f"# {word}: FinishReason....," for word in unknown_words]
    names = {row.partition("(")[0] for row in draft.rows.values()} | {
        "FieldTable",
        "FinishReason",
        "TableDialect",
    }
    order = sorted(names, key=lambda name: (not name.isupper(), name.islower(), name))
    paths = [*dict.fromkeys(one.path.partition("?")[0] for one in captures if one.path)]
    endpoints = ", ".join(map(_quoted, paths)) + "," * (len(paths) == 1)
    differences = [f"endpoints = ({endpoints})"] * bool(paths) + sentinel
    if paths and not any(path.endswith(OpenAIChatDialect.endpoints) for path in paths):
        differences.append(f'style = {{"path": {_quoted(paths[0])}}}')
    counts = [
        path for path in draft.unknown if path.rpartition(".")[2] in _OWN_COUNTS and path.startswith("usage.")
    ]
    for path in counts:
        own_path, name = path.removeprefix("usage."), path.rpartition(".")[2]
        differences.append(f"{name} = (*OpenAIChatDialect.{name}, {_quoted(own_path)})")
    if draft.words:
        differences += ["finish_reasons: ClassVar[Mapping[str, FinishReason]] = {"]
        differences += [f"    {word}" for word in ("**OpenAIChatDialect.finish_reasons,", *words)] + ["}"]
    others = {path: example for path, example in draft.unknown.items() if path not in counts}
    if others:
        differences.append("# TODO: look at these. OpenAI does not write them, and they are kept as sent.")
    differences += _listed(others, ": ")
    return {
        "imports": "".join(f"    {name},\n" for name in order),
        "rows": "".join(f"            {row}\n" for row in rows),
        "words": "".join(f"        {word}\n" for word in words),
        "endpoints": endpoints,
        "sentinel": "".join(f"    {line}\n" for line in sentinel),
        "chat_imports": _IMPORTS_OF_WORDS if draft.words else _IMPORTS_OF_CHAT,
        "differences": "".join(f"    {line}\n" for line in differences),
    }


_TIME: Final = re.compile(r'1[4-9]\d{8}|2\d{9}|"\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)"')
"""A time in the form that the row of the time of creation takes, as it is shown: since 2014 if it is a number."""
_OWN_COUNTS: Final = ("cached_tokens", "cache_write_tokens", "reasoning_tokens")
"""The counts that servers of OpenAI's dialect have at places of their own."""


def _listed(examples: Mapping[str, str], separator: str) -> Iterator[str]:
    """The lines of a comment with the path of each of *examples*, and the example if there is room for it."""
    for path, example in list(examples.items())[:_MOST_LISTED]:
        line = f"# {_quoted(path)}{separator}"
        yield (
            line + example if len(line) + len(example) < _MOST_COLUMNS else line[:_MOST_COLUMNS].rstrip(" #")
        )
    if len(examples) > _MOST_LISTED:
        yield f"# and {len(examples) - _MOST_LISTED} more, which crosswalk explain shows"


_MOST_LISTED: Final = 40
_IMPORTS_OF_CHAT: Final = "from crosswalk.plugins import OpenAIChatDialect"
_IMPORTS_OF_WORDS: Final = """\
from collections.abc import Mapping
from typing import ClassVar

from crosswalk.plugins import FinishReason, OpenAIChatDialect"""
_MOST_COLUMNS: Final = 90


def _quoted(text: str) -> str:
    """*text* as Python and its formatter write it, in ASCII."""
    return json.dumps(text)


def _templates(folder: Traversable, path: PurePosixPath) -> Iterator[tuple[PurePosixPath, str]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _templates(entry, path / entry.name)
        else:
            yield path / entry.name, entry.read_text(encoding="utf-8")


def _distribution(name: str) -> str:
    return f"crosswalk-{name.replace('_', '-')}"


def _package(name: str) -> str:
    return f"crosswalk_{name.replace('-', '_')}"


def _range(version: str) -> str:
    """The versions of crosswalk with the plugin API of *version*, whose major number is that of the package, from 1 on."""
    return f">={version.partition('+')[0]},<{API + 1}"


def _write(folder: Path, contents: Mapping[PurePosixPath, str | bytes]) -> list[Path]:
    """Write the project into *folder*, completely or not at all; return its files.

    Raises:
        UsageError: the folder is not empty, or a file cannot be written.
    """
    try:
        if folder.is_dir() and next(folder.iterdir(), None) is not None:
            raise UsageError(f"{folder} is not empty: nothing is written over")
        with made(folder) as draft_folder:
            for path, content in contents.items():
                file = draft_folder / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror or type(error).__name__}") from None
    return [folder / path for path in contents]
