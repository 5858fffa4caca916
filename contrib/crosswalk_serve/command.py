"""Serve any model to any client: requests in the form of OpenAI's, Anthropic's, Gemini's or Ollama's API go to the servers
that CONFIG names, whatever these speak. It is a file of YAML; docs/serve.md tells what it may say."""

from __future__ import annotations

import argparse
import secrets
import socket
import ssl
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import attrs

from crosswalk.commands import FAILED, OK, UsageError, say, write_text
from crosswalk.errors import ConfigurationError

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from crosswalk_serve.config import Config


EXAMPLE: Final = """\
models:
  llama3.2:
    provider: ollama
    model: llama3.2
listen: 127.0.0.1:8080
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``crosswalk serve``."""
    parser.epilog = (
        "Exit status: 0 it was told to end, 1 it failed, 2 the file is wrong or the address is taken. "
        "Example: crosswalk serve --example > gateway.yml && crosswalk serve gateway.yml"
    )
    parser.add_argument("config", nargs="?", metavar="CONFIG", help="the file")
    parser.add_argument("--host", metavar="ADDRESS", help="where to listen (default: what the file says)")
    parser.add_argument("--port", type=int, metavar="N", help="likewise; 0 for a port that is free")
    parser.add_argument("--workers", type=int, metavar="N", help="how many processes (default: likewise)")
    actions = parser.add_mutually_exclusive_group()
    actions.add_argument("--check", action="store_true", help="read the file, say what is wrong, and end")
    actions.add_argument("--example", action="store_true", help="print a file for a local Ollama, and end")
    actions.add_argument(
        "--new-key", action="store_true", help="print a key for a client, and its hash for the file, and end"
    )
    actions.add_argument(
        "--import",
        dest="litellm",
        metavar="LITELLM",
        help="print a file made from LiteLLM's configuration, list the settings that it does not have, and end",
    )
    actions.add_argument(
        "--hash-key", action="store_true", help="print the hash of the key on standard input, and end"
    )


def run(arguments: argparse.Namespace) -> int:
    """Serve until a signal ends the process.

    Raises:
        UsageError: the file is missing or wrong, or the address cannot be listened at.
        ConfigurationError: the file asks for something impossible.
    """
    if arguments.example:
        write_text(EXAMPLE)
        return OK
    try:
        import crosswalk_serve.app
        import crosswalk_serve.config  # noqa: F401  # whether it is there
    except ImportError as error:
        raise UsageError(f"{error}: install the extra serve: pip install 'crosswalk-llm[serve]'") from None
    if arguments.new_key or arguments.hash_key:
        write_text(_hashed(new=arguments.new_key))
        return OK
    if arguments.litellm:
        from crosswalk_serve.litellm_import import import_litellm

        imported_config = import_litellm(arguments.litellm)
        write_text(imported_config.text())
        for line in imported_config.omitted:
            say(f"not carried over: {line}")
        return OK
    if arguments.config is None:
        raise UsageError("give a file; `crosswalk serve --example` prints one")
    options = {name: getattr(arguments, name) for name in ("host", "port", "workers")}
    load = partial(
        _load, arguments.config, {name: value for name, value in options.items() if value is not None}
    )
    config = load()
    _check_tls(arguments.config, config)
    models = ", ".join(config.models)
    if arguments.check:
        _created(arguments.config, config)
        say(f"{arguments.config}: fine; models: {models}")
        return OK
    from crosswalk_serve.telemetry import shared

    with shared() if config.listen.workers > 1 and config.metrics else nullcontext():
        app = _created(arguments.config, config)  # errors are reported before anything listens
        listener = _listener(config)
        address, port = listener.getsockname()[:2]
        shown_address = f"[{address}]" if ":" in address else address
        say(f"listening on http{'s' if config.tls else ''}://{shown_address}:{port}; models: {models}")
        from crosswalk_serve.server import serve

        return OK if serve(app, config, listener, load) else FAILED


def _load(path: str, options: Mapping[str, Any]) -> Config:
    """Return the file at *path* with the *options* of the command line. It holds plain values for other processes.

    Raises:
        ConfigurationError: the file is wrong, or one of its models is impossible. The error names the line.
    """
    from crosswalk_serve.config import load_config, located
    from crosswalk_serve.routing import Router

    config = load_config(path)
    try:
        Router(config)
    except ConfigurationError as error:
        raise located(error, path) from None
    return attrs.evolve(config, listen=attrs.evolve(config.listen, **options))


def _created(path: str, config: Config) -> Starlette:
    """Return the application for *config*, the file at *path*. Errors name the line."""
    from crosswalk_serve.app import create_app
    from crosswalk_serve.config import located

    try:
        return create_app(config)
    except ConfigurationError as error:
        raise located(error, path) from None


def _check_tls(path: str, config: Config) -> None:
    """Check the files for HTTPS in *config*, the file at *path*. Errors name the line."""
    from crosswalk_serve.config import located

    if config.tls is not None:
        try:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(config.tls.certificate, config.tls.key)
        except OSError as error:  # an SSLError is one
            found = ConfigurationError(f"tls: {error.strerror or error}", key="tls")
            raise located(found, path) from None


def _listener(config: Config) -> socket.socket:
    host, port = config.listen.host, config.listen.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise UsageError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
    listener.set_inheritable(True)
    return listener


def _hashed(*, new: bool) -> str:
    """Return a key and its hash, or those of the key on standard input, as they are printed.

    Raises:
        UsageError: the key is too short for a hash that is quick to try.
    """
    from crosswalk_serve.config import KeyHash
    from crosswalk_serve.routing import SHORTEST, new_key

    key = new_key() if new else sys.stdin.readline().strip()
    if len(key) < SHORTEST:
        raise UsageError(f"a key has at least {SHORTEST} characters, drawn at random: --new-key makes one")
    line = f"hash: {KeyHash.of(key, secrets.token_bytes(16))}\n"
    return f"key: {key}\n{line}" if new else line
