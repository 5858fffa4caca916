"""Gemini's generateContent: requests read, answers written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import attrs

from crosswalk.formats.chat import hosted_tool, mcp_server
from crosswalk.formats.gemini_table import GEMINI
from crosswalk.formats.reading import (
    DEFAULTS_OF_SERVERS,
    Incoming,
    Wants,
    answer,
    definition,
    effort_of,
    incoming,
    options,
    read_words,
    take_neutral,
    told_if_unknown,
    told_part,
    told_result,
)
from crosswalk.formats.writing import (
    CallIDs,
    CitedText,
    Event,
    Heading,
    JSONObjectText,
    Piece,
    WireForm,
    Writer,
    as_input,
    gemini_error,
    put_back,
    unnamed_frame,
    url_citation,
)
from crosswalk.request import (
    HostedTool,
    HostedToolKind,
    NamedTool,
    ReasoningEffort,
    ResponseFormat,
    ToolDefinition,
    Turn,
)
from crosswalk.types.json import dump_json
from crosswalk.types.message import (
    AudioPart,
    CallKind,
    ChatMessage,
    ContentPart,
    FilePart,
    ImagePart,
    TextPart,
    VideoPart,
)
from crosswalk.types.usage import UsageInfo
from crosswalk.types.values import FinishReason, SegmentType, TokenLogprob
from crosswalk.wire import gemini as wire
from crosswalk.wire.options import PLACES, Fields, path_of, placed, read_details

# ---------------------------------------------------------------------------------- gemini
# Requests in the form of Gemini's ``generateContent``. Facts: provider document "Google Gemini".
#
# The API takes each field by its JSON name and by its proto name: ``systemInstruction`` and ``system_instruction``.


_CONFIG_PREFIX: Final = "generationConfig."
_DEFAULTS: Final = {
    row.path.removeprefix(_CONFIG_PREFIX): PLACES[row.place].neutral
    for row in GEMINI.options
    if row.path.startswith(_CONFIG_PREFIX)
    and PLACES[row.place].neutral is not None
    and row.place not in DEFAULTS_OF_SERVERS
} | {"stopSequences": [], "responseModalities": ["TEXT"]}
_MODES: Final = read_words("tool_choice", "gemini") | {"VALIDATED": "auto"}
_HOSTED: Final = [(kind, row) for kind in HostedToolKind if (row := GEMINI.row(kind)) is not None]
_LEVELS: Final = read_words("reasoning_effort", "gemini")
_MEDIA_PARTS: Final[dict[str, type[ImagePart | AudioPart | VideoPart]]] = {
    "image": ImagePart,
    "audio": AudioPart,
    "video": VideoPart,
}


def read(body: Fields, raw_body: dict[str, Any]) -> Incoming:
    """Parse the request in *body*. *raw_body* is an untouched copy. Model and stream are in *body*, too, although they
    come from the path.

    Raises:
        FieldError: it is not a valid request.
    """
    body = body.respelled(wire.json_name)
    config = body.object("generationConfig") or Fields({})
    defaults = take_neutral(config, "", _DEFAULTS)
    count, logprobs = config.is_whole("candidateCount"), config.is_flag("responseLogprobs")
    tools, hosted_tools, servers = _tools(body)
    system, conversation = [*_system(body)], _Conversation(body)
    return incoming(
        WireForm.GEMINI,
        body,
        raw_body,
        Wants(
            include_usage=True, n=1 if count is None else count, logprobs=bool(logprobs), defaults=defaults
        ),
        places=[*["systemInstruction"] * len(system), *conversation.places],
        messages=[*system, *conversation.turns],
        **options(config, "gemini", _CONFIG_PREFIX),
        tools=tools,
        hosted_tools=hosted_tools,
        extra_options={**_shown_thoughts(config), **({"mcp_servers": servers} if servers else {})},
        tool_choice=_choice(body),
        response_format=_format(config),
        reasoning_effort=_effort(config),
    )


# The conversation.


def _system(body: Fields) -> Iterator[ChatMessage]:
    content = body.object("systemInstruction")
    if content is None:
        return
    content.take("role")  # it has no meaning here
    for part in _objects(content, "parts"):
        with placed(part, "text"):
            yield ChatMessage.system(part.need("text", part.text("text")))


def _objects(fields: Fields, name: str) -> Iterator[Fields]:
    """Return the objects of the list *name*. Google's services take an object alone for a list of one."""
    if isinstance(fields.look(name), dict):
        return filter(None, [fields.object(name)])
    return fields.objects(name)


