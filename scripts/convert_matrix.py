"""Writes the tables of ``docs/convert-matrix.md``: ``python scripts/convert_matrix.py``.

Every recorded answer in ``tests/captures`` is converted to every format, as a body and as a stream. The tables list the
rules of the losses, for each pair of formats. A loss that no rule names is an error here, and
``tests/test_convert_matrix.py`` fails where the page is stale. The fields of requests in ``tests/request_fields.toml`` are
sent to every format. A loss that the file does not name is an error, too.

``python scripts/convert_matrix.py --beside FOLDER`` prints how much of the answers below FOLDER comes back from each of the
three large formats, by Crosswalk and by the other libraries that are installed: ``pip install --target OTHER
martian-linguafranca llm-rosetta llm-babel litellm`` and ``PYTHONPATH=OTHER``.
"""

from __future__ import annotations

import asyncio
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from importlib.metadata import version
from itertools import permutations
from pathlib import Path
from threading import Thread
from typing import Any, Final

from crosswalk import ChatResponse, CrosswalkError, normalize, normalize_stream
from crosswalk.convert import ConversionReport, Grade, WireForm, convert, convert_stream
from crosswalk.convert.losses import RULES, UNNAMED
from crosswalk.formats.writing import form_of_body, named_frame, source_form, unnamed_frame
from crosswalk.service import AdaptationKind, HTTPRequest, build_http_request, read_request
from crosswalk.testing import load_captures
from crosswalk.types import dump_json, load_json
from round_trips import leaves

__all__ = ["FIELDS", "FORMATS", "PAGE", "UnnamedLossError", "check_named", "current_page", "sent"]

ROOT: Final = Path(__file__).parents[1]
CAPTURES: Final = ROOT / "tests/captures"
PAGE: Final = ROOT / "docs/convert-matrix.md"
OTHER: Final = "any other"
FIELDS: Final[list[dict[str, Any]]] = tomllib.loads((ROOT / "tests/request_fields.toml").read_text())["field"]
"""Fields of requests, each with its outcome in other formats. The file says how to read it."""
FORMATS: Final[dict[str, tuple[WireForm, dict[str, Any]]]] = {
    "chat": (WireForm.OPENAI_CHAT, {"messages": [{"role": "user", "content": "Hi"}]}),
    "responses": (WireForm.OPENAI_RESPONSES, {"input": "Hi"}),
    "messages": (WireForm.ANTHROPIC, {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9}),
    "ollama": (WireForm.OLLAMA, {"messages": [{"role": "user", "content": "Hi"}], "stream": False}),
    "gemini": (WireForm.GEMINI, {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}),
}
"""The form and the least request of each format in that file."""

Cells = dict[tuple[str, WireForm, str], Counter[str]]
"""How many answers have a loss of each rule, by source, target, and ``body`` or ``stream``; under ``""`` all answers."""


class UnnamedLossError(Exception):
    """A conversion lost something that no rule names."""


def check_named(report: ConversionReport, place: str) -> None:
    """Raise for a loss of *report* that no rule names.

    Raises:
        UnnamedLossError: there is one.
    """
    for loss in report.differences:
        if loss.rule is UNNAMED:
            raise UnnamedLossError(f"{place} to {report.form}: no rule names {loss}")


def measured() -> Cells:
    """What happens to the recorded answers.

    Raises:
        UnnamedLossError: a loss without a rule.
    """
    cells: Cells = defaultdict(Counter)
    for folder in sorted(CAPTURES.iterdir()):
        for capture in load_captures(folder) if folder.is_dir() else ():
            with suppress(CrosswalkError):
                answer = normalize(capture.body, folder.name, status=capture.status)
                source = _format_of(answer)
                for target in WireForm:
                    body = convert(answer, target, losses="report").report
                    deltas = normalize_stream([capture.body], folder.name, status=capture.status)
                    stream = convert_stream(deltas, target, losses="report")
                    for _ in stream:
                        pass
                    for kind, report in (("body", body), ("stream", stream.report)):
                        check_named(report, f"{folder.name}/{capture.case} ({kind})")
                        cells[source, target, kind].update({"", *(loss.rule.name for loss in report.losses)})
    return cells


def _format_of(answer: ChatResponse) -> str:
    """The format of *answer*, as the tables call it."""
    first = answer.raw_events[0] if len(answer.raw_events) == 1 else None
    form = form_of_body(first) or source_form(answer)
    return OTHER if form is None else form.label


def rules_table() -> Iterator[str]:
    """A row for each rule."""
    yield from ("| rule | grade | reason |", "|---|---|---|")
    for rule in RULES:
        yield f"| {rule.name} | {rule.grade} | {rule.why} |"


