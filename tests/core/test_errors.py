"""The error tree, what its messages may show, and the helpers that keep them clean."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from crosswalk import errors
from crosswalk.errors import (
    CanonicalJSONError,
    ConfigurationError,
    CrosswalkError,
    DetectionError,
    ErrorInfo,
    ErrorKind,
    InvalidJSONError,
    LimitError,
    MappingError,
    PluginError,
    ProviderError,
    ResponseValidationError,
    ToolCallArgumentsError,
    UnknownEventError,
    UnknownFinishReasonError,
    UnknownProviderError,
    WireTypeError,
    json_type_name,
)
from crosswalk.text import clean_message, counted
from crosswalk.types import (
    ChatMessage,
    ChatResponse,
    FrozenObject,
    ResponseDelta,
    Segment,
    TextPart,
    ToolCall,
    ToolCallDelta,
    UsageInfo,
)

PARTIAL = ChatResponse.error("it broke", model="m")
ALL_ERRORS = [
    value
    for name in errors.__all__
    if isinstance(value := getattr(errors, name), type) and issubclass(value, Exception)
]


def make(kind: type[CrosswalkError]) -> CrosswalkError:
    """An error of *kind* with every attribute set."""
    mapping: dict[str, Any] = {"provider": "ollama", "place": "event 3", "partial": PARTIAL}
    if kind is UnknownFinishReasonError:
        return UnknownFinishReasonError("eos", **mapping)
    if kind is WireTypeError:
        return WireTypeError("choices[0]", expected="object", got=[], provider="vllm", partial=PARTIAL)
    own: dict[type[CrosswalkError], dict[str, Any]] = {
        ResponseValidationError: {"code": "ACODE-RSP-001"},
        ToolCallArgumentsError: {"name": "f", "call_id": "c"},
        CanonicalJSONError: {"problems": ["a @ $", "b @ $.c"]},
        ConfigurationError: {"key": "model.timeout_seconds", "source": "config.yml"},
        PluginError: {"plugin": "p", "distribution": "d"},
        UnknownProviderError: {"plugin": "p", "known": ["a", "b"]},
        DetectionError: {"candidates": ["a", "b"]},
        InvalidJSONError: {"offset": 7, **mapping},
        UnknownEventError: {"event_type": "odd", **mapping},
    }
    if kind in own:
        return kind("something", **own[kind])
    if issubclass(kind, ProviderError):
        return kind(
            "something", info=ErrorInfo(kind.kind, "said", True, 429, "c", {"a": [1]}), response=PARTIAL
        )
    if issubclass(kind, LimitError):
        return kind("something", limit=10, **mapping)
    if issubclass(kind, MappingError):
        return kind("something", **mapping)
    return kind("something")


# ------------------------------------------------------------------------------------------------ the tree


def test_every_error_is_one_of_ours() -> None:
    """One except clause catches everything that Crosswalk raises on purpose."""
    assert len(ALL_ERRORS) == len(errors.__all__) - 2  # ErrorInfo and ErrorKind are no errors
    assert all(issubclass(error, CrosswalkError) for error in ALL_ERRORS)


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (ResponseValidationError, ValueError),
        (ToolCallArgumentsError, ValueError),
        (CanonicalJSONError, ValueError),
        (ConfigurationError, ValueError),
        (UnknownProviderError, LookupError),
        (DetectionError, LookupError),
        (WireTypeError, TypeError),
    ],
)
def test_an_error_is_the_builtin_that_a_caller_expects(error: type, builtin: type) -> None:
    """Code that does not know our tree catches the builtin."""
    assert issubclass(error, builtin)


@pytest.mark.parametrize("kind", ALL_ERRORS)
@pytest.mark.parametrize("copied", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy, copy.deepcopy])
def test_errors_survive_pickling_with_all_attributes(kind: type[CrosswalkError], copied: Any) -> None:
    """A worker process hands an error back whole: type, message, attributes, notes."""
    error = make(kind)
    error.add_note("in batch 7")
    again = copied(error)
    assert type(again) is kind
    assert (str(again), again.args, vars(again)) == (str(error), error.args, vars(error))


def test_a_code_leads_the_message() -> None:
    """The code of seed 000's table is first. A rule outside the table has none."""
    assert str(ResponseValidationError("no", code="ACODE-RSP-001")) == "ACODE-RSP-001: no"
    bare = ResponseValidationError("no")
    assert (str(bare), bare.code) == ("no", None)


# --------------------------------------------------------------------------------------------------- places


@pytest.mark.parametrize(
    ("place", "located"),
    [
        (None, "event 3"),
        ("choices[0].delta", "event 3, choices[0].delta"),
        ("event 2", "event 2"),
        ("after event 2", "after event 2"),
        ("at the start", "at the start"),
    ],
)
def test_locate_adds_what_the_raiser_did_not_know(place: str | None, located: str) -> None:
    """The event goes before a place inside of it. A place that names its event stays."""
    error = MappingError("no such thing", place=place)
    assert error.locate(provider="vllm", event="event 3") is error
    assert (error.provider, error.place) == ("vllm", located)
    assert str(error) == f"vllm, {located}: no such thing"