class _Conversation:
    """Contents as turns. Calls and results need no ids here, so some have to be made up.

    Attributes:
        turns: the turns.
        places: the place of each.
    """

    def __init__(self, body: Fields) -> None:
        self.turns: list[Turn] = []
        self.places: list[str] = []
        self._open_calls: list[tuple[str, str]] = []  # id and name of each call that has no result yet
        for content in _objects(body, "contents"):
            role = content.text("role")
            if role == "model":
                self._answer(content)
            elif role in (None, "user", "function"):
                self._user(content)
            else:
                content.refuse("must be one of user, model", "role")
            self.places += [path_of(content.place)] * (len(self.turns) - len(self.places))
        if not self.turns:
            body.refuse("must have at least one content", "contents")

    def _user(self, content: Fields) -> None:
        parts: list[ContentPart] = []
        count = len(self.turns)
        for part in _objects(content, "parts"):
            function_response = part.object("functionResponse")
            if function_response is not None:
                self._say(content, parts)
                parts = []
                self.turns.append(self._result(function_response))
            elif (converted_part := _part(part)) is not None:
                parts.append(converted_part)
        self._say(content, parts)
        if len(self.turns) == count and content.given.get("parts"):
            self.turns.append(ChatMessage.user(()))  # none of its parts is read

    def _say(self, content: Fields, parts: list[ContentPart]) -> None:
        if parts:
            is_text = len(parts) == 1 and isinstance(parts[0], TextPart)
            with placed(content, "parts"):
                self.turns.append(
                    ChatMessage.user(parts[0].text if is_text and isinstance(parts[0], TextPart) else parts)
                )

    def _result(self, function_response: Fields) -> ChatMessage:
        name, id = (
            function_response.need("name", function_response.text("name")),
            function_response.text("id"),
        )
        call = next(
            (call for call in self._open_calls if id == call[0] or (not id and name == call[1])), None
        )
        response = function_response.plain("response") or {}
        text, is_error = _given(response)
        media = [part for part in map(_part, function_response.objects("parts")) if part is not None]
        with placed(function_response):
            content: Any = [TextPart(text), *media] if media else text
            if call is None:
                return told_result(function_response, name, content)
            self._open_calls.remove(call)
            return ChatMessage.tool_result(call[0], content, is_error=is_error or None)

    def _answer(self, content: Fields) -> None:
        """Return the answer as its server sent it, each call with an id."""
        self._open_calls = []
        parts_with_ids: list[Any] = []
        for number, part in enumerate(_objects(content, "parts")):
            text = told_if_unknown(part, GEMINI, f"contents[].parts[].{next(iter(part), 'text')}")
            members: dict[str, Any] = part.rest() if text is None else {"text": text}
            call = members.get("functionCall")
            if isinstance(call, dict):
                id = call.get("id") or f"call_{len(self.turns)}_{number}"
                self._open_calls.append((id, str(call.get("name"))))
                members["functionCall"] = {**call, "id": id}
            parts_with_ids.append(members)
        if not parts_with_ids:
            content.refuse("must have at least one part", "parts")
        candidate = {
            "content": {"role": "model", "parts": parts_with_ids},
            "finishReason": "STOP",
            "index": 0,
        }
        self.turns.append(answer(content, {"candidates": [candidate]}, WireForm.GEMINI.provider))


