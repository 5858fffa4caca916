"""What a plugin says about its provider, apart from the mapping itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs

from crosswalk.lazy import later
from crosswalk.types.logprob import TokenLogprob
from crosswalk.wire.framing import Decoder
from crosswalk.wire.limits import Limits

if TYPE_CHECKING:
    import crosswalk.plugin.call_ids as ids
    import crosswalk.plugin.signed as signed
else:  # to read answers needs neither
    ids, signed = later("crosswalk.plugin.call_ids"), later("crosswalk.plugin.signed")

__all__ = [
    "API", "Access", "LogprobReader", "Path", "ProviderInfo", "Recognition",
]  # fmt: skip

API: Final = 1
"""The version of what plugins are written against: the hooks, and the names of ``crosswalk.plugins``."""


class Recognition(IntEnum):
    """How well an event fits a provider."""

    NO = 0
    """It is of another dialect."""
    POSSIBLE = 1
    """The dialect fits; other servers speak it too."""
    CERTAIN = 2
    """It carries a mark that only this provider sets."""


Path: TypeAlias = tuple[str | int, ...]
"""Where a value lies in a JSON document: keys of objects and numbers of items, from the outside in."""
LogprobReader: TypeAlias = Callable[[dict[str, Any], str | None], tuple[TokenLogprob, ...] | None]
"""Takes log probabilities from the object that holds them; it is also given the text that came with them."""


@lru_cache(maxsize=1024)
def path(text: str) -> Path:
    """``"choices[0].delta.content"`` as the keys that lead there: ``("choices", 0, "delta", "content")``.

    Raises:
        ValueError: *text* is no path.
    """
    keys: list[str | int] = []
    for part in text.split("."):
        name, *numbers = part.split("[")
        if not name or "]" in name or not all(one[-1:] == "]" and _is_number(one[:-1]) for one in numbers):
            raise ValueError(f"not the path of a leaf: {text[:40]!r}")
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
            f"logprob_leaves are functions by path, as in {{path: read}}, not {str(readers)[:40]!r}"
        )
    return dict(zip(_as_paths(readers), readers.values(), strict=True))


def _as_strings(texts: Iterable[str]) -> tuple[str, ...]:
    # A string is an iterable of strings, and its letters would name nothing.
    found = (texts,) if isinstance(texts, str) else tuple(texts)
    if isinstance(texts, str) or not all(isinstance(text, str) for text in found):
        raise TypeError(f"a tuple of strings is needed, not {str(texts)[:40]!r}")
    return found


def _is_version(_: object, __: object, value: object) -> None:
    if type(value) is not int:
        raise TypeError(f"api is a whole number, not {str(value)[:40]!r}")


@attrs.frozen(kw_only=True)
class Access:
    """Where a provider's server is and how it wants to be shown a key; what a user gives counts more.

    Attributes:
        base_url: where it is by default: scheme, host, and what every path begins with.
        base_url_variables: the environment variables that may name another one, the strongest first.
        api_key_variables: those that may hold the API key. A service on the internet (``https``) needs one.
        api_key_header: the header that carries the key.
        api_key_scheme: the word before the key in it; ``None`` for the key alone.
        locate: finds out where the server is, where *base_url* is but a pattern; ``None`` where it is the address.
        signer: makes, of the address, what signs each request, where no key is given; ``None`` where none is signed.
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
        """A server at *base_url* whose variables begin with *name*: ``NAME_BASE_URL`` and ``NAME_API_KEY``."""
        variables, keys = (f"{name}_BASE_URL",), (f"{name}_API_KEY",)
        return cls(base_url=base_url, base_url_variables=variables, api_key_variables=keys)


