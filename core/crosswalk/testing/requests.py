"""Checks of the requests that a plugin builds: whatever is asked is in the body, or an adaptation names it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import combinations, pairwise
from typing import Any, Final, TypeAlias

import attrs
import orjson

from crosswalk.codec import from_json
from crosswalk.errors import CrosswalkError, PluginError
from crosswalk.formats.requests import read_request
from crosswalk.formats.tables import option_paths
from crosswalk.plugin.hooks import fits_ids
from crosswalk.plugin.registry import Mapper
from crosswalk.request import (
    Adaptation,
    ChatRequest,
    ExtraOptions,
    HTTPRequest,
    NamedTool,
    ToolDefinition,
    UnsupportedRequestError,
)
from crosswalk.service.building import build
from crosswalk.service.way_back import NO_PLACE
from crosswalk.testing.captures import Capture, shown, written
from crosswalk.testing.case import MARKER, Case, decoded, strings
from crosswalk.testing.pairing import normalized
from crosswalk.testing.perturbation import Path, at, scalars, show_path
from crosswalk.testing.problems import Problem
from crosswalk.testing.strict import STRICT_PROVIDERS, strict_rules
from crosswalk.testing.strict.rules import Issued, StrictRequest
from crosswalk.types.json import dump_json
from crosswalk.types.message import ChatMessage, Role, ToolCall
from crosswalk.types.response import ChatResponse
from crosswalk.types.usage import ResponseMetadata, UsageInfo
from crosswalk.types.values import FinishReason, Segment, SegmentType

_OPTIONS: Final[dict[str, Any]] = {
    "temperature": 0.625, "top_p": 0.375, "max_tokens": 70707, "seed": 4242424, "stop": ("HaLt.",), "top_k": 37,
    "repeat_penalty": 1.125, "frequency_penalty": 0.125, "presence_penalty": 0.25,
}  # fmt: skip
_Found: TypeAlias = Iterator[tuple[str, str]]
_Built: TypeAlias = Mapping[Any, HTTPRequest]
_Values: TypeAlias = Mapping[str, Sequence[Any]]
_NAMES: Final = {name: {path.rpartition(".")[2] for path in paths} for name, paths in option_paths().items()}
"""The names that servers have for each option."""
_HIGHEST: Final = {"top_p": 1, "min_p": 1, "temperature": 2, "frequency_penalty": 2, "presence_penalty": 2}
"""The largest values of options that have one."""
_MIN_P: Final = 0.0625
_MODEL: Final = "kelp-7"
_DEPTH: Final = {"type": "integer", "description": "The depth of kelp."}
_SCHEMA: Final = {"type": "object", "properties": {"fathoms": _DEPTH}}
_TOOL: Final = ToolDefinition("look_at_kelp", "Looks.", _SCHEMA)
_WORDS: Final[dict[str, Any]] = {
    "reasoning_effort": "high",
    "response_format": {"type": "json_schema", "json_schema": {"name": "kelp", "schema": _SCHEMA}},
}  # fmt: skip
"""Options that a request may have alone."""
_CALL: Final = ToolCall("kelpcall1", "cut_kelp", '{"fathoms":  7}')
"""A call with arguments that nobody would write so again."""
_THOUGHT: Final = Segment(SegmentType.REASONING, "How deep is it?", {"signature": "S2VscCBpcyBicm93bi4="})
_TURNS: Final = {"system": "Kelp is brown.", "user": "Is it green?", "assistant": "No, brown."}
"""Turns before the question, with distinct texts."""
_RULES: Final = (_TURNS["system"], "Kelp grows.")
"""Two texts of the system."""
_CHOICES: Final = ("auto", "none", "required", NamedTool(_TOOL.name))
_SAID: Final[dict[str, Any]] = {
    **_OPTIONS, "model": _MODEL, "tools": _TOOL.name, "tools.description": "Looks.",
    "tools.parameters": _DEPTH["description"], **{f"messages[{n}]": text for n, text in enumerate(_TURNS.values())},
    "messages[3]": MARKER, "messages[4].content": "I look.", "messages[4].name": _CALL.name, "messages[4].id": _CALL.id,
    "messages[4].reasoning": _THOUGHT.content, "messages[4].signature": _THOUGHT.metadata["signature"],
    "messages[5]": "Seven.",
}  # fmt: skip
"""What a conversation says, by the field of its request, each with a value that nothing else has."""


def requests_say_all(case: Case) -> Iterator[Problem]:
    """P4: what a request says is in its body, or an adaptation names it, and a stream is asked for.

    All is where recorded requests have it. An earlier answer goes back with its text and its calls, and breaks no rule of
    the server. The first part is said once, with the first capture.
    """
    if case.mapper.build_request is None:
        return
    try:
        with suppress(UnsupportedRequestError):  # as for a state that only the server's own endpoint takes
            if case.others and case.capture.case == case.others[0].case:
                for field, message in _asked(case):
                    problem = case.problem("P4", f"request.{field}", message, about="request")
                    yield attrs.evolve(problem, path=f"request.{field}")
            if case.is_answer and case.baseline.response["finish_reason"] in ("stop", "tool_calls"):
                yield from _goes_back(case)
    except PluginError as error:
        yield case.problem("P4", "request", str(error), about="request")


def requests_as_stated(case: Case) -> Iterator[Problem]:
    """P4: the request that a statement has under ``asked``, in the form of Chat Completions, is built as it is recorded.

    Keys that neither such a request nor :class:`ExtraOptions` has are the server's own. A stream is asked for as one.
    """
    asked = (case.capture.says or {}).get("asked")
    if asked is None or case.capture.request is None or case.mapper.build_request is None:
        return
    try:
        extra = {name: asked[name] for name in ExtraOptions.__annotations__ if name in asked}
        plain = {name: value for name, value in asked.items() if name not in extra}
        client = read_request({"stream": case.capture.stream, **plain}, "openai-chat")
        own: Any = {"extra_options": extra, "provider_options": {case.mapper.provider: client.unread}}
        body = build(attrs.evolve(client.request.asked, **own), case.mapper, "drop")[0].body
        recorded, built = dict(scalars(orjson.loads(case.capture.request))), dict(scalars(body))
    except (CrosswalkError, orjson.JSONDecodeError) as error:
        yield case.problem("P4", "request", f"as stated it cannot be compared: {error}", about="request")
        return
    for path in sorted({*recorded, *built}, key=show_path):
        there, here = (shown(values[path]) if path in values else "nothing" for values in (recorded, built))
        message = f"recorded with {there}, and built with {here} for what is stated as asked"
        place = f"request.{show_path(path)}"
        if there != here:
            yield attrs.evolve(case.problem("P4", place, message, about="request"), path=place)


def _ways(mapper: Mapper) -> dict[Any, HTTPRequest]:
    """Build a conversation, whose last answer thinks, speaks and calls a tool, in each way in which it can be said."""
    call = Segment(SegmentType.TOOL_CALL, _CALL.arguments, {"id": _CALL.id, "name": _CALL.name})
    spoken = ChatMessage.assistant("I look.", tool_calls=(_CALL,))
    metadata = ResponseMetadata(mapper.provider, _MODEL)
    answer = ChatResponse.tool_calls_required(spoken, UsageInfo.EMPTY, _MODEL, metadata)
    answer = attrs.evolve(answer, segments=(_THOUGHT, Segment(SegmentType.TEXT, "I look."), call))
    question, result = ChatMessage.user(MARKER), ChatMessage.tool_result(_CALL.id, "Seven.", name=_CALL.name)
    turns: list[Any] = [*({"role": role, "content": text} for role, text in _TURNS.items()), question, answer]
    tools = (_TOOL, ToolDefinition(_CALL.name, "Cuts.", {"type": "object", "properties": {}}))
    more: dict[str, Any] = {"model": _MODEL, "tools": tools, **_OPTIONS}
    ways = {
        "whole": ChatRequest([*turns, result], **more),
        "streamed": ChatRequest([*turns, result], **more, stream=True),
        "failed": ChatRequest([*turns, attrs.evolve(result, is_error=True)], **more),
        "ruled": ChatRequest([turns[0], ChatMessage.system(_RULES[1]), *turns[1:], result], **more),
        "plain": ChatRequest([question], model=_MODEL),
        "more": ChatRequest([question], model=_MODEL, n=2, min_p=_MIN_P, logprobs=True, top_logprobs=3),
        **{choice: ChatRequest([*turns, result], **more, tool_choice=choice) for choice in _CHOICES},
        **{name: ChatRequest([question], model=_MODEL, **{name: one}) for name, one in _WORDS.items()},
    }
    built: dict[Any, HTTPRequest] = {}
    for way, request in ways.items():
        with suppress(UnsupportedRequestError):
            built[way] = build(request, mapper, "drop")[0]
    return built


def limits_of(mapper: Mapper) -> set[str]:
    """Return the last names of the paths at which a plugin asks for the most tokens of an answer."""
    places = set[str]()
    if mapper.build_request is not None:
        request = ChatRequest([ChatMessage.user(MARKER)], model=_MODEL, max_tokens=_OPTIONS["max_tokens"])
        with suppress(UnsupportedRequestError, PluginError):
            places = _places(build(request, mapper, "drop")[0], _OPTIONS["max_tokens"])
    return {place.rpartition(".")[2] for place in places}


def unasked(mapper: Mapper, captures: Iterable[Capture]) -> list[str]:
    """Return what *mapper* builds where no request of *captures* has anything, by its field in :class:`ChatRequest`."""
    with suppress(UnsupportedRequestError, PluginError):
        if mapper.build_request is not None and {"whole", "plain"} <= (built := _ways(mapper)).keys():
            whole, plain = built["whole"], _by_place([built["plain"].body])
            recorded = _by_place([body for _, body in _recorded(captures, whole.path)])
            said = {name.rpartition("].")[2]: _places(whole, value) for name, value in _SAID.items()}
            said |= {way: _by_place([built[way].body]).keys() - plain for way in _WORDS if way in built}
            silent = [name for name, places in said.items() if places and not places & recorded.keys()]
            return [name for name in silent if name != "tools.parameters"] if recorded else ["all of it"]
    return []


def _asked(case: Case) -> _Found:
    """Yield each field that is not said, or is said elsewhere than recorded requests say it, and what is wrong with it."""
    built = _ways(case.mapper)
    if not {"whole", "plain"} <= built.keys():
        return
    whole, pairs = built["whole"], [*_recorded(case.others, built["whole"].path)]
    requests = [body for _, body in pairs]
    recorded, reached = _by_place(requests), _by_place(one.body for one in built.values())
    is_open = tuple(path.partition(key)[0] for path in reached for key in _OPEN if key in path)
    unsaid = [path for path in recorded if path not in reached and not path.startswith(is_open)]
    lost = {path: recorded[path][0] for path in unsaid}
    yield from _said_elsewhere(built, recorded, lost)
    yield from _never_built(built, reached, recorded, lost)
    yield from _objects_differ(whole, reached, recorded, lost)
    streamed, rest = ([body for one, body in pairs if one.stream is stream] for stream in (True, False))
    for path in lost.keys() & _by_place(streamed[:1]).keys() if rest else ():
        is_always = all(path in _by_place([body]) for body in streamed) and path not in _by_place(rest)
        if is_always and ("stream" in path or len(streamed) > 1):
            yield "stream", f"every recorded stream is asked for with {path}, which is never built"
    yield from _forms_differ(built, {"streamed": streamed, "whole": rest, "plain": requests})
    yield from _options_differ(built, recorded)
    yield from _named_otherwise(whole, requests)
    yield from _thought_elsewhere(case, whole, recorded)
    yield from _ways_differ(case, built)
    yield from _other_words(built, requests)
    yield from _choices_answered(case, built, pairs)


def _said_elsewhere(built: _Built, recorded: _Values, lost: dict[str, Any]) -> _Found:
    """What is said is in the body, and where recorded requests have it. What they have instead is no longer in *lost*."""
    whole, plain = built["whole"], built["plain"]
    near_options = {_parent(path) for value in _OPTIONS.values() for path in _places(whole, value)}
    near_text = {_parent(path) for path in _places(whole, "I look.")}
    for field, value in _SAID.items():
        places, kind, named = _places(whole, value), type(value), _named(whole, field)
        if not places and not named and (field != "model" or _MODEL not in whole.path):
            yield field, f"{value!r} is neither in the body nor among the adaptations"
        if field in _OPTIONS and places & _by_place([plain.body]).keys() and not _named(plain, field):
            yield field, "is in a body for which nobody asked it"
        wanted = (str, True) if kind is tuple else (kind, False)
        elsewhere = places - recorded.keys()
        parents = {_parent(path) for path in elsewhere} or (near_options if field in _OPTIONS else near_text)
        is_told = field not in _OPTIONS and any(NO_PLACE not in one.reason for one in named)
        where = f"is at {min(elsewhere)}, as in no recorded request" if elsewhere else "is in no body"
        for path, there in [*lost.items()] if elsewhere or not (places or is_told) else ():
            is_alike = _parent(path) in parents and (type(there), path.endswith("[]")) == wanted
            if is_alike and (kind not in (int, float) or not _is_another(field, path, places)):
                del lost[path]
                yield field, f"{where}; what recorded requests have at {path} is never built"


def _never_built(built: _Built, reached: _Values, recorded: _Values, lost: Mapping[str, Any]) -> _Found:
    """No option that recorded requests have is dropped, nor what they say of a result. Texts and objects are as there."""
    whole = built["whole"]
    near_result = {_parent(path) for path in _places(whole, "Seven.")} - {""}
    adapted = {one.field for request in built.values() for one in request.adaptations}
    for path, value in lost.items():
        text = next((one for one in reached if path.startswith(f"{one}.") and one not in recorded), None)
        if text is not None:
            yield "messages", f"a text is built at {text}, where recorded requests have an object"
        elif (option := path.removesuffix("[]").rpartition(".")[2]) in adapted:
            yield option, f"it is dropped, and recorded requests have it at {path}"
        elif value is True and _parent(path) in near_result:
            yield "messages[5]", f"what recorded requests have at {path} is never built"
    texts = {place for text in _TURNS.values() for place in _places(whole, text)}
    for place in sorted(texts | {place for place in reached if place.endswith(f".{_OPEN[1]}")}):
        if place not in recorded and isinstance(recorded.get(_parent(place), [None])[0], str):
            yield "messages", f"an object is built at {_parent(place)}, where recorded requests have a text"
    for place, values in _by_place([whole.body]).items():
        if (sign := _SIGN.search(place)) and any(value is (not sign[1]) for value in values):
            yield "messages[5]", f"a good result is built with {not sign[1]} at {place}"


_SIGN: Final = re.compile(r"(ok|succe\w*)$|[^.]*(error|fail)\w*$")


def _objects_differ(whole: HTTPRequest, reached: _Values, recorded: _Values, lost: Iterable[str]) -> _Found:
    """The schema of a tool, and the arguments of a call, are where recorded requests have them."""
    there, here = (
        {path.partition(".properties.")[0] for path in paths if ".properties." in path}
        for paths in (recorded, reached)
    )
    calls = {_parent(path) for path in _places(whole, _CALL.name) & recorded.keys()}
    filled = {_parent(path) for path in reached if path.endswith(f".{_OPEN[1]}") and _OPEN[0] not in path}
    filled = {path for path in filled - {*map(_parent, recorded)} if _parent(path) in calls}
    objects = {"tools.parameters": (there - here, here - there), "arguments": ({*map(_parent, lost)}, filled)}
    for field, (missing, other) in objects.items():
        for path in sorted(path for path in missing if _parent(path) in map(_parent, other)):
            yield field, f"the object that recorded requests have at {path} is never built"


def _forms_differ(built: _Built, recorded: _Values) -> _Found:
    """What tells a stream from a body is as in *recorded* requests of its form. What is always sent is in one of them."""
    said = {way: _by_place([built[way].body]) for way in recorded if way in built and "streamed" in built}
    for way, there in ((way, _by_place(recorded[way])) for way in said if len(recorded[way]) > 1):
        usual, is_plain = said["whole" if way == "streamed" else "streamed"], way == "plain"
        for path, values in said[way].items():
            words = {*map(dump_json, there.get(path, ()))}
            is_new = values != [_MODEL] if is_plain else way == "streamed" and path not in usual
            is_other = not (is_plain or words.issuperset(map(dump_json, values)))
            if (is_other if words else is_new) and (values == usual.get(path)) is is_plain:
                text = min(words, default=b"nothing").decode()
                yield "stream", f"{way}: {values[0]!r} is at {path}, where recorded ones have {text}"


def _options_differ(built: _Built, recorded: _Values) -> _Found:
    """An option has values as in recorded requests: whole or not, and none too large. Its name is no other option's."""
    for field, value in {**_OPTIONS, "min_p": _MIN_P}.items():
        way = "more" if field == "min_p" else "whole"
        for place in sorted(_places(built[way], value)) if way in built else ():
            word = place.removesuffix("[]").rpartition(".")[2]
            owners = {name for name, words in _NAMES.items() if word in words and len(word) > 2}
            if owners and field not in owners:
                yield field, f"is at {place}, which is the name of {min(owners)}"
            for there in recorded.get(place, ()):
                is_part = type(value) is int and type(there) is float and there % 1 > 0
                if is_part or (type(there) in (int, float) and there > _HIGHEST.get(field, there)):
                    yield field, f"is at {place}, where a recorded request has {there}"