def test_locate_keeps_the_provider_that_is_known() -> None:
    """The raiser knows best."""
    error = MappingError("no", provider="ollama").locate(provider="vllm", event="event 1")
    assert error.provider == "ollama"


@pytest.mark.parametrize(
    ("given_", "shown"),
    [
        ({}, "no"),
        ({"provider": "vllm"}, "vllm: no"),
        ({"place": "event 1"}, "event 1: no"),
    ],
)
def test_a_message_names_provider_and_place_if_known(given_: dict[str, str], shown: str) -> None:
    """A message has no empty brackets for what is not known."""
    assert str(MappingError("no", provider=given_.get("provider"), place=given_.get("place"))) == shown


def test_a_wire_type_error_says_what_was_expected_and_found() -> None:
    """Both in JSON's words. The value itself is not quoted."""
    error = WireTypeError("message.content", expected="string", got={"secret": "§§§"})
    assert (error.expected, error.got) == ("string", "object")
    assert str(error) == "message.content: expected string, got object"


def test_a_finish_word_is_kept_whole_and_shown_short() -> None:
    """The attribute has the word, the message no more than 60 characters of it."""
    error = UnknownFinishReasonError("x" * 100)
    assert error.reason == "x" * 100
    assert str(error) == f"unknown finish reason '{'x' * 59}…'"
    assert "'eos'" in str(UnknownFinishReasonError("eos"))


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (None, "null"),
        (True, "boolean"),
        (1, "number"),
        (1.5, "number"),
        ("", "string"),
        ([], "array"),
        ((), "array"),
        ({}, "object"),
        (object(), "object"),
    ],
)
def test_types_have_the_words_of_json(value: object, word: str) -> None:
    """A message for somebody who reads JSON says ``array``, not ``list``."""
    assert json_type_name(value) == word


# -------------------------------------------------------------------------------------------- provider errors


@pytest.mark.parametrize("kind", ErrorKind)
def test_every_kind_has_its_class(kind: ErrorKind) -> None:
    """Design, section 5: one subclass for each kind of the taxonomy. ``unknown`` is the base class."""
    error = ProviderError.of_kind(kind)
    assert error.kind is kind
    assert (error is ProviderError) == (kind is ErrorKind.UNKNOWN)


def test_a_provider_error_carries_the_correlation_id() -> None:
    """NFR-037: the response's id is the correlation id. Without a response there is none."""
    assert ProviderError("x", response=PARTIAL).correlation_id == PARTIAL.id
    assert ProviderError("x").correlation_id is None


def test_error_info_takes_the_word_of_a_kind() -> None:
    """A plugin may give the kind as a word. Other words are refused."""
    assert ErrorInfo("timeout", "x").kind is ErrorKind.TIMEOUT
    with pytest.raises(ResponseValidationError, match="unknown kind of error: 'odd'"):
        ErrorInfo("odd", "x")
    with pytest.raises(ResponseValidationError, match="unknown kind of error: array"):
        ErrorInfo([], "x")


def test_error_info_is_a_value() -> None:
    """Equal by content, and hashable although ``raw`` is plain JSON."""
    info = ErrorInfo(ErrorKind.SERVER, "x", raw={"a": [1]})
    assert info == ErrorInfo(ErrorKind.SERVER, "x", raw={"a": [1]})
    assert info != ErrorInfo(ErrorKind.SERVER, "x", raw={"a": [2]})
    assert len({info, ErrorInfo(ErrorKind.SERVER, "x", raw={"a": [1]})}) == 1


def test_the_message_of_error_info_is_clean() -> None:
    """NFR-023: what the provider says is cleaned before anybody sees it."""
    info = ErrorInfo(ErrorKind.SERVER, "no /etc/ssl/key.pem for sk-abcdefgh12345678\x1b[31m")
    assert info.message == "no <path> for <secret> [31m"


# ---------------------------------------------------------------------------------------------- clean_message


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("Authorization: Bearer abc.def-1", "Authorization: Bearer <secret>"),
        ('{"authorization": "basic dXNlcjpwdw=="}', '{"authorization": "basic <secret>"}'),
        ("api_key=abc123", "api_key=<secret>"),
        ("OPENAI_API_KEY=abc123 is wrong", "OPENAI_API_KEY=<secret> is wrong"),
        ("X-Api-Key: abc123", "X-Api-Key: <secret>"),
        ('{"api key": "abc123"}', '{"api key": "<secret>"}'),
        ("Incorrect API key provided: abc123", "Incorrect API key provided: <secret>"),
        ("access_token=abc123&x=1", "access_token=<secret>"),
        ("client_secret: 'abc123'", "client_secret: '<secret>'"),
        ("password=abc123; retry", "password=<secret>; retry"),
        (
            "the secret key: abc123, the passphrase: abc123",
            "the secret key: <secret>, the passphrase: <secret>",
        ),
        ("my stop token: Bearer abc123", "my stop token: Bearer <secret>"),
        ("key: sk-proj-abcdefgh1234", "key: <secret>"),
        ("key sk-proj-abcdefgh1234 is invalid", "key <secret> is invalid"),
        ("hf_abcdefghijkl", "<secret>"),
        ("gsk_abcdefghijkl", "<secret>"),
        ("AIza" + "b" * 35, "<secret>"),
        ("AKIAABCDEFGHIJKLMNOP", "<secret>"),
        ("eyJhbGciOi.eyJzdWIi.sflKxw", "<secret>"),
        ("cannot reach http://user:hunter2@host/v1", "cannot reach http://<secret>@host/v1"),
    ],
)
def test_secrets_are_masked(text: str, clean: str) -> None:
    """NFR-023: no credential comes through, in whichever of the usual forms."""
    assert clean_message(text) == clean


