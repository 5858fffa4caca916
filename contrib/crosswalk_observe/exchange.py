"""An exchange in progress: HTTP layers report to it, at almost no cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from datetime import UTC, datetime
from functools import wraps
from typing import Any, Final, ParamSpec, Protocol, TypeVar
from uuid import uuid4

from crosswalk.types.json import load_json
from crosswalk_observe.calls import Call, attempt_number, header
from crosswalk_observe.context import current_labels, current_trace, suppress_observation
from crosswalk_observe.hosts import Site

P = ParamSpec("P")
R = TypeVar("R")

_OVERHEAD: Final = 128
"""Estimated bytes of memory for a chunk, in addition to its content."""


class ExchangeOwner(Protocol):
    """Limits the memory of all exchanges, and receives each that has ended."""

    keep_bytes: int

    def reserve(self, exchange: Exchange, size: int) -> bool:
        """Reserve *size* more bytes for *exchange*, or drop it and return ``False`` if memory is short."""

    def discard(self, exchange: Exchange) -> None:
        """Forget *exchange* without a record."""

    def deliver(self, exchange: Exchange) -> None:
        """Receive *exchange*, which has ended."""

    def report(self, doing: str, error: BaseException) -> None:
        """Log *error*, which the program does not see."""


def _guarded(method: Callable[P, R]) -> Callable[P, R | None]:
    """Wrap *method*, which an HTTP layer calls, so that an error in it is reported and not raised."""

    @wraps(method)
    def call(*arguments: P.args, **options: P.kwargs) -> R | None:
        try:
            return method(*arguments, **options)
        except Exception as error:
            exchange: Any = arguments[0]
            exchange.report("watching", error)
            return None

    return call


class Exchange:
    """An exchange in progress. An HTTP layer calls, in this order:

    - :meth:`answered` when status and headers have arrived
    - :meth:`chunk` for each piece of the body
    - :meth:`ended`, :meth:`failed` or :meth:`abandoned`: the first call counts, and later calls have no effect

    None of these methods raises, blocks or maps anything. :meth:`Watcher.begin` makes exchanges. If an exchange is garbage
    collected before its end, it counts as abandoned by the application.
    """

    def __init__(
        self,
        owner: ExchangeOwner,
        site: Site,
        method: str,
        url: str,
        headers: Mapping[str, str] | Iterable[tuple[str, str]],
        content: bytes | None,
        body: Mapping[str, Any],
    ) -> None:
        self.id = uuid4().hex
        self.site = site
        self.method = method
        self.url = url
        self.request_headers = headers
        self.content = content if len(content or b"") <= owner.keep_bytes else None
        model = body.get("model")
        self.model = model if isinstance(model, str) and model else site.model
        self.options = options_of(body)
        self.is_json = bool(body)
        self.attempt = attempt_number(headers)
        self.call: Call | None = None
        self.labels = current_labels()
        self.trace = current_trace()
        self.status: int | None = None
        self.headers: Mapping[str, str] | Iterable[tuple[str, str]] = {}
        self.encoding = ""
        self.chunks: list[bytes] = []
        self.times: list[float] = []
        self.is_cut = False
        self.context = copy_context()  # sinks run in the trace of the request
        self.error: BaseException | None = None
        self.was_abandoned = False
        self.began = datetime.now(UTC)
        self.started = time.perf_counter()
        self.finished = self.started
        self.reserved = 0
        self._stored_bytes = 0
        self._owner = owner
        self._is_over = not owner.reserve(self, len(self.content or b"") + len(url) + 2 * _OVERHEAD)

    @_guarded
    def answered(
        self,
        status: int,
        headers: Mapping[str, str] | Iterable[tuple[str, str]],
        *,
        encoding: str | None = None,
    ) -> bool:
        """Report the start of the answer. Returns whether its body is wanted.

        Args:
            status: the HTTP status. Interim answers and redirects are not watched.
            headers: the headers of the answer.
            encoding: the content encoding of the chunks, ``""`` if they are decoded, or ``None`` to read the headers.
        """
        if status < 200 or 300 <= status < 400:
            self.discard()
            return False
        self.status = status
        self.headers = headers
        if encoding is None:
            encoding = header(headers, "content-encoding")
        self.encoding = encoding.strip().lower()
        return not self._is_over

    @_guarded
    def chunk(self, data: bytes) -> None:
        """Report the next bytes of the body."""
        if self._is_over or self.is_cut or not data:
            return
        room = self._owner.keep_bytes - self._stored_bytes
        if len(data) > room:
            self.is_cut = True
            data = bytes(data[:room])
        if not self._owner.reserve(self, len(data) + _OVERHEAD):
            self._is_over = True
            return
        self._stored_bytes += len(data)
        self.times.append(time.perf_counter())
        self.chunks.append(data if type(data) is bytes else bytes(data))

    @_guarded
    def ended(self) -> None:
        """Report the end of the body."""
        self._end()

    @_guarded
    def failed(self, error: BaseException) -> None:
        """Report that *error* ended the exchange. A cancellation or interruption means that the application abandoned it."""
        if isinstance(error, Exception):
            self._end(error=error)
        else:  # cancelled, interrupted, or a generator that is closed
            self.abandoned()

    @_guarded
    def abandoned(self) -> None:
        """Report that the application stopped reading."""
        self._end(was_abandoned=True)

    def discard(self) -> None:
        """Forget the exchange without a record."""
        if not self._is_over:
            self._is_over = True
            self._owner.discard(self)

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Send the request in this block.

        Lower layers do not observe it again, and the operations of its call are current.
        """
        with ExitStack() as stack:
            stack.enter_context(suppress_observation())
            for operation in () if self.call is None else self.call.operations.values():
                try:
                    stack.enter_context(operation.current())
                except Exception as error:
                    self.report("beginning an operation", error)
            self.trace = current_trace()
            yield

    def report(self, doing: str, error: BaseException) -> None:
        """Log *error*, which the program does not see."""
        self._owner.report(doing, error)

    def _end(self, error: Exception | None = None, was_abandoned: bool = False) -> None:
        if self._is_over:
            return
        self._is_over = True
        self.finished = time.perf_counter()
        self.error = error
        self.was_abandoned = was_abandoned
        self._owner.deliver(self)

    def __del__(self) -> None:
        if not getattr(self, "_is_over", True):
            self.abandoned()