def _named_otherwise(whole: HTTPRequest, requests: Sequence[Any]) -> _Found:
    """A result names the tool of its call if recorded ones do so alone."""
    names = _places(whole, _TOOL.name)
    for turn in [path[:2] for path, value in scalars(whole.body) if value == "Seven."]:
        for body in requests if _CALL.name not in _words_in(at(whole.body, turn)) else ():
            tools = {tool for place in names for tool in _by_place([body]).get(place, ())}
            words = [_words_in(one) for one in (body.get(turn[0], ()) if tools else ())]
            if any(len(both := one & other) == 1 and both <= tools for one, other in pairwise(words)):
                yield "messages[5]", "it does not name its tool, as recorded results do"
                return


def _words_in(value: Any) -> set[str]:
    return {text for _, text in scalars(value) if isinstance(text, str)}


def _thought_elsewhere(case: Case, whole: HTTPRequest, recorded: Collection[str]) -> _Found:
    """Reasoning goes back under the key that it has in answers, if the text does."""
    keys: dict[str, set[str]] = {"text": set(), "reasoning": set()}
    for one in case.others:
        parts = normalized(case.mapper, one).get("response", {}).get("segments", ())
        for path, value in scalars(decoded(case.mapper, one)[1]):
            for part in parts if isinstance(value, str) and " " in value else ():
                if part["type"] in keys and value in part["content"]:
                    keys[part["type"]].add(str(path[-1]))
    texts, thoughts = _places(whole, "I look."), _places(whole, _THOUGHT.content)
    built = {place.rpartition(".")[2] for place in thoughts - ({*recorded} - texts)}
    is_alike = any(place.rpartition(".")[2] in keys["text"] for place in texts)
    if is_alike and built and keys["reasoning"] and not keys["reasoning"] & built:
        yield "messages[4].reasoning", f"goes back as {min(built)}, comes as {min(keys['reasoning'])}"