@pytest.mark.parametrize("text", ["partition key: abc", "eos_token=</s>", "max tokens: 5", "secretary: Jo"])
def test_what_is_called_like_a_secret_stays(text: str) -> None:
    assert clean_message(text) == text


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("open /root/.ollama/models/blobs/sha256-1: no such file", "open <path>: no such file"),
        ("see ~/models/x.gguf", "see <path>"),
        ("see ~/x", "see <path>"),
        (r"C:\Users\me\model.gguf is missing", "<path> is missing"),
        (r"\\server\share\x is missing", "<path> is missing"),
        ("from file:///etc/passwd here", "from <path> here"),
        ('File "/usr/lib/python3/site-packages/vllm/x.py", line 3', 'File "<path>", line 3'),
    ],
)
def test_paths_are_masked(text: str, clean: str) -> None:
    """NFR-023: no path of the server's file system comes through."""
    assert clean_message(text) == clean


@pytest.mark.parametrize(
    "text",
    [
        "model 'llama3.2:8b' not found, try pulling it first",
        "maximum context length is 8192 tokens. However, you requested 9000 tokens",
        "max_tokens: 4096 is too large",
        "see https://example.com/docs/errors for more",
        "and/or 1/2, a/b/c",
        "user@example.com",
        "Unicode stays: 模型 🦙 é",
    ],
)
def test_the_rest_of_a_message_stays(text: str) -> None:
    """Helpful text that is not secret is not touched."""
    assert clean_message(text) == text


@pytest.mark.parametrize("text", ["a\x1b[31mb", "a\r\nb", "a\x00b", "a\u202eb", "a\u2028b", "a\ud800b"])
def test_control_characters_become_spaces(text: str) -> None:
    """No terminal escape, line break, bidirectional override or lone surrogate comes through."""
    clean = clean_message(text)
    assert clean.isprintable()
    assert clean[0] == "a"
    assert clean[-1] == "b"


def test_a_long_message_is_cut() -> None:
    """At most *limit* characters, and one sees that it goes on."""
    assert clean_message("x" * 500) == "x" * 500
    assert clean_message("x" * 501) == "x" * 499 + "…"
    assert clean_message("abcdef", limit=4) == "abc…"
    assert clean_message(" " * 3000 + "x") == "…"


@given(st.text() | st.text("aA /\\.:=@~-_sk\x00\n\"'<", max_size=80))
def test_a_clean_message_is_clean(text: str) -> None:
    """Any text: printable, within the limit, and cleaning it again changes nothing."""
    clean = clean_message(text)
    assert clean.isprintable()
    assert len(clean) <= 500
    assert clean_message(clean) == clean


# ---------------------------------------------------------------------------------------- nothing is quoted


CONTENT = "§" * 50
ODD: Any = [CONTENT]
REFUSED: list[Callable[[], object]] = [
    lambda: ToolCall("c", "f", CONTENT).parsed(),
    lambda: ToolCall("c", "f", f'["{CONTENT}"]').parsed(),
    lambda: ToolCall("c", "f", f'{{"a": "{CONTENT}').parsed(),
    lambda: ToolCall("c", "f", ODD),
    lambda: ToolCallDelta(0, arguments_delta=ODD),
    lambda: ChatMessage.user([[CONTENT]]),  # type: ignore[list-item]
    lambda: ChatMessage("user", CONTENT, tool_calls=ODD),  # type: ignore[arg-type]
    lambda: TextPart(ODD),
    lambda: Segment("text", ODD),  # type: ignore[arg-type]
    lambda: ResponseDelta(0, content_delta=ODD),
    lambda: FrozenObject({"a": {CONTENT}}),
    lambda: FrozenObject(ODD),
    lambda: UsageInfo(ODD, 0),
]


@pytest.mark.parametrize("refused", REFUSED)
def test_errors_never_quote_content(refused: Callable[[], object]) -> None:
    """AC-115: an error says what is wrong and where, and not what the model or the user wrote."""
    with pytest.raises(CrosswalkError) as caught:
        refused()
    assert "§" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (0, "0 leaves"),
        (1, "1 leaf"),
        (2, "2 leaves"),
        (10000, "10,000 leaves"),
        (1.0, "1 leaf"),
        (0.5, "0.5 leaves"),
    ],
)
def test_one_of_a_thing_is_not_many(number: float, said: str) -> None:
    assert counted(number, "leaf", "leaves") == said
    assert counted(number, "part").removesuffix("s") == said.replace("leaves", "leaf").replace("leaf", "part")
