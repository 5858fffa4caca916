"""Captures in the making: the bytes of an exchange, and the folder that it goes into."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final, Self

import attrs
import orjson

from crosswalk.cli.terminal import UsageError
from crosswalk.drafts import written
from crosswalk.testing.captures import capture_files, statement_file
from crosswalk.testing.recorded import Recording, draft_statement, store_capture

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


@attrs.define(kw_only=True)
class Exchange(Recording):
    """An exchange that a user waits for.

    Attributes:
        is_interrupted: whether the user ended it.
    """

    is_interrupted: bool = False

    def rescued(self) -> Path:
        """Write the body that could not be stored to a file in the system's temporary folder, and return its path.

        Raises:
            UsageError: that file cannot be written either.
        """
        try:
            with NamedTemporaryFile("wb", prefix="crosswalk-", suffix=self.suffix, delete=False) as out:
                out.write(self.body)
                return Path(out.name)
        except OSError as error:
            raise UsageError(f"the answer is lost: {error.strerror or type(error).__name__}") from None


@attrs.frozen
class Folder:
    """The folder for captures of one name.

    Attributes:
        path: the folder.
        name: the case, without the suffix of a stream.
    """

    path: Path
    name: str

    @classmethod
    def opened(cls, path: str, name: str, forms: Sequence[bool]) -> Self:
        """The folder, created if it is missing, without a capture of that name.

        Args:
            path: the folder.
            name: the case.
            forms: the captures to store there, streams (``True``) or whole answers.

        Raises:
            UsageError: the name is not allowed or taken, or the folder cannot be created.
            ConfigurationError: the folder's manifest cannot be read.
        """
        if not _NAME.fullmatch(name):
            raise UsageError("--name: letters, digits, and - or _ between them, 100 at most")
        folder = cls(Path(path), name.removesuffix("_stream"))
        try:
            folder.path.mkdir(parents=True, exist_ok=True)
            taken = {file.name.partition(".")[0] for file in folder.path.iterdir()}
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror or type(error).__name__}") from None
        for case in map(folder.case_of, forms):
            if case in taken:
                raise UsageError(f"{path}: there is a capture {case} already")
        list(capture_files(folder.path))  # reads the manifest
        return folder

    def case_of(self, is_stream: bool) -> str:
        """The case's name for a stream or a whole answer."""
        return f"{self.name}_stream" if is_stream else self.name

    def store(self, exchange: Exchange, *, provider: str, is_pair: bool) -> Path:
        """Write *exchange* and a draft of the statement about it; return the file with the answer.

        Args:
            exchange: the exchange; its answer has begun.
            provider: the provider id.
            is_pair: whether it is one of two forms of the same answer.

        Raises:
            OSError: it cannot be written. No part of it is left then, and the name is free.
        """
        case = self.case_of(exchange.is_stream)
        pair = self.name if is_pair else None
        file = store_capture(self.path, case, exchange, provider=provider, pair=pair)
        draft = draft_statement(
            bytes(exchange.body),
            request=exchange.request,
            status=exchange.status or 200,
            complete=exchange.is_complete,
        )
        with written(statement_file(file, case), replace=False) as out:
            out.write(orjson.dumps(draft, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
        return file
