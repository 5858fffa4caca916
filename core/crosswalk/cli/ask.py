"""``crosswalk ask``: a question to a server, its answer on the screen while it arrives, and tokens, speed and latency."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, Self

import attrs
import orjson

import crosswalk  # its names load their module where they are used: the help needs few of them
import crosswalk.service
from crosswalk.cli.parser import Parser
from crosswalk.cli.terminal import (
    FAILED,
    INTERRUPTED,
    OK,
    UsageError,
    say,
    write_json,
    write_table,
    write_text,
)
from crosswalk.plain_errors import ConfigurationError, CrosswalkError
from crosswalk.text import harmless
from crosswalk.types.json import dump_json
from crosswalk.types.values import SegmentType
from crosswalk.words import right_word

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

    from crosswalk.service import ChatRequest, Endpoint, SyncLLMService, Turn
    from crosswalk.types.delta import ResponseDelta
    from crosswalk.types.message import ChatMessage, Role
    from crosswalk.types.response import ChatResponse
    from crosswalk.types.usage import ProviderAttempt


# ---------------------------------------------------------------------------------- screen
# An answer on the screen while it arrives, and below it the facts about it: tokens, speed, latency.
#
# The answer goes to standard output. The model's reasoning goes to standard error, dimmed on a terminal, so that a pipe
# gets only the answer. Control characters that a model wrote are escaped.


def show_panel(response: ChatResponse) -> None:
    """Write the panel to standard error, drawn on a terminal and else as lines."""
    lines = [[harmless(cell) for cell in line] for line in panel_lines(response)]
    if not sys.stderr.isatty():
        for line in lines:
            say("  |  ".join(line))
        return
    from rich.console import Console
    from rich.panel import Panel
    from rich.text import Text

    text = Text("\n".join("  │  ".join(line) for line in lines), overflow="fold")
    Console(stderr=True).print(Panel(text, title="Response", title_align="left", expand=False))


def panel_lines(response: ChatResponse) -> list[list[str]]:
    """The lines of the panel, each a list of cells of one line. Unknown facts are left out.

    Latency is the time from the last request to the end of its answer, as measured here. Speed is the number of tokens
    written in that time.
    """
    seconds = _latency(response)
    token_count = response.usage.completion_tokens
    speed = f"Speed: {token_count / seconds:.1f} tok/s" if seconds and token_count else None
    time_to_first_token = response.metadata.time_to_first_token
    time_cells = [
        speed,
        None if seconds is None else f"Latency: {_duration(seconds)}",
        None if time_to_first_token is None else f"TTFT: {_duration(time_to_first_token.total_seconds())}",
    ]
    finish = response.finish_reason.value
    finish_word = response.raw_finish_reason
    model, provider = response.metadata.model_id, response.metadata.provider_id
    lines = [
        [tokens_line(response)],
        [cost for cost in (_cost(response),) if cost],
        [cell for cell in time_cells if cell is not None],
        [f"Model: {_short(model)}", f"Provider: {_short(provider)}"],
        [
            f"Finish: {finish}"
            + (
                f" (the provider's word: {_short(finish_word)})"
                if finish_word and finish_word != finish
                else ""
            )
        ],
        *([f"{one.kind.value.capitalize()}: {one}"] for one in crosswalk.service.adaptations_of(response)),
        *([attempt] for attempt in _attempts(response.attempts)),
    ]
    return [line for line in lines if line]


def _short(name: str) -> str:
    """*name*, shortened: a server may send one of any length."""
    return name if len(name) <= 100 else f"{name[:99]}…"


def _latency(response: ChatResponse) -> float | None:
    """The duration of the last attempt in seconds, or the answer's own figure if there is no attempt."""
    latency_ms = response.attempts[-1].latency_ms if response.attempts else None
    if latency_ms is not None:
        return latency_ms / 1000
    return response.metadata.request_duration.total_seconds() or None


def _duration(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.2f}s"
    return f"{seconds * 1000:.0f}ms" if seconds >= 0.01 else f"{seconds * 1000:.1f}ms"