def _given(response: dict[str, Any]) -> tuple[str, bool]:
    """Return the result of a tool, as text, and whether it is an error."""
    if len(response) == 1:
        (key, value) = next(iter(response.items()))
        if key in ("result", "output", "error") and isinstance(value, str):
            return value, key == "error"
    return dump_json(response).decode(), False


def _part(part: Fields) -> ContentPart | None:
    """Return *part* as a part of a message, or ``None`` if there is no such part. Then it stays unread."""
    if isinstance(part.look("text"), str):
        with placed(part, "text"):
            return TextPart(part.need("text", part.text("text")))
    for name, field, argument in (("inlineData", "data", "data"), ("fileData", "fileUri", "url")):
        media = part.object(name)
        if media is not None:
            part_fields = {
                argument: media.need(field, media.text(field)),
                "media_type": media.text("mimeType"),
            }
            part_class = _MEDIA_PARTS.get((part_fields["media_type"] or "").partition("/")[0])
            about = {} if part_class else read_details(GEMINI, f"contents[].parts[].{name}", "part", media)
            with placed(media):
                return (part_class or FilePart)(**part_fields, **about)
    return told_part(part, GEMINI, f"contents[].parts[].{next(iter(part), '-')}")


# Options.


def _tools(body: Fields) -> tuple[list[ToolDefinition], list[HostedTool], list[dict[str, Any]]]:
    """Return the client's tools, the server's own, and the MCP servers."""
    servers: list[dict[str, Any]] = []
    definitions: list[ToolDefinition] = []
    hosted_tools: list[HostedTool] = []
    for tool in _objects(body, "tools"):
        for declaration in _objects(tool, "functionDeclarations"):
            definitions.append(definition(declaration, GEMINI, "tools[].functionDeclarations[]"))
        for kind, row in _HOSTED:
            if (tool_fields := tool.object(row.path.removeprefix("tools[]."))) is not None:
                hosted_tools.append(hosted_tool(kind, tool_fields, GEMINI, row.path))
        for server in tool.objects("mcpServers"):
            servers.append(mcp_server(server, GEMINI, "tools[].mcpServers[]", approval="never"))
    return definitions, hosted_tools, servers


def _choice(body: Fields) -> str | NamedTool | None:
    config = body.object("toolConfig")
    calling_config = None if config is None else config.object("functionCallingConfig")
    if calling_config is None:
        return None
    names = calling_config.look("allowedFunctionNames")
    if calling_config.look("mode") == "ANY" and isinstance(names, list) and len(names) == 1:
        calling_config.take("mode")
        calling_config.take("allowedFunctionNames")
        with placed(calling_config, "allowedFunctionNames"):
            return NamedTool(names[0])
    if isinstance(names, list):
        calling_config.leave()
        return None
    return calling_config.word("mode", _MODES)


def _format(config: Fields) -> ResponseFormat | None:
    if config.look("responseMimeType") == "text/plain":
        config.take("responseMimeType")
    if config.look("responseMimeType") != "application/json":
        return None
    config.take("responseMimeType")
    with placed(config, "responseSchema"):
        return ResponseFormat(**read_details(GEMINI, "generationConfig", "format", config))


def _shown_thoughts(config: Fields) -> dict[str, Any]:
    """Return the option for thoughts that are shown."""
    thinking = config.inside("thinkingConfig")
    if thinking is None or thinking.look("includeThoughts") is not True:
        return {}
    thinking.take("includeThoughts")
    return {"reasoning_summary": "auto"}


def _effort(config: Fields) -> str | None:
    """Return the reasoning effort: the word for it, or none for a budget of zero. Any other budget
    stands for an effort, and its exact number stays unread."""
    thinking = config.inside("thinkingConfig")
    if thinking is None:
        return None
    level, budget = thinking.word("thinkingLevel", _LEVELS), thinking.is_whole("thinkingBudget")
    if budget == 0:
        thinking.take("thinkingBudget")
        return ReasoningEffort.NONE
    return effort_of(budget) if level is None and budget is not None and budget > 0 else level


