"""The entry points: a body, a stream, an asynchronous stream."""

from __future__ import annotations

import io
import re
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
)
from datetime import datetime
from functools import cache, partial
from itertools import islice
from os import PathLike
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeAlias

import attrs

from crosswalk.errors import (
    CrosswalkError,
    DetectionError,
    ErrorInfo,
    IncompleteStreamError,
    InvalidJSONError,
    MappingError,
    ResponseValidationError,
)
from crosswalk.mapping.detect import MOST_EVENTS, decode_events, recognizing
from crosswalk.mapping.event import Unknown
from crosswalk.mapping.reader import (
    USUAL_OPTIONS,
    Reader,
    ReaderOptions,
    Timer,
    drain,
    log_response,
    quietly,
    read_body,
)
from crosswalk.plugin.registry import Registry, registry as default_registry
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.json import Dumpable, FrozenObject, dump_json, dumped, is_dumpable, plain_view
from crosswalk.types.response import ChatResponse
from crosswalk.types.values import new_id, now
from crosswalk.wire.framing import DEFAULT, Frame, Limits, SniffingDecoder, is_done, load_event
from crosswalk.words import suggests_names

if TYPE_CHECKING:
    from crosswalk.stream import StreamingChatResponse


Chunk = bytes | bytearray | memoryview | Mapping[str, Any] | Dumpable
Body = Chunk | str | list[Any] | tuple[Any, ...] | PathLike[str] | IO[bytes] | IO[str]


class StreamedResponse(Protocol):
    """A response of httpx, httpx2 or an SDK with an unread body."""

    def iter_bytes(self) -> Iterable[bytes]:
        """Yield the body as it comes."""


class StreamedContent(Protocol):
    """A response of requests with an unread body."""

    def iter_content(self, chunk_size: int | None) -> Iterable[bytes]:
        """Yield the body as it comes."""


class AsyncStreamedResponse(Protocol):
    """An asynchronous response of httpx, httpx2 or an SDK with an unread body."""

    def aiter_bytes(self) -> AsyncIterable[bytes]:
        """Yield the body as it comes."""


Chunks: TypeAlias = Iterable[Chunk] | Iterable[str] | StreamedResponse | StreamedContent
AsyncChunks: TypeAlias = AsyncIterable[Chunk] | AsyncIterable[str] | AsyncStreamedResponse


def normalize(
    body: Body,
    provider: str | None = None,
    *,
    status: int = 200,
    unknown: Unknown = "raise",
    id_factory: Callable[[], str] = new_id,
    clock: Callable[[], datetime] = now,
    keep_raw: bool = True,
    limits: Limits | None = None,
    registry: Registry | None = None,
) -> ChatResponse:
    """Read a provider's complete answer into one canonical response.

    Args:
        body: the answer's bytes or text, whole or as a recorded stream (SSE, NDJSON), or a ``Path`` or open file of them.
            Or its decoded JSON object, an SDK's object, such as openai's ``ChatCompletion``, or a list of a stream's
            events as decoded JSON or SDK's objects.
        provider: the provider id, or ``None`` to detect it. If several recognize it and all read the same, the response
            has the id of one of them, and ``provenance`` marks it (``metadata.provider_id``: ``derived``).
        status: the HTTP status. From 400 on the body is read as an error, with an error response as the result.
        unknown: ``"raise"`` refuses an unknown event or finish word, ``"keep"`` keeps it.
        id_factory: makes the id if the provider sends none.
        clock: returns the time, with a time zone, if the provider sends none.
        keep_raw: whether to keep the provider's bytes as ``raw_events``.
        limits: the limits of the input, or ``None`` for the defaults.
        registry: the registry of providers, or ``None`` for the installed ones.

    Raises:
        DetectionError: no provider given, and none recognizes the body, or several do and read it differently.
        UnknownProviderError: no such provider. PluginError: it is broken.
        MappingError: the body cannot be mapped. Its subclass is the reason, and ``partial`` has the part that could be read.
        OSError: the file cannot be read.
    """
    used_registry = default_registry if registry is None else registry
    data = body if type(body) is bytes else _as_bytes(body)
    limits = limits or DEFAULT
    is_usual = id_factory is new_id and clock is now and limits is DEFAULT and keep_raw is True
    options = USUAL_OPTIONS
    if not is_usual or status != 200 or unknown != "raise":
        options = ReaderOptions(
            status=status,
            unknown=unknown,
            id_factory=id_factory,
            clock=clock,
            keep_raw=keep_raw,
            limits=limits,
        )
    if provider is None:
        try:
            provider = recognizing(decode_events(data, limits), used_registry)
        except DetectionError as error:
            try:
                response = guessed(error, data, options, used_registry)
            except DetectionError as failure:
                raise _about_file_name(body, failure) from None
            log_response(response)
            return response
    return read_body(used_registry.mapper(provider), data, options)


