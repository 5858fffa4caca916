"""How records are read, written, made and changed."""

from __future__ import annotations

import copy
import functools
import inspect
import pickle
import subprocess
import sys
import threading
import typing
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, Literal

import attrs
import orjson
import pytest
from cattrs.preconf.orjson import make_converter

import crosswalk
import crosswalk.codec
from crosswalk import responses as r
from crosswalk.errors import InvalidJSONError, NestingTooDeepError
from crosswalk.responses.answer_events import Event
from crosswalk.responses.messages import Item
from crosswalk.responses.records import classes_of, register

MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Hi", "annotations": []}],
}


def body(**changes: Any) -> dict[str, Any]:
    return {"id": "resp_1", "object": "response", "status": "completed", "output": [MESSAGE], **changes}


# ------------------------------------------------------------------------------------------ reading


@pytest.mark.parametrize(
    "give", [lambda v: v, orjson.dumps, lambda v: orjson.dumps(v).decode()], ids=["dict", "bytes", "text"]
)
def test_json_is_read_in_each_form(give: Any) -> None:
    response = r.parse_response(give(body()))
    assert response.status is r.ResponseStatus.COMPLETED
    assert response.output_text == "Hi"
    assert response.output == (
        r.ResponseOutputMessage(
            id="msg_1", status=r.ItemStatus.COMPLETED, content=(r.ResponseOutputText(text="Hi"),)
        ),
    )


def test_null_and_absent_are_told_apart() -> None:
    for sent in ({"error": None}, {}, {"output": []}, {"tools": [], "usage": None}):
        response = r.parse(r.Response, sent)
        assert (response.error, response.usage, response.output) == (None, None, ())
        assert r.to_dict(response) == sent


def test_unknown_fields_are_kept_at_every_level() -> None:
    sent = body(
        vendor={"a": [1, {}]},
        output=[{**MESSAGE, "x": None, "content": [{"type": "refusal", "refusal": "no", "y": 1}]}],
    )
    response = r.parse_response(sent)
    assert response.extensions == {"vendor": {"a": [1, {}]}}
    assert response.output[0].extensions == {"x": None}
    assert orjson.loads(r.to_json(response)) == sent


def test_a_decoded_object_is_not_shared_with_its_giver() -> None:
    sent = body(vendor={"a": [1]})
    response = r.parse_response(sent)
    sent["vendor"]["a"].append(2)
    assert response.extensions == {"vendor": {"a": [1]}}


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (body(id=1), "expected string, got number @ $.id"),
        (body(status="finished"), "unknown ResponseStatus 'finished' @ $.status"),
        (body(status=7), "expected string, got number @ $.status"),
        (body(object="list"), "expected 'response', got another string @ $.object"),
        (body(object=[]), "expected 'response', got array @ $.object"),
        (body(output={}), "expected array, got object @ $.output"),
        (body(output=[[]]), "expected object, got array @ $.output[0]"),
        (body(output=[{**MESSAGE, "content": [{"type": "output_text"}]}]), "a required key is missing @ $.output[0].content[0].text"),
        (body(output=[{**MESSAGE, "content": [{"type": "output_text", "text": None}]}]), "expected string, got null @ $.output[0].content[0].text"),
        (body(output=[{"type": "telepathy"}]), "unknown item type 'telepathy' @ $.output[0]"),
        (body(output=[{"type": 5}]), "item without a type @ $.output[0]"),
        (body(metadata={"a b": 1}), "expected string, got number @ $.metadata['a b']"),
        (body(metadata=[]), "expected object, got array @ $.metadata"),
        (body(usage=[]), "expected object, got array @ $.usage"),
        (body(instructions=4), "expected string or array, got number @ $.instructions"),
        (body(temperature="hot"), "expected number, got string @ $.temperature"),
        (body(temperature=True), "expected number, got boolean @ $.temperature"),
        (body(top_logprobs=1.0), "expected integer, got number @ $.top_logprobs"),
        (body(text={"format": {"type": "json_schema", "schema": []}}), "expected object, got array @ $.text.format.schema"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(sent: Any, said: str) -> None:
    with pytest.raises(r.ResponsesParseError) as caught:
        r.parse_response(sent)
    assert str(caught.value) == said
    assert caught.value.path == said.rpartition(" @ ")[2]
    assert isinstance(caught.value, crosswalk.CrosswalkError)
    assert caught.value.__context__ is None


def test_the_error_for_an_unknown_type_names_it() -> None:
    with pytest.raises(r.UnknownTypeError) as caught:
        r.parse_event({"type": "response.telepathy.delta" * 5})
    assert (caught.value.family, caught.value.path) == ("event", "$")
    assert caught.value.type_name is not None
    assert len(caught.value.type_name) == 40
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.family) == (str(caught.value), "event")


