"""A client's request as it is understood, and what goes to a server that speaks the client's own form."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from crosswalk.convert import WireForm
from crosswalk.service import ChatRequest, Dropped, HTTPRequest, Turn
from crosswalk.types import ChatResponse
from crosswalk.types.merge import copy_json
from crosswalk.wire.fields import Place, Unread
from crosswalk.wire.options import FORMATS, NESTED, Grade, format_of_path, option_of
from crosswalk_serve.requests.headers import VERSION

__all__ = ["ClientRequest", "Incoming", "Wants"]


@attrs.frozen(kw_only=True)
class Wants:
    """What a client asks about the form of its answer, or of whoever takes the request: no model is told.

    What of these a server could do as well is among the unread fields, too: :meth:`Incoming.without` takes it from there.

    Attributes:
        include_usage: whether a stream is to end with the token counts (``stream_options``).
        n: how many answers.
        echo: whether the prompt stands before the answer (completions).
        logprobs: whether log probabilities are wanted.
        store: whether the answer is to be kept (Responses), or ``None`` where that is not said.
        previous_response_id: the answer that the conversation goes on from (Responses), or ``None`` for none.
        background: whether the answer is to be made in the background (Responses).
        user: whom the client serves, as it calls him, or ``None`` where that is not said.
        custom_tools: the names of the tools that take free text.
        namespaces: the namespaces of those tools that have one, by the tool's name (Responses).
        load: ``load`` or ``unload``, where a request of Ollama's says nothing and wants no answer, but the model in memory
            or no longer, or ``None`` for any other.
        defaults: options that say what would be so without them, by name: no server needs to be told.
    """

    include_usage: bool = False
    n: int = 1
    echo: bool = False
    logprobs: bool = False
    store: bool | None = None
    previous_response_id: str | None = None
    background: bool = False
    user: str | None = None
    custom_tools: frozenset[str] = frozenset()
    namespaces: Mapping[str, str] = attrs.field(factory=dict)
    load: str | None = None
    defaults: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ClientRequest(ChatRequest):
    """A client's request in canonical words, which knows what else the client has said.

    A service builds it as any other request; :meth:`built_by` then adds what a server that speaks the client's own form can
    be told beside, and names the rest among what is dropped: the service raises for that, or records it.

    Attributes:
        form: the client's form.
        said: the body as the client sent it.
        unread: what of that no canonical field says.
        asked: the request as it was read, before anybody changed it.
        headers: what the client asks in headers, by their names in lower case.
        notes: what of earlier answers the gateway has left out.
        known: the ids of the answers whose provider a seal tells.
        unsigned: the places of the thinking that is not in *said*, because its signature is empty.
    """

    form: WireForm
    said: Mapping[str, Any]
    unread: tuple[Unread, ...]
    asked: ChatRequest
    headers: Mapping[str, str] = attrs.field(factory=dict)
    notes: tuple[Dropped, ...] = ()
    known: frozenset[str] = frozenset()
    unsigned: tuple[str, ...] = ()

    def built_by(self, build: Callable[[ChatRequest], HTTPRequest]) -> HTTPRequest:
        """See :meth:`ChatRequest.built_by`."""
        built = self._built_by(build)
        if self.headers:
            built = self._with_headers(built)
        dropped = (*built.dropped, *self.notes)
        return attrs.evolve(built, dropped=tuple(_at_client(one, self.messages) for one in dropped))

    def _with_headers(self, built: HTTPRequest) -> HTTPRequest:
        """*built* with what the client asks in headers, where the server speaks the client's form."""
        told = dict(self.headers) if self._is_own(built) else {}
        told.pop(VERSION, None)
        why = "the header asks what this API does not know"
        left = (Dropped(name, why, refuses=False) for name in self.headers if name not in told)
        return attrs.evolve(built, headers={**built.headers, **told}, dropped=(*built.dropped, *left))

    def _is_own(self, built: HTTPRequest) -> bool:
        """Whether *built* is for an API of the client's form."""
        return built.path.partition("?")[0].endswith(self.form.paths)

    def _built_by(self, build: Callable[[ChatRequest], HTTPRequest]) -> HTTPRequest:
        built = build(self)
        if not self._is_own(built):
            return self._translated(built, build)
        if self.provider == self.form.provider:
            return self._as_said(built, build(self._of_asked()))
        if any(isinstance(turn, ChatResponse) for turn in self.messages):
            # Its own answers, as far as anybody can tell: it gets back what such answers bring with them.
            built = build(attrs.evolve(self, messages=tuple(map(self._own, self.messages))))
        return self._with_unread(built, self.unread)

    def _translated(self, built: HTTPRequest, build: Callable[[ChatRequest], HTTPRequest]) -> HTTPRequest:
        """What goes to an API of another form: the options that it has, in its own words."""
        target, source = format_of_path(built.path), _FORMATS[self.form]
        same = [one for one in self.unread if _is_shared(one, source, target)] if target == source[0] else []
        options: dict[str, Any] = {}
        paths: dict[str, str] = {}
        dropped: list[Dropped] = []
        for unread in _apart(one for one in self.unread if one not in same):
            option = option_of(source[1], unread.option)
            is_item = unread.path != unread.option
            value = None if option is None else is_item or option.read(unread.value, source[1])
            if option is not None and option.name not in _FIELDS and value is not None:
                options[option.name], paths[option.name] = value, unread.path
            else:
                dropped += _dropped(unread, target)
        if "top_logprobs" in options and self.form is WireForm.OPENAI_RESPONSES:  # it is enough there
            options["logprobs"] = True
            paths.setdefault("logprobs", paths["top_logprobs"])
        if options:
            built = build(attrs.evolve(self, extra_options={**self.extra_options, **options}))
        renamed = (attrs.evolve(one, option=paths.get(one.option, one.option)) for one in built.dropped)
        return self._with_unread(attrs.evolve(built, dropped=(*dict.fromkeys(renamed), *dropped)), same)

    def _of_asked(self) -> ChatRequest:
        same = ("model", "stream", "provider")
        return attrs.evolve(self.asked, **{name: getattr(self, name) for name in same})

    def _own(self, turn: Any) -> Any:
        if not isinstance(turn, ChatResponse) or self.provider is None or turn.id in self.known:
            return turn
        return attrs.evolve(turn, metadata=attrs.evolve(turn.metadata, provider_id=self.provider))

    def _as_said(self, built: HTTPRequest, asked: HTTPRequest) -> HTTPRequest:
        """The body as the client sent it, with what somebody has changed since *asked*, the request as it was read."""
        body = {name: value for name, value in self.said.items() if name not in _OURS}
        for name in {**asked.body, **built.body}:
            value = built.body.get(name)
            if name not in _OURS and value == asked.body.get(name):
                continue
            for given in [*body]:
                if given == name or built.spellings.get(given) == name:
                    del body[given]
            if value is not None:
                old = self.said.get(name)
                body[name] = {**old, **value} if name == "stream_options" and isinstance(old, dict) else value
        wanted = self.said.get("stream_options")
        if isinstance(wanted, dict) and built.body.get("stream") and "stream_options" not in body:
            body["stream_options"] = {
                name: value for name, value in wanted.items() if name != "include_usage"
            }
        known = {(dropped.option, dropped.reason) for dropped in asked.dropped}
        new = tuple(one for one in built.dropped if (one.option, one.reason) not in known)
        why = "thinking with an empty signature"
        unsigned = (Dropped(place, why, refuses=False) for place in self.unsigned)
        return attrs.evolve(built, body=body, dropped=(*new, *unsigned))

    def _with_unread(self, built: HTTPRequest, unread: Iterable[Unread]) -> HTTPRequest:
        """*built* with each *unread* value in its place, as far as the lists there have the same items."""
        body = copy_json(built.body)
        waiting = sorted(unread, key=lambda one: one.place)
        left = []
        while waiting:
            if not _put(body, self.said, waiting[0].place, waiting):
                left.append(waiting[0])
            del waiting[0]
        lost = (dropped for one in left for dropped in _dropped(one, format_of_path(built.path)))
        return attrs.evolve(built, body=body, dropped=(*built.dropped, *lost))