def tokens_line(response: ChatResponse) -> str:
    """The token counts. A count that was not sent is left out."""
    usage, provenance = response.usage, response.metadata.provenance
    if provenance.get("usage") is crosswalk.Provenance.ABSENT:
        return "Tokens: not reported"
    prompt_count, completion_count = (
        "unknown"
        if provenance.get(f"usage.{name}") is crosswalk.Provenance.ABSENT
        else str(getattr(usage, name))
        for name in ("prompt_tokens", "completion_tokens")
    )
    cached_suffix = f" ({usage.cached_tokens} cached)" if usage.cached_tokens else ""
    reasoning_suffix = f" ({usage.reasoning_tokens} reasoning)" if usage.reasoning_tokens else ""
    total_suffix = (
        f" ({usage.total_tokens} total)" if "unknown" not in (prompt_count, completion_count) else ""
    )
    return f"Tokens: {prompt_count} prompt{cached_suffix}, {completion_count} completion{reasoning_suffix}{total_suffix}"


def _cost(response: ChatResponse) -> str | None:
    """The cost of the answer, if the provider sent it or its price is known."""
    try:
        cost = crosswalk.cost_of(response)
    except ConfigurationError:  # without price lists
        return None
    if cost is None:
        return None
    return f"Cost: {'about ' if cost.provenance is crosswalk.Provenance.DERIVED else ''}{cost}"


def _attempts(attempts: tuple[ProviderAttempt, ...]) -> Iterator[str]:
    """The attempts, if there were several."""
    if len(attempts) < 2:
        return
    yield f"Attempts: {len(attempts)}"
    for number, attempt in enumerate(attempts, 1):
        latency_suffix = (
            "" if attempt.latency_ms is None else f" after {_duration(attempt.latency_ms / 1000)}"
        )
        cause_suffix = "" if attempt.error is None else f": {attempt.error}"
        yield f"  {number}. {attempt.provider_name}, {attempt.model}: {attempt.outcome.value}{latency_suffix}{cause_suffix}"


class Screen:
    """Shows one answer. Use it as a context manager around all of it.

    Args:
        reasoning: whether to show the model's reasoning; ``None`` shows it if standard error is a terminal.
        silent: show only that the command is waiting.
    """

    def __init__(self, *, reasoning: bool | None = None, silent: bool = False) -> None:
        is_terminal = sys.stderr.isatty()
        shows_reasoning = is_terminal if reasoning is None else reasoning
        self._answer = _Channel(shown=not silent)
        self._refusal_channel = _Channel(shown=not silent)
        self._reasoning_channel = _ReasoningChannel(shown=shows_reasoning and not silent, dimmed=is_terminal)
        self._channels = {
            SegmentType.REASONING: self._reasoning_channel,
            SegmentType.TEXT: self._answer,
            SegmentType.REFUSAL: self._refusal_channel,
        }
        self._last: _Channel = self._answer
        self._status: Status | None = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.status import Status

            self._status = Status("waiting for the model", console=Console(stderr=True))
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop_waiting()

    def show(self, delta: ResponseDelta) -> None:
        """Show the text that *delta* adds to the first choice."""
        if delta.choice != 0:
            return
        self._write(self._reasoning_channel, delta.reasoning_delta)
        self._write(self._answer, delta.content_delta)
        self._write(self._refusal_channel, delta.refusal_delta)
        if delta.segment is not None and delta.segment.type in self._channels:
            self._write(self._channels[delta.segment.type], delta.segment.content)

    def finish(self, response: ChatResponse) -> None:
        """Show the text of *response* that was in no delta. For a whole answer that is all of it."""
        refusal = "".join(part.content for part in response.segments if part.type is SegmentType.REFUSAL)
        for channel, whole_text in (
            (self._reasoning_channel, response.reasoning),
            (self._answer, response.text),
            (self._refusal_channel, refusal),
        ):
            self._write(channel, channel.rest_of(whole_text))
        self._stop_waiting()
        self._last.end_line()

    def _write(self, channel: _Channel, text: str | None) -> None:
        if not text:
            return
        channel.said.append(text)
        if not channel.is_shown:
            return
        self._stop_waiting()
        if channel is not self._last and self._last.is_separable:
            self._last.end_line()
        self._last = channel
        channel.write(text)

    def _stop_waiting(self) -> None:
        status, self._status = self._status, None
        if status is not None:
            status.stop()


