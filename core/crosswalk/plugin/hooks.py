"""The hooks of a provider plugin, as pluggy specifications, and what it says of its provider, the way back included."""

from __future__ import annotations

import binascii
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from functools import lru_cache, partial
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

import attrs
import pluggy

from crosswalk.errors import ErrorInfo, InvalidJSONError, MappingError, NestingTooDeepError
from crosswalk.text import plain_name
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.usage import UsageInfo
from crosswalk.types.values import FinishReason, TokenLogprob
from crosswalk.wire.framing import DEFAULT, CustomFraming, Halves, Limits, load_event

if TYPE_CHECKING:
    from crosswalk.plugin.state import MappingState


# -------------------------------------------------------------------------------- way back
# Facts about the way back: the parts of an earlier answer that a provider takes in the next request.


@attrs.frozen
class ServerTool:
    """A tool that an API runs itself, as a call and its result. Neither is accepted without the other.

    Attributes:
        call: the ``type`` of the call's segment. ``*`` at its beginning matches anything.
        result: the ``type`` of the result's segment, in the same form. A type that fits both is a call's.
        id: the key that names the call in the result's segment.
    """

    call: str
    result: str
    id: str = "id"

    def is_call(self, kind: object) -> bool:
        """Whether a segment of the type *kind* is a call of the tool."""
        return _fits(kind, self.call)

    def is_result(self, kind: object) -> bool:
        """Whether a segment of the type *kind* is a result of the tool."""
        return _fits(kind, self.result) and not self.is_call(kind)


def _fits(kind: object, pattern: str) -> bool:
    if not isinstance(kind, str):
        return False
    return kind.endswith(pattern[1:]) if pattern.startswith("*") else kind == pattern


@attrs.frozen(kw_only=True)
class WayBack:
    """The parts of earlier turns that a provider takes. Its own reasoning and state always go back.

    Attributes:
        takes_reasoning: whether it takes the reasoning text of any model, as long as the text has no signature.
        needs_signature: whether its own host refuses reasoning without a signature. Other servers of its dialect do not.
        takes_custom_calls: whether a call may hold free text. If not, it goes as a function with one string ``input``.
        takes_citations: whether it takes its own citations back.
        takes_media: the media that an assistant's message may hold: ``image``, ``audio``, ``video``, or ``audio_id`` for a
            sound by its id.
        shows_pictures: whether a user's message may hold a picture.
        moves_system: whether system messages are allowed only at the beginning.
        names_speakers: whether a message may name its speaker.
        knows_failures: whether a tool's result may say that the tool failed. Otherwise its text tells of it.
        server_tools: the tools that it runs itself, if they have two parts.
        refuses: fields of an answer's message that it does not take back.
    """

    takes_reasoning: bool = False
    needs_signature: bool = False
    takes_custom_calls: bool = False
    takes_citations: bool = False
    takes_media: tuple[str, ...] = ()
    shows_pictures: bool = False
    moves_system: bool = False
    names_speakers: bool = False
    knows_failures: bool = False
    server_tools: tuple[ServerTool, ...] = ()
    refuses: tuple[str, ...] = ()


_LETTERS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_LONGEST = 24
_SAMPLE_NUMBER = int.from_bytes(b"letters of both cases, and digits", "big")
"""The length of a new id if the server takes longer ones: 142 bits."""


@attrs.frozen(kw_only=True)
class CallIds:
    """The ids of tool calls that a server takes. The service translates ids of other servers that it would refuse.

    Attributes:
        pattern: the regular expression that a whole id matches. Letters and digits have to match it.
        maximum: the largest number of characters.

    Raises:
        ValueError: ids of letters and digits do not match.
    """

    pattern: str = ".+"
    maximum: int = 64

    def __attrs_post_init__(self) -> None:
        if not self.fits(self._spelt(_SAMPLE_NUMBER)):
            raise ValueError("the pattern of ids must allow letters and digits, up to the maximum")

    def fits(self, id: str) -> bool:
        """Whether the server takes *id*."""
        return len(id) <= self.maximum and re.fullmatch(self.pattern, id, re.ASCII) is not None

    def make(self, seed: str) -> str:
        """Return an id that fits, always the same one for the same *seed*."""
        from hashlib import sha256  # only to ask a server

        return self._spelt(int.from_bytes(sha256(seed.encode("utf-8", "surrogatepass")).digest(), "big"))

    def _spelt(self, number: int) -> str:
        letters = []
        for _ in range(min(self.maximum, _LONGEST)):
            number, digit = divmod(number, len(_LETTERS))
            letters.append(_LETTERS[digit])
        return "".join(letters)