@pytest.mark.parametrize("sent", [b"[", b"\xff", b'{"a":NaN}'])
def test_what_is_no_json_is_refused(sent: bytes) -> None:
    with pytest.raises(InvalidJSONError):
        r.parse_response(sent)


def test_what_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(NestingTooDeepError):
        r.parse_response(b'{"x":' + b"[" * 500 + b"]" * 500 + b"}")


@pytest.mark.parametrize("sent", [{"x": float("nan")}, {1: 2}, {"x": object()}])
def test_a_mapping_that_is_no_json_is_refused(sent: Any) -> None:
    with pytest.raises(r.ResponsesParseError, match="not a JSON object"):
        r.parse_response(sent)


def test_another_type_than_asked_for_is_refused() -> None:
    with pytest.raises(
        r.ResponsesParseError, match=r"expected 'function_call', got another string @ \$.type"
    ):
        r.parse(r.ResponseFunctionToolCall, MESSAGE)
    with pytest.raises(r.ResponsesParseError, match=r"a required key is missing @ \$.type"):
        r.parse(r.ResponseFunctionToolCall, {})


def test_everything_that_is_wrong_is_told() -> None:
    sent = body(
        id=1, model=None, output=[{**MESSAGE, "content": [{"type": "refusal"}, 5]}, {"type": "telepathy"}]
    )
    with pytest.raises(r.ResponsesParseError) as caught:
        r.parse_response(sent)
    assert caught.value.problems == (
        "expected string, got number @ $.id",
        "a required key is missing @ $.output[0].content[0].refusal",
        "expected object, got number @ $.output[0].content[1]",
        "unknown item type 'telepathy' @ $.output[1]",
    )
    with pytest.raises(r.UnknownTypeError) as unknown:
        r.parse_item({"type": "telepathy"})
    assert unknown.value.problems == (str(unknown.value),)


# ------------------------------------------------------------------------------------------ with attrs and cattrs


@attrs.frozen
class Saved:
    answer: crosswalk.ChatResponse
    response: r.Response
    items: list[r.ResponseOutputItem]


def test_a_record_is_an_attrs_class() -> None:
    fields = attrs.fields_dict(r.Response)
    assert {"extensions", "presence", "id", "output", "usage"} <= fields.keys()
    assert fields["id"].type == str | None
    response = r.parse_response(body(x=1))
    assert attrs.evolve(typing.cast(Any, response), model="m") == response.replace(model="m")
    assert attrs.asdict(response, recurse=False)["id"] == "resp_1"


@pytest.mark.parametrize(
    ("field", "union"), [("output", r.ResponseOutputItem), ("tools", r.Tool)], ids=["items", "tools"]
)
def test_a_union_that_is_loaded_late_is_known_to_attrs(field: str, union: Any) -> None:
    member, _ = typing.get_args(attrs.fields_dict(r.Response)[field].type)
    shared, family = typing.get_args(member)
    assert family.union == union
    assert all(issubclass(each, shared) for each in typing.get_args(union))
    assert repr(family).startswith("crosswalk.responses.")
    tags = classes_of(union)
    assert all(family.only(tag) is cls for tag, cls in tags.items())
    assert family.only("telepathy") is None


@pytest.mark.parametrize("configured", [False, True])
def test_a_class_of_a_program_holds_records(configured: bool) -> None:
    converter: Any = crosswalk.codec.converter()
    if configured:
        converter = make_converter()
        crosswalk.codec.configure_converter(converter)
    sent = body(x=1, error=None, output=[MESSAGE, {"type": "telepathy", "thought": 1}])
    response = r.parse_response(sent, unknown="keep")
    answer = crosswalk.normalize(orjson.dumps(body()), "openai_responses")
    text = converter.dumps(Saved(answer, response, [*response.output]))
    assert orjson.loads(text)["response"] == sent
    assert orjson.loads(text)["items"] == sent["output"]
    read = converter.loads(text, Saved)
    assert (read.response, read.items) == (response, [*response.output])
    assert read.answer == answer


