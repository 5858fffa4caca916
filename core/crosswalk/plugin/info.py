"""The description of a provider that a plugin gives, apart from the mapping itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs

from crosswalk.lazy import later
from crosswalk.plugin.way_back import ServerTool as ServerTool, WayBack as WayBack
from crosswalk.types.values import TokenLogprob
from crosswalk.wire.framing import CustomFraming

if TYPE_CHECKING:
    import crosswalk.plugin.signed as signed
    import crosswalk.plugin.way_back as ids
else:  # reading answers needs neither
    ids, signed = later("crosswalk.plugin.way_back"), later("crosswalk.plugin.signed")


API: Final = 1
"""The major version of the plugin API: the hooks, and the names of ``crosswalk.plugins``.

It changes only with the major version of ``crosswalk-llm``.
"""
API_MINOR: Final = 0
"""The minor version of the plugin API. It grows with each new name, argument or field."""


class Recognition(IntEnum):
    """How well an event fits a provider."""

    NO = 0
    """The event is of another dialect."""
    POSSIBLE = 1
    """The dialect fits, but other servers speak it too."""
    CERTAIN = 2
    """The event carries a signature that only this provider sets."""


_NOTHING: Final = WayBack()
Path: TypeAlias = tuple[str | int, ...]
"""The location of a value in a JSON document: keys of objects and indices of items, from the outside in."""
LogprobReader: TypeAlias = Callable[[dict[str, Any], str | None], tuple[TokenLogprob, ...] | None]
"""Takes log probabilities from the object that holds them. The second argument is the text that came with them."""


@lru_cache(maxsize=1024)
def path(text: str) -> Path:
    """Parse ``"choices[0].delta.content"`` into the keys that lead there: ``("choices", 0, "delta", "content")``.

    Raises:
        ValueError: *text* is not a path.
    """
    keys: list[str | int] = []
    for part in text.split("."):
        name, *numbers = part.split("[")
        if not name or "]" in name or not all(one[-1:] == "]" and _is_number(one[:-1]) for one in numbers):
            raise ValueError(f"not a path: {text[:40]!r}")
        keys += (int(name) if _is_number(name) else name, *(int(one[:-1]) for one in numbers))
    return tuple(keys)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def _as_paths(paths: Iterable[str | Path]) -> tuple[Path, ...]:
    if isinstance(paths, str):
        raise TypeError(f"paths are a tuple of strings, not the string {paths[:40]!r}")
    return tuple(path(keys) if isinstance(keys, str) else tuple(keys) for keys in paths)


def _as_readers(readers: Any) -> dict[Path, LogprobReader]:
    if not isinstance(readers, Mapping) or not all(map(callable, readers.values())):
        raise TypeError(
            f"logprob_paths are functions by path, as in {{path: read}}, not {str(readers)[:40]!r}"
        )
    return dict(zip(_as_paths(readers), readers.values(), strict=True))


def _as_strings(texts: Iterable[str]) -> tuple[str, ...]:
    # A string is an iterable of strings, but its letters are not names.
    result = (texts,) if isinstance(texts, str) else tuple(texts)
    if isinstance(texts, str) or not all(isinstance(text, str) for text in result):
        raise TypeError(f"a tuple of strings is needed, not {str(texts)[:40]!r}")
    return result


def _is_key(_: object, attribute: attrs.Attribute[str | None], value: object) -> None:
    if value is not None and (type(value) is not str or not value or not set("[].").isdisjoint(value)):
        raise ValueError(f"{attribute.name} is one key, as in 'created_at', not {str(value)[:40]!r}")


def _is_version(_: object, __: object, value: object) -> None:
    if type(value) is not int and not (type(value) is str and re.fullmatch(r"[0-9]{1,4}\.[0-9]{1,4}", value)):
        raise TypeError(f"api is a whole number or a text such as '1.2', not {str(value)[:40]!r}")


@attrs.frozen(kw_only=True)
class Access:
    """The address of a provider's server, and how it expects the API key. Settings of the user take precedence.

    Attributes:
        base_url: the default address: scheme, host, and the common beginning of all paths.
        base_url_variables: the environment variables that may name another address, in order of precedence.
        api_key_variables: the environment variables that may hold the API key, likewise. A service on the internet
            (``https``) needs one.
        api_key_header: the header that carries the key.
        api_key_scheme: the word before the key in the header, or ``None`` for the key alone.
        locate: finds the address of the server if *base_url* is only a pattern, or ``None`` if it is the address.
        signer: makes, from the address, the function that signs each request if no key is set, or ``None`` if requests
            are not signed.
    """

    base_url: str
    base_url_variables: tuple[str, ...] = ()
    api_key_variables: tuple[str, ...] = ()
    api_key_header: str = "Authorization"
    api_key_scheme: str | None = "Bearer"
    locate: Callable[[], str] | None = None
    signer: Callable[[str], signed.Sign] | None = None

    @classmethod
    def by_name(cls, base_url: str, name: str) -> Access:
        """Describe a server at *base_url* with the variables ``NAME_BASE_URL`` and ``NAME_API_KEY``, for *name*."""
        variables, keys = (f"{name}_BASE_URL",), (f"{name}_API_KEY",)
        return cls(base_url=base_url, base_url_variables=variables, api_key_variables=keys)


@attrs.frozen(kw_only=True)
class ProviderInfo:
    """The description of a provider by its plugin.

    Attributes:
        title: the provider's name as people write it.
        api: the version of the plugin API that the plugin needs: the major one, ``1``, or both, ``"1.2"``. Crosswalk
            refuses another major and a later minor when it resolves the plugin.
        endpoints: the HTTP paths with answers that the plugin reads.
        documentation: the address of the provider's documentation of these endpoints, or ``None`` if there is none.
        text_paths: the paths at which an event may carry a piece of text, of reasoning, or of the arguments of a
            pending call: ``choices[0].delta.content``. This is a promise: an event with any non-empty string there
            adds that string, and an event that equals the last one of its choice except for that string adds nothing
            else. Such an event does not reach the hooks. Its text is in ``state.repeated_texts``. The declaration
            holds for the class that makes it: a subclass that overrides a method declares its paths again, or its hooks
            get every event.
        message_paths: the paths in an event of the objects that hold the content of an answer: ``choices[].message``.
            ``[]`` stands for every item. If an answer has no content, its tokens were counted, and text is left in one of
            these objects, other than ids, roles and names, then a field was probably renamed: ``incomplete_reason`` is
            ``unread``. By default, text that is left anywhere in the event counts.
        timestamp_key: the top-level key of a string that changes from event to event and is only stored in the
            extensions, as sent, such as a time or padding, or ``None`` if there is none. If only text and timestamp
            change, the extensions get it directly, and the hook ``extensions`` is not called.
        number_key: the top-level key of a running number, or ``None`` if there is none. A number that is one more than
            that of the event before carries no information.
        usage_key: the top-level key of an object of token counts, which only ``map_usage`` takes, and which it
            understands without the other fields, or ``None`` if there is none.
        logprob_paths: the paths at which log probabilities come alongside a text, each with the function that takes
            them. It gets the object that holds them, and the text.
        pieces: the arrays of the extensions that arrive in pieces, as token ids do: equal ones are appended as well.
            ``[]`` stands for every item: ``choices[].token_ids``. An array without a declaration is appended, too, but
            stored once as long as it is the same in every event that carries it.
        cumulative: the arrays of the extensions, and the strings in an object ``delta``, that arrive whole each time,
            unchanged or longer.
        speaks: the ids of other providers in whose dialects this server also answers, such as ``openai_responses``.
            If the plugin does not recognize an answer, the first of them that does reads it, under the
            server's own id. They are looked up by name when needed, so that plugins do not import each other.
        is_original: whether other servers adopted its dialect. An answer that has no sign to distinguish them is read
            under its id.
        repeats_finish: whether the server may send a finish reason before the end of its choice, even in every event.
            For any other server, content after a finish reason is an error (a second answer has begun), unless its
            event names the same answer (``state.continues``).
        sentinel: whether every stream of the API ends with ``[DONE]``. If both usage and ``[DONE]`` are missing, the
            usage was cut off.
        framing: ``framing(start, limits, content_type)`` returns a decoder for a custom framing of the provider,
            ``None`` for SSE, NDJSON and JSON, or ``NEED_MORE`` to be called again with more bytes.
        text_events: the names of server-sent events with data that is text, not JSON. The hooks get such an event as
            ``{"data": text}``.
        access: how its server is reached, for the service, or ``None`` if only the user can configure it.
        call_ids: the ids of tool calls that its server takes, or ``None`` for any.
        call_names: the regular expression that the name of a called tool must match as a whole, or ``None`` for any
            name. It must match letters, digits, ``_`` and ``-``. A model may call a tool that was not offered, by any
            name.
        hosted_tools: the kinds of tools that the provider runs itself and ``build_request`` can request.
        way_back: the parts of earlier turns that the provider takes: :class:`WayBack`.
        spell: rewrites a body or chunk of Chat Completions from OpenAI's words into this server's, so that a conversion
            returns its answers as they were, or ``None`` if the words are OpenAI's.
    """

    title: str
    api: int | str = attrs.field(default=1, validator=_is_version)
    endpoints: tuple[str, ...] = attrs.field(default=(), converter=_as_strings)
    documentation: str | None = None
    text_paths: tuple[Path, ...] = attrs.field(default=(), converter=_as_paths)
    message_paths: tuple[str, ...] | None = attrs.field(
        default=None, converter=attrs.converters.optional(_as_strings)
    )
    timestamp_key: str | None = attrs.field(default=None, validator=_is_key)
    number_key: str | None = attrs.field(default=None, validator=_is_key)
    usage_key: str | None = attrs.field(default=None, validator=_is_key)
    logprob_paths: Mapping[Path, LogprobReader] = attrs.field(factory=dict, converter=_as_readers, hash=False)
    pieces: tuple[str, ...] = attrs.field(default=(), converter=_as_strings)
    cumulative: tuple[str, ...] = attrs.field(default=(), converter=_as_strings)
    speaks: tuple[str, ...] = attrs.field(default=(), converter=_as_strings)
    is_original: bool = False
    repeats_finish: bool = False
    sentinel: bool = False
    framing: CustomFraming | None = None
    text_events: tuple[str, ...] = attrs.field(default=(), converter=_as_strings)
    access: Access | None = None
    call_ids: ids.CallIds | None = None
    call_names: str | None = None
    hosted_tools: tuple[str, ...] = attrs.field(default=(), converter=_as_strings)
    way_back: WayBack = _NOTHING
    spell: Callable[[dict[str, Any]], None] | None = None

    @property
    def api_version(self) -> tuple[int, int]:
        """Major and minor version of :attr:`api`."""
        major, _, minor = str(self.api).partition(".")
        return int(major), int(minor or 0)

    def over(self, other: ProviderInfo) -> ProviderInfo:
        """Return this description, with the fields of *other* in place of those that have their default here."""
        defaults = ProviderInfo(title="")
        unset = {
            field.name: getattr(other, field.name)
            for field in attrs.fields(ProviderInfo)
            if getattr(self, field.name) == getattr(defaults, field.name)
        }
        return attrs.evolve(self, **unset)