def _choices_answered(case: Case, built: _Built, pairs: Sequence[tuple[Capture, Any]]) -> _Found:
    """A request recorded with what is built to forbid calls is answered without one, to require one with one."""
    usual = {*scalars(built["auto"].body)} if "auto" in built else set()
    for way, wrong in {"none": FinishReason.TOOL_CALLS, "required": FinishReason.STOP}.items():
        own = {*scalars(built[way].body)} - usual if way in built else set()
        for one, body in pairs if own else ():
            finish = normalized(case.mapper, one).get("response", {}).get("finish_reason")
            if own <= {*scalars(body)} and finish == wrong:
                message = f"has what is built for {way}, and its answer ends as {wrong}"
                yield "tool_choice", f"the request of {one.case} {message}"


_OPEN: Final = ("properties.fathoms", "fathoms")
"""What is inside an object that a person or a model fills: a schema, and arguments."""


def _ways_differ(case: Case, built: _Built) -> _Found:
    """Each role, each way to choose a tool, a failure, all rules and a stream are told. The body goes to an endpoint."""
    whole, path = built["whole"], built["whole"].path.partition("?")[0]
    texts: list[Any] = [*_TURNS.values(), MARKER, _THOUGHT.content, "I look.", _CALL.name, "Seven."]
    said = [(text, keys) for text in texts for keys, value in scalars(whole.body) if text in strings(value)]
    for (text, keys), (later, more) in combinations(said, 2):
        same = next((n for n, pair in enumerate(zip(keys, more, strict=False)) if pair[0] != pair[1]), -1)
        numbers = [key for key in (keys[same], more[same]) if isinstance(key, int)]
        if text != later and len(keys) > same + 1 < len(more) and numbers[1:] and numbers[0] > numbers[1]:
            yield "messages", f"{text!r} stands after {later!r}"
            break
    alike = _alike(whole.body, _TURNS.values()) or _alike(whole.body, ("I look.", _THOUGHT.content))
    if alike and not any(_named(whole, f"messages[{number}]") for number in range(3)):
        yield "messages", f"it says {alike[0]!r} as it says {alike[1]!r}, which is of another kind"
    endpoints = [re.sub(r"\\{.*?\\}", "[^/]+", re.escape(one)) for one in case.mapper.endpoints()] or [".*"]
    if not any(re.fullmatch(f".*{one}", path) or one.endswith(re.escape(path)) for one in endpoints):
        yield "path", f"{path} is none of the endpoints"
    ruled = built.get("ruled")
    if ruled and not (_named(ruled, "messages[1]") or all(_places(ruled, one) for one in _RULES)):
        yield "messages", "one of two system texts is not in the body"
    ways = [(one, "whole") for one in ("streamed", "failed", *_CHOICES[1:])]
    for one, other in (*ways, *combinations(_CHOICES, 2)):
        field = {"streamed": "stream", "failed": "messages[5]"}.get(str(one), "tool_choice")
        pair = [built[way] for way in (one, other) if way in built and not _named(built[way], field)]
        if len(pair) == 2 and (pair[0].path, pair[0].body) == (pair[1].path, pair[1].body):
            yield field, f"{one} is asked for as {other} is"
    for option in _WORDS.keys() & built.keys():
        asked = built[option]
        is_said = option != "response_format" or _places(asked, _DEPTH["description"])
        if not (is_said and asked.body != built["plain"].body) and not _named(asked, option):
            yield option, "it is neither in the body nor among the adaptations"
    for text in strings(whole.body):
        if text != _CALL.arguments and "".join(text.split()) == "".join(_CALL.arguments.split()):
            yield "messages[4].arguments", "they are not sent as they came"


