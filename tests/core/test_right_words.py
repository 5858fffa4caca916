"""A name from another library, typed first and from habit, works or is answered with the right one."""

from __future__ import annotations

import asyncio
import copy
import importlib
import io
import json
import pickle
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import crosswalk
from crosswalk import (
    ChatMessage,
    ChatResponse,
    ConfigurationError,
    CrosswalkError,
    DetectionError,
    FilePart,
    ImagePart,
    ResponseDelta,
    ServerError,
    StreamEvent,
    StructuredParser,
    TextPart,
    UnknownProviderError,
    anormalize_stream,
    normalize,
    normalize_stream,
)
from crosswalk.agent import (
    AgentResponse,
    ChatAgent,
    ChatConfig,
    ChatSession,
    DirectoryStore,
    SQLiteStore,
    SyncAgent,
)
from crosswalk.cli import main
from crosswalk.cli.parser import whole_parser
from crosswalk.convert import ConversionError
from crosswalk.service import (
    ChatRequest,
    Endpoint,
    JSONAnswer,
    LLMService,
    RetryPolicy,
    SyncLLMService,
    ToolDefinition,
)
from crosswalk.words import RIGHT_KEYWORDS, RIGHT_WORDS, right_word

BODY = (
    b'{"id":"c","object":"chat.completion","created":1764000000,"model":"gpt-4o","choices":[{"index":0,"message":'
    b'{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2,'
    b'"total_tokens":5}}'
)
PIECES = [
    b'data: {"id":"c","object":"chat.completion.chunk","created":1764000000,"model":"gpt-4o","choices":[{"index":0,'
    b'"delta":%b,"finish_reason":%b}]}\n\n' % (delta, finish)
    for delta, finish in (
        (b'{"content":"H"}', b"null"),
        (b'{"content":"\xc3\xa9"}', b"null"),
        (b"{}", b'"stop"'),
    )
] + [b"data: [DONE]\n\n"]
ANSWER = normalize(BODY)


class Streamed:
    """A response of httpx."""

    def iter_bytes(self) -> Iterator[bytes]:
        yield from PIECES

    def iter_lines(self) -> Iterator[str]:
        for piece in PIECES:
            yield from piece.decode().splitlines()

    async def aiter_bytes(self) -> AsyncIterator[bytes]:
        for piece in PIECES:
            yield piece

    async def aiter_lines(self) -> AsyncIterator[str]:
        for line in self.iter_lines():
            yield line


class Requested:
    """A response of requests, and one of aiohttp."""

    def iter_content(self, chunk_size: int | None) -> Iterator[bytes]:
        assert chunk_size is None
        yield from PIECES

    def iter_lines(self) -> Iterator[bytes]:
        for piece in PIECES:
            yield from piece.splitlines()


class AioHTTP:
    """A response of aiohttp."""

    class content:
        @staticmethod
        async def iter_any() -> AsyncIterator[bytes]:
            for piece in PIECES:
                yield piece


def _text_file(folder: Path) -> Any:
    (folder / "stream.sse").write_bytes(b"".join(PIECES))
    return (folder / "stream.sse").open(encoding="utf-8")


@pytest.mark.parametrize(
    "stream",
    [
        lambda _: Streamed(),
        lambda _: Streamed().iter_bytes(),
        lambda _: Streamed().iter_lines(),
        lambda _: Requested(),
        lambda _: Requested().iter_lines(),
        lambda _: io.BytesIO(b"".join(PIECES)),
        _text_file,
    ],
)
def test_a_stream_is_read_as_clients_and_files_give_it(stream: Callable[[Path], Any], tmp_path: Path) -> None:
    given = stream(tmp_path)
    assert "".join(delta.text for delta in normalize_stream(given)) == "Hé"
    if isinstance(given, io.IOBase):
        given.close()


@pytest.mark.parametrize(
    "stream", [Streamed, lambda: Streamed().aiter_bytes(), lambda: Streamed().aiter_lines(), AioHTTP]
)
def test_an_asynchronous_stream_is_read_as_clients_give_it(stream: Callable[[], Any]) -> None:
    async def read() -> str:
        return "".join([delta.text async for delta in anormalize_stream(stream())])

    assert asyncio.run(read()) == "Hé"


def test_pieces_of_text_are_refused_because_their_lines_are_not_known() -> None:
    pieces: Any = ["data: {", "}\n\n"]
    with pytest.raises(TypeError, match="pass the response itself"):
        list(normalize_stream(pieces, "openai"))