@attrs.frozen(kw_only=True)
class ProviderInfo:
    """What a plugin says about its provider.

    Attributes:
        title: the provider's name as people write it.
        api: the version of the plugin API that the plugin was written against, :data:`crosswalk.plugins.API`
            as a number; another one than the installed is refused when the plugin is resolved.
        endpoints: the HTTP paths whose answers the plugin reads.
        documentation: where the provider describes them; ``None`` when it does not.
        text_leaves: where an event may carry a piece of text, of reasoning, or of the arguments of a call that is
            open, as in ``choices[0].delta.content``. A promise: of two events that differ in such a leaf alone, and
            there only in which non-empty string it holds, with the same SSE name, ``map_delta`` makes deltas that
            differ in that string alone, which comes out as it is; and what the hooks remember for later events is the
            same, also which choice such an event was of, but for what ``state.unseen`` tells them of such texts. Most of a
            stream is such events; the reader then reads them without parsing each anew.
        stamp_leaves: where an event carries what only ``extensions`` takes, as it is and where it is, and what may change
            with every event: a string or a number, as a time is; a list of whole numbers from 0 that arrives in *pieces*, as
            token ids do; or an object of such. What lies in one of *usage_leaves* or *logprob_leaves*, or is one, their hook
            may read as well, and leaves as it is, wherever in the same object it puts it. Part of the same promise.
        body_leaves: which leaves of a whole answer may say something else in the next one: its texts, id, times and counts.
            A promise, as that of ``text_leaves``: whatever non-empty string, number or, as the arguments of a call may be,
            non-empty object stands in them, the hooks make the same of the rest, and of each such value the same: it goes
            where it belongs, as it is, as a time or a duration, added up, or as its JSON. But for two things, which may
            matter: whether a count is another's, or the sum of others, and whether two texts are the same. Bodies like one
            before are then read without parsing each anew.
        number_leaves: where an event carries, at its top, its number: one more than that of the event before says nothing
            at all; part of the same promise. A hook that remembers the last number adds to it how many events it has not
            seen: so many texts are in ``state.unseen``.
        usage_leaves: where an event carries, at its top, an object of counts, or counts: only ``map_usage`` takes them, it
            makes the same of them whatever else the event holds, and ``extensions`` passes on what is left of them. Whatever
            counts stand in the places of those that were there, each goes where it belongs, as it is or added up, but for
            whether one is the sum of prompt and completion, which may matter; a later report replaces an earlier one, in
            the ``request_duration`` that the hook may set as well. Part of the same promise; a hook that remembers counts is
            told of the last such event that it has not seen.
        logprob_leaves: where an event carries log probabilities beside its text, each with the function by which
            ``map_delta`` takes them: it gets the object that has that key, and the text. Whatever the text, and whatever
            tokens, numbers and bytes stand in the places of those that were there, it puts each where it belongs; part of
            the same promise.
        pieces: which lists of the extensions arrive in pieces, as token ids do, so that equal ones in a row are
            joined, not taken for a repetition; ``[]`` stands for every item: ``choices[].token_ids``.
        speaks: the ids of other providers whose dialects this server answers in too, such as ``openai_responses``.
            An answer that the plugin does not recognize is read by the first of them that does, under the
            server's own id. They are looked up by name when it is needed, so that no plugin imports another.
        is_original: whether others took over its dialect: an answer that says nothing by which to tell them apart is read
            under its id.
        repeats_finish: whether the server may give a finish reason before the end of its choice, even in every event.
            Of any other server, content after a finish reason is an error (a second answer has begun), unless its event
            names the same answer (``state.goes_on``).
        sentinel: whether every stream of the API ends with ``[DONE]``: usage that is missing where that is missing too was
            cut off.
        framing: asked with the first bytes of an answer, at least one and neither white space nor a byte order mark;
            gives a decoder for a framing of the provider's own, ``None`` for SSE, NDJSON and JSON.
        access: how its server is reached, for the service; ``None`` where only the user can say.
        call_ids: which ids of tool calls its server takes; ``None`` for any.
        call_names: the regular expression that the name of a called tool must match as a whole, letters, digits, ``_`` and
            ``-``: a model may call what nobody offered, by whatever name; ``None`` for any name.
        hosted_tools: the kinds of tools that the provider runs itself and ``build_request`` asks for.
        spell: makes of a body or chunk of Chat Completions in OpenAI's words one in this server's, so that a conversion
            gives its answers back as they were; ``None`` where the words are OpenAI's.
    """

    title: str
    api: int = attrs.field(default=1, validator=_is_version)
    endpoints: tuple[str, ...] = attrs.field(default=(), converter=_as_strings)
    documentation: str | None = None
    text_leaves: tuple[Path, ...] = attrs.field(default=(), converter=_as_paths)
    stamp_leaves: tuple[Path, ...] = attrs.field(default=(), converter=_as_paths)
    body_leaves: tuple[Path, ...] = attrs.field(default=(), converter=_as_paths)
    number_leaves: tuple[Path, ...] = attrs.field(default=(), converter=_as_paths)
    usage_leaves: tuple[Path, ...] = attrs.field(default=(), converter=_as_paths)
    logprob_leaves: Mapping[Path, LogprobReader] = attrs.field(
        factory=dict, converter=_as_readers, hash=False
    )
    pieces: tuple[str, ...] = attrs.field(default=(), converter=_as_strings)
    speaks: tuple[str, ...] = attrs.field(default=(), converter=_as_strings)
    is_original: bool = False
    repeats_finish: bool = False
    sentinel: bool = False
    framing: Callable[[bytes, Limits], Decoder | None] | None = None
    access: Access | None = None
    call_ids: ids.CallIds | None = None
    call_names: str | None = None
    hosted_tools: tuple[str, ...] = attrs.field(default=(), converter=_as_strings)
    spell: Callable[[dict[str, Any]], None] | None = None