_NUMBERS: Final = frozenset((
    "best_of", "budget_tokens", "candidateCount", "frequencyPenalty", "frequency_penalty", "include_usage",
    "includeThoughts", "keep_alive", "k", "logprobs", "maxOutputTokens", "maxTokens", "max_completion_tokens",
    "max_new_tokens", "max_output_tokens", "max_tokens", "max_tool_calls", "min_p", "min_tokens", "mirostat",
    "mirostat_eta", "mirostat_tau", "n", "n_predict", "num_ctx", "num_predict", "p", "parallel_tool_calls",
    "presencePenalty", "presence_penalty", "repeat_last_n", "repeat_penalty", "repetition_penalty",
    "responseLogprobs", "seed", "store", "stream", "temperature", "thinkingBudget", "topK", "topP", "top_k",
    "top_logprobs", "top_n_tokens", "top_p", "typical_p", "use_cache", "background", "think", "echo",
))  # fmt: skip
_WORDS: Final = frozenset((
    "effort", "modalities", "previous_response_id", "reasoning_effort", "responseMimeType", "response_mime_type",
    "service_tier", "stop", "stopSequences", "stop_sequences", "summary", "think", "thinkingLevel", "tool_choice",
    "truncation", "type", "verbosity", "format",
))  # fmt: skip
_OBJECTS: Final = frozenset((
    "generationConfig", "inferenceConfig", "options", "output_config", "parameters", "reasoning", "response_format",
    "stream_options", "text", "thinking", "thinkingConfig", "tool_choice", "format",
))  # fmt: skip
"""Names of options with a number or flag, with a word or list of words, and with an object of options."""


def json_object(content: bytes | None) -> dict[str, Any]:
    """Return the JSON object in *content*, or an empty one if it is something else."""
    try:
        result = load_json(content or b"")
    except ValueError:
        return {}
    return result if type(result) is dict else {}


def options_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the known options in the JSON *body* of a request, without content."""
    results: dict[str, Any] = {}
    for name, value in body.items():
        if isinstance(value, bool | int | float):
            if name in _NUMBERS:
                results[name] = value
        elif isinstance(value, dict):
            if name in _OBJECTS:
                results[name] = options_of(value)
        elif name in _WORDS and (isinstance(value, str) or _is_words(value)):
            results[name] = value
    return results


def _is_words(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)