def test_a_body_is_read_from_a_path_and_from_an_open_file(tmp_path: Path) -> None:
    file = tmp_path / "answer.json"
    file.write_bytes(BODY)
    with file.open("rb") as data, file.open(encoding="utf-8") as text:
        assert normalize(file).text == normalize(data).text == normalize(text).text == "Hi"
    with pytest.raises(FileNotFoundError):
        normalize(tmp_path / "none.json")


@pytest.mark.parametrize("name", ["answer.json", "logs/today.jsonl", "C:\\logs\\a.sse"])
def test_a_text_that_looks_like_a_file_name_is_said_to_be_one(name: str) -> None:
    with pytest.raises(DetectionError, match=r"looks like the name of a file: pass Path\("):
        normalize(name)
    with pytest.raises(DetectionError, match="no provider recognizes"):
        normalize("This is no file.\n")


@pytest.mark.parametrize(
    "text", ["https://api.openai.com/v1/x.json", "http://127.0.0.1:8000/v1", "https://a.example"]
)
def test_a_text_that_is_an_address_is_said_to_be_one(text: str) -> None:
    with pytest.raises(DetectionError, match="is an address: pass the bytes that its server answers"):
        normalize(text)


def test_the_package_has_what_people_import_first_and_its_conversion_can_be_called() -> None:
    from crosswalk import (
        Agent,
        ChatRequest,
        Endpoint,
        LLMService,
        StructuredParser,
        SyncAgent,
        SyncLLMService,
        convert,
        tool,
    )
    from crosswalk.convert import convert as function

    imported: set[object] = {
        Agent,
        ChatRequest,
        Endpoint,
        LLMService,
        StructuredParser,
        SyncAgent,
        SyncLLMService,
    }
    assert {*imported, tool} == {
        getattr(importlib.import_module(f"crosswalk.{package}"), name)
        for package, name in (
            ("agent", "Agent"),
            ("agent", "SyncAgent"),
            ("agent", "tool"),
            ("service", "ChatRequest"),
            ("service", "Endpoint"),
            ("service", "LLMService"),
            ("service", "SyncLLMService"),
            ("structured", "StructuredParser"),
        )
    }
    assert convert(BODY, to="anthropic").value == function(ANSWER, to="anthropic").value
    assert crosswalk.convert(ANSWER, "gemini").value == function(ANSWER, "gemini").value


def test_deltas_events_and_runs_have_the_words_of_other_libraries() -> None:
    assert ResponseDelta(content_delta="Hi").text == "Hi"
    assert ResponseDelta(reasoning_delta="Hm").text == ""
    assert StreamEvent("response.output_text.delta", ResponseDelta(content_delta="Hi")).text == "Hi"
    assert StreamEvent("response.created").text == ""
    assert vars(SyncAgent)["run_sync"] is vars(SyncAgent)["answer"]
    assert [message.role for message in ChatRequest([("system", "Be brief."), ("user", "Hi")]).messages] == [
        "system",
        "user",
    ]
    with pytest.raises(crosswalk.ResponseValidationError, match="role"):
        ChatRequest([("somebody", "Hi")])


OWNERS = {
    name: getattr(importlib.import_module(module), name)
    for module, names in (
        (
            "crosswalk",
            "AudioPart ChatMessage ChatResponse DeltaStream FilePart ImagePart ResponseDelta ResponseMetadata StreamEvent ToolCall UsageInfo",
        ),
        ("crosswalk.service", "EventStream JSONAnswer LLMService SyncEventStream SyncLLMService"),
        (
            "crosswalk.agent",
            "Agent AgentResponse AgentRun AsyncChatAgent ChatAgent ChatSession SyncAgent SyncAgentRun",
        ),
        ("crosswalk.structured", "ParseResult StructuredParser"),
        ("crosswalk.convert", "Conversion"),
        ("crosswalk.types", "VideoPart"),
    )
    for name in names.split()
}
SERVICE: Any = SyncLLMService("ollama:m")
AGENT: Any = SyncAgent("ollama:m")
CALLS: dict[str, Callable[..., Any]] = {
    "complete": lambda **given: SERVICE.complete("Hi", **given),
    "stream": lambda **given: SERVICE.stream("Hi", **given),
    "complete_json": lambda **given: SERVICE.complete_json("Hi", int, **given),
    "stream_json": lambda **given: SERVICE.stream_json("Hi", int, **given),
    "SyncLLMService": lambda **given: SyncLLMService("ollama:m", **given),
    "LLMService": lambda **given: LLMService("ollama:m", **given),
    "Endpoint": lambda **given: Endpoint("ollama", **given),
    "ChatRequest": lambda **given: ChatRequest("Hi", **given),
    "ChatConfig": ChatConfig,
    "SyncAgent": lambda **given: SyncAgent("ollama:m", **given),
    "answer": lambda **given: AGENT.answer("Hi", **given),
    "ChatSession": ChatSession,
    "RetryPolicy": RetryPolicy,
    "ToolDefinition": lambda **given: ToolDefinition("t", **given),
    "ImagePart": ImagePart,
    "SQLiteStore": SQLiteStore,
    "DirectoryStore": DirectoryStore,
    "TextPart": TextPart,
    "StructuredParser": StructuredParser,
    "convert": crosswalk.convert,
}