def detect(
    events: bytes | Iterable[Any],
    registry: Registry,
    *,
    among: Iterable[str] | None = None,
    guess: bool = True,
) -> str:
    """Return the provider of an answer, by the rule of :func:`normalize`.

    It is the one that recognizes *events* best. If several do and all read the same, it is the original of their dialect.

    Args:
        events: the decoded events of an answer, or its bytes, of which the beginning is enough.
        registry: the registry of the providers.
        among: the ids of the candidates, or ``None`` for all.
        guess: whether the original of a dialect may be the result. With ``False``, an answer that several providers
            recognize is an error, whose ``candidates`` names them.

    Raises:
        DetectionError: none recognizes it, or several do equally and read it differently.
        PluginError: none does, and one returned something other than a :class:`Recognition`.
    """
    if isinstance(events, bytes):
        data, decoded_events = events, [*islice(decode_events(events, DEFAULT), MOST_EVENTS)]
    else:
        data, decoded_events = None, [*islice(events, MOST_EVENTS)]
    try:
        return recognizing(decoded_events, registry, among=among)
    except DetectionError as error:
        if not (guess and error.candidates):
            raise
        ambiguity = error
    if data is None:
        data = b"\n".join(map(dump_json, decoded_events))
    try:
        return guessed(ambiguity, data, _OPTIONS_WITHOUT_BYTES, registry).metadata.provider_id
    except IncompleteStreamError as failure:  # all agree on what came
        return str(failure.provider)


_OPTIONS_WITHOUT_BYTES = ReaderOptions(keep_raw=False)


def guess(ambiguous: DetectionError, data: bytes, options: ReaderOptions, registry: Registry) -> str:
    """Return the provider of the response that :func:`guessed` returns for the same arguments, with fewer readings.

    The answer may still turn out to be damaged when that provider reads it.

    Raises:
        DetectionError: the responses of the candidates differ.
    """
    from crosswalk.mapping.agreement import agreeing  # seldom needed

    name: str | None = _of_candidates(agreeing, ambiguous, data, options, registry)
    if name is None:
        raise ambiguous
    return name


def _of_candidates(
    rule: Callable[..., Any],
    ambiguous: DetectionError,
    data: bytes,
    options: ReaderOptions,
    registry: Registry,
) -> Any:
    """Return what *rule* makes of the candidates' readings of *data*."""
    events = list(islice(decode_events(data, options.limits), MOST_EVENTS))
    same_options = attrs.evolve(options, id_factory=cache(options.id_factory), clock=cache(options.clock))
    read = partial(read_body, options=same_options)
    with quietly():
        return rule(ambiguous.candidates, registry, events, data, read, status=options.status)