class _Channel:
    """One kind of text: the answer or a refusal, on standard output.

    Attributes:
        said: the text so far.
        is_shown: whether to write it.
    """

    def __init__(self, *, shown: bool) -> None:
        self.said: list[str] = []
        self.is_shown = shown
        self._is_in_line = False

    @property
    def is_separable(self) -> bool:
        """Whether a line break may separate two kinds of text: yes on a terminal, no in a pipe."""
        return sys.stdout.isatty()

    def rest_of(self, whole_text: str) -> str:
        """The rest of *whole_text* after the text so far, or empty if *whole_text* begins otherwise."""
        text_so_far = "".join(self.said)
        return whole_text[len(text_so_far) :] if whole_text.startswith(text_so_far) else ""

    def write(self, text: str) -> None:
        """Write *text*, which is not empty."""
        self._put(harmless(text, lines=True))
        self._is_in_line = not text.endswith("\n")

    def end_line(self) -> None:
        """Begin a new line if the current one is not empty."""
        if self._is_in_line:
            self._put("\n")
            self._is_in_line = False

    def _put(self, text: str) -> None:
        write_text(text)


class _ReasoningChannel(_Channel):
    """The model's reasoning, on standard error."""

    def __init__(self, *, shown: bool, dimmed: bool) -> None:
        super().__init__(shown=shown)
        self._is_dimmed = dimmed
        self._console: Console | None = None

    @property
    def is_separable(self) -> bool:
        """Always true, since reasoning is not data."""
        return True

    def _put(self, text: str) -> None:
        if not self._is_dimmed:
            print(text, end="", file=sys.stderr, flush=True)
            return
        from rich.console import Console
        from rich.text import Text

        if self._console is None:
            self._console = Console(stderr=True)
        self._console.print(Text(text, style="dim"), end="", soft_wrap=True)


# ---------------------------------------------------------------------------------- asking
# The shared part of the commands that ask a server: its endpoint, the request, and the answer on the screen.


_OPTION_NAMES = ("temperature", "top_p", "top_k", "max_tokens", "stop", "seed", "reasoning_effort")


def prompt_of(prompt: str) -> str:
    """The prompt, read from standard input if it is ``-``.

    Raises:
        UsageError: it is empty, or not UTF-8.
    """
    if prompt == "-":
        if sys.stdin.isatty():
            say("reading the prompt from the terminal; end it with Ctrl-D")
        try:
            prompt = sys.stdin.buffer.read().decode("utf-8-sig").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise UsageError(f"standard input: not UTF-8 at byte {error.start}") from None
    if not prompt.strip():
        raise UsageError("the prompt is empty")
    return prompt


def name_words(arguments: argparse.Namespace) -> None:
    """Set ``prompt``, and the ``provider`` or the address before it, from the ``words`` of the command line.

    Raises:
        UsageError: there are several prompts, or the provider is unknown or given twice.
    """
    *named, arguments.prompt = arguments.words or ["-"]
    if not named:
        is_asked = arguments.provider or arguments.base_url or arguments.settings.default_provider
        if not is_asked and re.split("[:/]", arguments.prompt, maxsplit=1)[0] in crosswalk.registry.names():
            raise UsageError(f"{arguments.prompt!r:.60} names a server; put the prompt after it, in quotes")
        return
    if len(named) > 1:
        name = re.split("[:/]", named[0], maxsplit=1)[0]
        hint = f", and write {name}:MODEL for a model" if name in crosswalk.registry.names() else ""
        raise UsageError(f"one prompt at a time: put it in quotes{hint}")
    (arguments.server,) = named
    name_server(arguments)


def name_server(arguments: argparse.Namespace) -> None:
    """Set ``provider`` or ``base_url`` to the ``server`` given before the prompt, or alone.

    Raises:
        UsageError: it is unknown or given twice.
    """
    if arguments.server is None:
        return
    name = re.split("[:/]", arguments.server, maxsplit=1)[0]
    is_address = re.fullmatch(r"https?://\S+", arguments.server) is not None
    if not (name in crosswalk.registry.names() or is_address):
        hint = right_word("a provider", name.lower())
        if not hint and hasattr(arguments, "words"):
            hint = "; put the prompt in quotes"
        raise UsageError(f"{name!r:.60} is no provider{hint}")
    field = "base_url" if is_address else "provider"
    if getattr(arguments, field):
        option = field.replace("_", "-")
        raise UsageError(
            f"the {'address' if is_address else field} is given twice, in front and with --{option}"
        )
    setattr(arguments, field, arguments.server)


def turns_of(arguments: argparse.Namespace) -> list[Turn]:
    """The conversation of a command line: the prompt, after a system message if there is one.

    Raises:
        UsageError: the prompt is empty, or a text is not UTF-8.
    """
    system_messages = [typed_message(crosswalk.Role.SYSTEM, arguments.system)] if arguments.system else []
    return [*system_messages, typed_message(crosswalk.Role.USER, prompt_of(arguments.prompt))]