fits_ids: Final = lru_cache(maxsize=1024)(CallIds.fits)  # bounded, because clients choose the ids
""":meth:`CallIds.fits`, which a conversation asks again for the same ids in each of its requests if they are short."""


# ---------------------------------------------------------------------------------- signed
# How a request is signed; loaded where one is, for reading answers does not need it.


@attrs.frozen
class Signed:
    """The headers of a signed request.

    Attributes:
        headers: the headers of the signature. They join the request's own.
        secrets: the secret texts in them. They are removed even if the server repeats them in an error.
    """

    headers: Mapping[str, str] = attrs.field(repr=False)
    secrets: tuple[str, ...] = attrs.field(default=(), repr=False)


Sign = Callable[[str, str, Mapping[str, str], bytes], Signed]
"""Signs a request: its method, URL, headers and body."""


# ------------------------------------------------------------------------------------ info
# The description of a provider that a plugin gives, apart from the mapping itself.


API: Final = 1
"""The major version of the plugin API: the hooks, and the names of ``crosswalk.plugins``.

It changes only with the major version of ``crosswalk-llm``.
"""
API_MINOR: Final = 4
"""The minor version of the plugin API. It grows with each new name, argument or field.

1.1: ``framing`` gets the content type. 1.2: ``ProviderInfo.names``, bounds for ``accept_number``, a text as time for
``take_identity``, requests of ``OpenAIChatDialect``, and tables of fields. 1.3: ``ProviderInfo.nested``. 1.4:
rows of ``OpenAIChatDialect``, and ``FieldRow.word`` and ``FieldRow.silent``.
"""


class Recognition(IntEnum):
    """How well an event fits a provider."""

    NO = 0
    """The event is of another dialect."""
    POSSIBLE = 1
    """The dialect fits, but other servers speak it too."""
    CERTAIN = 2
    """The event carries a signature that only this provider sets."""


def _misspelt(name: str, known: Iterable[str]) -> str | None:
    """Return the first of the *known* names that has a letter or two other than *name*, or ``None``. Short ones are free."""
    near_names, lengths = _shortened(name), range(max(len(name) - 1, 6), len(name) + 2)
    return next((one for one in known if len(one) in lengths and near_names & _shortened(one)), None)


def _shortened(name: str) -> set[str]:
    return {name, *(name[:place] + name[place + 1 :] for place in range(len(name)))}


_NO_WAY_BACK: Final = WayBack()
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
    given: Any = texts
    is_one = isinstance(given, str) or not isinstance(given, Iterable)
    strings = (given,) if is_one else tuple(given)
    if is_one or not all(isinstance(text, str) for text in strings):
        raise TypeError(f"a tuple of strings is needed, not {str(texts)[:40]!r}")
    return strings


def _as_nested(nested: Any) -> dict[str, str]:
    if not isinstance(nested, Mapping) or not {*nested.values()} <= {*_KINDS_OF_NESTED}:
        kinds = " or ".join(_KINDS_OF_NESTED)
        raise TypeError(f"nested gives {kinds} by path, as in {{'result': 'json'}}, not {str(nested)[:40]!r}")
    for path_text in nested:
        if not _NESTED_PATH.fullmatch(path_text):
            raise ValueError(f"not a path: {path_text[:40]!r}")
    return dict(nested)


def _is_key(_: object, attribute: attrs.Attribute[str | None], value: object) -> None:
    if value is not None and (type(value) is not str or not value or not set("[].").isdisjoint(value)):
        raise ValueError(f"{attribute.name} is one key, as in 'created_at', not {str(value)[:40]!r}")


def _is_version(_: object, __: object, value: object) -> None:
    if type(value) is not int and not (type(value) is str and re.fullmatch(r"[0-9]{1,4}\.[0-9]{1,4}", value)):
        raise TypeError(f"api is a whole number or a text such as '1.2', not {str(value)[:40]!r}")