# ---------------------------------------------------------------------------------- gemini
# Gemini: the body of ``generateContent``, and the chunks of ``streamGenerateContent`` (provider document "Google
# Gemini").
#
# A chunk is a small whole body: its parts add to those before. A call is written in one part, once it is complete.


_TEXT_TYPES: Final = (SegmentType.TEXT, SegmentType.REASONING)
_WHOLE_WORD, _MALFORMED_WORD = "STOP", "MALFORMED_FUNCTION_CALL"
"""The ends of a whole answer, and of one with a call that nobody can read. Gemini's clients know both."""


@attrs.define(eq=False)
class _Part:
    """A part of an answer under construction.

    Attributes:
        number: the number of the part.
        type: its type.
        texts: its text so far. For a call its arguments.
        about: its known metadata.
        id: for a client's call, its id.
        name: for a client's call, its name, or ``None`` for everything else.
        kind: for a client's call, ``custom`` if its arguments are free text.
        index: for a client's call, its position among the calls.
        syntax: for a call, detects the end of its arguments.
    """

    number: int
    type: SegmentType
    texts: list[str] = attrs.Factory(list)
    about: Event = attrs.Factory(dict)
    id: str | None = None
    name: str | None = None
    kind: CallKind | None = None
    index: int = 0
    syntax: JSONObjectText = attrs.Factory(JSONObjectText)


@attrs.define(eq=False)
class _Candidate:
    """One of several answers under construction.

    Attributes:
        number: its number.
        parts: the parts of a whole answer. For a stream those that wait.
        written: the parts that have been written.
        text: the text so far.
        cited: the sources of the text.
        ids: the ids of its calls.
        refusal: why the model declined.
        unreadable: the calls whose arguments are not a JSON object. Gemini has no such call.
        logprobs: the log probabilities of the next output.
        finish: the finish word.
        blocked: whether the prompt was refused.
        seal: the opaque value of a gateway, until a part has it.
    """

    number: int
    parts: list[_Part] = attrs.Factory(list)
    written: list[Event] = attrs.Factory(list)
    text: list[str] = attrs.Factory(list)
    cited: CitedText = attrs.Factory(CitedText)
    ids: CallIDs = attrs.Factory(CallIDs)
    refusal: list[str] = attrs.Factory(list)
    unreadable: list[str] = attrs.Factory(list)
    logprobs: list[TokenLogprob] = attrs.Factory(list)
    finish: str | None = None
    blocked: bool = False
    seal: str | None = None