def typed_message(role: Role, text: str) -> ChatMessage:
    """A message with *text* from a command line or a terminal.

    Raises:
        UsageError: it is not UTF-8.
    """
    try:
        return crosswalk.ChatMessage(role, text)
    except crosswalk.ResponseValidationError:
        raise UsageError(f"the {role} message is not UTF-8") from None


def request_of(arguments: argparse.Namespace, turns: Iterable[Turn], *, stream: bool = False) -> ChatRequest:
    """The request with *turns* and the options of the command line. The endpoint has the model.

    Raises:
        UsageError: an option is out of its bounds.
    """
    options: dict[str, Any] = {name: getattr(arguments, name) for name in _OPTION_NAMES}
    try:
        return crosswalk.ChatRequest(turns, stream=stream, **options)
    except crosswalk.ResponseValidationError as error:
        raise UsageError(str(error)) from None


def endpoint_of(arguments: argparse.Namespace) -> Endpoint:
    """The endpoint to ask. Its key comes from the environment only.

    Raises:
        UsageError: no provider and no address is given.
    """
    settings = arguments.settings
    if not (arguments.provider or settings.default_provider or arguments.base_url):
        raise UsageError("which provider? pass --provider or --base-url, or set CROSSWALK_DEFAULT_PROVIDER")
    try:
        if arguments.provider:
            return crosswalk.Endpoint(arguments.provider, model=arguments.model, base_url=arguments.base_url)
        endpoint = crosswalk.Endpoint(
            settings.default_provider or crosswalk.service.DISCOVERED, base_url=arguments.base_url
        )
        model = arguments.model or endpoint.model or settings.default_model
        return attrs.evolve(endpoint, model=model)
    except ConfigurationError as error:
        raise UsageError(str(error)) from None


def service_of(arguments: argparse.Namespace) -> SyncLLMService:
    """The service for the endpoints that the command line names.

    Raises:
        UsageError: no provider and no address is given.
        ConfigurationError: the address or the key of the server is not configured.
        PluginError: the provider is unknown or broken.
    """
    named_endpoints = map(crosswalk.Endpoint, arguments.fallback)
    other_endpoints = [
        one if one.model else attrs.evolve(one, model=arguments.model) for one in named_endpoints
    ]
    return crosswalk.SyncLLMService(
        endpoint_of(arguments),
        *other_endpoints,
        retry=None
        if arguments.attempts is None
        else crosswalk.service.RetryPolicy(attempts=arguments.attempts),
        unknown=arguments.unknown,
        on_unsupported=arguments.unsupported,
        settings=arguments.settings,
    )


@attrs.frozen
class Asked:
    """The result of a question.

    Attributes:
        response: the answer, whole or as far as it arrived.
        error: the reason why it failed, or ``None`` if it did not.
        is_interrupted: whether the user pressed Ctrl-C.
    """

    response: ChatResponse
    error: CrosswalkError | None = None
    is_interrupted: bool = False


def ask(service: SyncLLMService, request: ChatRequest, screen: Screen, *, stream: bool) -> Asked:
    """Ask, and show the answer on *screen*, while it arrives or whole.

    Raises:
        CrosswalkError: the request cannot be sent.
        KeyboardInterrupt: the user ended the wait for a whole answer before any of it arrived.
    """
    with screen:
        ask_result = _streamed(service, request, screen) if stream else _whole(service, request)
        screen.finish(ask_result.response)
    return ask_result


def _whole(service: SyncLLMService, request: ChatRequest) -> Asked:
    try:
        return Asked(service.complete(request))
    except (crosswalk.ProviderError, crosswalk.MappingError) as error:
        response = error.response if isinstance(error, crosswalk.ProviderError) else error.partial
        if response is None:  # nothing was sent: the server could not even be asked what it is
            raise
        return Asked(response, error)


def _streamed(service: SyncLLMService, request: ChatRequest, screen: Screen) -> Asked:
    failure: CrosswalkError | None = None
    is_interrupted = False
    with service.stream(request) as events:
        try:
            for event in events:
                if event.delta is not None:
                    screen.show(event.delta)
        except crosswalk.MappingError as error:
            failure = error
        except KeyboardInterrupt:
            is_interrupted = True
    response = events.response
    if failure is None and not is_interrupted:
        try:
            response.raise_for_error()
        except crosswalk.ProviderError as error:
            failure = error
    return Asked(response, failure, is_interrupted)