def test_a_wrong_record_in_a_class_of_a_program_is_named() -> None:
    converter = make_converter()
    crosswalk.codec.configure_converter(converter)
    for kind in (r.ResponseOutputText, r.ResponseOutputText | r.ResponseOutputRefusal):
        with pytest.raises(crosswalk.CanonicalJSONError, match=r"expected string, got number @ \$.text"):
            converter.structure({"type": "output_text", "text": 1}, kind)


# ------------------------------------------------------------------------------------------ what is unknown


def test_unknown_types_are_kept_by_choice() -> None:
    sent = body(
        output=[
            {"type": "telepathy", "id": "t_1", "thought": 1},
            {**MESSAGE, "content": [{"type": "hologram", "z": 1}, {"type": "output_text", "text": "", "annotations": [{"type": "smell"}]}]},
        ],
        tools=[{"type": "spoon"}],
    )  # fmt: skip
    response = r.parse_response(sent, unknown="keep")
    first, message = response.output
    assert isinstance(first, r.UnknownItem)
    assert (first.type, first.id, first.extensions) == ("telepathy", "t_1", {"thought": 1})
    assert isinstance(message, r.ResponseOutputMessage)
    assert isinstance(message.content[0], r.UnknownPart)
    assert orjson.loads(r.to_json(response)) == sent


def test_an_unknown_word_is_kept_by_choice() -> None:
    sent = body(status="complete", output=[{**MESSAGE, "status": "half"}])
    response = r.parse_response(sent, unknown="keep")
    assert response.status is None
    assert response.extensions == {"status": "complete"}
    assert orjson.loads(r.to_json(response)) == sent


def test_an_unknown_word_where_one_is_needed_is_refused_all_the_same() -> None:
    with pytest.raises(r.ResponsesParseError, match=r"unknown MessageRole 'narrator' @ \$.role"):
        r.parse_input_item({"role": "narrator", "content": "Once"}, unknown="keep")


def test_an_event_without_a_type_is_an_error_if_it_holds_one() -> None:
    event = r.parse_event({"error": {"message": "no"}})
    assert isinstance(event, r.ResponseErrorEvent)
    assert r.to_dict(event) == {"error": {"message": "no"}}
    with pytest.raises(r.UnknownTypeError, match="event without a type"):
        r.parse_event({"delta": "x"})


def test_types_of_ones_own_are_registered() -> None:
    @r.register_item
    @r.record
    class Weather(Item):
        type: Literal["weather_call_of_a_test"] = "weather_call_of_a_test"
        city: str

    @r.register_event
    @r.record
    class Rain(Event):
        type: Literal["response.rain_of_a_test"] = "response.rain_of_a_test"

    sent = {"type": "weather_call_of_a_test", "city": "Oslo", "id": "w_1"}
    for read in (r.parse_item, r.parse_input_item):
        assert read(sent) == Weather(id="w_1", city="Oslo")
    response = r.Response(output=(Weather(city="Oslo"),))  # type: ignore[arg-type]
    assert r.parse_response(r.to_json(response)) == response
    assert isinstance(r.parse_event({"type": "response.rain_of_a_test"}), Rain)
    with pytest.raises(TypeError, match="ResponsesRecord has no literal type"):
        register(r.ResponsesRecord, r.UnknownItem)


# ------------------------------------------------------------------------------------------ making