_FORMATS: Final = {
    WireForm.OPENAI_CHAT: ("chat", "chat"),
    WireForm.OPENAI_COMPLETIONS: ("chat", "completions"),
    WireForm.OPENAI_RESPONSES: ("responses", "responses"),
    WireForm.ANTHROPIC: ("messages", "messages"),
    WireForm.GEMINI: ("gemini", "gemini"),
    WireForm.OLLAMA: ("ollama", "ollama"),
    WireForm.OLLAMA_GENERATE: ("ollama", "ollama"),
}
"""The format that each form is closest to, and the one that its options are spelt in."""
_FIELDS: Final = frozenset(attrs.fields_dict(ChatRequest))


def _is_shared(unread: Unread, source: tuple[str, str], target: str | None) -> bool:
    """Whether *unread* is an option that the *target* spells as the client's form does."""
    if not isinstance(unread.value, dict) or unread.place[0] == "options":
        option = option_of(source[1], unread.option)
        return option is not None and option.path(target) == unread.option
    return False


def _apart(unread: Iterable[Unread]) -> Iterator[Unread]:
    """*unread*, with each item of a list of words by itself."""
    for one in unread:
        if one.place == ("include",) and isinstance(one.value, list):
            for number, item in enumerate(one.value):
                yield Unread(("include", number), item)
        else:
            yield one