# --------------------------------------------------------------------------------- command
# ``crosswalk ask`` itself, and the report on an answer.


KEY_HELP: Final = """\
The API key, if one is needed, is read from the environment: CROSSWALK_<PROVIDER>_API_KEY, or the provider's own
variable.
"""
EXIT_HELP: Final = (
    "Exit status: 0 all went well, 1 something failed, 2 nothing could be tried, 130 ended by Ctrl-C."
)


def add_prompt(parser: argparse.ArgumentParser) -> None:
    """Add the words of a question."""
    parser.add_argument(
        "words",
        nargs="*",
        metavar="[NAME[:MODEL]] PROMPT",
        help="what to ask, in quotes; '-' or nothing for standard input. A provider before it is that of --provider",
    )


def add_asking(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the commands that ask a model: the server, and how to ask it."""
    parser.add_argument(
        "--provider",
        metavar="NAME[:MODEL]",
        help="the provider id (default: the settings' default provider; with --base-url, the server is asked)",
    )
    parser.add_argument(
        "--model",
        "-m",
        metavar="NAME",
        help="the model, as the provider calls it (default: CROSSWALK_<PROVIDER>_MODEL, else the server's only one)",
    )
    add_address(parser)
    parser.add_argument("--system", "-s", metavar="TEXT", help="the system message")
    parser.add_argument(
        "--max-tokens", type=int, metavar="N", help="the most tokens that the answer may have"
    )
    parser.add_argument("--temperature", type=float, metavar="X", help="how random the answer is, from 0")
    parser.add_argument("--top-p", type=float, metavar="X", help="sample from this share of likely tokens")
    parser.add_argument("--top-k", type=int, metavar="N", help="sample from this many likely tokens")
    parser.add_argument("--seed", type=int, metavar="N", help="make sampling repeatable")
    parser.add_argument(
        "--stop", action="append", default=[], metavar="TEXT", help="end the answer here; may be repeated"
    )
    parser.add_argument(
        "--reasoning-effort",
        choices=[effort.value for effort in crosswalk.service.ReasoningEffort],
        help="how much to reason",
    )
    parser.add_argument(
        "--unsupported",
        choices=("raise", "drop"),
        default="raise",
        help="refuse an option that the provider does not have, or leave it out and say so (default: raise)",
    )
    parser.add_argument(
        "--unknown",
        choices=("raise", "keep"),
        default="keep",
        help="refuse an event or finish word that no mapping knows, or keep it (default: keep)",
    )


def add_address(parser: argparse.ArgumentParser) -> None:
    """Add the address of a server."""
    parser.add_argument(
        "--base-url",
        metavar="URL",
        help="where the server is (default: CROSSWALK_<PROVIDER>_BASE_URL, else the provider's own address)",
    )


def add_talking(parser: argparse.ArgumentParser, *, panel: bool) -> None:
    """Add the arguments of the commands that show an answer. *panel* says whether facts about it follow by default."""
    add_asking(parser)
    parser.add_argument(
        "--fallback",
        action="append",
        default=[],
        metavar="PROVIDER[:MODEL]",
        help="what to ask when that fails; may be repeated (default model: the same)",
    )
    parser.add_argument(
        "--attempts", type=int, metavar="N", help="how often to ask one server at most (default: 3)"
    )
    parser.add_argument(
        "--stream",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="show the answer while it comes, or ask for it whole (default: while it comes)",
    )
    parser.add_argument(
        "--reasoning",
        action=argparse.BooleanOptionalAction,
        help="show the model's reasoning on standard error (default: where that is a terminal)",
    )
    parser.add_argument(
        "--panel",
        action=argparse.BooleanOptionalAction,
        default=panel,
        help=f"show tokens, speed and latency in the end (default: {'yes' if panel else 'no'})",
    )


def add_arguments(parser: Parser) -> None:
    """Describe the command and add its arguments."""
    parser.describe(
        description=f"""Ask a model. The answer goes to standard output while it comes; reasoning, and in the end
            tokens, speed, latency and time to the first token, go to standard error. Ctrl-C ends the answer and
            keeps what came. {KEY_HELP}""",
        epilog=EXIT_HELP,
        examples=(
            'crosswalk ask ollama:llama3.2 "Why is the sky blue?"',
            "crosswalk ask --provider vllm --model m --base-url http://gpu:8000 - < question.txt",
        ),
    )
    add_prompt(parser)
    add_talking(parser, panel=True)
    parser.add_argument(
        "--json", action="store_true", help="write the canonical response instead, when it is complete"
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="send nothing: show what would be sent otherwise than asked, or with --json the whole request",
    )


def run(arguments: argparse.Namespace) -> int:
    """Ask once. The exit status tells of an answer that failed or was interrupted.

    Raises:
        UsageError: the request cannot be sent.
        ConfigurationError: the address or the key of the server is not configured.
        PluginError: the provider is unknown or broken.
    """
    name_words(arguments)
    request = request_of(arguments, turns_of(arguments))
    if arguments.dry_run:
        return _plan(arguments, request)
    screen = Screen(reasoning=arguments.reasoning, silent=arguments.json)
    with service_of(arguments) as service:
        try:
            ask_result = ask(service, request, screen, stream=arguments.stream)
        except crosswalk.service.UnsupportedRequestError as error:
            if error.options == ("model",):
                raise UsageError(_which_model(service)) from None
            raise UsageError(str(error)) from None
        except ConfigurationError as error:
            raise UsageError(str(error)) from None
        if isinstance(ask_result.error, crosswalk.ModelUnavailableError):
            say(f"crosswalk: {_models_of(service)}")
    if arguments.json:
        write_json(crosswalk.to_json(ask_result.response, indent=True) + b"\n")
    return report(ask_result, panel=arguments.panel and not arguments.json)


_HEADINGS = ("field", "kind", "asked", "sent", "reason")


def _plan(arguments: argparse.Namespace, request: ChatRequest) -> int:
    """Show what would be sent.

    Raises:
        UsageError: the request cannot be sent.
    """
    with service_of(arguments) as service:
        try:
            plan = service.plan(attrs.evolve(request, stream=arguments.stream))
        except (crosswalk.service.UnsupportedRequestError, ConfigurationError) as error:
            raise UsageError(str(error)) from None
    if arguments.json:
        plan_fields = {
            "provider": plan.endpoint.provider,
            "model": plan.model,
            "model_class": plan.model_class,
            "method": plan.request.method,
            "url": plan.url,
            "headers": dict(plan.request.headers),
            "body": plan.request.body,
            "adaptations": [one.plain() for one in plan.adaptations],
        }
        write_json(dump_json(plan_fields, option=orjson.OPT_INDENT_2) + b"\n")
        return OK
    request_line, endpoint_line, *lines = str(plan).splitlines()
    if not (sys.stdout.isatty() and plan.adaptations):
        write_text("".join(f"{harmless(line)}\n" for line in (request_line, endpoint_line, *lines)))
        return OK
    write_text(f"{harmless(request_line)}\n{harmless(endpoint_line)}\n\n")
    write_table(_HEADINGS, [[_cell(getattr(one, name)) for name in _HEADINGS] for one in plan.adaptations])
    return OK


def _cell(value: object) -> str:
    return "" if value is None else str(value)


def _which_model(service: SyncLLMService) -> str:
    """The message for a request without a model: it lists the server's models if the server gives them."""
    return f"which model? pass --model; {_models_of(service)}"


def _models_of(service: SyncLLMService) -> str:
    try:
        models = service.models()
    except CrosswalkError as error:
        return f"its models cannot be listed ({error})"
    return f"the server has: {', '.join(models) or 'no model'}"


def _hint(error: CrosswalkError, ask_result: Asked) -> str:
    """Advice on *error*, or ``""`` if there is none."""
    info = getattr(error, "info", None)
    if info is None or info.code != "connect_error":
        return ""
    provider = ask_result.response.metadata.provider_id
    return f"; pass --base-url, or set CROSSWALK_{provider.upper()}_BASE_URL"


def report(ask_result: Asked, *, panel: bool) -> int:
    """Report the result on standard error, and return the exit status."""
    for call in ask_result.response.tool_calls:
        say(f"-> {call.name}({call.arguments})")
    hint = "" if ask_result.error is None else _hint(ask_result.error, ask_result)
    if panel and not hint:
        show_panel(ask_result.response)
    if ask_result.error is not None:
        say(f"crosswalk: {type(ask_result.error).__name__}: {ask_result.error}{hint}")
        return FAILED
    if ask_result.is_interrupted:
        say("interrupted: the answer is not complete")
        return INTERRUPTED
    return OK
