"""Requests in the form of OpenAI's legacy Completions: a text to continue, which becomes the user's message."""

from __future__ import annotations

from typing import Any

from crosswalk.convert.form import WireForm
from crosswalk.service.client_requests.incoming import Incoming, Wants
from crosswalk.service.client_requests.reading import incoming, take_neutral
from crosswalk.types.message import ChatMessage
from crosswalk.wire.fields import Fields, placed


def read(body: Fields, said: dict[str, Any]) -> Incoming:
    """Parse the request in *body*. *said* is an untouched copy.

    Raises:
        FieldError: it is not a valid request, or asks to continue several texts, or tokens.
    """
    echo, user, n = body.flag("echo"), body.is_text("user"), body.is_whole("n")
    logprobs = body.is_whole("logprobs")
    requested = body.object("stream_options")
    usage = None if requested is None else requested.flag("include_usage")
    defaults = take_neutral(body, "completions", {"suffix": ""})
    prompt = _prompt(body)
    with placed(body, "prompt"):
        messages = [ChatMessage.user(prompt)]
    return incoming(
        WireForm.OPENAI_COMPLETIONS,
        body,
        said,
        Wants(
            include_usage=bool(usage),
            n=1 if n is None else n,
            echo=bool(echo),
            logprobs=logprobs is not None,
            user=user,
            defaults=defaults,
        ),
        messages=messages,
    )


def _prompt(body: Fields) -> str:
    """Return the text to continue.

    Each of several texts would be a separate conversation: a call that may fail by itself, and that no limit of the client's
    accounts for. A client with several texts sends a request for each.
    """
    prompt = body.need("prompt", body.take("prompt"))
    if isinstance(prompt, list) and len(prompt) == 1:
        prompt = prompt[0]
    if isinstance(prompt, str):
        return prompt
    items = prompt if isinstance(prompt, list) else []
    if items and all(isinstance(item, str) for item in items):
        body.refuse(f"holds {len(items)} texts: send a request for each", "prompt")
    if any(isinstance(item, int | list) for item in items):
        body.refuse("must be a text, not numbers of tokens: these are of one model", "prompt")
    body.refuse("must be one text", "prompt")