def guessed(
    ambiguous: DetectionError, data: bytes, options: ReaderOptions, registry: Registry
) -> ChatResponse:
    """Return the response that all candidates of an *ambiguous* detection read from *data*.

    Raises:
        DetectionError: their responses differ, or there are no candidates.
        IncompleteStreamError: the answer is cut, and all of them read the same part.
    """
    from crosswalk.mapping.agreement import agreed  # seldom needed

    if ambiguous.candidates:
        response: ChatResponse | None = _of_candidates(agreed, ambiguous, data, options, registry)
        if response is None:
            raise ambiguous
        return response
    if not data.strip():
        raise DetectionError("no provider recognizes an empty payload")
    if not any(True for _ in decode_events(data, options.limits)):
        from crosswalk.wire.framing import looks_like  # to read JSON needs none

        likeness = looks_like(data)
        if likeness:
            raise DetectionError(f"the input is not JSON: it looks like {likeness}")
    raise ambiguous


def _about_file_name(body: Body, error: DetectionError) -> DetectionError:
    """Return *error*, and say so if *body* looks like the name of a file or an address."""
    if isinstance(body, str) and re.match(r"https?://\S", body):
        return DetectionError("the text is an address: pass the bytes that its server answers")
    if not isinstance(body, str) or not re.fullmatch(r"[^\s{}\[\]<>\"]{1,250}\.\w{1,8}", body):
        return error
    return DetectionError(f"the text looks like the name of a file: pass Path({body[-60:]!r})")


def _as_bytes(body: Body) -> bytes:
    if isinstance(body, PathLike):
        with open(body, "rb") as file:
            return file.read()
    if isinstance(body, io.IOBase):
        content: str | bytes = body.read()
        return content.encode(errors="surrogatepass") if isinstance(content, str) else content
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(body)
    if isinstance(body, str):
        return body.encode(errors="surrogatepass")
    if isinstance(body, list | tuple):
        return b"".join(map(as_chunk, body))
    if not isinstance(body, Mapping) and not is_dumpable(body):
        raise TypeError(
            f"body is an answer's bytes, text or decoded JSON object, not {type(body).__name__}; an SDK's object, a "
            "Path and an open file go as well; pass a stream to normalize_stream()"
        )
    return _as_json(body) or b""


def as_chunk(chunk: Chunk) -> bytes:
    """The bytes of *chunk*: an event that somebody has decoded is a line of JSON.

    Raises:
        InvalidJSONError: it is not a JSON object. TypeError: it is of another type.
    """
    if isinstance(chunk, bytes | bytearray | memoryview):
        return bytes(chunk)
    if isinstance(chunk, str):
        raise TypeError(
            "a stream's chunks are bytes, not str: pass the response itself, or its iter_bytes() or iter_lines()"
        )
    if not isinstance(chunk, Mapping) and not is_dumpable(chunk):
        raise TypeError(
            f"a stream's chunks are bytes, decoded JSON objects or an SDK's events, not {type(chunk).__name__}"
        )
    event = _as_json(chunk)
    return b"" if event is None else event + b"\n"


def _chunks_of(chunks: Chunks) -> Iterable[Chunk]:
    """Return the chunks of a stream, as an HTTP client, an SDK or a file gives it."""
    if isinstance(chunks, str):
        raise TypeError("chunks is an iterable of bytes or events, not str: open a file, or encode the text")
    if isinstance(chunks, bytes | bytearray | memoryview | Mapping):
        raise TypeError("chunks is an iterable of bytes or events; for a whole answer call normalize()")
    source: Any = chunks
    if callable(getattr(source, "iter_bytes", None)):
        return source.iter_bytes()  # type: ignore[no-any-return]
    if callable(getattr(source, "iter_content", None)):
        return source.iter_content(None)  # type: ignore[no-any-return]
    if getattr(source, "__name__", None) == "iter_lines":
        return map(_as_line, source)
    return map(str.encode, source) if isinstance(source, io.TextIOBase) else source


async def _lines_of(lines: AsyncIterable[str]) -> AsyncGenerator[bytes, None]:
    async for line in lines:
        yield _as_line(line)