def test_a_constructor_brings_values_into_their_form() -> None:
    message = r.EasyInputMessage(role="user", content=[r.ResponseInputText(text=r.ItemStatus.COMPLETED)])  # type: ignore[arg-type]
    assert message.role is r.MessageRole.USER
    assert type(message.content) is tuple
    assert type(message.content[0].text) is str  # type: ignore[union-attr]
    params = r.ResponseCreateParams(
        metadata={"a": "b"}, tools=[r.FunctionTool(name="f", parameters={"type": "object"})]
    )  # type: ignore[arg-type]
    assert orjson.loads(r.to_json(params)) == {
        "metadata": {"a": "b"},
        "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}],
    }


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: r.ResponseOutputText(text=5), "expected string, got number @ ResponseOutputText.text"),
        (lambda: r.ResponseOutputText(text=None), "expected string, got null @ ResponseOutputText.text"),
        (lambda: r.Response(output=5), "expected array, got number @ Response.output"),
        (lambda: r.Response(output=[r.ReasoningText(text="")]), "expected item, got ReasoningText @ Response.output[0]"),
        (lambda: r.Response(usage=MESSAGE), "expected ResponseUsage, got dict @ Response.usage"),
        (lambda: r.Response(metadata={1: "a"}), "expected strings as keys @ Response.metadata"),
        (lambda: r.Response(metadata="a"), "expected object, got string @ Response.metadata"),
        (lambda: r.Response(metadata={"a": 1}), "expected string, got number @ Response.metadata.a"),
        (lambda: r.Response(temperature=float("nan")), "expected number, got number @ Response.temperature"),
        (lambda: r.Response(status="done"), "unknown ResponseStatus 'done' @ Response.status"),
        (lambda: r.Response(instructions=5), "expected string or array, got number @ Response.instructions"),
        (lambda: r.FunctionTool(name="f", parameters=[]), "expected object, got array @ FunctionTool.parameters"),
        (lambda: r.McpTool(name="f", input_schema={1: 2}), "expected strings as keys @ McpTool.input_schema"),
        (lambda: r.McpTool(name="f", input_schema=[object()]), "not a JSON object: Type is not JSON serializable: object @ McpTool.input_schema"),
        (lambda: r.FunctionTool(name="f", parameters={"a": [{1: 2}]}), "not a JSON object: Dict key must be str @ FunctionTool.parameters"),
    ],
)  # fmt: skip
def test_a_constructor_refuses_what_its_type_does_not_allow(make: Any, said: str) -> None:
    with pytest.raises(r.ResponsesValueError) as caught:
        make()
    assert str(caught.value) == said
    assert caught.value.path == said.rpartition(" @ ")[2]


def test_a_copy_may_differ() -> None:
    response = r.parse_response(body(error=None, vendor=1))
    other = response.replace(model="tiny", error=r.ResponseError(message="no"), output=())
    assert r.to_dict(other) == {
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "error": {"message": "no"},
        "vendor": 1,
        "model": "tiny",
        "output": [],
    }
    assert response.error is None
    with pytest.raises(TypeError, match="colour"):
        response.replace(colour="red")


def test_records_cannot_be_changed() -> None:
    response = r.Response(model="a")
    with pytest.raises(AttributeError):
        response.model = "x"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        del response.model
    assert response.model == "a"


def test_a_constructor_says_what_it_takes_and_takes_nothing_else() -> None:
    assert [*inspect.signature(r.ResponseOutputText).parameters] == [
        field.name for field in attrs.fields(r.ResponseOutputText)
    ]
    with pytest.raises(
        TypeError, match=r"ResponseOutputText\.__init__\(\) missing 1 required keyword-only argument: 'text'"
    ):
        r.ResponseOutputText()  # type: ignore[call-arg]
    with pytest.raises(
        TypeError, match=r"ResponseOutputText\.__init__\(\) got an unexpected keyword argument 'colour'"
    ):
        r.ResponseOutputText(text="a", colour="red")  # type: ignore[call-arg]


def test_a_record_of_ones_own_needs_no_annotations_of_text() -> None:
    def method(self: Any) -> str:
        return str(self.note)

    annotations = {"kind": typing.ClassVar[str], "type": typing.Literal["note"], "note": str | None}
    body = {"__annotations__": annotations, "__module__": __name__, "kind": "k", "note": None, "said": method}
    note: Any = r.record(type("Note", (r.ResponsesRecord,), body))
    read = r.parse(note, {"type": "note", "note": "x", "more": 1})
    assert (read.said(), read.kind, read.extensions) == ("x", "k", {"more": 1})
    assert read == note(type="note", note="x", extensions={"more": 1}) != note(type="note")
    assert read != "x"
    assert copy.deepcopy(read) == read


@r.record
class Priced(r.ResponsesRecord):
    type: typing.Literal["priced"] = "priced"
    price: int
    currency: str = "EUR"

    def __repr__(self) -> str:
        return f"{self.currency} {super().__repr__()}"


@r.record
class Discounted(Priced):
    family: typing.ClassVar[str] = "sale"
    price: int = 0
    discount: int | None = None

    @functools.cached_property
    def total(self) -> int:
        return self.price - (self.discount or 0)


class Paid(Discounted):
    def __init__(self, price: int) -> None:
        super().__init__(price=price)


