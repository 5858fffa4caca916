"""What is kept for clients: the ids that a server gave to a key, and the items of the answers that the gateway stores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from crosswalk.types import ChatResponse, SegmentType
from crosswalk_serve.http_errors import BadRequestError
from crosswalk_serve.requests import Incoming
from crosswalk_serve.stored_responses import Documents, StoreError, name_of, store_is_away

_REFERENCE: Final = b'"item_reference"'
_IDS: Final = ("id", "previous_message_id")
"""The fields with an id in what a request names."""
_UNKNOWN: Final = "this key has not received it from the server of this model, or that is long ago"


class KeptState:
    """What each key has received, so that no key can go on with what another one, or another server, keeps.

    Args:
        documents: where it is noted.
    """

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    async def note(self, owner: str | None, server: str, incoming: Incoming, response: ChatResponse) -> None:
        """Note that *owner* has received from *server* the ids of what it keeps of *response* to *incoming*.

        Raises:
            StoreError: it cannot be noted now.
        """
        thread = {response.id} if "thread" in incoming.state else set()
        for id in {*thread, *_ids_of(response)}:
            await self._documents.put(name_of(owner, f"{server}:{id}"), b"1")

    async def check(self, owner: str | None, server: str | None, incoming: Incoming) -> None:
        """Check that *owner* has received from *server* whatever *incoming* names. *server* is ``None`` if it is unclear.

        Raises:
            BadRequestError: it has not.
            Refusal: nobody can tell now.
        """
        for path, value in incoming.state.items():
            for id in _ids_in(value):
                name = name_of(owner, f"{server}:{id}")
                if server is None or await self._get(name) is None:
                    raise BadRequestError(_UNKNOWN, path)

    async def keep_items(self, owner: str | None, answer: Mapping[str, Any]) -> None:
        """Keep the items of *answer*, a response of the Responses API, for the references of later requests.

        Raises:
            StoreError: they cannot be kept now.
        """
        items = answer.get("output")
        for item in items if isinstance(items, list) else ():  # as the server sent it
            if isinstance(item, dict) and isinstance(item.get("id"), str):
                await self._documents.put(name_of(owner, f"item:{item['id']}"), orjson.dumps(item))

    async def with_items(self, owner: str | None, body: bytes) -> bytes:
        """Return *body*, a request of the Responses API, with the kept items in place of references to them.

        Raises:
            Refusal: nobody can tell now.
        """
        if _REFERENCE not in body:
            return body
        try:
            request = orjson.loads(body)
        except orjson.JSONDecodeError:
            return body  # the reader says what is wrong
        items = request.get("input") if isinstance(request, dict) else None
        if not isinstance(items, list):
            return body
        found = False
        for number, item in enumerate(items):
            if isinstance(item, dict) and item.get("type") == "item_reference":
                kept = await self._get(name_of(owner, f"item:{item.get('id')}"))
                if kept is not None:
                    items[number], found = orjson.Fragment(kept), True
        return orjson.dumps(request) if found else body

    async def _get(self, name: str) -> bytes | None:
        try:
            return await self._documents.get(name)
        except StoreError:
            raise store_is_away() from None


def _ids_in(value: Any) -> Iterator[str]:
    """Return the ids that *value* consists of, or has."""
    if isinstance(value, str):
        yield value
    for name in _IDS if isinstance(value, Mapping) else ():
        if isinstance(id := value.get(name), str):
            yield id


def _ids_of(response: ChatResponse) -> Iterator[str]:
    """Return the ids of what the server of *response* keeps with it."""
    for name in ("container", "conversation"):
        yield from _ids_in(response.metadata.extensions.get(name))
    for segment in response.segments:
        if segment.type is SegmentType.MEDIA:
            yield from _ids_in(segment.metadata)
