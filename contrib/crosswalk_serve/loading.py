"""Ollama's requests without a prompt, which load a model into memory or unload it."""

from __future__ import annotations

from datetime import UTC, datetime

import orjson

from crosswalk import normalize
from crosswalk.convert import WireForm
from crosswalk_serve.auxiliary_requests import fetch, read
from crosswalk_serve.requests import Incoming
from crosswalk_serve.routing import Route

__all__ = ["load"]

_ABOUT = ("keep_alive", "options")
"""The other fields of such a request: how long to keep the model, and with which context to load it."""


async def load(route: Route, incoming: Incoming, name: str) -> bytes:
    """Return the answer to *incoming*, whose :attr:`Wants.load` is set, for a client that calls the model *name*.

    The request goes to the Ollama servers that may be asked first for the model. Other servers have no such request, and
    nothing to do.

    Raises:
        Refusal: a server cannot do it.
    """
    done = incoming.wants.load
    payload = {field: incoming.request.said[field] for field in _ABOUT if field in incoming.request.said}
    for (service, _), target in zip(route.services, route.first, strict=True):
        if target.provider == WireForm.OLLAMA.provider:
            body = {"model": target.model or name, "messages": [], "stream": False, **payload}
            answer = await fetch(service, target.provider, "POST", WireForm.OLLAMA.paths[0], body)
            done = read(answer, _done)
    own = (
        {"message": {"role": "assistant", "content": ""}}
        if incoming.form is WireForm.OLLAMA
        else {"response": ""}
    )
    made = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    return orjson.dumps({"model": name, "created_at": made, **own, "done": True, "done_reason": done})


def _done(body: bytes) -> str | None:
    """Return the end reason in the server's answer *body*.

    Raises:
        CrosswalkError: it is not an answer, or is an error.
    """
    return normalize(body, WireForm.OLLAMA.provider, keep_raw=False).raise_for_error().raw_finish_reason
