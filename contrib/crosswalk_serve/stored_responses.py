"""The pages of stored responses: ``/v1/responses/{id}`` and below."""

from __future__ import annotations

from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from crosswalk.errors import ErrorKind
from crosswalk.service import ChatRequest, build_http_request
from crosswalk_serve.conversations import Conversation, StoreError
from crosswalk_serve.gateway import Gateway
from crosswalk_serve.refusal import Refusal

__all__ = ["StoredResponses", "store_is_away"]


def store_is_away() -> Refusal:
    """Return the error while the store cannot be reached."""
    message = "stored responses are temporarily unavailable"
    return Refusal(ErrorKind.SERVER, message, status=503, retry_after=5)


class StoredResponses:
    """The pages of a gateway for its stored responses. Each key sees its own.

    Args:
        gateway: the state that all requests share.
    """

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def response(self, request: Request) -> Response:
        """Answer ``GET /v1/responses/{id}``."""
        conversation = await self._find(request)
        return Response(conversation.body, media_type="application/json")

    async def delete(self, request: Request) -> Response:
        """Answer ``DELETE /v1/responses/{id}``."""
        caller, id = self._gateway.caller(request), request.path_params["id"]
        try:
            if not await self._gateway.conversations.forget(caller.name, id):
                raise _unknown()
        except StoreError:
            raise store_is_away() from None
        return _json({"id": id, "object": "response", "deleted": True})

    async def cancel(self, request: Request) -> Response:
        """Refuse ``POST /v1/responses/{id}/cancel``: no response runs in the background."""
        await self._find(request)
        message = "this response did not run in the background, so it cannot be cancelled"
        raise Refusal(ErrorKind.INVALID_REQUEST, message, status=400)

    async def input_items(self, request: Request) -> Response:
        """Answer ``GET /v1/responses/{id}/input_items``, the whole conversation before the response."""
        conversation = await self._find(request)
        query = request.query_params
        limit, after = query.get("limit", "20"), query.get("after")
        if not (limit.isascii() and limit.isdecimal() and 1 <= int(limit[:4]) <= 100):
            raise Refusal(ErrorKind.INVALID_REQUEST, "limit must be from 1 to 100", status=400)
        items = _items(conversation, request.path_params["id"])
        if query.get("order", "desc") == "desc":
            items.reverse()
        ids = [item["id"] for item in items]
        if after is not None and after not in ids:
            raise Refusal(ErrorKind.INVALID_REQUEST, "after names no item of this response", status=400)
        begin = 0 if after is None else ids.index(after) + 1
        page = items[begin : begin + int(limit)]
        ends = {"first_id": page[0]["id"] if page else None, "last_id": page[-1]["id"] if page else None}
        has_more = begin + len(page) < len(items)
        return _json({"object": "list", "data": page, **ends, "has_more": has_more})

    async def _find(self, request: Request) -> Conversation:
        caller, id = self._gateway.caller(request), request.path_params["id"]
        try:
            result = await self._gateway.conversations.find(caller.name, id)
        except StoreError:
            raise store_is_away() from None
        if result is None:
            raise _unknown()
        return result


def _items(conversation: Conversation, id: str) -> list[dict[str, Any]]:
    """Return the conversation before the response as items of Responses, each with an id."""
    requested = ChatRequest(conversation.turns[:-1], model="-")
    raw = build_http_request(requested, "openai_responses", on_unsupported="drop").body["input"]
    items = [{"role": "user", "content": raw}] if isinstance(raw, str) else raw
    return [
        {"id": f"item_{number}_{id}", "type": "message", **{key: _parts(item, key) for key in item}}
        for number, item in enumerate(items)
    ]


def _parts(item: dict[str, Any], key: str) -> Any:
    """Return the value of *key* of *item*. The text of a message becomes a list of parts, as stored items have it."""
    value = item[key]
    if key != "content" or not isinstance(value, str):
        return value
    kind = "output_text" if item.get("role") == "assistant" else "input_text"
    return [{"type": kind, "text": value, **({"annotations": []} if kind == "output_text" else {})}]


def _unknown() -> Refusal:
    return Refusal(ErrorKind.INVALID_REQUEST, "there is no such response, or no longer", status=404)


def _json(value: Any) -> Response:
    return Response(orjson.dumps(value), media_type="application/json")