def test_records_of_ones_own_may_call_and_extend_each_other() -> None:
    sale = r.parse(Discounted, {"type": "priced", "price": 5, "currency": "EUR", "discount": 2, "more": 1})
    assert repr(sale).startswith("EUR Discounted(currency='EUR', price=5, discount=2, extensions=")
    assert (sale.total, sale.family, hasattr(sale, "__dict__")) == (3, "sale", False)
    assert sale == Discounted(price=5, discount=2, extensions={"more": 1})  # type: ignore[call-arg]
    assert pickle.loads(pickle.dumps(sale)) == sale == copy.copy(sale)
    assert [field.name for field in attrs.fields(Discounted) if not field.inherited] == ["price", "discount"]
    assert Paid(4).price == 4
    assert attrs.has(Paid)
    assert attrs.fields(Paid) == attrs.fields(Discounted)


def test_a_class_is_the_same_however_it_is_first_used() -> None:
    uses: list[Callable[[type[Any]], Any]] = [
        lambda cls: cls(name="a"),
        lambda cls: inspect.signature(cls),
        lambda cls: attrs.fields(cls),
        lambda cls: object.__new__(cls).__attrs_attrs__,
        lambda cls: r.parse(cls, {"name": "a"}),
        lambda cls: attrs.resolve_types(cls),
    ]
    for use in uses:

        @r.record
        class Named(r.ResponsesRecord):
            name: str
            place: str | None = None

        assert Named.__qualname__.endswith("<locals>.Named")
        assert Named.__slots__ == ("name", "place")  # type: ignore[attr-defined]
        use(Named)
        assert [field.name for field in attrs.fields(Named)] == ["extensions", "presence", "name", "place"]
        assert Named(name="a").replace(place="b") == r.parse(Named, {"name": "a", "place": "b"})
        assert [*inspect.signature(Named).parameters] == ["extensions", "presence", "name", "place"]


def test_threads_that_use_a_class_first_see_one_class() -> None:
    for _ in range(20):

        @r.record
        class Shared(r.ResponsesRecord):
            name: str

        start = threading.Barrier(4)

        def use(cls: Any = Shared, start: threading.Barrier = start) -> Any:
            start.wait()
            return r.parse(cls, {"name": "a"}), attrs.fields(cls)

        with ThreadPoolExecutor(4) as threads:
            results = [each.result() for each in [threads.submit(use) for _ in range(4)]]
        assert all(
            record == Shared(name="a") and fields is attrs.fields(Shared) for record, fields in results
        )


FIRST_USE = """
import sys
from crosswalk.responses import parse_event, parse_response
answer = b'{"id": "r", "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": ""}]}]}'
event = b'{"type": "response.output_text.delta", "item_id": "i", "output_index": 0, "content_index": 0, "delta": "a"}'
numbers = {parse_response: 0, parse_event: 0}
for parse, data in ((parse_response, answer), (parse_event, event)):
    def note(frame, kind, _):
        numbers[parse] += kind == "call"
    sys.setprofile(note)
    parse(data)
    sys.setprofile(None)
print(*numbers.values())
"""
# From Python 3.14 on, attrs makes a class with several times as many calls.
MOST_CALLS = (14_000, 5_500) if sys.version_info < (3, 14) else (17_000, 13_000)


def test_the_first_reading_of_a_process_makes_only_the_classes_that_it_needs() -> None:
    printed = subprocess.run([sys.executable, "-c", FIRST_USE], capture_output=True, check=True, text=True)
    response, event = map(int, printed.stdout.split())
    most_response, most_event = MOST_CALLS
    assert (response <= most_response, event <= most_event) == (True, True), printed.stdout


def test_records_are_compared_by_value_and_pickled() -> None:
    first, second = r.parse_response(body(x=1)), r.parse_response(orjson.dumps(body(x=1)))
    assert first == second
    assert hash(first) == hash(second)
    assert first != r.parse_response(body(x=2))
    assert pickle.loads(pickle.dumps(first)) == first


def test_a_repr_is_short_and_shows_no_secret() -> None:
    assert len(repr(r.ResponseOutputText(text="x" * 5000))) < 300
    assert (
        repr(r.ResponseUsage(input_tokens=1, output_tokens=2))
        == "ResponseUsage(input_tokens=1, output_tokens=2)"
    )
    assert "hush" not in repr(
        r.Response(tools=[r.Mcp(server_label="s", authorization="hush", headers={"k": "hush"})])
    )  # type: ignore[arg-type]
    container: Any = {"network_policy": {"domain_secrets": [{"domain": "d", "name": "n", "value": "hush"}]}}
    assert repr(r.FunctionShellTool(environment=container)) == "FunctionShellTool()"
    assert repr(r.CodeInterpreter(container=container)) == "CodeInterpreter()"