def _told(call: str, name: str) -> str:
    """What *call* says after the keyword *name*, which it does not have."""
    with pytest.raises(ConfigurationError, match="there is no option") as caught:
        CALLS[call](**{name: True})
    return str(caught.value).partition(f"{name!r}")[2]


@pytest.mark.parametrize(
    ("call", "name", "told"),
    [
        ("complete", "stream", ": call .stream(...)"),
        ("stream_json", "stream", ": call .stream_json(...)"),
        ("SyncAgent", "stream", ": call .stream(...)"),
        (
            "complete_json",
            "max_retries",
            ": retries= asks the model again, and retry= sends a failed request again",
        ),
        ("complete", "max_retries", ", did you mean 'retry'?"),
        ("RetryPolicy", "num_retries", ", did you mean 'attempts'?"),
        ("complete", "instructions", ': put a system message first, ("system", TEXT)'),
        ("ChatRequest", "system", ': put a system message first, ("system", TEXT)'),
        ("complete_json", "system_prompt", ': put a system message first, ("system", TEXT)'),
        ("SyncAgent", "system", ", did you mean 'instructions'?"),
        ("ChatConfig", "instructions", ""),
        ("complete", "response_model", ": call .complete_json(messages, Type)"),
        ("stream", "output_type", ": call .stream_json(messages, Type)"),
        ("complete_json", "response_model", ", did you mean 'answer'?"),
        (
            "ChatRequest",
            "response_model",
            ": a service answers with a type in .complete_json(messages, Type)",
        ),
        ("ChatRequest", "schema", ", did you mean 'response_format'?"),
        ("ToolDefinition", "schema", ", did you mean 'parameters'?"),
        ("complete", "extra_body", ': give provider_options={"openai": {...}}, by the id of the provider'),
        ("SyncAgent", "deps_type", ": it needs none: give deps= to .answer(...)"),
        ("answer", "deps_type", ""),
        ("complete", "api_key", ": give it to the service's Endpoint(..., api_key=...)"),
        ("SyncLLMService", "token", ", did you mean 'api_key'?"),
        ("Endpoint", "token", ", did you mean 'api_key'?"),
        ("complete", "base_url", ": give it to the service's Endpoint(..., base_url=...)"),
        ("Endpoint", "timeout", ": give it to the service, as in SyncLLMService(endpoint, timeout=...)"),
        ("Endpoint", "temperature", ": give it to each call, as in .complete(request, temperature=...)"),
        ("SyncLLMService", "max_tokens", ": give it to each call, as in .complete(request, max_tokens=...)"),
        ("SyncAgent", "temperature", "; give it in ChatConfig(..., temperature=...)"),
        ("LLMService", "fallbacks", ": give each endpoint by itself, first the one to ask first"),
        ("SyncAgent", "timeout", ""),
        ("ImagePart", "path", ": give a Path or a file's name first, without a keyword"),
        ("TextPart", "content", ", did you mean 'text'?"),
        ("StructuredParser", "model", ", did you mean 'schema'?"),
        ("convert", "target", ", did you mean 'to'?"),
        ("convert", "provider", ", did you mean 'to'?"),
        ("SyncLLMService", "headers", "; give it in Endpoint(..., headers=...)"),
    ],
)
def test_a_keyword_of_another_library_is_answered_with_what_does_the_same(
    call: str, name: str, told: str
) -> None:
    assert _told(call, name) == told


