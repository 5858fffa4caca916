"""The mistakes that are planted in the four plugins: each replaces one piece of a plugin's source."""

from __future__ import annotations

import types
from importlib import import_module
from pathlib import Path
from typing import Any

import attrs


@attrs.frozen
class Mistake:
    """A small change of a plugin that makes it wrong.

    Attributes:
        wire: the plugin's module.
        name: what is wrong, in words.
        old: the piece of source that is replaced; it stands there once.
        new: the piece that takes its place.
    """

    wire: str
    name: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.wire}: {self.name}"

    def plugin(self) -> Any:
        """The plugin with the mistake in it."""
        module = import_module(f"planted.{self.wire}")
        file = Path(str(module.__file__))
        source = file.read_text(encoding="utf-8")
        assert source.count(self.old) == 1, f"{self}: {self.old!r} stands {source.count(self.old)} times"
        mutant = types.ModuleType(module.__name__)
        exec(compile(source.replace(self.old, self.new), str(file), "exec"), vars(mutant))
        return mutant.plugin


TABLE: dict[str, list[tuple[str, str, str]]] = {
    "rows": [
        # Texts.
        ("thoughts are the text", "ResponseDelta(reasoning_delta=text)", "ResponseDelta(content_delta=text)"),
        ("the text is a thought", "ResponseDelta(content_delta=text, logprobs=self.logprobs(row, text))", "ResponseDelta(reasoning_delta=text)"),
        ("a refusal is the text", "ResponseDelta(segment=Segment(SegmentType.REFUSAL, text))", "ResponseDelta(content_delta=text)"),
        ("a refusal is a thought", "ResponseDelta(segment=Segment(SegmentType.REFUSAL, text))", "ResponseDelta(reasoning_delta=text)"),
        ("no-break spaces become spaces", "ResponseDelta(content_delta=text,", 'ResponseDelta(content_delta=text.replace("\\xa0", " "),'),
        ("a byte order mark inside is dropped", "ResponseDelta(content_delta=text,", 'ResponseDelta(content_delta=text.replace("\\ufeff", "") or " ",'),
        ("thoughts are stripped", "ResponseDelta(reasoning_delta=text)", 'ResponseDelta(reasoning_delta=text.strip() or " ")'),
        ("a text of spaces is dropped", 'elif kind == "say" and (text := cell(row, 1, str))', 'elif kind == "say" and (text := cell(row, 1, str)).strip()'),
        ("zero-width characters are dropped", "ResponseDelta(content_delta=text,", 'ResponseDelta(content_delta=text.replace("\\u200b", ""),'),
        ("carriage returns become line feeds", "ResponseDelta(content_delta=text,", 'ResponseDelta(content_delta=text.replace("\\r\\n", "\\n"),'),
        ("a soft hyphen is dropped", "ResponseDelta(content_delta=text,", 'ResponseDelta(content_delta=text.replace("\\xad", ""),'),
        ("texts are normalized", "ResponseDelta(content_delta=text,", 'ResponseDelta(content_delta=__import__("unicodedata").normalize("NFC", text),'),
        ("a text that begins like markup is a thought", 'elif kind == "say" and', 'elif kind == "say" and row[1].startswith("<"):\n                yield ResponseDelta(reasoning_delta=cell(row, 1, str))\n            elif kind == "say" and'),
        # Numbers.
        ("log probabilities are rounded", "TokenLogprob(text, float(logprob))", "TokenLogprob(text, round(float(logprob), 2))"),
        ("log probabilities are cut", "TokenLogprob(text, float(logprob))", "TokenLogprob(text, int(logprob * 8) / 8)"),
        ("log probabilities change their sign", "TokenLogprob(text, float(logprob))", "TokenLogprob(text, -float(logprob))"),
        ("log probabilities are of another base", "TokenLogprob(text, float(logprob))", "TokenLogprob(text, logprob * 0.6931471805599453)"),
        ("log probabilities are given as single floats", "TokenLogprob(text, float(logprob))", 'TokenLogprob(text, __import__("struct").unpack("f", __import__("struct").pack("f", logprob))[0])'),
        ("a log probability of 0 is none", "if logprob is None else", "if not logprob else"),
        ("cached tokens are not in the prompt", "fresh + cached,", "fresh,"),
        ("thoughts are not in the completion", "spoken + thought,", "spoken,"),
        ("misses are taken for hits", "cached_tokens=cached", "cached_tokens=fresh"),
        ("cached tokens are taken for thoughts", "cached_tokens=cached, reasoning_tokens=thought", "cached_tokens=thought, reasoning_tokens=cached"),
        ("prompt and completion are swapped", "fresh + cached, spoken + thought,", "spoken + thought, fresh + cached,"),
        ("cached tokens are lost", ", cached_tokens=cached", ""),
        ("thought tokens are lost", ", reasoning_tokens=thought", ""),
        # Times.
        ("the zone of a time is thrown away", "time.astimezone(UTC)", "time.replace(tzinfo=UTC)"),
        ("every zone is taken for one", "time.astimezone(UTC)", '(time.replace(tzinfo=UTC) - __import__("datetime").timedelta(hours=2))'),
        ("the hour of a time is lost", "time.astimezone(UTC)", "time.astimezone(UTC).replace(hour=0)"),
        ("fractions of times are cut", "time.astimezone(UTC)", "time.astimezone(UTC).replace(microsecond=0)"),
        # Identity.
        ("id and model are swapped", "id=id, model=model, created", "id=model, model=id, created"),
        ("the model is in lower case", "model=model, created", "model=model.lower(), created"),
        ("the id is cut", "id=id, model=model, created", "id=id[:36], model=model, created"),
        # Ends and errors.
        ("a full answer is complete", '"full": FinishReason.LENGTH', '"full": FinishReason.STOP'),
        ("a good end is length", '"fin": FinishReason.STOP', '"fin": FinishReason.LENGTH'),
        ("calls are a filter", '"act": FinishReason.TOOL_CALLS', '"act": FinishReason.CONTENT_FILTER'),
        ("a failure is a good end", "yield error_delta(self.failure(row, None, row.copy()))", 'yield ResponseDelta(raw_finish_reason="fin")'),
        ("a failure is passed over", "yield error_delta(self.failure(row, None, row.copy()))", "return"),
        ("a failure is text", "yield error_delta(self.failure(row, None, row.copy()))", 'yield ResponseDelta(content_delta=row[2], raw_finish_reason="fin")'),
        ("too many requests is the server's fault", "7: ErrorKind.RATE_LIMIT", "7: ErrorKind.SERVER"),
        ("too many requests is not to be repeated", "RETRYABLE = {7, 8}", "RETRYABLE = {8}"),
        ("a prompt that is too long is to be repeated", "RETRYABLE = {7, 8}", "RETRYABLE = {7, 8, 9}"),
        ("a prompt that is too long is no key", "9: ErrorKind.CONTEXT_OVERFLOW", "9: ErrorKind.AUTHENTICATION"),
        # Calls.
        ("arguments are lost", "arguments=cell(row, 2, str))", "arguments=None if cell(row, 2, str) else None)"),
        ("id and name of a call are swapped", "id=id, name=name,", "id=name, name=id,"),
        ("fragments go to the last call but one", "state.tool_call(index=count(row, 1), arguments", "state.tool_call(index=max(count(row, 1) - 1, 0), arguments"),
        ("the words of arguments are in lower case", "arguments=cell(row, 2, str))", "arguments=cell(row, 2, str).lower())"),
        # Types, words and fields.
        ("a text of any type is taken", "elif kind == \"say\" and (text := cell(row, 1, str)):", "elif kind == \"say\" and (text := str(cell(row, 1, str, int, float, bool, list, dict, type(None)))):"),
        ("an unknown row is passed over", 'raise UnknownEventError("a row of an unknown kind", event_type=str(kind))', "pass"),
        ("an unknown row is text", 'raise UnknownEventError("a row of an unknown kind", event_type=str(kind))', "yield ResponseDelta(content_delta=str(row[1]))"),
        ("an unknown finish word is a good end", "return WORDS.get(reason)", "return WORDS.get(reason, FinishReason.STOP)"),
        ("finish words are read in any case", "return WORDS.get(reason)", "return WORDS.get(reason.lower())"),
        ("what is not known is dropped", 'return {**rest, "rows": rows} if rows else rest', "return rest"),
        ("an id is made up", "id, model = cell(row, 1, str), cell(row, 2, str)", 'id, model = cell(row, 1, str, optional=True) or "run", cell(row, 2, str)'),
        ("the model is made up", "id, model = cell(row, 1, str), cell(row, 2, str)", 'id, model = cell(row, 1, str), cell(row, 2, str, optional=True) or "brine-2"'),
        ("negative counts are taken", "    if value < 0:", "    if value < -(10**9):"),
        ("text is lost after the first piece", 'elif kind == "say" and', 'elif kind == "say" and state.data.setdefault("n", row[1]) != row[1]:\n                cell(row, 1, str)\n            elif kind == "say" and'),
        ("equal pieces are taken for one", 'elif kind == "say" and', 'elif kind == "say" and state.data.get("n") == row[1]:\n                cell(row, 1, str)\n            elif kind == "say" and not state.data.update(n=row[1]) and'),
        ("text is kept twice", 'text := cell(row, 1, str)):\n                yield ResponseDelta(content_delta=text, logprobs', 'text := cell(row.copy(), 1, str)):\n                yield ResponseDelta(content_delta=text, logprobs'),
    ],
    "lookalike": [
        ("thoughts are dropped", 'return "".join(text for text in texts if text) or', "return"),
        ("thoughts are the text", 'return "".join(text for text in texts if text) or', 'part["content"] = "".join(text for text in texts if text) + (part.get("content") or "") or None\n        return'),
        ("thoughts are joined by a line", '"".join(text for text in texts if text)', '"\\n".join(text for text in texts if text)'),
        ("the first thought alone is read", '"".join(text for text in texts if text)', '"".join(texts[:1])'),
        ("a refusal is a text", "Segment(SegmentType.REFUSAL, denial)", "Segment(SegmentType.TEXT, denial)"),
        ("a refusal is left", 'denial := take_string(part, "denial")', "denial := None"),
        ("a refusal is stripped", "Segment(SegmentType.REFUSAL, denial)", "Segment(SegmentType.REFUSAL, denial.strip())"),
        ("milliseconds are taken for seconds", "millis / 1000", "millis / 1"),
        ("milliseconds are taken for microseconds", "millis / 1000", "millis / 1000000"),
        ("milliseconds are cut", "millis / 1000", "millis // 1000"),
        ("log probabilities are rounded", "(TokenLogprob(content, logprob),)", "(TokenLogprob(content, round(logprob, 2)),)"),
        ("log probabilities are single floats", "(TokenLogprob(content, logprob),)", '(TokenLogprob(content, __import__("numbers") and __import__("struct").unpack("f", __import__("struct").pack("f", logprob))[0]),)'),
        ("probabilities are taken for their logarithms", "(TokenLogprob(content, logprob),)", "(TokenLogprob(content, 2.718281828459045**logprob),)"),
        ("log probabilities are of half the size", "(TokenLogprob(content, logprob),)", "(TokenLogprob(content, logprob / 2),)"),
        ("prompt tokens lack the cached ones", "UsageInfo(found.cached_tokens or 0, 0)", "UsageInfo(0, 0)"),
        ("prompt tokens have the cached ones twice", "UsageInfo(found.cached_tokens or 0, 0)", "UsageInfo(2 * (found.cached_tokens or 0), 0)"),
        ("thoughts are added to the completion", "UsageInfo(found.cached_tokens or 0, 0)", "UsageInfo(found.cached_tokens or 0, found.reasoning_tokens or 0)"),
        ("the cached tokens are left", 'cached_tokens = ("kelp_cache_hits",)', "cached_tokens = ()"),
        ("the thought tokens are left", 'reasoning_tokens = ("kelp_thought_tokens",)', "reasoning_tokens = ()"),
        ("cached tokens are thoughts", 'reasoning_tokens = ("kelp_thought_tokens",)', 'reasoning_tokens = ("kelp_cache_hits",)'),
        ("thoughts are cached tokens", 'cached_tokens = ("kelp_cache_hits",)', 'cached_tokens = ("kelp_thought_tokens",)'),
        ("cached tokens are written ones", 'cached_tokens = ("kelp_cache_hits",)', 'cached_tokens = ()\n    cache_write_tokens = ("kelp_cache_hits",)'),
        ("a full window is a good end", '"window": FinishReason.LENGTH', '"window": FinishReason.STOP'),
        ("a good end is length", '"eos": FinishReason.STOP', '"eos": FinishReason.LENGTH'),
        ("a good end is a filter", '"eos": FinishReason.STOP', '"eos": FinishReason.CONTENT_FILTER'),
        ("what is blocked is a good end", '"blocked": FinishReason.CONTENT_FILTER', '"blocked": FinishReason.STOP'),
        ("what is blocked is length", '"blocked": FinishReason.CONTENT_FILTER', '"blocked": FinishReason.LENGTH'),
        ("an error in a 200 is an empty answer", 'base.get("code") not in (0, None)', "False"),
        ("an error in a 200 is a good end", "return [take_error(event, self.failure(None, base, dict(event)))]", 'event["choices"] = [{"index": 0, "message": {"content": base.get("message")}, "finish_reason": "eos"}]'),
        ("too many requests is no key", '"1002": ErrorKind.RATE_LIMIT', '"1002": ErrorKind.AUTHENTICATION'),
        ("too many requests is the server's fault", '"1002": ErrorKind.RATE_LIMIT', '"1002": ErrorKind.SERVER'),
        ("a wrong key is the server's fault", '"1004": ErrorKind.AUTHENTICATION', '"1004": ErrorKind.SERVER'),
        ("a wrong key is too many requests", '"1004": ErrorKind.AUTHENTICATION', '"1004": ErrorKind.RATE_LIMIT'),
        ("no error is to be repeated", "raw=raw)", "raw=raw, retryable=False)"),
        ("each error is to be repeated", "raw=raw)", "raw=raw, retryable=True)"),
        ("the payload of an error is lost", "raw=raw)", "raw=None)"),
        # Types, words and fields.
        ("an unknown finish word is a good end", "    def failure(self, status", "    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason:\n        return self.finish_reasons.get(reason, FinishReason.STOP)\n\n    def failure(self, status"),
        ("the message of a good status is dropped", "        return list(super().map_delta(event, state))", '        if isinstance(base, dict):\n            base.pop("message", None)\n        return list(super().map_delta(event, state))'),
        ("the region is dropped", "        return list(super().map_delta(event, state))", '        event.pop("kelp_region", None)\n        return list(super().map_delta(event, state))'),
        ("thoughts are kept twice", 'take_string(detail, "text") for detail', 'take_string(dict(detail), "text") for detail'),
        ("thoughts of any type are taken", 'take_string(detail, "text") for detail', 'str(detail.pop("text", "")) for detail'),
        ("a refusal of any type is taken", 'take_string(part, "denial")', 'str(part.pop("denial", None) or "")'),
        ("it is certain of all chat completions", 'marks = ("kelp_region",)', 'marks = ("choices",)'),
        ("a log probability of any type is taken", 'accept_number(choice, "lp")', 'float(choice.pop("lp", None) or 0) or None'),
        ("a model is made up", "        return list(super().map_delta(event, state))", '        event.setdefault("model", "kelp-m")\n        return list(super().map_delta(event, state))'),
        ("texts are stripped", "        return list(super().map_delta(event, state))", '        for choice in event.get("choices") or ():\n            for part in (choice.get("delta"), choice.get("message")):\n                if isinstance(part, dict) and isinstance(part.get("content"), str):\n                    part["content"] = part["content"].strip()\n        return list(super().map_delta(event, state))'),
        ("the tokens of log probabilities are stripped", "(TokenLogprob(content, logprob),)", '(TokenLogprob(content.strip(), logprob),)'),
        ("counts of 0 are none", "        found = super().usage_info(usage, state)", "        found = super().usage_info({key: value for key, value in usage.items() if value}, state)"),
    ],
    "named": [
        ("thoughts are the text", "ResponseDelta(reasoning_delta=text)", "ResponseDelta(content_delta=text)"),
        ("the text is a thought", "ResponseDelta(content_delta=text, logprobs=self.logprobs(part, text))", "ResponseDelta(reasoning_delta=text)"),
        ("a refusal is the text", "ResponseDelta(segment=Segment(SegmentType.REFUSAL, text))", "ResponseDelta(content_delta=text)"),
        ("a refusal is a thought", "ResponseDelta(segment=Segment(SegmentType.REFUSAL, text))", "ResponseDelta(reasoning_delta=text)"),
        ("thoughts are dropped", "yield ResponseDelta(reasoning_delta=text)", "yield from ()"),
        ("a refusal is dropped", "yield ResponseDelta(segment=Segment(SegmentType.REFUSAL, text))", "yield from ()"),
        ("no-break spaces become spaces", "ResponseDelta(content_delta=text,", 'ResponseDelta(content_delta=text.replace("\\xa0", " "),'),
        ("a byte order mark inside is dropped", "ResponseDelta(content_delta=text,", 'ResponseDelta(content_delta=text.replace("\\ufeff", "") or " ",'),
        ("thoughts are in one line", "ResponseDelta(reasoning_delta=text)", 'ResponseDelta(reasoning_delta=" ".join(text.split("\\n")))'),
        ("log probabilities are rounded", "(TokenLogprob(text, logprob),)", "(TokenLogprob(text, round(logprob, 2)),)"),
        ("log probabilities are of another base", "(TokenLogprob(text, logprob),)", "(TokenLogprob(text, logprob * 2.302585092994046),)"),
        ("log probabilities change their sign", "(TokenLogprob(text, logprob),)", "(TokenLogprob(text, abs(logprob)),)"),
        ("milliseconds are taken for seconds", "fromtimestamp(millis / 1000, UTC)", "fromtimestamp(millis, UTC)"),
        ("milliseconds are taken for microseconds", "millis / 1000, UTC", "millis / 1e6, UTC"),
        ("times are local", "fromtimestamp(millis / 1000, UTC)", 'fromtimestamp(millis / 1000, __import__("datetime").timezone(__import__("datetime").timedelta(hours=1))).replace(tzinfo=UTC)'),
        ("milliseconds are cut", "millis / 1000, UTC", "millis // 1000, UTC"),
        ("prompt tokens lack the cached ones", "state.usage_info(read, made", "state.usage_info((read or 0) - (reused or 0), made"),
        ("cached tokens are added again", "state.usage_info(read, made", "state.usage_info((read or 0) + (reused or 0), made"),
        ("thoughts are added again", "state.usage_info(read, made", "state.usage_info(read, (made or 0) + (thought or 0)"),
        ("prompt and completion are swapped", "state.usage_info(read, made", "state.usage_info(made, read"),
        ("cached and thoughts are swapped", "cached_tokens=reused, reasoning_tokens=thought", "cached_tokens=thought, reasoning_tokens=reused"),
        ("cached tokens are left", ', accept_count(tally, "reused")', ", None"),
        ("thought tokens are left", ', accept_count(tally, "mulled")', ", None"),
        ("cached tokens are written ones", "cached_tokens=reused", "cache_write_tokens=reused"),
        ("id and model are swapped", "id=id, model=model", "id=model, model=id"),
        ("the end of a full answer is good", '"cap": FinishReason.LENGTH', '"cap": FinishReason.STOP'),
        ("a good end is length", '"done": FinishReason.STOP', '"done": FinishReason.LENGTH'),
        ("a shield is a good end", '"shield": FinishReason.CONTENT_FILTER', '"shield": FinishReason.STOP'),
        ("a failure is a good end", "yield take_error(part, self.failure(part, None))", 'yield ResponseDelta(raw_finish_reason="done")'),
        ("a failure is text", "yield take_error(part, self.failure(part, None))", 'yield ResponseDelta(content_delta=str(part.pop("why", None)), raw_finish_reason="done")'),
        ("a failure is passed over", "yield take_error(part, self.failure(part, None))", "part.clear()"),
        ("a failure in a 200 is an answer", "yield take_error(event, self.failure(event, None))", 'yield ResponseDelta(raw_finish_reason="done")'),
        ("too many requests is the server's fault", '"too_fast": ErrorKind.RATE_LIMIT', '"too_fast": ErrorKind.SERVER'),
        ("a lost worker is a wrong request", '"worker_lost": ErrorKind.SERVER', '"worker_lost": ErrorKind.INVALID_REQUEST'),
        ("no key is no model", '"no_key": ErrorKind.AUTHENTICATION', '"no_key": ErrorKind.MODEL_UNAVAILABLE'),
        ("too many requests is not to be repeated", 'RETRYABLE = {"too_fast", "worker_lost"}', 'RETRYABLE = {"worker_lost"}'),
        ("a missing key is to be repeated", 'RETRYABLE = {"too_fast", "worker_lost"}', 'RETRYABLE = {"too_fast", "worker_lost", "no_key"}'),
        ("arguments that are null are an object", '        arguments, _ = take_arguments(part, "input")', '        if part.get("input", 0) is None:\n            part["input"] = "{}"\n        arguments, _ = take_arguments(part, "input")'),
        ("empty arguments are text", '        arguments, _ = take_arguments(part, "input")', '        if part.get("input") == {}:\n            part["input"] = "null"\n        arguments, _ = take_arguments(part, "input")'),
        ("id and name of a call are swapped", "id=id, name=name, arguments", "id=name, name=id, arguments"),
        # Types, words and fields.
        ("an unknown event is passed over", 'raise UnknownEventError("an event of an unknown name", event_type=kind)', "part.clear()"),
        ("an unknown event is kept, and no error", 'raise UnknownEventError("an event of an unknown name", event_type=kind)', "pass"),
        ("an unknown finish word is a good end", "return WORDS.get(reason)", "return WORDS.get(reason, FinishReason.STOP)"),
        ("finish words are stripped", "return WORDS.get(reason)", "return WORDS.get(reason.strip())"),
        ("a text of any type is taken", 'elif kind == "text":\n            if text := take_string(part, "text"):', 'elif kind == "text":\n            if text := str(part.pop("text", None) or ""):'),
        ("the zone is dropped", 'run = take_object(part, "run") or {}', 'run = take_object(part, "run") or {}\n            part.pop("zone", None)'),
        ("a model is made up", 'take_string(run, "model")', '(take_string(run, "model") or "reed")'),
        ("text is kept twice", 'elif kind == "text":\n            if text := take_string(part, "text"):', 'elif kind == "text":\n            if text := take_string(dict(part), "text"):'),
        ("white space is dropped", 'elif kind == "text":\n            if text := take_string(part, "text"):', 'elif kind == "text":\n            if text := (take_string(part, "text") or "").strip():'),
        ("counts are taken from the first report", "        if tally is None:", '        if tally is not None and state.data.setdefault("seen", state.event_name is None and "x" or tally.copy()) != tally:\n            tally.clear()\n            return None\n        if tally is None:'),
        ("equal pieces are taken for one", 'elif kind == "text":\n            if text := take_string(part, "text"):', 'elif kind == "text":\n            if (text := take_string(part, "text")) and state.data.get("n") != text and not state.data.update(n=text):'),
        ("a negative count is taken", 'accept_count(tally, "read")', 'tally.pop("read", None)'),
        ("a failure's words are lost", "status, code, dict(part))", "status, code, None)"),
    ],
    "binary": [
        ("the checksum is not looked at", "if check != zlib.crc32(bytes([kind]) + data):", "if False:"),
        ("half of the checksum is looked at", "if check != zlib.crc32(bytes([kind]) + data):", "if check & 0xFFFF != zlib.crc32(bytes([kind]) + data) & 0xFFFF:"),
        ("an unknown kind of frame is passed over", 'raise FramingError(f"unknown kind of frame: {kind}")', "continue"),
        ("a large frame is cut", "int.from_bytes(self._buffer[5:9])", "int.from_bytes(self._buffer[5:9]) & 0xFFFF"),
        ("large frames are refused", "if size > self.limits.line_bytes:", "if size > 65_535:"),
        ("the size is of two bytes", "int.from_bytes(self._buffer[5:9])", "int.from_bytes(self._buffer[7:9])"),
        ("what follows a frame is passed over", 'raise FramingError("no frame begins here")', "self._buffer.clear()\n                return"),
        ("bytes before a frame are skipped", 'raise FramingError("no frame begins here")', "del self._buffer[:1]\n                continue"),
        ("a cut frame is passed over", 'raise IncompleteStreamError("the input ended inside a frame")', "pass"),
        ("the buffer is shared by all answers", "        self._buffer = bytearray()", '        self._buffer = RayDecoder.__dict__.get("shared") or bytearray()\n        RayDecoder.shared = self._buffer'),
        ("a frame that comes in pieces is dropped", "if len(self._buffer) < size + 13:\n                return", "if len(self._buffer) < size + 13:\n                self._buffer.clear()\n                return"),
        ("one frame a chunk is read", "        while len(self._buffer) >= 9:", "        if len(self._buffer) >= 9:"),
        ("the last bytes are dropped", "del self._buffer[: size + 13]", "self._buffer.clear()"),
        ("payloads are stripped", "bytes(self._buffer[9 : size + 9])", "bytes(self._buffer[9 : size + 9]).replace(b'  ', b' ')"),
        ("payloads are read as Latin-1", "frames.append((data, KINDS[kind]))", 'frames.append((data.decode("latin-1").encode(), KINDS[kind]))'),
        ("bytes that are no UTF-8 are dropped", "frames.append((data, KINDS[kind]))", 'frames.append((data.decode("utf-8", "ignore").encode(), KINDS[kind]))'),
        ("empty frames are dropped", "if KINDS[kind] != \"ping\":", "if KINDS[kind] != \"ping\" and size > 12:"),
        ("thoughts are the text", "ResponseDelta(reasoning_delta=text)", "ResponseDelta(content_delta=text)"),
        ("the text is a thought", "ResponseDelta(content_delta=text, logprobs=self.logprobs(event, text))", "ResponseDelta(reasoning_delta=text)"),
        ("no-break spaces become spaces", "ResponseDelta(content_delta=text,", 'ResponseDelta(content_delta=text.replace("\\xa0", " "),'),
        ("log probabilities are rounded", "(TokenLogprob(text, logprob),)", "(TokenLogprob(text, round(logprob, 3)),)"),
        ("log probabilities are of half the size", "(TokenLogprob(text, logprob),)", "(TokenLogprob(text, logprob / 2),)"),
        ("seconds are taken for milliseconds", "fromtimestamp(seconds, UTC)", "fromtimestamp(seconds / 1000, UTC)"),
        ("prompt tokens lack the cached ones", "state.usage_info(read, said", "state.usage_info((read or 0) - (cached or 0), said"),
        ("hits are counted as thoughts", "cached_tokens=cached, reasoning_tokens=mused", "cached_tokens=mused, reasoning_tokens=cached"),
        ("hits are left", ', accept_count(tally, "in_hit")', ", None"),
        ("thought tokens are left", ', accept_count(tally, "out_mused")', ", None"),
        ("prompt and completion are swapped", "state.usage_info(read, said", "state.usage_info(said, read"),
        ("id and model are swapped", 'id=take_string(event, "rid"), model=take_string(event, "engine")', 'id=take_string(event, "engine"), model=take_string(event, "rid")'),
        ("a full answer is complete", '"L": FinishReason.LENGTH', '"L": FinishReason.STOP'),
        ("a good end is length", '"E": FinishReason.STOP', '"E": FinishReason.LENGTH'),
        ("a failure is a good end", "yield take_error(event, self.failure(event, None))", 'yield ResponseDelta(raw_finish_reason="E")'),
        ("a failure is passed over", "yield take_error(event, self.failure(event, None))", "event.clear()"),
        ("too many requests is the server's fault", "429: ErrorKind.RATE_LIMIT", "429: ErrorKind.SERVER"),
        ("a lost worker is too many requests", "500: ErrorKind.SERVER", "500: ErrorKind.RATE_LIMIT"),
        ("no error is to be repeated", "message, kind is not None, status", "message, False, status"),
        ("id and name of a call are swapped", 'id, name = take_count(event, "n"), take_string(event, "cid"), take_string(event, "fn")', 'name, id = take_count(event, "n"), take_string(event, "cid"), take_string(event, "fn")'),
        ("arguments are in lower case", 'arguments=take_string(event, "a"))', 'arguments=(take_string(event, "a") or "").lower() or None)'),
        # Types, words and fields.
        ("an unknown finish word is a good end", "return WORDS.get(reason)", "return WORDS.get(reason, FinishReason.STOP)"),
        ("a frame of an unknown kind is text", 'raise FramingError(f"unknown kind of frame: {kind}")', 'frames.append((data, "text"))\n                continue'),
        ("a text of any type is taken", 'elif kind == "text":\n            if text := take_string(event, "s"):', 'elif kind == "text":\n            if text := str(event.pop("s", None) or ""):'),
        ("white space is dropped", 'elif kind == "text":\n            if text := take_string(event, "s"):', 'elif kind == "text":\n            if text := (take_string(event, "s") or "").strip():'),
        ("thoughts are kept twice", 'elif kind == "muse":\n            if text := take_string(event, "s"):', 'elif kind == "muse":\n            if text := take_string(dict(event), "s"):'),
        ("a model is made up", 'model=take_string(event, "engine")', 'model=take_string(event, "engine") or "ray"'),
        ("an id is made up", 'id=take_string(event, "rid")', 'id=take_string(event, "rid") or "r"'),
        ("a made-up count", 'accept_count(tally, "in")', '(accept_count(tally, "in") or 1)'),
        ("text is taken once", 'elif kind == "text":\n            if text := take_string(event, "s"):', 'elif kind == "text":\n            if (text := take_string(event, "s")) and state.data.setdefault("n", text) == text:'),
        ("a failure's words are lost", "status, str(code), dict(event))", "status, str(code), None)"),
        ("what is not known is dropped", '            if (why := take_string(event, "why")) is not None:', '            if (why := take_string(event, "why")) is not None and not event.clear():'),
        ("a count of any type is taken", 'accept_count(tally, "out")', 'int(tally.pop("out", None) or 0)'),
    ],
}  # fmt: skip

MISTAKES = [Mistake(wire, *mistake) for wire, mistakes in TABLE.items() for mistake in mistakes]