def _named(request: HTTPRequest, field: str) -> list[Adaptation]:
    """Return the adaptations of *field*, and of what is in it."""
    return [one for one in request.adaptations if one.field.startswith(field.partition(".")[0])]


def _by_place(bodies: Iterable[Any]) -> dict[str, list[Any]]:
    """Return the scalars of *bodies* by their paths, without the numbers of items."""
    values: dict[str, list[Any]] = {}
    for path, value in (pair for body in bodies for pair in scalars(body)):
        values.setdefault(_place(path), []).append(value)
    return values


def _places(request: HTTPRequest, value: Any) -> set[str]:
    """Return the paths that have *value*, or its first item."""
    wanted, said = value[0] if isinstance(value, tuple) else value, _by_place([request.body]).items()
    if isinstance(wanted, str):
        return {path for path, ones in said if any(wanted in text for text in strings(ones))}
    return {path for path, ones in said if wanted in ones}


def _recorded(captures: Iterable[Capture], path: str) -> Iterator[tuple[Capture, Any]]:
    """Yield the recorded requests that were sent to *path*, each with its body, without those that an HTTP error refused."""
    for one in captures:
        with suppress(orjson.JSONDecodeError):
            if one.request is not None and one.status < 400 and (one.path or "").endswith(path):
                yield one, orjson.loads(one.request)