def _async_chunks_of(chunks: AsyncChunks) -> AsyncIterable[Chunk]:
    source: Any = chunks
    if callable(getattr(source, "aiter_bytes", None)):
        return source.aiter_bytes()  # type: ignore[no-any-return]
    if callable(getattr(getattr(source, "content", None), "iter_any", None)):
        return source.content.iter_any()  # type: ignore[no-any-return]
    return _lines_of(source) if getattr(source, "__name__", None) == "aiter_lines" else source


def _as_line(line: str | bytes) -> bytes:
    """The bytes of a *line* that came without its end."""
    return (line.encode() if isinstance(line, str) else line) + b"\n"


def _as_json(event: Mapping[str, Any] | Dumpable) -> bytes | None:
    """Return the JSON of *event*, or ``None`` for an event that only an SDK's helper makes."""
    try:
        fields = event if isinstance(event, Mapping) else dumped(event)
        return None if fields is None else dump_json(plain_view(FrozenObject(fields)))
    except (ResponseValidationError, TypeError, RecursionError) as error:
        cause = str(error).removeprefix("not a JSON object: ")
        raise InvalidJSONError(f"{type(event).__name__} is not a JSON object: {cause}") from None


class StreamStart:
    """The beginning of a stream. Its first recognized event names the provider."""

    def __init__(self, registry: Registry, options: ReaderOptions) -> None:
        self._registry = registry
        self._options = options
        self._decoder = SniffingDecoder(options.limits)
        self._events: list[Any] = []
        self._found_provider: tuple[str, bool] | None = None
        self._chunks: list[bytes] = []

    @property
    def so_far(self) -> bytes:
        """The beginning so far."""
        return b"".join(self._chunks)

    def push(self, chunk: bytes) -> bool:
        """Take the next bytes. Return whether the provider is known.

        Raises:
            DetectionError: several providers recognize the first event and read it differently, or none recognizes one
                of the first fifty.
            FramingError: an event cannot be read, or a limit is passed.
        """
        self._chunks.append(chunk)
        self._look(self._decoder.decode(chunk))
        return self._found_provider is not None

    def reader(self) -> Reader:
        """Return the reader of the whole stream, from its first byte.

        Raises:
            DetectionError: as from :meth:`push`.
        """
        if self._found_provider is None:
            self._look(self._decoder.flush())
        if self._found_provider is None:
            self._found_provider = recognizing(self._events, self._registry), False
        name, is_guess = self._found_provider
        return Reader(self._registry.mapper(name), self._options, is_guess=is_guess)

    def _look(self, frames: Iterable[Frame]) -> None:
        for data, _ in frames:
            if self._found_provider is None and data and not is_done(data):
                self._events.append(load_event(data, self._options.limits, halves="mend"))
                self._found_provider = self._found()

    def _found(self) -> tuple[str, bool] | None:
        try:
            return recognizing(self._events, self._registry), False
        except DetectionError as error:
            if error.candidates:
                return detect(self._events, self._registry), True
            if len(self._events) >= MOST_EVENTS:
                raise
            return None


def _started(reader_or_start: Reader | StreamStart) -> Reader:
    if isinstance(reader_or_start, StreamStart):
        raise ResponseValidationError(
            "Cannot build incomplete response: the first event, which names the provider, has not been read",
            code="ACODE-RSP-008",
        )
    return reader_or_start


