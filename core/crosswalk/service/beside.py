"""What a server is asked beside answers, such as a count of tokens: one request, one body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from crosswalk.errors import ProviderError, ServerError
from crosswalk.service.endpoint import join_url
from crosswalk.service.exchange import HEADERS, Setup
from crosswalk.service.failures import failure_of, retry_after_of
from crosswalk.text import brief, summary
from crosswalk.types.json import dump_json
from crosswalk.wire.limits import MIB

__all__ = ["PlainAnswer"]

_LONGEST = 4 * MIB


@brief
@attrs.frozen(repr=False)
class PlainAnswer:
    """What a server says that is no answer of a model.

    Attributes:
        status: the HTTP status.
        body: its bytes.
        retry_after: in how many seconds it asks to come again; ``None`` where it does not.
    """

    status: int
    body: bytes
    retry_after: float | None = None

    def __repr__(self) -> str:
        return summary("PlainAnswer", [("status", self.status), ("body", len(self.body))])


async def post(setup: Setup, path: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> PlainAnswer:
    """What the first endpoint of *setup* says to *body* at *path*; see :meth:`LLMService.post`."""
    route, wait = setup.routes[0], setup.new_wait()
    content, url = dump_json(dict(body)), join_url(route.base_url, path)
    said = {**HEADERS, **headers, **route.headers}
    if route.sign is not None:
        said |= route.sign("POST", url, said, content).headers
    wait.begin()
    total = setup.timeouts.total
    when = None if total is None else wait.now() + total
    received = b""
    try:
        await wait.within(None, setup.transport.ready())
        answer = await wait.within(
            when, setup.transport.send(url, "POST", said, content, setup.timeouts, wait)
        )
        try:
            while len(received) <= _LONGEST:
                received += await wait.within(when, answer.chunks.__anext__())
        except StopAsyncIteration:
            return PlainAnswer(answer.status, received, retry_after_of(answer.headers))
        finally:
            await answer.aclose()
    except Exception as error:
        info = failure_of(error, route.host)
        if info is None:
            raise
        raise ProviderError.of_kind(info.kind)(info.message, info=info) from None
    finally:
        wait.end()
    raise ServerError(f"{route.provider}: more than {_LONGEST} bytes at {path}")