def _of(*kinds: type) -> Callable[[object, attrs.Attribute[Any], object], None]:
    def check(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
        if not isinstance(value, kinds):
            names = " or ".join("None" if kind is NoneType else kind.__name__ for kind in kinds)
            raise TypeError(f"{attribute.name} is {names}, not {type(value).__name__}")

    return check


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
    signer: Callable[[str], Sign] | None = None

    @classmethod
    def by_name(cls, base_url: str, name: str) -> Access:
        """Describe a server at *base_url* with the variables ``NAME_BASE_URL`` and ``NAME_API_KEY``, for *name*."""
        url_variables, key_variables = (f"{name}_BASE_URL",), (f"{name}_API_KEY",)
        return cls(base_url=base_url, base_url_variables=url_variables, api_key_variables=key_variables)


@attrs.frozen(kw_only=True)
class BatchFile:
    """The lines of the files with which a vendor takes many requests as one job. The defaults are OpenAI's.

    Attributes:
        id: the key of a request's id.
        body: the key of its body.
        names_endpoint: whether a line also names the ``method`` of its request, and its path as ``url``.
        model: where the model is named: in each ``"line"``; in each line, but the same one in a whole ``"file"``; or
            only where the ``"job"`` is created. Then no line names it.
        ids: the ids that the vendor takes, or ``None`` for any.
        results: the name of the layout of the results, one of :func:`crosswalk.records.layouts`.
    """

    id: str = "custom_id"
    body: str = "body"
    names_endpoint: bool = True
    model: Literal["line", "file", "job"] = "file"
    ids: CallIds | None = None
    results: str = "openai_batch"


def _as_plain_names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(plain_name, _as_strings(names)))


@attrs.frozen(kw_only=True)
class Names:
    """The names that others have for a provider, if they differ from the provider id.

    Attributes:
        otel: the value of OpenTelemetry's ``gen_ai.provider.name``, or ``None`` for the id.
        prices: the name in the price lists of ``genai-prices``, or ``None`` for the id.
        vendors: the names of the vendor in logs. Case, and the difference between ``-``, ``.``, ``_`` and a space, do not
            matter.
        owners: what its servers write as ``owned_by`` in their list of models, ``/v1/models``. A server that is given by
            its address alone is recognized by it.
    """

    otel: str | None = attrs.field(default=None, validator=_of(str, NoneType))
    prices: str | None = attrs.field(default=None, validator=_of(str, NoneType))
    vendors: tuple[str, ...] = attrs.field(default=(), converter=_as_plain_names)
    owners: tuple[str, ...] = attrs.field(default=(), converter=_as_strings)


NO_NAMES: Final = Names()


