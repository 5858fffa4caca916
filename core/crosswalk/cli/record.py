"""``crosswalk record``: a live exchange as a capture, byte for byte."""

from __future__ import annotations

import argparse
import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final, Self

import attrs
import httpx2
import orjson
from anyio.from_thread import start_blocking_portal

from crosswalk.cli.ask import (
    EXIT_HELP,
    KEY_HELP,
    add_asking,
    add_prompt,
    endpoint_of,
    name_words,
    request_of,
    tokens_line,
    turns_of,
)
from crosswalk.cli.parser import Parser
from crosswalk.cli.terminal import FAILED, INTERRUPTED, OK, UsageError, harmless, say, write_text
from crosswalk.drafts import written
from crosswalk.errors import ConfigurationError, CrosswalkError
from crosswalk.mapping.normalize import normalize_stream
from crosswalk.plugin.registry import Mapper, registry
from crosswalk.service import DISCOVERED, ChatRequest, Turn, UnsupportedRequestError
from crosswalk.service.building import build
from crosswalk.service.endpoint import Route, failure_of, join_url, resolve
from crosswalk.testing.captures import capture_files, statement_file
from crosswalk.testing.recorded import Recording, draft_statement, store_capture
from crosswalk.text import counted
from crosswalk.types.response import ChatResponse
from crosswalk.wire.framing import DEFAULT

# -------------------------------------------------------------------------------- captured
# Captures in the making: the bytes of an exchange, and the folder that it goes into.


_NAME_PATTERN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


@attrs.define(kw_only=True)
class LiveExchange(Recording):
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
        if not _NAME_PATTERN.fullmatch(name):
            raise UsageError("--name: letters, digits, and - or _ between them, 100 at most")
        folder = cls(Path(path), name.removesuffix("_stream"))
        try:
            folder.path.mkdir(parents=True, exist_ok=True)
            taken_cases = {file.name.partition(".")[0] for file in folder.path.iterdir()}
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror or type(error).__name__}") from None
        for case in map(folder.case_of, forms):
            if case in taken_cases:
                raise UsageError(f"{path}: there is a capture {case} already")
        list(capture_files(folder.path))  # reads the manifest
        return folder

    def case_of(self, is_stream: bool) -> str:
        """The case's name for a stream or a whole answer."""
        return f"{self.name}_stream" if is_stream else self.name

    def store(self, exchange: LiveExchange, *, provider: str, is_pair: bool) -> Path:
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


# ---------------------------------------------------------------------------------- record
# ``crosswalk record``: a live exchange as a capture, byte for byte.


_MOST_BYTES: Final = DEFAULT.total_bytes


def add_arguments(parser: Parser) -> None:
    """Describe the command and add its arguments."""
    parser.describe(
        description=f"""Ask a server once and keep its answer, byte for byte, as a capture: CASE.response.json for a
            whole answer, CASE_stream.response.sse or .ndjson for a stream, the request's body next to it, and a line
            in MANIFEST.jsonl. normalize, check, explain and diff read it. Every answer is recorded, an
            error too. No request is repeated, no file is overwritten, and no credential is written. {KEY_HELP}""",
        epilog=EXIT_HELP,
        examples=('crosswalk record --provider ollama --model llama3.2 --output captures --name sky "Why?"',),
    )
    add_prompt(parser)
    add_asking(parser)
    parser.add_argument("--output", required=True, metavar="DIR", help="the folder of the captures")
    parser.add_argument(
        "--name",
        required=True,
        metavar="CASE",
        help="what to call it: letters, digits, and - or _ between them",
    )
    form_group = parser.add_mutually_exclusive_group()
    form_group.add_argument(
        "--stream",
        dest="forms",
        action="store_const",
        const=(True,),
        help="ask for a stream (the default)",
    )
    form_group.add_argument(
        "--no-stream", dest="forms", action="store_const", const=(False,), help="ask for a whole answer"
    )
    form_group.add_argument(
        "--both",
        dest="forms",
        action="store_const",
        const=(False, True),
        help="ask for both, one after the other; if their content is the same, they are a pair, which check compares",
    )
    parser.set_defaults(forms=(True,))


def run(arguments: argparse.Namespace) -> int:
    """Record an exchange, or two, and write the names of the files with the answers to standard output.

    It fails if an answer was incomplete or cannot be mapped. An error of the server is an answer.

    Raises:
        UsageError: the request cannot be sent, or its capture cannot be written.
        ConfigurationError: the address or the key of the server is not configured, or the manifest cannot be read.
        PluginError: the provider is unknown or broken.
    """
    folder = Folder.opened(arguments.output, arguments.name, arguments.forms)
    name_words(arguments)
    endpoint = endpoint_of(arguments)
    if endpoint.provider == DISCOVERED:
        raise UsageError("which provider? pass --provider: a capture belongs to one")
    route = resolve(endpoint, registry.mapper(endpoint.provider))
    turns = turns_of(arguments)
    exchanges: list[LiveExchange] = []
    status = OK
    for stream in arguments.forms:
        exchange = _ask(arguments, route, turns, stream=stream)
        status = status or _status_of(exchange)
        if exchange.quotes(route.headers.values()):
            say("the exchange quotes a credential of yours: it is not recorded")
            return FAILED
        if exchange.status is not None:
            exchanges.append(exchange)
        if exchange.is_interrupted:
            break
    responses = [_mapped(exchange, route.mapper, arguments.unknown) for exchange in exchanges]
    has_both = len(exchanges) == 2 and all(exchange.is_complete for exchange in exchanges)
    is_pair = has_both and _say_the_same(responses)
    if has_both and not is_pair:
        say("the two answers differ, so they are stored as no pair; --temperature 0 and --seed may help")
    for exchange, response in zip(exchanges, responses, strict=True):
        try:
            file = folder.store(exchange, provider=route.provider, is_pair=is_pair)
        except OSError as error:
            say(f"{error.filename or folder.path}: {error.strerror or type(error).__name__}")
            say(f"what came is kept in {harmless(str(exchange.rescued()))}")
            status = status or FAILED
            continue
        write_text(harmless(str(file)) + "\n")
        if exchange.holds_key:
            say("it holds what looks like a key: look at it before anybody else does")
        say(f"HTTP {exchange.status}, {counted(len(exchange.body), 'byte')}: {_summary(response)}")
        if isinstance(response, CrosswalkError):
            status = status or FAILED
    return status


