"""``crosswalk new-plugin``: writes the project of a provider plugin, complete and with passing tests."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath
from string import Template
from typing import Final

import orjson

from crosswalk.cli.terminal import OK, UsageError, harmless, write_text
from crosswalk.drafts import made
from crosswalk.errors import ConfigurationError
from crosswalk.manifest import MANIFEST, STATEMENT
from crosswalk.plugin.hooks import API
from crosswalk.plugin.registry import OURS, registry
from crosswalk.testing.captures import capture_files, load_capture, statement_file
from crosswalk.testing.recorded import draft_statement
from crosswalk.version import __version__

_NAME: Final = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
_LONGEST_NAME: Final = 60
_CAPTURES: Final = PurePosixPath("tests/captures")


def run(arguments: argparse.Namespace) -> int:
    """Write the project and print the next steps.

    Raises:
        UsageError: the name is not a provider id or is taken, or the folder is not empty.
    """
    name: str = arguments.name
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        raise UsageError(
            f"{name[:_LONGEST_NAME]!r} is not a provider id: it takes lower-case letters, digits, and single - or _ "
            f"between them, {_LONGEST_NAME} characters at most"
        )
    if _distribution(name) == OURS:
        raise UsageError(f"{name!r} would be the package {OURS}, which is Crosswalk itself")
    for entry in registry.providers():
        if _package(entry.name) == _package(name):
            by = f", from {entry.distribution}" if entry.distribution else ""
            raise UsageError(f"there is a provider {entry.name!r} already{by}")
    folder = Path(arguments.directory or _distribution(name))
    contents: dict[PurePosixPath, str | bytes] = {**project_files(name)}
    if arguments.captures is not None:
        examples = (PurePosixPath("tests/captures"), PurePosixPath("tests/snapshots"))
        contents = {path: text for path, text in contents.items() if not set(examples) & set(path.parents)}
        contents |= _captured(Path(arguments.captures))
    for file in _write(folder, contents):
        write_text(harmless(str(file)) + "\n")
    quoted_folder = shlex.quote(str(folder))
    if arguments.captures is not None:
        write_text(
            harmless(
                f"next: correct the drafts {quoted_folder}/tests/captures/*{STATEMENT}, then write the mapping"
            )
            + "\n"
        )
    write_text(harmless(f"next: cd {quoted_folder} && pip install -e . && pytest") + "\n")
    return OK


def _captured(folder: Path) -> dict[PurePosixPath, bytes]:
    """The captures in *folder* as files of the project, with their requests, and a draft of each missing statement.

    Raises:
        UsageError: there are none, or a file cannot be read.
    """
    contents: dict[PurePosixPath, bytes] = {}
    lines = b""
    try:
        for file in capture_files(folder):
            capture = load_capture(file)
            request, stated = f"{capture.case}.request.json", statement_file(file, capture.case)
            draft = draft_statement(
                capture.body, request=capture.request, status=capture.status, complete=capture.complete
            )
            contents[_CAPTURES / file.name] = capture.body
            if capture.request is not None:
                contents[_CAPTURES / request] = capture.request
            contents[_CAPTURES / stated.name] = (
                stated.read_bytes()
                if stated.is_file()
                else orjson.dumps(draft, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
            )
            known = {
                "file": file.name,
                "path": capture.path,
                "status": capture.status,
                "stream": capture.stream,
                "pair": capture.pair,
                "complete": capture.complete,
                "content_type": capture.content_type,
                "request": None if capture.request is None else request,
            }
            lines += orjson.dumps(known, option=orjson.OPT_APPEND_NEWLINE)
    except (ConfigurationError, OSError) as error:
        raise UsageError(str(error)) from None
    if not lines:
        raise UsageError(f"{folder}: no captures in it")
    return {**contents, _CAPTURES / MANIFEST: lines}


def project_files(name: str) -> dict[PurePosixPath, str]:
    """The files of the project of provider *name*, by their paths in it."""
    words = re.split("[-_]", name)
    values = {
        "name": name,
        "mark": "-".join(words),
        "distribution": _distribution(name),
        "package": _package(name),
        "class_name": "".join(word.capitalize() for word in words),
        "title": " ".join(word.capitalize() for word in words),
        "range": _range(__version__),
    }
    folders = {"package": values["package"], "provider": name}
    results = {}
    for path, text in _templates(files("crosswalk.cli") / "templates", PurePosixPath()):
        parts = [folders.get(part, part) for part in path.parts]
        results[PurePosixPath(*parts).with_suffix("")] = Template(text).substitute(values)
    return results


def _templates(folder: Traversable, path: PurePosixPath) -> Iterator[tuple[PurePosixPath, str]]:
    for inside in sorted(folder.iterdir(), key=lambda inside: inside.name):
        if inside.is_dir():
            yield from _templates(inside, path / inside.name)
        else:
            yield path / inside.name, inside.read_text(encoding="utf-8")


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
        with made(folder) as draft:
            for path, text in contents.items():
                file = draft / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(text.encode() if isinstance(text, str) else text)
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror or type(error).__name__}") from None
    return [folder / path for path in contents]