@attrs.frozen(kw_only=True)
class ProviderInfo:
    """The description of a provider by its plugin.

    Attributes:
        title: the provider's name as people write it.
        api: the version of the plugin API that the plugin needs: the major one, ``1``, or both, ``"1.2"``. Crosswalk
            refuses another major and a later minor when it resolves the plugin.
        endpoints: the HTTP paths with answers that the plugin reads.
        documentation: the address of the provider's documentation of these endpoints, or ``None``.
        text_paths: the paths at which an event may carry a piece of text, of reasoning, or of the arguments of a
            pending call: ``choices[0].delta.content``. This is a promise: an event with any non-empty string there
            adds that string, and an event that equals the last one of its choice except for that string adds nothing
            else. Such an event does not reach the hooks. Its text is in ``state.repeated_texts``. The declaration
            holds for the class that makes it: a subclass that overrides a method declares its paths again, or its hooks
            get every event.
        message_paths: the paths in an event of the objects that hold the content of an answer: ``choices[].message``.
            ``[]`` means every item, and ``*`` at the end the texts of the object itself, where the message is a
            choice or the whole event: ``choices[].*``, ``*``. If an answer has no content, its tokens were counted, and
            text is left in one of these objects, other than ids, roles and names, then a field was probably renamed:
            ``incomplete_reason`` is ``unread``. By default, text that is left anywhere in the event counts.
        timestamp_key: the top-level key of a string that changes from event to event and is only stored in the
            extensions, as sent, such as a time or padding, or ``None`` without one. If only text and timestamp
            change, the extensions get it directly, and the hook ``extensions`` is not called.
        number_key: the top-level key of a running number, or ``None`` without one. A number that is one more than
            that of the event before carries no information.
        usage_key: the top-level key of an object of token counts or measurements, which only ``map_usage`` takes, and
            which it understands without the other fields, or ``None`` without one. In an event that needs them,
            ``map_usage`` raises any error: the hooks then get the event whole.
        logprob_paths: the paths at which log probabilities come alongside a text, each with the function that takes
            them. It gets the object that holds them, and the text.
        pieces: the arrays of the extensions that arrive in pieces, as token ids do: equal ones are appended as well.
            ``[]`` means every item: ``choices[].token_ids``. An array without a declaration is appended, too, but
            stored once while it is the same in every event that carries it.
        cumulative: the arrays of the extensions, and the strings in an object ``delta``, that arrive whole each time,
            unchanged or longer.
        speaks: the ids of other providers if this server also answers in their dialects, such as ``openai_responses``.
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
        nested: the paths of strings that hold an object or an array, each with how: ``"json"``, or ``"base64+json"`` in
            base64. ``[]`` means every item: ``parts[].bytes``. Hooks and tables get the value inside in place of the
            string. The paths are opened in their order, so that a later one may lead into an earlier one.
        access: how its server is reached, for the service, or ``None`` if only the user can configure it.
        call_ids: the ids of tool calls that its server takes, or ``None`` for any.
        call_names: the regular expression that the name of a called tool must match as a whole, or ``None`` for any
            name. It must match letters, digits, ``_`` and ``-``. A model may call a tool that was not offered, by any
            name.
        hosted_tools: the kinds of tools that the provider runs itself and ``build_request`` can request.
        way_back: the parts of earlier turns that the provider takes: :class:`WayBack`.
        spell: rewrites a body or chunk of Chat Completions from OpenAI's words into this server's, so that a conversion
            returns its answers as they were, or ``None`` if the words are OpenAI's.
        model_classes: the file with the facts about the provider's models, ``package:path``, or ``None`` without one. See
            :mod:`crosswalk.service.model_facts`.
        batch_file: the lines of the vendor's batch files, or ``None`` if it has none.
        names: what telemetry, price lists, logs and lists of models call the provider.
    """

    title: str = attrs.field(validator=_of(str))
    api: int | str = attrs.field(default=1, validator=_is_version)
    endpoints: tuple[str, ...] = attrs.field(default=(), converter=_as_strings)
    documentation: str | None = attrs.field(default=None, validator=_of(str, NoneType))
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
    is_original: bool = attrs.field(default=False, validator=_of(bool))
    repeats_finish: bool = attrs.field(default=False, validator=_of(bool))
    sentinel: bool = attrs.field(default=False, validator=_of(bool))
    framing: CustomFraming | None = None
    text_events: tuple[str, ...] = attrs.field(default=(), converter=_as_strings)
    nested: Mapping[str, str] = attrs.field(factory=dict, converter=_as_nested, hash=False)
    access: Access | None = attrs.field(default=None, validator=_of(Access, NoneType))
    call_ids: CallIds | None = attrs.field(default=None, validator=_of(CallIds, NoneType))
    call_names: str | None = attrs.field(default=None, validator=_of(str, NoneType))
    hosted_tools: tuple[str, ...] = attrs.field(default=(), converter=_as_strings)
    way_back: WayBack = attrs.field(default=_NO_WAY_BACK, validator=_of(WayBack))
    spell: Callable[[dict[str, Any]], None] | None = None
    model_classes: str | None = attrs.field(default=None, validator=_of(str, NoneType))
    batch_file: BatchFile | None = attrs.field(default=None, validator=_of(BatchFile, NoneType))
    names: Names = attrs.field(default=NO_NAMES, validator=_of(Names))

    @property
    def api_version(self) -> tuple[int, int]:
        """Major and minor version of :attr:`api`."""
        major, _, minor = str(self.api).partition(".")
        return int(major), int(minor or 0)

    def opened(self, event: Any, limits: Limits = DEFAULT, *, halves: Halves = "mend") -> Any:
        """Return *event* with what the strings at the paths of :attr:`nested` hold in their place. The rest is shared.

        An empty string, and a value of another type, stay.

        Args:
            event: a decoded event.
            limits: their depth is that of the whole event.
            halves: see :func:`crosswalk.wire.framing.load_event`.

        Raises:
            InvalidJSONError: a string holds neither an object nor an array.
            NestingTooDeepError: one inside is too deep.
        """
        for path_text, kind in self.nested.items():
            keys = path_text.replace("[]", ".[]").split(".")
            event = _with_opened(event, keys, partial(_opened, kind, path_text, len(keys), limits, halves))
        return event

    @classmethod
    def of(cls, plugin: Any) -> ProviderInfo:
        """Return the description. Its fields are the attributes of *plugin* with the same names.

        An attribute that has nearly the name of a field, or of what a class of ours reads, is warned of.
        """
        fields = {field.name for field in attrs.fields(ProviderInfo)}
        ours, own = set(fields), dict[str, Any]()
        for kind in reversed(type(plugin).__mro__):
            names = ours if kind.__module__.startswith("crosswalk.") else own
            names.update(vars(kind))
        for name, value in own.items():
            is_known = name in ours or name.startswith("_") or callable(value)
            meant = None if is_known else _misspelt(name, ours)
            if meant is not None:
                message = f"{type(plugin).__name__}.{name} declares nothing, did you mean {meant!r}?"
                warnings.warn(message, stacklevel=2)
        return cls(**{name: getattr(plugin, name) for name in fields if hasattr(plugin, name)})

    def over(self, other: ProviderInfo) -> ProviderInfo:
        """Return this description, with the fields of *other* in place of those that have their default here."""
        defaults = ProviderInfo(title="")
        inherited_fields = {
            field.name: getattr(other, field.name)
            for field in attrs.fields(ProviderInfo)
            if getattr(self, field.name) == getattr(defaults, field.name)
        }
        return attrs.evolve(self, **inherited_fields)