class GeminiWriter(Writer):
    """Writes Gemini's answers."""

    form = WireForm.GEMINI

    def __init__(self, heading: Callable[[], Heading], *, whole: bool = False) -> None:
        super().__init__(heading, whole=whole)
        self._candidates: dict[int, _Candidate] = {0: _Candidate(0)}

    def piece(self, piece: Piece) -> Iterable[Event]:
        """See :meth:`Writer.piece`."""
        candidate = self._candidate(piece.choice)
        candidate.cited.add(piece)
        match piece.type:
            case SegmentType.REFUSAL:
                candidate.refusal.append(piece.text)
            case SegmentType.SAFETY:
                candidate.blocked = candidate.blocked or piece.metadata.get("of") == "prompt"
            case SegmentType.ERROR | SegmentType.CITATION:
                pass
            case SegmentType.REASONING if piece.metadata.get("format") == "crosswalk":
                candidate.seal = str(piece.metadata["encrypted"])
            case _:
                self._add(candidate, piece)
                if not self.whole:
                    yield from self._advance(candidate, to_the_end=False)

    def _add(self, candidate: _Candidate, piece: Piece) -> None:
        """Add *piece* to its part."""
        if piece.type is SegmentType.TEXT:
            candidate.text.append(piece.text)
        part = next((one for one in candidate.parts if one.number == piece.part), None)
        if part is None:
            part = _Part(piece.part, piece.type)
            candidate.parts.append(part)
        if piece.call is not None:
            part.id, part.name = part.id or piece.call.id, part.name or piece.call.name
            part.kind, part.index = part.kind or piece.call.kind, piece.call.index
        part.texts.append(piece.text)
        part.syntax.add(piece.text)
        part.about |= piece.metadata.thawed()

    def _advance(self, candidate: _Candidate, *, to_the_end: bool) -> Iterator[Event]:
        """Write the known parts: a text so far, any other once the next part has begun."""
        while candidate.parts:
            part, is_last = candidate.parts[0], len(candidate.parts) == 1
            is_text = part.type in _TEXT_TYPES
            is_open = part.name is not None and not part.syntax.is_complete
            if not (to_the_end or is_text or (not is_last and not is_open)):
                return
            written_part = self._part(part, candidate)
            if written_part is not None:
                candidate.written.append(written_part)
                yield self._chunk(self._said(candidate, [written_part]))
            part.texts, part.about = [], {}
            if is_last and is_text and not to_the_end:
                return
            candidate.parts.pop(0)

    def _part(self, part: _Part, candidate: _Candidate) -> Event | None:
        """Return *part* in the API's form, or ``None`` if the API has no such part."""
        text, metadata = "".join(part.texts), part.about
        if not self.is_own:  # the signature is another provider's
            metadata.pop("signature", None)
        if part.name is not None:
            args = {"input": text} if part.kind is not None else as_input(text or "{}")
            if args is None:
                candidate.unreadable.append(f"{part.name}({text})")
                return None
            signature_field = {"thoughtSignature": metadata["signature"]} if "signature" in metadata else {}
            id = candidate.ids.take(part.id, part.index)
            call = {"id": id, "name": part.name, "args": args}
            return {"functionCall": call, **signature_field, **_taken_seal(candidate)}
        if part.type is SegmentType.TOOL_CALL:
            is_written: object = self.is_own
        elif part.type is SegmentType.MEDIA:
            is_written = text and (self.is_own or isinstance(metadata.get("media_type"), str))
        else:
            is_written = text or "signature" in metadata
        return wire.part_of(part.type, text, metadata) if is_written else None

    def tokens(self, tokens: tuple[TokenLogprob, ...], choice: int) -> None:
        """See :meth:`Writer.tokens`."""
        self._candidate(choice).logprobs += tokens

    def end(self, reason: FinishReason, finish_word: str | None, choice: int) -> None:
        """See :meth:`Writer.end`."""
        candidate = self._candidate(choice)
        is_declined = candidate.refusal and reason is FinishReason.STOP and not self.is_own
        candidate.finish = self.word_for(
            FinishReason.CONTENT_FILTER if is_declined else reason, finish_word, wire.FINISH_REASONS
        )

    error_event = staticmethod(gemini_error)
    frame = staticmethod(unnamed_frame)

    def _pending(self) -> Iterator[Event]:
        """See :meth:`Writer._pending`."""
        for _, candidate in sorted(self._candidates.items()):
            if not self.whole:
                yield from self._advance(candidate, to_the_end=True)
                if candidate.seal is not None:
                    yield self._chunk(self._said(candidate, [{"text": "", **_taken_seal(candidate)}]))

    def _last(self) -> Iterator[Event]:
        """See :meth:`Writer._last`."""
        yield self._chunk_at_end([{} for _ in self._candidates])

    def _body(self) -> Event:
        """See :meth:`Writer._body`."""
        candidates: list[Event] = []
        for _, candidate in sorted(self._candidates.items()):
            parts = [self._part(part, candidate) for part in candidate.parts]
            candidate.written = [part for part in parts if part is not None]
            if candidate.seal is not None:  # no call has it: as Gemini does, the last text, else an empty one
                if not candidate.written or candidate.written[-1].keys() != {"text"}:
                    candidate.written.append({"text": ""})
                candidate.written[-1] |= _taken_seal(candidate)
            candidates.append(self._said(candidate, candidate.written))
        return self._chunk_at_end(candidates)

    def _chunk_at_end(self, begun_candidates: list[Event]) -> Event:
        """Return the data that are known at the end, with the written part *begun_candidates* of each candidate."""
        first_candidate = self._candidates[0]
        if first_candidate.blocked and self.is_own and not first_candidate.written:
            message_field = (
                {"blockReasonMessage": "".join(first_candidate.refusal)} if first_candidate.refusal else {}
            )
            last_chunk = self._chunk(None) | {
                "promptFeedback": {"blockReason": first_candidate.finish, **message_field}
            }
        else:
            last_chunk = self._chunk(None)
            candidate_pairs = zip(sorted(self._candidates.items()), begun_candidates, strict=True)
            last_chunk["candidates"] = [
                {**begun_candidate, **self._end(candidate), "index": number}
                for (number, candidate), begun_candidate in candidate_pairs
            ]
        stored_fields = self.left if self.is_own else {}
        usage_metadata = _usage(self.usage, stored_fields, is_own=self.is_own)
        if usage_metadata:
            last_chunk["usageMetadata"] = usage_metadata
        if self.is_own:
            self._put_back(last_chunk, stored_fields)
        return last_chunk

    def _put_back(self, last_chunk: Event, stored_fields: Event) -> None:
        """Put the stored fields of the answer back into its candidates, and the others next to them."""
        left_candidates = stored_fields.pop("candidates", ())
        for position, entry in enumerate(left_candidates if isinstance(left_candidates, list) else ()):
            if not isinstance(entry, dict):
                continue
            number = entry.pop("index", position)
            content = entry.get("content")
            parts = content.get("parts") if isinstance(content, dict) else None
            is_known = self.whole and isinstance(parts, list) and len(parts) == self._written(number)
            if isinstance(content, dict) and not is_known:
                content.pop("parts", None)  # the parts cannot be matched
            for candidate in last_chunk.get("candidates", ()):
                if candidate["index"] == number:
                    put_back(candidate, entry)
        put_back(last_chunk, stored_fields)

    def _written(self, number: Any) -> int:
        candidate = self._candidates.get(number)
        return -1 if candidate is None else len(candidate.written)

    def _end(self, candidate: _Candidate) -> Event:
        """Return the fields of *candidate* behind its parts."""
        end_fields: Event = {} if candidate.finish is None else {"finishReason": candidate.finish}
        if candidate.refusal and not candidate.blocked:
            end_fields["finishMessage"] = "".join(candidate.refusal)
        if candidate.unreadable and candidate.finish == _WHOLE_WORD:
            message = f"Malformed function call: {', '.join(candidate.unreadable)}"
            end_fields |= {"finishReason": _MALFORMED_WORD, "finishMessage": message}
        if not self.is_own:  # it keeps its own
            end_fields |= _grounding(candidate)
        return end_fields | self._tokens(candidate)

    @staticmethod
    def _tokens(candidate: _Candidate) -> Event:
        """Return the log probabilities that have not been written."""
        known_tokens = [token for token in candidate.logprobs if token.logprob is not None]
        candidate.logprobs = []
        if not known_tokens:
            return {}
        logprobs_result: Event = {"chosenCandidates": [_token(token) for token in known_tokens]}
        if any(token.top for token in known_tokens):
            tops = [{"candidates": [_token(top) for top in token.top]} for token in known_tokens]
            logprobs_result["topCandidates"] = tops
        return {"logprobsResult": logprobs_result}

    def _said(self, candidate: _Candidate, parts: list[Event]) -> Event:
        content = {"content": {"parts": parts, "role": "model"}} if parts else {}
        return {**content, **self._tokens(candidate), "index": candidate.number}

    def _candidate(self, number: int) -> _Candidate:
        return self._candidates.setdefault(number, _Candidate(number))

    def _chunk(self, candidate: Event | None) -> Event:
        heading = self.heading
        chunk: Event = {} if candidate is None else {"candidates": [candidate]}
        if heading.model:
            chunk["modelVersion"] = heading.model
        if not self.is_own:
            chunk["createTime"] = heading.time
        if heading.id:
            chunk["responseId"] = heading.id
        return chunk