@suggests_names
class DeltaStream(Iterator[ResponseDelta]):
    """The deltas of a stream, each as soon as its bytes are available, then the response.

    Made by :func:`normalize_stream`. It reads bytes only when you ask for a delta.
    """

    def __init__(self, chunks: Iterable[Chunk], reader: Reader | StreamStart) -> None:
        self._reader_or_start = reader
        self._unread: Iterable[Chunk] | None = chunks  # until the reading begins
        self._deltas = self._read(chunks)
        self._failure: CrosswalkError | None = None

    def _read(self, chunks: Iterable[Chunk]) -> Iterator[ResponseDelta]:
        self._unread = None
        try:
            source = iter(chunks)
            if isinstance(self._reader_or_start, StreamStart):
                start = self._reader_or_start
                for chunk in source:
                    if start.push(as_chunk(chunk)):
                        break
                self._reader_or_start = start.reader()
                yield from self._reader_or_start.read(start.so_far)
            reader = self._reader_or_start
            is_whole = isinstance(chunks, list) and len(chunks) == 1  # it needs no framing
            read = reader.read_whole if is_whole else reader.read
            for chunk in source:
                yield from read(chunk if type(chunk) is bytes else as_chunk(chunk))
            yield from reader.finish()
        except CrosswalkError as error:
            self._failure = error
            raise

    def __iter__(self) -> Iterator[ResponseDelta]:
        return self._deltas  # the generator itself: a detour through __next__ would show

    def __next__(self) -> ResponseDelta:
        return next(self._deltas)

    def until_done(self) -> ChatResponse:
        """Read the stream to its end and return the complete response.

        Raises:
            CrosswalkError: the error that ended the stream, if it failed.
        """
        chunks, reader = self._unread, self._reader_or_start
        answer = chunks[0] if isinstance(chunks, list) and len(chunks) == 1 else None
        if type(answer) is not bytes or isinstance(reader, StreamStart):
            drain(self._deltas)
            return self.response
        self._unread, self._deltas = None, iter(())  # a whole answer needs no deltas
        try:
            return reader.read_to_end(answer)
        except CrosswalkError as error:
            self._failure = error
            raise

    @property
    def response(self) -> ChatResponse:
        """The complete response, once the deltas are exhausted.

        Raises:
            ResponseValidationError: they are not yet (``ACODE-RSP-008``).
            CrosswalkError: the error that ended the stream, if it failed.
        """
        if self._failure is not None:
            raise self._failure
        return _started(self._reader_or_start).response()

    @property
    def partial(self) -> ChatResponse:
        """Everything so far as an error response, whatever happened to the stream."""
        if isinstance(self._failure, MappingError) and self._failure.partial is not None:
            return self._failure.partial
        return _started(self._reader_or_start).partial("the stream has not been read to its end")

    def ended_by(self, cause: str | ErrorInfo) -> ChatResponse:
        """Everything so far as an error response that tells *cause*: why the rest of the stream will not come.

        Raises:
            PluginError: no response can be made of what the plugin has set.
        """
        return _started(self._reader_or_start).partial(cause)


def normalize_stream(
    chunks: Chunks,
    provider: str | None = None,
    *,
    status: int = 200,
    unknown: Unknown = "raise",
    id_factory: Callable[[], str] = new_id,
    clock: Callable[[], datetime] = now,
    keep_raw: bool = True,
    limits: Limits | None = None,
    registry: Registry | None = None,
    timer: Timer | None = None,
    content_type: str = "",
) -> DeltaStream:
    """Read a provider's stream into canonical deltas and, in the end, one response.

    Args:
        chunks: the answer's bytes in pieces of any length, or its events as decoded JSON objects or an SDK's objects. Or
            the response of httpx or requests, or what its ``iter_bytes()`` or ``iter_lines()`` gives, or an open file.
        provider: the provider id, or ``None`` to detect it from the first event, by the rule of :func:`detect`.
        timer: a monotonic clock in seconds, such as ``time.perf_counter``, to measure duration and time to first
            token from this call on, or ``None`` for no measurement.
        content_type: the answer's ``Content-Type`` header, for a provider with its own framing. ``""`` if you do
            not know it.

    The other arguments are those of :func:`normalize`.

    Raises:
        UnknownProviderError: no such provider. PluginError: it is broken.
        DetectionError: while iterating, no provider was given, and none recognizes the stream, or several read its first
            event differently.
        MappingError: while iterating, the stream cannot be mapped. ``partial`` has the answer so far.
            A stream that ends without its terminal signal raises ``IncompleteStreamError``.
    """
    options = ReaderOptions(
        status=status,
        unknown=unknown,
        id_factory=id_factory,
        clock=clock,
        keep_raw=keep_raw,
        limits=limits or DEFAULT,
        timer=timer,
        content_type=content_type.partition(";")[0].strip().lower(),
    )
    source = chunks if isinstance(chunks, list) else _chunks_of(chunks)
    return DeltaStream(source, _reading(provider, registry, options))