# ---------------------------------------------------------------------------------- nested
# Strings that hold JSON, see ``ProviderInfo.nested``.


_KINDS_OF_NESTED: Final = ("json", "base64+json")
_NESTED_PATH: Final = re.compile(r"[^.\[\]]+(\[\])*(\.[^.\[\]]+(\[\])*)*")


def _with_opened(value: Any, keys: list[str], open_leaf: Callable[[Any], Any]) -> Any:
    """Return *value* with what *open_leaf* makes of the values at *keys*. It is *value* itself if that changes none."""
    if not keys:
        return open_leaf(value)
    key, *inner_keys = keys
    if key == "[]":
        is_array = type(value) is list
        return [_with_opened(item, inner_keys, open_leaf) for item in value] if is_array else value
    inner = _with_opened(value[key], inner_keys, open_leaf) if type(value) is dict and key in value else None
    return value if inner is None or inner is value[key] else {**value, key: inner}


def _opened(kind: str, place: str, depth: int, limits: Limits, halves: Halves, value: Any) -> Any:
    """Return what *value*, *depth* levels deep in its event, holds."""
    if type(value) is not str or not value:
        return value
    data = value.encode("utf-8", "backslashreplace")  # half of a character, as the escape that it is in JSON
    failure: MappingError | None = None
    try:
        data = binascii.a2b_base64(data, strict_mode=True) if kind != "json" else data
        inner_limits = attrs.evolve(limits, depth=max(limits.depth - depth, 1))
        inner = load_event(data, inner_limits, place=place, halves=halves)
        if type(inner) in (dict, list):
            return inner
        failure = InvalidJSONError("the JSON is neither an object nor an array", place=place)
    except NestingTooDeepError:
        limit = limits.depth
        failure = NestingTooDeepError(
            f"the event is nested deeper than {limit} levels", limit=limit, place=place
        )
    except binascii.Error:
        failure = InvalidJSONError("not base64", place=place)
    raise failure


# ------------------------------------------------------------------------------- hookspecs
# The hooks of a provider plugin, as pluggy specifications.
#
# A plugin is a module or an object with some of these functions, each marked ``@crosswalk.hookimpl``. Hooks do not call
# each other: the reader composes them. An implementation may leave out arguments that it does not need.
#
# A hook is deprecated with pluggy's own options: ``@hookspec(firstresult=True, warn_on_impl=DeprecationWarning("…"))``.
# An argument is deprecated with ``warn_on_impl_args={"name": DeprecationWarning("…")}``. Python shows the warning with
# the file and line of the plugin's function.