def _other_words(built: _Built, requests: list[Any]) -> _Found:
    """Words beside what is said, such as roles, are those of recorded requests. A question alone is asked as there."""
    question = min(_places(built["whole"], _TURNS["user"]), default="")
    reached = _by_place(one.body for one in built.values())
    for path, there in _by_place(requests).items():
        if _parent(path) == question.partition("[]")[0] + "[]" and path in reached:
            words = {*map(str, reached[path])}
            is_role = len(words) < len(Role) and words.isdisjoint(map(str, _SAID.values()))
            for word in sorted({*strings(there)} - words) if is_role else ():
                yield "messages", f"recorded requests have {word!r} at {path}, which is never built"
    recorded = [_beside(one, question) for one in requests]
    for path, word in _beside(built["plain"].body, question).items():
        words = {one[path] for one in recorded if path in one}
        if words and word not in words and word != MARKER:
            yield "messages", f"a question is asked with {word!r} at {path}, recorded with {min(words)!r}"


def _beside(body: Any, place: str) -> dict[str, str]:
    """Return the words of the turn with the text at *place*, by their paths, if no other turn of *body* has one there."""
    turns = [path[:2] for path, _ in scalars(body) if _place(path) == place]
    words = scalars(at(body, turns[0]), turns[0]) if len(turns) == 1 else ()
    return {show_path(path): word for path, word in words if isinstance(word, str)}