_OURS: Final = ("model", "stream", "stream_options")
"""What is said to a server as its plugin says it, whatever the client has said."""


_MESSAGE: Final = re.compile(r"messages\[(\d+)\]")


def _at_client(dropped: Dropped, turns: Sequence[Turn]) -> Dropped:
    """*dropped*, of which an answer among *turns* is named as the client's request has it."""
    match = _MESSAGE.fullmatch(dropped.option)
    turn = turns[int(match[1])] if match and not dropped.refuses else None
    return attrs.evolve(dropped, option=turn.id) if isinstance(turn, ChatResponse) else dropped


def _dropped(unread: Unread, target: str | None) -> Iterator[Dropped]:
    """What to report of *unread*, which an API of the format *target* is not told."""
    ends = (unread.place[-1], unread.place[0])
    option = next((NESTED[str(end)] for end in ends if end in NESTED), None)
    grade = Grade.DANGEROUS if option is None else option.lost(unread.value, target)
    if grade is not Grade.HARMLESS:
        label = FORMATS[target][0] if target else "the API"
        yield Dropped(unread.path, f"{label} has nothing for it", refuses=grade is Grade.DANGEROUS)


def _put(body: Any, said: Any, place: Place, waiting: list[Unread]) -> bool:
    """Put the first of those *waiting* into *body*, at its *place* in what the client *said*; tell whether that is there.

    In a list it is there if, but for what is still waiting, the list has as many items as the client's.
    """
    step, *rest = place
    is_there = isinstance(body, list if isinstance(step, int) else dict)
    if not is_there:
        return False
    if isinstance(step, int):
        own = waiting[0].place[: -len(place)]
        if len(body) != len(said) - sum(other.place[:-1] == own for other in waiting):
            return False
        if not rest:
            body.insert(step, waiting[0].value)
            return True
        return _put(body[step], said[step], tuple(rest), waiting)
    if not rest:
        return body.setdefault(step, waiting[0].value) is waiting[0].value
    inner = body.get(step, type(said[step])())
    is_there = _put(inner, said[step], tuple(rest), waiting)
    if is_there:
        body[step] = inner
    return is_there


@attrs.frozen(kw_only=True)
class Incoming:
    """A client's request, read.

    Attributes:
        form: the client's form.
        request: the request in canonical words, to be given to a service as it is, or changed with ``attrs.evolve``: its
            ``model`` is the client's name for it, its ``stream`` what the client asked for. What is unread goes along.
        wants: what the client asks about the form of the answer.
    """

    form: WireForm
    request: ClientRequest
    wants: Wants

    @property
    def unread(self) -> Mapping[str, Any]:
        """What no canonical field says, by JSON path, as the client sent it.

        It goes along to a server of the client's own form; to any other it is an option that cannot be expressed, so that
        the service refuses the request by its name, or drops and records it.
        """
        return {unread.path: unread.value for unread in self.request.unread}

    def without(self, *paths: str) -> Incoming:
        """The same without the unread fields *paths*, which the gateway itself sees to: no server is told of them."""
        kept = tuple(unread for unread in self.request.unread if unread.path not in paths)
        gone: set[Place] = {unread.place for unread in self.request.unread if unread.path in paths}
        if not gone:
            return self
        said = {name: value for name, value in self.request.said.items() if (name,) not in gone}
        return attrs.evolve(self, request=attrs.evolve(self.request, unread=kept, said=said))