@pytest.mark.parametrize("name", RIGHT_KEYWORDS)
def test_each_row_of_the_keywords_is_told_where_it_holds(name: str) -> None:
    expected = {
        f", did you mean {right!r}?" if isinstance(right, str) else f": {right[1]}"
        for right in RIGHT_KEYWORDS[name]
        if right != name
    }
    told = set()
    for make in CALLS.values():
        with pytest.raises(ConfigurationError) as caught:
            make(**{name: None, "no_such_name": None})  # the second, where the first is its own
        if caught.value.key == name:
            told.add(str(caught.value).partition(f"{name!r}")[2])
    assert told >= expected
    assert not [one for one in told - expected if "did you mean" in one]


LINE, PROVIDER, FORM = "a command line", "a provider", "a form"
ROWS = [
    (owner, name)
    for owner, words in RIGHT_WORDS.items()
    for name in words
    if owner not in (LINE, PROVIDER, FORM)
]


def _has(owner: str, name: str) -> bool:
    """Whether the class or package *owner* has *name*, as an attribute of its own or of its instances."""
    if owner not in OWNERS:
        return name in importlib.import_module(owner).__all__
    kind = OWNERS[owner]
    return hasattr(kind, name) or name in getattr(kind, "__annotations__", {})


@pytest.mark.untraced
@pytest.mark.parametrize(("owner", "name"), ROWS)
def test_no_row_has_a_name_that_exists_and_each_of_its_words_does(owner: str, name: str) -> None:
    assert not _has(owner, name)
    words = right_word(owner, name)
    for word in re.findall(r"(?<![\w)])\.(\w+)", words):
        target = {".message.role": "role"}.get(word, word)
        path = re.search(rf"((?:\.\w+)*)\.{word}", words)
        if path is not None and path[1]:  # ``.usage.cost``: the first step alone is an attribute of the owner
            continue
        assert _has(owner, target), word
    for package, word in re.findall(
        r"\b(crosswalk(?:\.(?:agent|service|structured|plugins|testing|convert))?)\.([A-Za-z]\w*)", words
    ):
        assert hasattr(importlib.import_module(package), word), (package, word)


@pytest.mark.parametrize(
    ("value", "name", "word"),
    [
        (ANSWER, "choices", r"use \.text, or \.alternatives"),
        (ANSWER, "content", r"use \.text"),
        (ANSWER, "model_dump", r"use \.to_dict\(\)"),
        (ANSWER.usage, "prompt", r"use \.prompt_tokens"),
        (ANSWER.message, "parts", r"use \.content"),
        (ResponseDelta(content_delta="a"), "content", r"use \.text"),
        (SyncLLMService("ollama:m"), "parse", r"use \.complete_json\("),
        (ChatAgent("ollama:m"), "run", r"use \.chat\("),
        (SyncAgent("ollama:m"), "chat", r"use \.answer\("),
        (SyncAgent("ollama:m"), "tool", r"use tools=\[function, \.\.\.\] when"),
        (SyncLLMService("ollama:m"), "responses", r"use \.complete\("),
        (SyncLLMService("ollama:m"), "aclose", r"use \.close\("),
        (SyncLLMService("ollama:m").stream("Hi"), "get_final_message", r"use \.response$"),
        (SyncLLMService("ollama:m").stream("Hi"), "text_stream", r"use \.text$"),
        (JSONAnswer(1, ANSWER, StructuredParser(int).parse("1")), "data", r"use \.value$"),
        (StructuredParser(int), "invoke", r"use \.parse\("),
    ],
)
def test_an_attribute_that_is_not_there_is_answered_with_the_right_one(
    value: object, name: str, word: str
) -> None:
    with pytest.raises(AttributeError, match=word):
        getattr(value, name)
    assert not hasattr(value, name)


@pytest.mark.parametrize(
    ("kind", "name", "word"),
    [
        (ChatMessage, "human", r"use \.user\(\.\.\.\)$"),
        (ChatMessage, "ai", r"use \.assistant\(\.\.\.\)$"),
        (ImagePart, "from_file", "use the class itself, with a Path"),
        (FilePart, "from_url", "use the class itself, with the address"),
        (SyncLLMService, "from_env", "use the class itself, which reads the environment"),
        (LLMService, "generate", r"use \.complete\("),
        (ChatMessage, "nobody", "^type object 'ChatMessage' has no attribute 'nobody'$"),
        (ChatMessage, "__nobody__", "^type object 'ChatMessage' has no attribute '__nobody__'$"),
    ],
)
def test_a_class_names_the_right_one_of_its_own_attributes(kind: type, name: str, word: str) -> None:
    with pytest.raises(AttributeError, match=word):
        getattr(kind, name)
    assert not hasattr(kind, name)