def _is_another(field: str, path: str, places: Collection[str]) -> bool:
    """Whether the number at *path* may be another option than *field*, which is nowhere, or has its own name at *places*."""
    words = [word for word in field.split("_") if len(word) > 2]
    is_near = any(word in path.lower() for word in words) or path.rpartition(".")[2] in _NAMES.get(field, ())
    return not is_near and (not places or any(place.endswith(field) for place in places))


def _place(path: Path) -> str:
    """Return *path* without the numbers of items. Those in a row, which stand by position, keep theirs."""
    return re.sub(r"(?<!\])\[\d+\]", "[]", show_path(path))


def _parent(path: str) -> str:
    return path.removesuffix("[]").rpartition(".")[0]


def _alike(body: Any, texts: Collection[str]) -> list[str]:
    """Return those of *texts* that a body says alike: under the same keys, in objects without another difference."""
    texts_by_place = dict[bytes, list[str]]()
    for path, value in scalars(body):
        if value in texts:
            place = dump_json([_place(path), at(body, path[:2]), at(body, path[:-1])])
            for text in texts:
                place = place.replace(dump_json(text), b"")
            texts_by_place.setdefault(place, []).append(value)
    return next((alike for alike in texts_by_place.values() if len({*alike}) > 1), [])


def _goes_back(case: Case) -> Iterator[Problem]:
    """The next request holds the texts and the calls of this answer, and breaks no rule of the server."""
    answer_sent = from_json(written(case.baseline.response), ChatResponse)
    calls = answer_sent.message.tool_calls or ()
    results = [ChatMessage.tool_result(call.id, MARKER, name=call.name) for call in calls]
    turns: list[Any] = [ChatMessage.user("Hi"), answer_sent, *(results or [ChatMessage.user(MARKER)])]
    http_request, content = build(ChatRequest(turns, model=_MODEL), case.mapper, "drop")
    said = "\n".join(strings(http_request.body))
    texts = [part.content for part in answer_sent.segments if part.type is SegmentType.TEXT]
    texts = texts or [answer_sent.text or ""]
    marks = case.baseline.provenance
    id_rule = case.mapper.info.call_ids  # other ids are sent under other names
    ids = [one.id for n, one in enumerate(calls) if f"message.tool_calls[{n}].id" not in marks]
    ids = [id for id in ids if id_rule is None or fits_ids(id_rule, id)]
    wanted = {"text": texts, "calls": [one.name for one in calls], "ids, of calls and of their results": ids}
    for kind, texts in wanted.items():
        if not all(said.count(text) > (texts is ids) for text in texts):
            message = f"the next request has not all of its {kind}"
            yield case.problem("P4", "request", message, about="request")
    if case.mapper.provider in STRICT_PROVIDERS and case.capture.server in (None, case.mapper.provider):
        rules, issued = strict_rules(case.mapper.provider), Issued(case.mapper.info.framing)
        issued.add(case.capture)
        strict_request = StrictRequest(http_request.path, orjson.loads(content), issued)
        is_ruled = http_request.path.partition("?")[0].endswith(rules.endpoint)
        for rule, refusal in rules.violations(strict_request) if is_ruled else ():
            message = f"the server refuses it: {rule.name}: {refusal.message}"
            yield case.problem("P4", "request", message, about="request")
