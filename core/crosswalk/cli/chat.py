"""``crosswalk chat``: a session in the terminal or over a pipe, which is saved and resumed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from crosswalk.agent import ChatSession
from crosswalk.cli.ask import (
    EXIT_HELP,
    KEY_HELP,
    Screen,
    add_talking,
    ask,
    name_server,
    report,
    request_of,
    service_of,
    typed_message,
)
from crosswalk.cli.parser import Parser
from crosswalk.cli.terminal import FAILED, OK, UsageError, say
from crosswalk.errors import CanonicalJSONError, ProviderError
from crosswalk.service import SyncLLMService, UnsupportedRequestError
from crosswalk.text import counted
from crosswalk.types.message import ChatMessage, Role

_COMMANDS_HELP: Final = "commands: /system [TEXT], /retry, /save [FILE], /quit; // begins a message with /"


def add_arguments(parser: Parser) -> None:
    """Describe the command and add its arguments."""
    parser.describe(
        description=f"""Talk to a model: each line is a message. Ctrl-C ends an answer, Ctrl-D the session. A line
            that begins with / is a command: /system TEXT, /retry, /save FILE, /quit; for a message that
            begins so, write //. {KEY_HELP}""",
        epilog=EXIT_HELP,
        examples=("crosswalk chat ollama:llama3.2 --session talk.json",),
    )
    parser.add_argument("server", nargs="?", metavar="NAME[:MODEL]", help="the same as --provider")
    add_talking(parser, panel=False)
    parser.add_argument(
        "--session", metavar="FILE", help="go on with the session in this file, and save it after each answer"
    )


def run(arguments: argparse.Namespace) -> int:
    """Talk until the input ends. A message without an answer makes the command fail.

    Raises:
        UsageError: the session cannot be read, or an option is out of its bounds.
        ConfigurationError: the address or the key of the server is not configured.
        PluginError: the provider is unknown or broken.
    """
    name_server(arguments)
    file = None if arguments.session is None else Path(arguments.session)
    session = ChatSession() if file is None else _loaded(file)
    request_of(arguments, [ChatMessage.user("")])  # refuse a wrong option here, not with the first message
    with service_of(arguments) as service:
        talk = _Talk(arguments, service, session, file)
        if arguments.system:
            talk.set_system(arguments.system)
        if sys.stdin.isatty():
            say(f"{counted(len(session), 'turn')} so far; {_COMMANDS_HELP}")
        for line in _lines():
            if not talk.take(line):
                break
    say(counted(len(talk.session), "turn"))
    return FAILED if talk.has_failed else OK


class _Talk:
    """A conversation.

    Attributes:
        session: the turns so far.
        has_failed: whether any command or message failed.
    """

    def __init__(
        self, arguments: argparse.Namespace, service: SyncLLMService, session: ChatSession, file: Path | None
    ) -> None:
        self.session = session
        self.has_failed = False
        self._arguments = arguments
        self._service = service
        self._file = file
        self._unanswered_message: ChatMessage | None = None

    def take(self, line: str) -> bool:
        """Obey *line*, or ``False`` at the end of the session."""
        try:
            return self._take(line)
        except UsageError as error:
            say(f"crosswalk: {error}")
            self.has_failed = True
            return True

    def _take(self, line: str) -> bool:
        if not line.strip():
            return True
        if line.startswith("//") or not line.startswith("/"):
            self._ask(typed_message(Role.USER, line.removeprefix("/")))
            return True
        command, _, remainder = line.partition(" ")
        match command:
            case "/quit":
                return False
            case "/system" if remainder.strip():
                self.set_system(remainder.strip())
            case "/system":
                say(f"system: {_system_of(self.session) or '(none)'}")
            case "/retry":
                self._retry()
            case "/save":
                self._save_as(remainder.strip())
            case _:
                say(f"no command {command}; {_COMMANDS_HELP}")
        return True

    def set_system(self, text: str) -> None:
        """Use *text* as the system message from now on."""
        session, message = self.session, typed_message(Role.SYSTEM, text)
        if _system_of(session) is not None:
            session.replace(0, message)
            return
        turns = session.turns
        session.clear()
        session.extend([message, *turns])

    def _retry(self) -> None:
        """Ask the last message again, in place of its answer."""
        if self._unanswered_message is not None:
            self._ask(self._unanswered_message)
            return
        turns = self.session.turns
        for index in reversed(range(len(turns))):
            message = turns[index]
            if isinstance(message, ChatMessage) and message.role is Role.USER:
                self._ask(message, index)
                return
        say("nothing was asked yet")

    def _ask(self, message: ChatMessage, turn_index: int | None = None) -> None:
        """Ask *message*, which replaces the turn at *turn_index* and all later ones.

        Only a message with an answer joins the session.
        """
        self._unanswered_message = message
        conversation = self.session.fork(turn_index)
        conversation.add_message(message)
        arguments = self._arguments
        screen = Screen(reasoning=arguments.reasoning)
        try:
            request = request_of(arguments, conversation.turns)
            ask_result = ask(self._service, request, screen, stream=arguments.stream)
        except (UnsupportedRequestError, ProviderError) as error:
            say(f"crosswalk: {type(error).__name__}: {error}")
            self.has_failed = True
            return
        report(ask_result, panel=arguments.panel)
        response = ask_result.response
        if ask_result.error is not None:
            self.has_failed = True
            return
        if response.tool_calls:
            say("the model asks for tools, and a chat has none: its answer is not kept")
            return
        if ask_result.is_interrupted and not response.text:
            return
        if not ask_result.is_interrupted and response.incomplete_reason is not None:
            say(f"[{response.incomplete_reason.value}]")
        self._unanswered_message = None
        while turn_index is not None and len(self.session) > turn_index:
            self.session.pop()
        self.session.extend([message, response])
        if self._file is not None:
            self._save(self._file)

    def _save_as(self, name: str) -> None:
        file = Path(name) if name else self._file
        if file is None:
            say("where to? /save FILE")
        elif self._save(file):
            self._file = file
            say(f"saved: {file}")

    def _save(self, file: Path) -> bool:
        try:
            self.session.save(file)
        except OSError as error:
            say(f"{file}: not saved: {error.strerror or type(error).__name__}")
            self.has_failed = True
            return False
        return True


def _loaded(file: Path) -> ChatSession:
    """The session in *file*, or a new one if the file does not exist."""
    try:
        return ChatSession.load(file)
    except FileNotFoundError:
        if file.parent.is_dir():
            return ChatSession()
        raise UsageError(f"{file}: no such folder") from None
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror or type(error).__name__}") from None
    except CanonicalJSONError as error:
        raise UsageError(f"{file}: {error}") from None


def _lines() -> Iterator[str]:
    """The user's input, line by line."""
    if not sys.stdin.isatty():
        for line in sys.stdin.buffer:
            # Input that is not UTF-8 cannot be sent. The message about it comes later, as for a line from a terminal.
            yield line.decode(errors="surrogateescape").rstrip("\r\n")
        return
    with suppress(ImportError):
        import readline  # noqa: F401  # lets input() edit lines
    while True:
        try:
            yield input("> ")
        except EOFError:
            say("")
            return


def _system_of(session: ChatSession) -> str | None:
    """The text of the system message, or ``None`` if the session has none."""
    first_message = next(iter(session.messages), None)
    return first_message.text if first_message is not None and first_message.role is Role.SYSTEM else None