def _taken_seal(candidate: _Candidate) -> Event:
    """Return the seal of *candidate* as the signature of one part, for the first part that asks."""
    seal, candidate.seal = candidate.seal, None
    return {} if seal is None else {"thoughtSignature": seal}


def _token(token: TokenLogprob) -> Event:
    return {"token": token.token, "logProbability": token.logprob}


def _grounding(candidate: _Candidate) -> Event:
    """Return the web pages that the text is based on, with the byte ranges for each."""
    text = "".join(candidate.text)
    chunks: list[Event] = []
    supports: list[Event] = []
    for piece, span in candidate.cited.citations():
        citation = url_citation(piece, span or (0, 0))
        if citation is None:
            continue
        grounding_chunk = {
            "web": {"uri": citation["url"], **({"title": citation["title"]} if citation["title"] else {})}
        }
        if span is not None:
            preceding_bytes, cited_text = text[: span[0]].encode(), text[slice(*span)]
            segment = {
                "startIndex": len(preceding_bytes),
                "endIndex": len(preceding_bytes + cited_text.encode()),
                "text": cited_text,
            }
            supports.append({"segment": segment, "groundingChunkIndices": [len(chunks)]})
        chunks.append(grounding_chunk)
    grounding: Event = {"groundingChunks": chunks, **({"groundingSupports": supports} if supports else {})}
    return {"groundingMetadata": grounding} if chunks else {}