@pytest.mark.parametrize(
    ("ask", "word"),
    [
        (lambda: ANSWER["choices"], r": use \.text, or \.alternatives for what comes after the first$"),  # type: ignore[index]
        (lambda: ANSWER["text"], r": use \.text$"),  # type: ignore[index]
        (lambda: ANSWER["nobody"], "'ChatResponse' object is not subscriptable$"),  # type: ignore[index]
        (lambda: ANSWER["_nobody"], "'ChatResponse' object is not subscriptable$"),  # type: ignore[index]
        (lambda: ANSWER.usage["prompt_tokens"], r": use \.prompt_tokens$"),  # type: ignore[index]
        (lambda: dict(ANSWER), r": use \.to_dict\(\)$"),  # type: ignore[call-overload]
        (lambda: [*ANSWER], r": use \.to_dict\(\)$"),  # type: ignore[misc]
        (lambda: ANSWER.message["role"], r": use \.role$"),  # type: ignore[index]
        (lambda: normalize_stream(PIECES)[0], "not subscriptable"),  # type: ignore[index]
    ],
)
def test_a_key_is_answered_with_the_attribute(ask: Callable[[], object], word: str) -> None:
    with pytest.raises(TypeError, match=word):
        ask()


def test_an_answer_is_no_list() -> None:
    assert not isinstance(ANSWER, Iterable)
    assert not hasattr(ANSWER, "keys")


@pytest.mark.parametrize("name", RIGHT_WORDS[FORM])
def test_a_row_of_the_forms_gives_one_that_exists(name: str) -> None:
    with pytest.raises(ConversionError, match=f"no form {name!r}: use ") as caught:
        crosswalk.convert(BODY, name)
    word = re.findall(r"use ([\w-]+);", str(caught.value))[0]
    assert crosswalk.convert(BODY, word, losses="report").value


def test_an_unknown_name_gets_pythons_own_error_with_its_suggestions() -> None:
    with pytest.raises(AttributeError, match="^'ChatResponse' object has no attribute 'mesage'$") as caught:
        ANSWER.mesage  # type: ignore[attr-defined]  # noqa: B018
    assert (caught.value.name, caught.value.obj) == ("mesage", ANSWER)


def test_a_failure_inside_a_property_stays_what_it_was() -> None:
    class Odd(AgentResponse[str]):
        @property
        def output(self) -> str:
            raise AttributeError("its own")

    with pytest.raises(AttributeError, match="its own"):
        object.__new__(Odd).output  # noqa: B018


def test_a_package_names_the_right_word_for_an_attribute_and_an_import() -> None:
    with pytest.raises(AttributeError, match=r"use crosswalk\.service\.SyncLLMService\(\.\.\.\)\.complete"):
        crosswalk.completion  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(ImportError, match=r"'Client' from 'crosswalk\.service': use LLMService"):
        from crosswalk.service import Client  # type: ignore[attr-defined]  # noqa: F401
    with pytest.raises(ImportError, match=r"cannot import name 'nobody'"):
        from crosswalk import nobody  # type: ignore[attr-defined]  # noqa: F401
    with pytest.raises(ImportError, match=r"cannot import name 'Nobody' from 'crosswalk' \("):
        from crosswalk import Nobody  # type: ignore[attr-defined]  # noqa: F401
    assert not hasattr(crosswalk, "completion")


@pytest.mark.parametrize(
    ("package", "name", "word"),
    [
        ("crosswalk", "ReplayServer", "crosswalk.testing.ReplayServer"),
        ("crosswalk", "ToolContext", "crosswalk.agent.ToolContext"),
        ("crosswalk.agent", "ResponseFormat", "crosswalk.service.ResponseFormat"),
        ("crosswalk.service", "ChatResponse", "crosswalk.ChatResponse"),
        ("crosswalk", "RunContext", "crosswalk.agent.ToolContext"),
        ("crosswalk", "completion_cost", "crosswalk.cost_of"),
        ("crosswalk.structured", "PydanticOutputParser", "StructuredParser"),
        ("crosswalk.testing", "MockServer", "ReplayServer"),
    ],
)
def test_a_name_of_another_package_is_answered_with_its_place(package: str, name: str, word: str) -> None:
    with pytest.raises(
        ImportError, match=f"cannot import name '{name}' from '{package}': use {re.escape(word)}$"
    ):
        exec(f"from {package} import {name}")
    home, _, last = word.rpartition(".")
    assert hasattr(importlib.import_module(home or package), last)