def test_what_json_cannot_say_is_refused_when_it_is_written() -> None:
    with pytest.raises(r.ResponsesValueError, match="not JSON"):
        r.to_json(r.ResponseOutputText(text="\ud800"))


# ------------------------------------------------------------------------------------------ unions and messages


@pytest.mark.parametrize(
    ("sent", "kind"),
    [
        ({"role": "user", "content": "Hi"}, r.EasyInputMessage),
        ({"role": "user", "content": "Hi", "type": "message"}, r.EasyInputMessage),
        ({"role": "assistant", "content": [{"type": "input_text", "text": "Hi"}]}, r.EasyInputMessage),
        ({"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}, r.InputMessage),
        ({"type": "message", "role": "system", "content": []}, r.InputMessage),
        (MESSAGE, r.ResponseOutputMessage),
        ({"id": "msg_1"}, r.ItemReference),
        ({"id": "msg_1", "type": "item_reference"}, r.ItemReference),
        ({"type": "compaction_trigger"}, r.CompactionTrigger),
        ({"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "1"}]}, r.ResponseFunctionToolCallOutputItem),
    ],
)  # fmt: skip
def test_input_items_are_told_apart(sent: dict[str, Any], kind: type[Item]) -> None:
    item = r.parse_input_item(sent)
    assert type(item) is kind
    assert r.to_dict(item) == sent


def test_an_input_item_that_is_nothing_is_refused() -> None:
    with pytest.raises(r.UnknownTypeError, match="item without a type"):
        r.parse_input_item({})


def test_filters_may_be_nested() -> None:
    sent = {"type": "and", "filters": [{"type": "or", "filters": [{"type": "in", "key": "k", "value": ["a", 1]}]}, {"type": "eq", "key": "k", "value": True}]}  # fmt: skip
    tool = {"type": "file_search", "vector_store_ids": ["vs_1"], "filters": sent}
    assert r.to_dict(r.parse(r.FileSearchTool, tool)) == tool


def test_variables_of_a_prompt_are_text_or_parts() -> None:
    sent = {"prompt": {"id": "p", "variables": {"a": "x", "b": {"type": "input_text", "text": "y"}}}}
    params = r.parse_params(sent)
    assert params.prompt is not None
    assert params.prompt.variables is not None
    assert params.prompt.variables["b"] == r.ResponseInputText(text="y")
    assert r.to_dict(params) == sent
    with pytest.raises(r.ResponsesParseError, match=r"\$.prompt.variables.b.text"):
        r.parse_params({"prompt": {"id": "p", "variables": {"b": {"type": "input_text", "text": 1}}}})


def test_citations_are_equal_when_they_cite_the_same() -> None:
    url = r.AnnotationURLCitation(url="u", title="t", start_index=1, end_index=2)
    file = r.AnnotationFileCitation(file_id="f", index=3)
    assert {url, url.replace(start_index=5), file, file.replace(index=9)} == {url, file}
    assert file != file.replace(page_number=2)
    assert url != file
    assert file != url


def test_texts_of_messages_and_reasoning() -> None:
    message = r.ResponseOutputMessage(
        content=(
            r.ResponseOutputText(text="a"),
            r.ResponseOutputRefusal(refusal="no"),
            r.ResponseOutputText(text="b"),
        )
    )
    assert (message.text, message.refusal) == ("ab", "no")
    assert r.ResponseOutputMessage().refusal is None
    summary = (r.SummaryText(text="p"), r.SummaryText(text="q"))
    assert r.ResponseReasoningItem(summary=summary).text == "p\n\nq"
    assert (
        r.ResponseReasoningItem(
            summary=summary, content=(r.ReasoningText(text="x"), r.ReasoningText(text="y"))
        ).text
        == "xy"
    )


def test_final_statuses() -> None:
    assert [status.value for status in r.ResponseStatus if not status.is_final] == ["queued", "in_progress"]


@r.record
class Left(r.ResponsesRecord):
    type: Literal["left"] | None = None


@r.record
class Right(r.ResponsesRecord):
    type: Literal["right"] | None = None


@r.record
class Sides(r.ResponsesRecord):
    sides: tuple[Left | Right, ...]


def test_a_union_without_an_unknown_member_is_closed() -> None:
    with pytest.raises(r.UnknownTypeError, match=r"unknown object type 'up' @ \$.sides\[0\]"):
        r.parse(Sides, {"sides": [{"type": "up"}]}, unknown="keep")


def test_the_first_of_several_types_without_a_tag_claims_an_object() -> None:
    read = r.parse(Sides, {"sides": [{}, {"type": "right"}]})
    assert [type(side) for side in read.sides] == [Left, Right]


@pytest.mark.parametrize("sent", [{"error": {"message": "no"}}, {}, {"detail": "Not Found"}])
def test_an_error_body_is_no_response(sent: Any) -> None:
    with pytest.raises(r.ResponsesParseError, match="not a response"):
        r.parse_response(sent)
    assert r.to_dict(r.parse(r.ErrorBody, sent)) == sent


def test_keys_named_like_what_all_records_have_are_only_keys() -> None:
    sent = body(extensions={"a": 1}, presence=["error"], async_=1)
    response = r.parse_response(sent)
    assert response.extensions == {"extensions": {"a": 1}, "presence": ["error"], "async_": 1}
    assert r.to_dict(response) == sent


@r.record
class Branch(r.ResponsesRecord):
    branches: tuple[Branch, ...]


attrs.resolve_types(Branch)


@pytest.mark.parametrize(
    ("does", "said"), [("reads", "nested too deeply @ $"), ("writes", "nested too deeply @ Branch")]
)
def test_records_nested_too_deeply_are_refused(does: str, said: str) -> None:
    sent: dict[str, Any] = {"branches": []}
    for _ in range(90):
        sent = {"branches": [sent]}
    branch, data = r.parse(Branch, sent), orjson.dumps(sent)
    at_the_bottom: list[str] = []
    read = []

    def do(levels: int) -> None:
        if levels:
            return do(levels - 1)
        try:
            if does == "reads":
                read.append(r.parse(Branch, data))
            else:
                assert orjson.loads(r.to_json(branch)) == sent
        except (r.ResponsesParseError, r.ResponsesValueError) as error:
            at_the_bottom.append(str(error))

    do(0)
    assert at_the_bottom == []
    limit = sys.getrecursionlimit()
    while not at_the_bottom:
        limit -= 50
        do(sys.getrecursionlimit() - limit)
    assert at_the_bottom == [said]
    assert all(each == branch for each in read)


def test_a_number_is_written_in_all_its_digits_or_refused() -> None:
    assert str(2**70) in r.to_json(r.ResponseUsage(input_tokens=2**70, output_tokens=0)).decode()
    with pytest.raises(r.ResponsesValueError, match="too many digits"):
        r.to_json(r.ResponseUsage(input_tokens=10**5000, output_tokens=0))


def test_only_a_registered_type_stands_for_an_unknown_one() -> None:
    with pytest.raises(r.ResponsesValueError, match="expected item, got SimpleNamespace"):
        r.Response(output=(SimpleNamespace(type="weather_call_of_a_test"),))  # type: ignore[arg-type]


@pytest.mark.parametrize("data", [None, 5, [1], object()])
def test_what_is_neither_text_nor_object_is_refused(data: Any) -> None:
    with pytest.raises(r.ResponsesParseError, match=r"not a JSON object \("):
        r.parse_response(data)


def test_any_bytes_are_read() -> None:
    assert r.parse_response(bytearray(b'{"id":"r"}')) == r.parse_response(b'{"id":"r"}')


@pytest.mark.parametrize("unknown", ["kep", None, []])
def test_unknown_is_one_of_two_words(unknown: Any) -> None:
    with pytest.raises(r.ResponsesValueError, match="expected 'raise' or 'keep' @ unknown"):
        r.parse_response({"id": "r"}, unknown=unknown)


def test_what_is_written_is_a_copy() -> None:
    response = r.parse_response(
        {"id": "r", "zz": [1], "output": [{"type": "reasoning", "id": "i", "summary": [], "x": {"y": []}}]}
    )
    before = r.to_json(response)
    written = r.to_dict(response)
    written["zz"].append(2)
    written["output"][0]["x"]["y"].append(3)
    assert r.to_json(response) == before


def test_citations_are_compared_by_their_source_and_the_rest_by_what_is_written() -> None:
    one, other = (
        r.ResponseOutputText(text="t", annotations=(r.AnnotationURLCitation(url="u", start_index=at),))
        for at in (1, 2)
    )
    assert one == other
    assert r.to_dict(one) != r.to_dict(other)
