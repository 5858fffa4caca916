"""A cache of whole answers: a middleware that answers repeated requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import attrs

from crosswalk.request import ChatRequest
from crosswalk.service.retries import AttemptFailure
from crosswalk.service.setup import Middleware, Setup, prepared_for
from crosswalk.structured.metrics import AnswerCache, answer_key
from crosswalk.types.json import dump_json
from crosswalk.types.response import Alternative, ChatResponse
from crosswalk.types.usage import Provenance
from crosswalk.types.values import altered


def cached(cache: AnswerCache, setup: Setup) -> Middleware:
    """Return the middleware that answers a request of *setup* from *cache* if it has an answer, and stores new answers.

    The cache is used in a thread.

    Args:
        cache: the store of answers.
        setup: that of the service: the key is the request to each endpoint, whether streamed or not.
    """

    async def around(request: ChatRequest) -> AsyncGenerator[ChatRequest | ChatResponse, ChatResponse]:
        key = _key(setup, request)
        cached = None if key is None else await asyncio.to_thread(cache.get, key)
        response = yield cached if isinstance(cached, ChatResponse) else request
        if key is not None and response is not cached and _is_whole(response):
            await asyncio.to_thread(cache.put, key, attrs.evolve(response, attempts=()))

    return around


def _key(setup: Setup, request: ChatRequest) -> str | None:
    """Return the key of the answer to *request*, or ``None`` if the request cannot be sent."""
    parts = ["crosswalk.response/1"]
    for route in setup.routes:
        sent = prepared_for(setup, route, altered(request, stream=False))
        if isinstance(sent, AttemptFailure):
            return None
        headers = dump_json(sorted(sent.built.headers.items()))
        parts += [route.provider, sent.built.method, sent.url, headers.decode(), sent.content.decode()]
    return answer_key(*parts)


def _is_whole(response: ChatResponse) -> bool:
    is_known = Provenance.UNMAPPED not in response.metadata.provenance.values()
    answers: tuple[ChatResponse | Alternative, ...] = (response, *response.alternatives)
    return is_known and all(answer.incomplete_reason is None for answer in answers)
