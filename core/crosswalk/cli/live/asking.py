"""The shared part of the commands that ask a server: its endpoint, the request, and the answer on the screen."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from typing import Any

import attrs

from crosswalk.cli.live.screen import Screen
from crosswalk.cli.terminal import UsageError, say
from crosswalk.errors import (
    ConfigurationError,
    CrosswalkError,
    MappingError,
    ProviderError,
    ResponseValidationError,
)
from crosswalk.service import DISCOVERED, ChatRequest, Endpoint, RetryPolicy, SyncLLMService, Turn
from crosswalk.types.message import ChatMessage, Role
from crosswalk.types.response import ChatResponse

_OPTIONS = ("temperature", "top_p", "top_k", "max_tokens", "stop", "seed", "reasoning_effort")


def prompt_of(said: str) -> str:
    """The prompt, read from standard input if it is ``-``.

    Raises:
        UsageError: it is empty, or not UTF-8.
    """
    if said == "-":
        if sys.stdin.isatty():
            say("reading the prompt from the terminal; end it with Ctrl-D")
        try:
            said = sys.stdin.buffer.read().decode("utf-8-sig").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise UsageError(f"standard input: not UTF-8 at byte {error.start}") from None
    if not said.strip():
        raise UsageError("the prompt is empty")
    return said


def turns_of(arguments: argparse.Namespace) -> list[Turn]:
    """The conversation of a command line: the prompt, after a system message if there is one.

    Raises:
        UsageError: the prompt is empty, or a text is not UTF-8.
    """
    before = [typed_message(Role.SYSTEM, arguments.system)] if arguments.system else []
    return [*before, typed_message(Role.USER, prompt_of(arguments.prompt))]


def typed_message(role: Role, text: str) -> ChatMessage:
    """A message with *text* from a command line or a terminal.

    Raises:
        UsageError: it is not UTF-8.
    """
    try:
        return ChatMessage(role, text)
    except ResponseValidationError:
        raise UsageError(f"the {role} message is not UTF-8") from None


def request_of(arguments: argparse.Namespace, turns: Iterable[Turn], *, stream: bool = False) -> ChatRequest:
    """The request with *turns* and the options of the command line. The endpoint has the model.

    Raises:
        UsageError: an option is out of its bounds.
    """
    options: dict[str, Any] = {name: getattr(arguments, name) for name in _OPTIONS}
    try:
        return ChatRequest(turns, stream=stream, **options)
    except ResponseValidationError as error:
        raise UsageError(str(error)) from None


def endpoint_of(arguments: argparse.Namespace) -> Endpoint:
    """The endpoint to ask. Its key comes from the environment only.

    Raises:
        UsageError: no provider and no address is given.
    """
    settings = arguments.settings
    if not (arguments.provider or settings.default_provider or arguments.base_url):
        raise UsageError("which provider? say --provider or --base-url, or set CROSSWALK_DEFAULT_PROVIDER")
    try:
        if arguments.provider:
            return Endpoint(arguments.provider, model=arguments.model, base_url=arguments.base_url)
        endpoint = Endpoint(settings.default_provider or DISCOVERED, base_url=arguments.base_url)
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
    named = map(Endpoint, arguments.fallback)
    others = [one if one.model else attrs.evolve(one, model=arguments.model) for one in named]
    return SyncLLMService(
        endpoint_of(arguments),
        *others,
        retry=None if arguments.attempts is None else RetryPolicy(attempts=arguments.attempts),
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
        requested = _streamed(service, request, screen) if stream else _whole(service, request)
        screen.finish(requested.response)
    return requested


def _whole(service: SyncLLMService, request: ChatRequest) -> Asked:
    try:
        return Asked(service.complete(request))
    except (ProviderError, MappingError) as error:
        response = error.response if isinstance(error, ProviderError) else error.partial
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
        except MappingError as error:
            failure = error
        except KeyboardInterrupt:
            is_interrupted = True
    response = events.response
    if failure is None and not is_interrupted:
        try:
            response.raise_for_error()
        except ProviderError as error:
            failure = error
    return Asked(response, failure, is_interrupted)