def matrix(cells: Cells) -> Iterator[str]:
    """A table for each target, with a row for each source."""
    sources = [*(form.label for form in WireForm), OTHER]
    for target in WireForm:
        yield from (f"### To {target.label}", "", "| from | body | stream |", "|---|---|---|")
        for source in sources:
            found = [_cell(cells.get((source, target, kind), Counter())) for kind in ("body", "stream")]
            yield f"| {source} | {found[0]} | {found[1]} |"
        yield ""


def _cell(counts: Counter[str]) -> str:
    """The rules of the losses, the dangerous ones in bold, each with its share of the answers."""
    total = counts[""]
    if not total:
        return "not recorded"
    grades = {rule.name: rule.grade for rule in RULES}
    named = [
        f"**{rule.name}** {counts[rule.name]}"
        if grades[rule.name] is Grade.DANGEROUS
        else f"{rule.name} {counts[rule.name]}"
        for rule in RULES
        if counts[rule.name]
    ]
    return f"of {total}: {', '.join(named)}" if named else f"of {total}: nothing"


def sent(row: Mapping[str, Any], provider: str) -> HTTPRequest:
    """Return the request to *provider* for the client's request of *row*."""
    form, least = FORMATS[row["from"]]
    incoming = read_request({"model": "m", **least, **row["send"]}, form)
    return build_http_request(incoming.request, provider)


def requests_table() -> Iterator[str]:
    """A row for each format of a client, with the fields that each other format lacks.

    Raises:
        UnnamedLossError: a field is reported as lost, and the file says that it is not.
    """
    yield "| from | " + " | ".join(f"to {form.label}" for form, _ in FORMATS.values()) + " |"
    yield "|---" * (len(FORMATS) + 1) + "|"
    for source, (form, _) in FORMATS.items():
        rows = [row for row in FIELDS if row["from"] == source]
        yield f"| {form.label} | " + " | ".join(_fields_cell(rows, target) for target in FORMATS) + " |"


def _fields_cell(rows: list[dict[str, Any]], target: str) -> str:
    if rows[0]["from"] == target:
        return f"of {len(rows)}: nothing"
    lost: Counter[str] = Counter()
    for row in rows:
        name = _label(row["send"])
        if row[target] == "dangerous":
            lost[f"**`{name}`**"] += 1
        elif row[target] == "changed":
            lost[f"`{name}`"] += 1
        else:
            for one in sent(row, FORMATS[target][0].provider).adaptations:
                if one.kind is not AdaptationKind.DEFAULTED:
                    raise UnnamedLossError(f"{row['from']} to {target}: {one}")
    named = [name if count == 1 else f"{name} {count}" for name, count in sorted(lost.items())]
    return f"of {len(rows)}: {', '.join(named)}"


def _label(value: Any) -> str:
    """Return the path of the last field in *value*, as far as objects have one field alone."""
    steps: list[str] = []
    while isinstance(value, dict) and (len(value) == 1 or not steps):
        steps.append(next(reversed(value)))
        value = value[steps[-1]]
    return ".".join(steps)


def current_page() -> str:
    """The page as it should be: its text, with the tables of now."""
    page = PAGE.read_text(encoding="utf-8")
    tables = {"rules": rules_table(), "matrix": matrix(measured()), "requests": requests_table()}
    for name, lines in tables.items():
        begin, end = f"<!-- {name}: written by scripts/convert_matrix.py -->", f"<!-- end of {name} -->"
        head, _, rest = page.partition(begin)
        page = "\n".join([head + begin, "", *lines, "", end + rest.partition(end)[2]])
    return page


Event = dict[str, Any]
Convert = Callable[[Any, WireForm, WireForm], Any]
"""Returns a body, or the events of a stream, of one form in another one."""
LARGE: Final = (WireForm.OPENAI_CHAT, WireForm.OPENAI_RESPONSES, WireForm.ANTHROPIC)
_FORM_BY_EVENT: Final = {
    "chat.completion.chunk": WireForm.OPENAI_CHAT,
    "response.created": WireForm.OPENAI_RESPONSES,
    "message_start": WireForm.ANTHROPIC,
}


def _by_crosswalk(said: Any, source: WireForm, target: WireForm) -> Any:
    if isinstance(said, dict):
        answer = normalize(dump_json(said), source.provider)
        return load_json(convert(answer, target, losses="report").value)
    deltas = normalize_stream([b"".join(map(unnamed_frame, said)), b"data: [DONE]\n\n"], source.provider)
    return _events_in(b"".join(convert_stream(deltas, target, losses="report")))