def test_a_row_says_a_call_where_there_is_one() -> None:
    rows = [(owner, word) for owner in OWNERS for word in RIGHT_WORDS[owner].values()]
    steps = [
        (owner, name, bool(called))
        for owner, word in rows
        if not word.endswith("of crosswalk.service.LLMService")
        for name, called in re.findall(r"(?<![\w).])\.(\w+)(\()?", word)
    ]
    assert len(steps) > 100
    assert [step for step in steps if callable(getattr(OWNERS[step[0]], step[1], None)) != step[2]] == []


def test_copies_pickles_and_displays_are_as_before() -> None:
    assert copy.deepcopy(ANSWER).same_content(ANSWER)
    assert pickle.loads(pickle.dumps(ANSWER)) == ANSWER
    out = io.StringIO()
    Console(file=out, width=200).print(ANSWER)
    assert "gpt-4o" in out.getvalue()
    assert json.dumps(ANSWER.to_dict())
    assert isinstance(ANSWER, ChatResponse)


@pytest.mark.untraced
@pytest.mark.parametrize("name", RIGHT_WORDS[LINE])
def test_a_row_of_the_command_line_gives_a_command_or_an_option_that_exists(name: str) -> None:
    commands = whole_parser().commands
    word = right_word(LINE, name)
    known = {
        option
        for command in commands.values()
        for action in command.declared
        for option in action.option_strings
    }
    assert name not in commands.keys() | known
    for option in re.findall(r"--[\w-]+", word):
        assert option in known | {"--version"}
    for command in re.findall(r"crosswalk ([a-z-]+)", word):
        assert command in commands or command.startswith("--")


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("ask --api-key k Hi", "--api-key: use the environment, such as OPENAI_API_KEY"),
        ("ask --url http://x Hi", "--url: use --base-url URL"),
        ("report --out x log.jsonl", "--out"),
        ("proxy", "'proxy'"),
        ("list-models", "use crosswalk models"),
        ("ask Why is the sky blue", "put it in quotes"),
        ("ask Hello there", "'Hello' is no provider; put the prompt in quotes"),
        ("ask ollama:m Hi --provider vllm", "given twice"),
        ("ask -p x Hi", "-p: use --provider NAME, and the prompt itself, in quotes"),
        ("ask -o x Hi", "-o: use > FILE"),
        ("ask -t 1 Hi", "-t: use --temperature X"),
        ("ask -x Hi", "unrecognized arguments: -x"),
        ("ask --tools x Hi", "--tools: use crosswalk.SyncAgent in Python"),
        ("ask --schema x Hi", "--schema: it is an option of crosswalk parse"),
        ("models ollama --seed 1", "--seed: it is an option of crosswalk ask, chat, record"),
        ("replay log.jsonl", "use crosswalk.testing.ReplayServer in Python, or crosswalk demo"),
        ("ask google:pro Hi", "'google' is no provider: use gemini"),
    ],
)
def test_a_wrong_command_line_ends_in_one_line_with_the_next_step(
    line: str, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(line.split()) == 2
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert word in last


def _errors(kind: type[CrosswalkError]) -> Iterator[type[CrosswalkError]]:
    for one in kind.__subclasses__():
        yield one
        yield from _errors(one)


def test_an_error_shows_the_address_from_which_it_is_imported() -> None:
    faces = ("crosswalk", "crosswalk.service", "crosswalk.agent", "crosswalk.structured", "crosswalk.convert")
    for face in map(importlib.import_module, faces):
        for name in face.__all__:
            getattr(face, name)
    shown = [kind for kind in (CrosswalkError, *_errors(CrosswalkError)) if kind.__module__ in faces]
    assert len(shown) > 40
    for kind in shown:
        assert getattr(importlib.import_module(kind.__module__), kind.__name__) is kind
        assert pickle.loads(pickle.dumps(kind)) is kind
    assert f"{ServerError.__module__}.{ServerError.__qualname__}" == "crosswalk.ServerError"


@pytest.mark.parametrize("name", RIGHT_WORDS[PROVIDER])
def test_a_row_of_the_providers_gives_an_installed_one(name: str) -> None:
    known = crosswalk.registry.names()
    word = right_word(PROVIDER, name).removeprefix(": use ").split()[0]
    assert name not in known
    assert word in known
    with pytest.raises(UnknownProviderError, match=f"unknown provider '{name}': use {word}") as raised:
        SyncLLMService(name)
    assert "PROVIDER" not in str(raised.value)