def _reading(provider: str | None, registry: Registry | None, options: ReaderOptions) -> Reader | StreamStart:
    used_registry = default_registry if registry is None else registry
    return (
        StreamStart(used_registry, options)
        if provider is None
        else Reader(used_registry.mapper(provider), options)
    )


def anormalize_stream(
    chunks: AsyncChunks,
    provider: str | None = None,
    *,
    status: int = 200,
    unknown: Unknown = "raise",
    id_factory: Callable[[], str] = new_id,
    clock: Callable[[], datetime] = now,
    keep_raw: bool = True,
    limits: Limits | None = None,
    registry: Registry | None = None,
    timer: Timer | None = None,
    content_type: str = "",
    replay: bool = True,
) -> StreamingChatResponse:
    """Read a provider's asynchronous stream, with the arguments of :func:`normalize_stream`.

    Args:
        chunks: the answer's bytes in pieces of any length, or its events as decoded JSON objects or an SDK's objects. Or
            the response of httpx or aiohttp, or what its ``aiter_bytes()`` or ``aiter_lines()`` gives.
        provider: the provider id, or ``None`` to detect it from the first event, by the rule of :func:`detect`.
        replay: whether several consumers may each read from the start. ``False`` stores no deltas, and costs less.

    Raises:
        UnknownProviderError: no such provider. PluginError: it is broken.
        DetectionError: to every consumer, no provider was given, and none recognizes the stream, or several read its first
            event differently.
        MappingError: to every consumer, where the stream cannot be mapped. ``partial`` has the answer so far.
    """
    options = ReaderOptions(
        status=status,
        unknown=unknown,
        id_factory=id_factory,
        clock=clock,
        keep_raw=keep_raw,
        limits=limits or DEFAULT,
        timer=timer,
        content_type=content_type.partition(";")[0].strip().lower(),
    )
    deltas = _AsyncDeltas(_async_chunks_of(chunks), _reading(provider, registry, options))
    from crosswalk.stream import StreamingChatResponse  # it loads asyncio, which nothing else here needs

    return StreamingChatResponse(deltas, deltas.response, replay=replay)


class _AsyncDeltas(AsyncIterator[ResponseDelta]):
    """The deltas of an asynchronous stream. Closing it closes the source, even if it was never read."""

    def __init__(self, chunks: AsyncIterable[Chunk], reader: Reader | StreamStart) -> None:
        self._source = aiter(chunks)
        self._reading = reader
        self._deltas = self._read()
        self._pending_deltas: Iterator[ResponseDelta] = iter(())

    async def _read(self) -> AsyncGenerator[ResponseDelta, None]:
        if isinstance(self._reading, StreamStart):
            start = self._reading
            async for chunk in self._source:
                if start.push(as_chunk(chunk)):
                    break
            self._reading = start.reader()
            self._pending_deltas = iter(self._reading.read(start.so_far))
            for delta in self._pending_deltas:
                yield delta
        reader = self._reading
        async for chunk in self._source:
            self._pending_deltas = iter(reader.read(chunk if type(chunk) is bytes else as_chunk(chunk)))
            for delta in self._pending_deltas:
                yield delta
        self._pending_deltas = iter(reader.finish())
        for delta in self._pending_deltas:
            yield delta

    def response(self) -> ChatResponse:
        """Return the complete response, once the deltas are exhausted."""
        return _started(self._reading).response()

    def ready(self) -> ResponseDelta | None:
        """Return the next delta of the last chunk, or ``None`` once they are read."""
        return next(self._pending_deltas, None)

    def __anext__(self) -> Awaitable[ResponseDelta]:
        return self._deltas.__anext__()

    async def aclose(self) -> None:
        await self._deltas.aclose()
        close = getattr(self._source, "aclose", None)
        if close is not None:
            await close()
