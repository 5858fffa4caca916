"""Vendors' batch files: requests as lines of the file that a job takes, and the lines of its results as responses, by id.

The plugins describe the lines: :class:`crosswalk.plugins.BatchFile`. Submitting a job is the work of the vendor's SDK.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO, IOBase, TextIOBase
from types import MappingProxyType
from typing import Any, BinaryIO, TypeAlias, cast

import attrs

from crosswalk.errors import ConfigurationError, CrosswalkError, InvalidJSONError, MappingError
from crosswalk.mapping.event import Unknown
from crosswalk.mapping.normalize import as_chunk, normalize
from crosswalk.plugin.hooks import BatchFile
from crosswalk.plugin.registry import Mapper, Registry, registry as default_registry
from crosswalk.records import BadRecord, Line, RecordError, load_layout, record_lines, with_facts
from crosswalk.request import ChatRequest, HTTPRequest, UnsupportedRequestError
from crosswalk.service.building import OnUnsupported, build, fitting_names
from crosswalk.service.way_back import answer_with_names
from crosswalk.text import brief, short_repr
from crosswalk.types.json import Dumpable, dump_json
from crosswalk.types.response import ChatResponse, error_of
from crosswalk.types.values import altered, new_id

BatchLines: TypeAlias = bytes | str | BinaryIO | Iterable[bytes | str | Mapping[str, Any] | Dumpable]
"""A file of results: its content, an open binary file, or its lines as bytes, text, decoded JSON or an SDK's objects."""


class BatchRequestError(UnsupportedRequestError):
    """A request cannot go into a batch file.

    Attributes:
        id: its id.
    """

    def __init__(self, id: str, cause: str, *, provider: str, options: Iterable[str] = ()) -> None:
        super().__init__(f"request {id!r:.80}: {cause}", provider=provider, options=[*options])
        self.id = id


@brief
@attrs.frozen(eq=False, repr=False)
class BatchRequest:
    """A request of a batch file.

    Attributes:
        id: its id.
        line: its line, with the line end.
        built: the request itself: what was dropped or adapted, and the headers that the line cannot hold.
    """

    id: str
    line: bytes
    built: HTTPRequest

    __repr__ = short_repr("id", "built")


@brief
@attrs.frozen(eq=False, repr=False)
class BatchResult:
    """The result of a request of a batch file.

    Attributes:
        id: the id of the request, or ``None`` if the line holds none.
        number: the number of the line, from 1.
        response: the answer, complete or with the part that could be read, or ``None`` without one.
        error: why there is no complete answer, or ``None``. It is a ``ProviderError`` if the request failed,
            a ``MappingError`` if the answer cannot be read, and a ``RecordError`` if the line has none.
    """

    id: str | None
    number: int
    response: ChatResponse | None
    error: CrosswalkError | None = None

    __repr__ = short_repr("id", "response", "error")


def build_batch_requests(
    requests: Mapping[str, ChatRequest] | Iterable[tuple[str, ChatRequest]],
    provider: str,
    *,
    model: str | None = None,
    on_unsupported: OnUnsupported = "raise",
    registry: Registry | None = None,
    model_class: str | None = None,
) -> Iterator[BatchRequest]:
    """Yield *requests* as the lines of a batch file of *provider*. Nothing is sent, and no stream is requested.

    Args:
        requests: the requests by id, or pairs of both, which are taken one at a time.
        provider: the provider id.
        model: the model for requests that name none.
        on_unsupported: as for :func:`build_http_request`.
        registry: the registry of providers, or ``None`` for the installed ones.
        model_class: as for :func:`build_http_request`.

    Raises:
        BatchRequestError: the provider or the model cannot take a request, the vendor does not take its id, the id is there
            already, or a file or job of one model has another one. It is raised when you reach the request.
        ConfigurationError: the provider has no batch files, there is no such model class, or your file of model classes is
            broken.
        UnknownProviderError: there is no such provider. PluginError: it is broken.
    """
    mapper, file = _resolved(provider, registry)
    pairs = requests.items() if isinstance(requests, Mapping) else requests
    return _lines_of(pairs, mapper, file, on_unsupported, model, model_class)


def _resolved(provider: str, registry: Registry | None) -> tuple[Mapper, BatchFile]:
    mapper = (default_registry if registry is None else registry).mapper(provider)
    file = mapper.info.batch_file
    if file is None:
        raise ConfigurationError(f"{provider}: its plugin describes no batch file", key="batch_file")
    return mapper, file


