"""The HTTP request that a plugin builds, with the options that its API cannot express, and the error if it builds none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from crosswalk.errors import CrosswalkError
from crosswalk.text import brief, clean_message, summary


def _as_reason(value: str) -> str:
    return clean_message(value, 200)


@attrs.frozen
class Dropped:
    """An option of a request that the provider cannot express.

    Attributes:
        option: its name, such as ``top_k``.
        reason: why, in a few words.
        refuses: whether the request is refused for it when options must not be dropped. It is false for parts of another
            provider's answer that no provider accepts, such as reasoning: these are only recorded.
    """

    option: str
    reason: str = attrs.field(converter=_as_reason)
    refuses: bool = attrs.field(default=True, kw_only=True)


@brief
@attrs.frozen(repr=False, eq=False)
class HTTPRequest:
    """The result of a plugin's ``build_request`` for a :class:`ChatRequest`.

    Attributes:
        path: the path below the endpoint's base URL, with its query: ``/v1/chat/completions``. A beginning that
            repeats the end of the base URL (``/v1``) is used once.
        body: the JSON body.
        method: the HTTP method.
        headers: headers that the API wants besides content type and credentials.
        dropped: the options that the provider cannot express. The service raises for them, or records them, as its
            caller wishes.
        spellings: other names of fields of the body, and their names in the body. An entry of ``provider_options`` under
            such a name is the same option. ``someName`` is ``some_name`` without an entry here.
        added: the options that the API needs and the request does not set, with the values that are sent.
    """

    path: str
    body: dict[str, Any]
    method: str = "POST"
    headers: Mapping[str, str] = attrs.field(factory=dict)
    dropped: tuple[Dropped, ...] = ()
    spellings: Mapping[str, str] = attrs.field(factory=dict)
    added: Mapping[str, Any] = attrs.field(factory=dict)

    def __repr__(self) -> str:
        # Neither headers, which may hold credentials, nor the conversation.
        return summary(
            "HTTPRequest", [("method", self.method), ("path", self.path), ("body", tuple(self.body))]
        )


class UnsupportedRequestError(CrosswalkError, ValueError):
    """A provider cannot express a request. Nothing has been sent.

    Attributes:
        provider: the provider id, or ``None`` if the request was built without one.
        options: the names of the options that it cannot express, such as ``top_k`` or ``messages[0]``.
    """

    def __init__(self, message: str, *, provider: str | None = None, options: Sequence[str] = ()) -> None:
        super().__init__(f"{provider}: {message}" if provider else message)
        self.provider = provider
        self.options = tuple(options)