def others() -> Iterator[tuple[str, Convert]]:
    """Crosswalk and the other libraries that are installed, each with its version."""
    yield "Crosswalk", _by_crosswalk
    with suppress(ImportError):
        library: Any = import_module("linguafranca")
        names = library.FormatName
        formats = dict(
            zip(
                LARGE,
                (names.OPENAI_CHAT_COMPLETIONS, names.OPEN_RESPONSES, names.ANTHROPIC_MESSAGES),
                strict=True,
            )
        )

        def by_linguafranca(said: Any, source: WireForm, target: WireForm) -> Any:
            pair = {"source_format": formats[source], "target_format": formats[target]}
            if isinstance(said, dict):
                return library.convert_response_json(said, **pair).value
            return [*library.convert_response_stream_json(said, **pair)]

        yield f"linguafranca {version('martian-linguafranca')}", by_linguafranca
    with suppress(ImportError):
        rosetta: Any = import_module("llm_rosetta")
        words = dict(zip(LARGE, ("openai_chat", "openai_responses", "anthropic"), strict=True))
        converters = {form: rosetta.get_converter_for_provider(word) for form, word in words.items()}

        def by_rosetta(said: Any, source: WireForm, target: WireForm) -> Any:
            reader, writer = converters[source], converters[target]
            if isinstance(said, dict):
                return writer.response_to_provider(reader.response_from_provider(said))
            read_context, write_context = reader.create_stream_context(), writer.create_stream_context()
            events: list[Event] = []
            for event in said:
                for between in reader.stream_response_from_provider(event, read_context):
                    written = writer.stream_response_to_provider(between, write_context)
                    events += written if isinstance(written, list) else [written]
            return [event for event in events if event]

        yield f"llm-rosetta {version('llm-rosetta')}", by_rosetta
    with suppress(ImportError):
        babel: Any = import_module("llm_transform.registry")
        codecs = dict(zip(LARGE, ("openai-chat", "openai-responses", "anthropic-messages"), strict=True))

        def by_babel(said: Any, source: WireForm, target: WireForm) -> Any:
            translate = babel.translate_response if isinstance(said, dict) else babel.translate_stream
            return babel.materialize(translate(codecs[source], codecs[target], said))

        yield f"llm-babel {version('llm-babel')}", by_babel
    with suppress(ImportError):
        yield f"LiteLLM {version('litellm')}", _LiteLLM().convert


class _LiteLLM:
    """LiteLLM has no function that converts an answer. So its calls ask a server here, which answers with it."""

    def __init__(self) -> None:
        self._library: Any = import_module("litellm")
        self._models: dict[str, str] = tomllib.loads((ROOT / "scripts/convert_matrix.toml").read_text())[
            "litellm"
        ]
        self._answer = b""
        library = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("content-length", 0)))
                self.send_response(200)
                is_body = library._answer.startswith(b"{")
                self.send_header("content-type", "application/json" if is_body else "text/event-stream")
                self.send_header("content-length", str(len(library._answer)))
                self.end_headers()
                self.wfile.write(library._answer)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=server.serve_forever, daemon=True).start()
        self._options = {
            "api_base": f"http://127.0.0.1:{server.server_port}",
            "api_key": "k",
            "num_retries": 0,
        }

    def convert(self, said: Any, source: WireForm, target: WireForm) -> Any:
        is_body, model = isinstance(said, dict), self._models[source]
        if target is not WireForm.OPENAI_CHAT:
            model = model.replace("/responses/", "/")
        if target is WireForm.ANTHROPIC:  # DeepSeek answers in that form, too
            model = model.replace("deepseek/", "hosted_vllm/")
        frame = unnamed_frame if source is WireForm.OPENAI_CHAT else named_frame
        self._answer = dump_json(said) if is_body else b"".join(map(frame, said)) + b"data: [DONE]\n\n"
        options = {**self._options, "model": model, "stream": not is_body}
        if target is WireForm.OPENAI_RESPONSES:
            answer = self._library.responses(input="Hi", **options)
        elif target is WireForm.OPENAI_CHAT:
            answer = self._library.completion(messages=[{"role": "user", "content": "Hi"}], **options)
        else:
            return asyncio.run(self._message(is_body, options))
        return self._plain(answer) if is_body else [one for piece in answer for one in self._pieces(piece)]

    async def _message(self, is_body: bool, options: dict[str, Any]) -> Any:
        messages = [{"role": "user", "content": "Hi"}]
        answer = await self._library.anthropic.messages.acreate(messages=messages, max_tokens=9, **options)
        if is_body:
            return self._plain(answer)
        return [one async for piece in answer for one in self._pieces(piece)]

    @staticmethod
    def _plain(value: Any) -> Any:
        return value.model_dump(mode="json") if hasattr(value, "model_dump") else value

    def _pieces(self, piece: Any) -> list[Event]:
        return _events_in(piece) if isinstance(piece, bytes) else [self._plain(piece)]