PROJECT = "crosswalk"

hookspec = pluggy.HookspecMarker(PROJECT)
"""Marks the specification of a hook. A plugin does not need it."""
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a plugin's function as a hook. ``@hookimpl(wrapper=True)`` puts it around the others, as in pluggy."""


class ProviderHooks(Protocol):
    """The hooks of a provider, for a type checker. Subclass it, and each hook is checked for its arguments and its
    result.

    A hook of a subclass names all of its arguments. The hooks that a subclass leaves out are not hooks of it.
    """

    @hookspec(firstresult=True)
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta] | None:
        """Return the deltas of *event*, in order: none, one or many.

        Called once for every event. A complete body is one event. The hook owns the event: it takes the fields that it
        understands (``take_string(event, "text")``), and the remaining ones reach the extensions. The reader numbers
        the deltas. A delta that ends a choice carries the provider's word as ``raw_finish_reason``. If a hook is a
        generator and raises, the deltas that it yielded before are kept.

        :param event: the decoded JSON, to be taken apart.
        :param state: the state of this answer.
        :return: the deltas, or an empty tuple if the event adds nothing.
        :raises UnknownEventError: this plugin does not know the type of the event.
        :raises WireTypeError: a field that decides the answer has another type than the API promises.
        """
        return None

    @hookspec(firstresult=True)
    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason | None:
        """Return the canonical meaning of the provider's finish word.

        Called with each ``raw_finish_reason`` that ``map_delta`` returned. The hook does not need to consider whether
        tools were called: the reader turns ``stop`` into ``tool_calls`` if a call is present. A plugin without this
        hook declares that its API has no terminal signal: the end of the input is the end of the answer.

        :param reason: the word, verbatim, or ``""`` if the provider ended without one.
        :param state: the state of this answer.
        :return: the canonical reason, or ``None`` for an unknown word.
        :raises UnknownFinishReasonError: the word is unknown, as for ``None``.
        """
        return None

    @hookspec(firstresult=True)
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """Take the token counts of *event*, usually with ``accept_count`` and ``state.usage_info``.

        A later report replaces an earlier one field by field; counts are never added up. A count that the provider did
        not send is 0 and noted as absent.

        :param event: the fields of the event that ``map_delta`` did not take.
        :param state: the state of this answer.
        :return: the counts, or ``None`` if the event has none.
        """
        return None

    @hookspec(firstresult=True)
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any] | None:
        """Return the part of an event's residue that belongs into the extensions, and its location there.

        Without this hook, the whole residue goes into the extensions.

        :param event: the fields that the other hooks did not take, without the objects and arrays that they emptied.
        :param state: the state of this answer.
        :return: the residue in the provider's own structure, or ``{}`` if nothing remains.
        """
        return None

    @hookspec(firstresult=True)
    def map_error(self, status: int, body: Any) -> ErrorInfo | None:
        """Return the meaning of an HTTP error.

        :param status: the HTTP status, 400 or above.
        :param body: the decoded JSON, or the text of a body that is not JSON, or ``""`` for an empty body.
        :return: kind, message and whether a retry may help, or ``None`` to leave it to the general rules.
        """
        return None

    @hookspec(firstresult=True)
    def provider_info(self) -> ProviderInfo | None:
        """Describe the provider: its endpoints, and the guarantees about its events.

        :return: the description, or ``None`` if the provider guarantees nothing.
        """
        return None

    @hookspec(firstresult=True)
    def recognizes(self, event: Any) -> Recognition | None:
        """Return how well *event* fits this provider. Used for payloads of unknown origin.

        :param event: one decoded event or body.
        :return: ``Recognition.NO``, ``POSSIBLE`` if the dialect fits, or ``CERTAIN`` if no other server writes this.
        """
        return None

    @hookspec(firstresult=True)
    def build_request(self, request: Any) -> Any:
        """Build the provider's HTTP request for a canonical one. Used by the service.

        :param request: a ``crosswalk.service.ChatRequest``.
        :return: a ``crosswalk.service.HTTPRequest``, without any credential.
        :raises UnsupportedRequestError: the provider cannot express the content of the request.
        """
        return None