def _ask(arguments: argparse.Namespace, route: Route, turns: Sequence[Turn], *, stream: bool) -> LiveExchange:
    """One exchange, as far as it arrives."""
    request = request_of(arguments, turns, stream=stream)
    exchange = _built(request, route, arguments)
    try:
        with (
            start_blocking_portal() as portal
        ):  # Ctrl-C reaches this thread, and ends the exchange in the other
            portal.call(_receive, exchange, route, arguments.settings.timeout_seconds or 600.0)
    except KeyboardInterrupt:
        exchange.is_interrupted = True
        has_answer = exchange.status is not None
        say("interrupted: " + ("what came is recorded as not complete" if has_answer else "nothing came"))
    return exchange


def _built(request: ChatRequest, route: Route, arguments: argparse.Namespace) -> LiveExchange:
    request_with_model = attrs.evolve(request, model=route.endpoint.model)
    try:
        wire_request, body = build(request_with_model, route.mapper, arguments.unsupported)
    except UnsupportedRequestError as error:
        raise UsageError(str(error)) from None
    for one in wire_request.adaptations:
        say(f"{one.kind.value}: {one}")
    return LiveExchange(
        is_stream=request.stream,
        method=wire_request.method,
        path=wire_request.path,
        headers=wire_request.headers,
        request=body,
    )


async def _receive(exchange: LiveExchange, route: Route, seconds: float) -> None:
    """Send the request and keep the answer. A failure is reported, and the exchange is then incomplete.

    *seconds* limit the whole exchange, so that a server that drips headers or asks to wait gets no more time.

    Raises:
        ConfigurationError: the environment names a proxy or certificates that cannot be used.
    """
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "crosswalk",
        "Accept-Encoding": "identity",  # a capture holds the server's bytes without compression
        **exchange.headers,
        **route.headers,
    }
    url = join_url(route.base_url, exchange.path)
    try:
        async with (
            asyncio.timeout(seconds),
            _client() as client,
            client.stream(exchange.method, url, headers=headers, content=exchange.request) as answer,
        ):
            exchange.status = answer.status_code
            exchange.content_type = answer.headers.get("content-type")
            async for chunk in answer.aiter_bytes():
                exchange.body += chunk
                if len(exchange.body) > _MOST_BYTES:
                    say(f"crosswalk: {route.provider}: more than {_MOST_BYTES} bytes: the rest is left")
                    return
        exchange.is_complete = True
    except (httpx2.HTTPError, TimeoutError) as error:
        info = failure_of(error, route.host)
        if info is None:
            raise
        say(f"crosswalk: {route.provider}: {info.kind}: {info.message}")


def _client() -> httpx2.AsyncClient:
    try:
        # A redirect would send the key to another host.
        return httpx2.AsyncClient(timeout=None, follow_redirects=False)
    except (ValueError, OSError, ImportError, httpx2.InvalidURL) as error:
        # The text may contain a proxy's URL with its password.
        raise ConfigurationError(
            f"the environment's proxy or certificates cannot be used ({type(error).__name__})"
        ) from None


def _status_of(exchange: LiveExchange) -> int:
    if exchange.is_interrupted:
        return INTERRUPTED
    return OK if exchange.is_complete else FAILED


def _mapped(exchange: LiveExchange, mapper: Mapper, unknown: str) -> ChatResponse | CrosswalkError:
    """The result of mapping the capture, or the reason why it cannot be mapped. It is recorded in either case."""
    status = exchange.status or 200
    deltas = normalize_stream(
        [bytes(exchange.body)],
        mapper.provider,
        status=status if status >= 400 else 200,
        unknown="keep" if unknown == "keep" else "raise",
    )
    try:
        for _ in deltas:
            pass
    except CrosswalkError as error:
        return error
    return deltas.response


def _say_the_same(answers: Sequence[ChatResponse | CrosswalkError]) -> bool:
    """Whether the model wrote the same answer twice, or ``True`` if one cannot be mapped, which ``check`` reports."""
    whole_response, streamed_response = answers
    if isinstance(whole_response, CrosswalkError) or isinstance(streamed_response, CrosswalkError):
        return True
    return _said(whole_response) == _said(streamed_response)


def _said(response: ChatResponse) -> tuple[object, ...]:
    calls = tuple((call.name, call.arguments) for call in response.tool_calls)
    return response.text, response.reasoning, response.finish_reason, calls


def _summary(response: ChatResponse | CrosswalkError) -> str:
    if isinstance(response, CrosswalkError):
        return f"{type(response).__name__}: {response}"
    info = response.error_info
    if info is not None:
        return f"error, {info.kind}: {info.message}"
    return f"{response.finish_reason}; {tokens_line(response)}"