def _events_in(data: bytes) -> list[Event]:
    """Return the events of a stream."""
    lines = (line.removeprefix(b"data:").strip() for line in data.splitlines() if line.startswith(b"data:"))
    return [load_json(line) for line in lines if line.startswith(b"{")]


def _body_of(events: list[Event]) -> Event:
    """Return the body that *events* of a large format add up to, as its API's documentation says."""
    if events[0].get("type") == "response.created":
        return next(event["response"] for event in reversed(events) if "response" in event)
    return _message_of(events) if events[0].get("type") == "message_start" else _completion_of(events)


def _message_of(events: list[Event]) -> Event:
    message: Event = load_json(dump_json(events[0]["message"]))
    inputs: defaultdict[int, str] = defaultdict(str)
    for event in events:
        delta = event.get("delta", {})
        if event["type"] == "content_block_start":
            message["content"].append(load_json(dump_json(event["content_block"])))
        elif event["type"] == "message_delta":
            message |= delta
            message["usage"] |= event.get("usage", {})
        elif delta.get("type") == "input_json_delta":
            inputs[event["index"]] += delta["partial_json"]
        elif delta.get("type") == "citations_delta":
            block = message["content"][event["index"]]
            block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
        elif delta:
            _add(message["content"][event["index"]], {**delta, "type": None})
    for index, text in inputs.items():
        message["content"][index]["input"] = load_json((text or "{}").encode())
    return message


def _completion_of(events: list[Event]) -> Event:
    completion: Event = {"choices": []}
    choices: dict[int, Event] = {}
    for event in events:
        completion |= {
            name: value for name, value in event.items() if name != "choices" and value is not None
        }
        for choice in event.get("choices") or ():
            message = choices.setdefault(choice["index"], {"index": choice["index"], "message": {}})
            message |= {
                name: value for name, value in choice.items() if name != "delta" and value is not None
            }
            _add(message["message"], choice.get("delta") or {})
    return {**completion, "choices": [choices[index] for index in sorted(choices)]}


def _add(message: Event, delta: Event) -> None:
    for name, value in delta.items():
        old = message.get(name)
        if isinstance(value, str) and isinstance(old, str) and name not in ("role", "id", "type", "name"):
            message[name] = old + value
        elif isinstance(value, list) and value and isinstance(value[0], dict) and "index" in value[0]:
            parts = message.setdefault(name, [])
            for part in value:
                while len(parts) <= part["index"]:
                    parts.append({})
                _add(parts[part["index"]], part)
        elif isinstance(value, dict) and isinstance(old, dict):
            _add(old, value)
        elif value is not None:
            message[name] = value


def beside(folder: Path) -> Iterator[str]:
    """A row for each pair of formats: the share of the leaves that come back, as the mean of the answers below *folder*.

    Leaves of zero and null do not count. Nothing comes back of an answer that raises. What is no whole answer is left out.
    """
    answers: defaultdict[tuple[str, WireForm], list[Any]] = defaultdict(list)
    for file in sorted(folder.rglob("*.*")):
        with suppress(ValueError, LookupError, TypeError, StopIteration):
            if file.suffix == ".sse":
                events = _events_in(file.read_bytes())
                _body_of(events)  # one that was cut in a call's arguments adds up to none
                form = _FORM_BY_EVENT.get(str(events[0].get("type", events[0].get("object"))))
                answers["stream", form or WireForm.GEMINI].append(events)
            elif file.suffix == ".json":
                body = load_json(file.read_bytes())
                answers["body", form_of_body(body) or WireForm.GEMINI].append(body)
    libraries = dict(others())
    yield "| from, to and back | answers | " + " | ".join(libraries) + " |"
    yield "|---" * (len(libraries) + 2) + "|"
    for kind in ("body", "stream"):
        for source, target in permutations(LARGE, 2):
            said = answers[kind, source]
            shares = [sum(_share(one, source, target, do) for one in said) for do in libraries.values()]
            cells = " | ".join(f"{share / len(said):.1%}" for share in shares)
            yield f"| {source.label} → {target.label}, {kind} | {len(said)} | {cells} |"


def _share(answer: Any, source: WireForm, target: WireForm, do: Convert) -> float:
    body = answer if isinstance(answer, dict) else _body_of(answer)
    said = {path: leaf for path, leaf in leaves(body) if leaf[1] not in (None, 0, [], {}) or leaf[1] is False}
    with suppress(Exception):  # of any library
        back = do(do(load_json(dump_json(answer)), source, target), target, source)
        found = dict(leaves(back if isinstance(back, dict) else _body_of(back)))
        return sum(found.get(path) == leaf for path, leaf in said.items()) / len(said)
    return 0.0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--beside"]:
        print("\n".join(beside(Path(sys.argv[2]))))
        sys.exit()
    PAGE.write_text(current_page(), encoding="utf-8")