def _lines_of(
    pairs: Iterable[tuple[str, ChatRequest]],
    mapper: Mapper,
    file: BatchFile,
    on_unsupported: OnUnsupported,
    model: str | None,
    model_class: str | None,
) -> Iterator[BatchRequest]:
    provider, access = mapper.provider, mapper.info.access
    ids: set[str] = set()
    models: set[str | None] = set()
    for id, request in pairs:
        try:
            _check_id(id, ids, file)
            http_request, _ = build(
                altered(request, stream=False),
                mapper,
                on_unsupported,
                model=model,
                base_url=None if access is None else access.base_url,
                model_class=model_class,
            )
            if http_request.body.get("stream"):
                raise UnsupportedRequestError("a batch file asks for no stream", options=["stream"])
            models.add(request.model or model)
            if file.model != "line" and len(models) > 1:
                raise UnsupportedRequestError(f"a {file.model} has one model", options=["model"])
        except UnsupportedRequestError as error:
            cause = str(error).removeprefix(f"{provider}: ")
            raise BatchRequestError(id, cause, provider=provider, options=error.options) from None
        yield BatchRequest(id, dump_json(_fields(id, http_request, file)) + b"\n", http_request)


def _check_id(id: str, ids: set[str], file: BatchFile) -> None:
    """Add *id* to *ids*, if the vendor takes it."""
    given: object = id  # keys of a dictionary are easily numbers
    if not isinstance(given, str) or not given or not given.isprintable():
        raise UnsupportedRequestError("an id is a text that can be printed", options=["id"])
    if file.ids is not None and not file.ids.fits(id):
        limit_phrase = f"at most {file.ids.maximum} characters of the form {file.ids.pattern}"
        raise UnsupportedRequestError(f"an id has {limit_phrase}", options=["id"])
    if id in ids:
        raise UnsupportedRequestError("its id is there already", options=["id"])
    ids.add(id)


def _fields(id: str, http_request: HTTPRequest, file: BatchFile) -> dict[str, Any]:
    body = http_request.body
    if file.model == "job":
        body = {name: value for name, value in body.items() if name != "model"}
    endpoint = {"method": http_request.method, "url": http_request.path} if file.names_endpoint else {}
    return {file.id: id, **endpoint, file.body: body}


def read_batch_results(
    lines: BatchLines,
    provider: str,
    *,
    model: str | None = None,
    unknown: Unknown = "raise",
    keep_raw: bool = True,
    requests: Mapping[str, ChatRequest] = MappingProxyType({}),
    registry: Registry | None = None,
) -> Iterator[BatchResult]:
    """Yield the result of each line of a job's results, in the order of the lines. Vendors do not keep that of the requests.

    A line that cannot be read is a result with an error, and does not stop the others. Every id is kept, known or not.

    Args:
        lines: the file: its content, an open binary file, or its lines.
        provider: the provider id.
        model: the model of the job, for answers that name none.
        unknown: ``"raise"`` makes an unknown event or finish word an error, ``"keep"`` keeps it.
        keep_raw: whether to keep the provider's bytes as ``raw_events``.
        requests: the requests by id. The calls of their answers have your own names of tools, not those that the provider
            takes instead.
        registry: the registry of providers, or ``None`` for the installed ones.

    Raises:
        ConfigurationError: the provider has no batch files.
        UnknownProviderError: there is no such provider. PluginError: it is broken.
        TypeError: a line is something else.
    """
    mapper, file = _resolved(provider, registry)
    layout = load_layout(file.results)

    def named(response: ChatResponse, id: str | None) -> ChatResponse:
        request = requests.get(id or "")
        names = {} if request is None else fitting_names(request, mapper)[1]
        return answer_with_names(response, {sent: name for name, sent in names.items()})

    def result(line: Line | BadRecord) -> BatchResult:
        record = line.read(layout) if isinstance(line, Line) else line
        if isinstance(record, BadRecord):
            error = RecordError(f"{provider}, line {line.number}: {record.cause}", record.exchange)
            return BatchResult(
                None if record.exchange is None else record.exchange.id, line.number, None, error
            )
        exchange = record if record.model else attrs.evolve(record, model=model)
        try:
            response = normalize(
                record.body,
                provider,
                status=record.status or 200,
                unknown=unknown,
                id_factory=lambda: record.id or new_id(),
                keep_raw=keep_raw,
                registry=registry,
            )
        except MappingError as error:
            error.place = ", ".join(filter(None, (f"line {line.number}", error.place)))
            error.partial = error.partial and named(with_facts(error.partial, exchange), record.id)
            return BatchResult(record.id, line.number, error.partial, error)
        response = named(with_facts(response, exchange), record.id)
        info = response.error_info
        return BatchResult(
            record.id, line.number, response, None if info is None else error_of(response, info)
        )

    return map(result, _split(lines))


def _split(lines: BatchLines) -> Iterator[Line | BadRecord]:
    if isinstance(lines, bytes | str):
        lines = BytesIO(_encoded(lines))
    if isinstance(lines, IOBase) and not isinstance(lines, TextIOBase):
        yield from record_lines(cast(BinaryIO, lines))
        return
    for number, raw_line in enumerate(lines, 1):
        try:
            line_bytes = _encoded(raw_line) if isinstance(raw_line, str) else as_chunk(raw_line)
        except InvalidJSONError as error:
            yield BadRecord(str(error), number, 0)
            continue
        if line_bytes.strip():
            yield Line(number, len(line_bytes), line_bytes)


def _encoded(text: bytes | str) -> bytes:
    return text if isinstance(text, bytes) else text.encode(errors="surrogatepass")