def _usage(usage: UsageInfo | None, stored_fields: Event, *, is_own: bool) -> Event:
    """Return the counts. Those of the server's own tools, in *stored_fields*, are not part of the prompt's."""
    if usage is None:
        return {}
    stored_usage = stored_fields.get("usageMetadata")
    tool_usage: Event = stored_usage if isinstance(stored_usage, dict) else {}
    thoughts = min(usage.reasoning_tokens or 0, usage.completion_tokens)
    counts = {
        "prompt_tokens": usage.prompt_tokens - _count(tool_usage.get("toolUsePromptTokenCount")),
        "completion_tokens": usage.completion_tokens - thoughts,
        "reasoning_tokens": usage.reasoning_tokens,
        "cached_tokens": usage.cached_tokens,
        "total_tokens": usage.total_tokens,
    }
    # An answer of Gemini's own leaves zeros out.
    usage_metadata: Event = {
        wire.COUNTS[name]: count for name, count in counts.items() if count or (count == 0 and not is_own)
    }
    modality_items = tool_usage.get("toolUsePromptTokensDetails")
    tool_tokens = {
        str(item.get("modality")): _count(item.get("tokenCount"))
        for item in (modality_items if isinstance(modality_items, list) else ())
        if isinstance(item, dict)
    }
    for ending, name in wire.MODALITIES.items():
        details = {
            modality: getattr(usage.details, f"{modality.lower()}_{ending}") for modality in _MODALITIES
        }
        deducted_tokens = tool_tokens if ending == "input_tokens" else {}
        modality_counts = [
            {"modality": modality, "tokenCount": count - deducted_tokens.get(modality, 0)}
            for modality, count in details.items()
            if count is not None and (count != deducted_tokens.get(modality) or not is_own)
        ]
        if modality_counts:
            usage_metadata[name] = modality_counts
    return usage_metadata


_MODALITIES: Final = ("TEXT", "IMAGE", "VIDEO", "AUDIO")


def _count(value: Any) -> int:
    return value if type(value) is int else 0
