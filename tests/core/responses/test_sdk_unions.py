"""The types against the official SDK's: an item, event, tool, part, annotation or field that it knows and we do not fails."""

from __future__ import annotations

import functools
import typing
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal, Union

import pytest

from crosswalk import responses as ours
from crosswalk.responses.records import ResponsesRecord, Unknown, keys_of

sdk = pytest.importorskip("openai.types.responses", reason="the openai SDK is not installed")
from openai.types.responses import response as sdk_response  # noqa: E402
from openai.types.responses.response_create_params import ResponseCreateParamsBase  # noqa: E402
from openai.types.responses.responses_client_event import ResponseCreate  # noqa: E402
from openai.types.responses.responses_server_event import ResponsesServerEvent  # noqa: E402
from pydantic import BaseModel  # noqa: E402

PAIRS = {
    "Response": (sdk_response.Response, ours.Response),
    "ResponseOutputItem": (sdk.ResponseOutputItem, ours.ResponseOutputItem),
    "ResponseItem": (sdk.ResponseItem, ours.ResponseInputItem),
    "ResponseInputItem": (sdk.ResponseInputItem, ours.ResponseInputItem),
    "ResponseStreamEvent": (sdk.ResponseStreamEvent, ours.ResponseStreamEvent),
    "ResponsesServerEvent": (ResponsesServerEvent, ours.ResponseStreamEvent),
    "Tool": (sdk.Tool, ours.Tool),
    "ToolChoice": (sdk_response.ToolChoice, ours.ToolChoice),
    "ResponseCreate": (ResponseCreate, ours.ResponseCreateParams),
}


def models(annotation: Any) -> list[type[BaseModel]]:
    """The models in *annotation* itself, however it is wrapped. Not those in their fields."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in typing.get_args(annotation) for model in models(inner)]


hints_of = functools.cache(functools.partial(typing.get_type_hints, include_extras=True))


def records(annotation: Any) -> list[type[ResponsesRecord]]:
    if isinstance(annotation, type) and issubclass(annotation, ResponsesRecord):
        return [annotation]
    for family in getattr(annotation, "__metadata__", ()):
        return records(family.union)
    return [found for inner in typing.get_args(annotation) for found in records(inner)]


def tags(annotation: Any) -> set[str]:
    """The words of the literals in *annotation*."""
    if typing.get_origin(annotation) is Literal:
        return set(typing.get_args(annotation))
    return {word for inner in typing.get_args(annotation) for word in tags(inner)}


def own_tags(cls: type[ResponsesRecord]) -> set[str]:
    return tags(hints_of(cls).get("type"))


def model_tags(model: type[BaseModel]) -> set[str]:
    field = model.model_fields.get("type")
    return tags(field.annotation) if field is not None else set()


def find(model: type[BaseModel], candidates: list[type[ResponsesRecord]]) -> list[type[ResponsesRecord]]:
    """The *candidates* for *model*: those with its tag, or the one that has no tag either."""
    known = [cls for cls in candidates if not issubclass(cls, Unknown)]
    wanted = model_tags(model)
    tagged = [cls for cls in known if own_tags(cls) & wanted]
    if wanted and tagged:
        missing = wanted - {tag for cls in tagged for tag in own_tags(cls)}
        assert not missing, f"{model.__name__}: type {missing} is not known"
        return tagged
    return [cls for cls in known if not own_tags(cls)]


def wire_keys(cls: type[ResponsesRecord]) -> dict[str, str]:
    """The attribute for each key."""
    return keys_of(cls)


def differences(theirs: Any, mine: Any, path: str, seen: set[tuple[Any, Any]]) -> typing.Iterator[str]:
    """The fields of *theirs* that *mine* lacks."""
    candidates = records(mine)
    for model in models(theirs):
        where = f"{path}.{model.__name__}"
        found = find(model, candidates)
        if not found and not candidates and is_mapping(mine):
            continue  # all of it is kept, without a type
        if not found:
            yield f"{where}: no type for it among {[cls.__name__ for cls in candidates]}"
            continue
        if (model, tuple(found)) in seen:
            continue
        seen.add((model, tuple(found)))
        keys: dict[str, list[Any]] = {}
        for cls in found:
            hints = hints_of(cls)
            for key, attribute in wire_keys(cls).items():
                keys.setdefault(key, []).append(hints[attribute])
        for name, field in model.model_fields.items():
            key = field.alias or name
            if key not in keys:
                yield f"{where}: field {key!r} is not known to {[cls.__name__ for cls in found]}"
                continue
            yield from differences(field.annotation, Union[tuple(keys[key])], f"{where}.{key}", seen)  # noqa: UP007
            if key == "status":
                closed = {word.value for hint in keys[key] for word in vocabulary(hint)}
                if closed and not tags(field.annotation) <= closed:
                    yield f"{where}: status {tags(field.annotation) - closed} is not known"


def is_mapping(annotation: Any) -> bool:
    """Whether *annotation* admits an object without a type of its own."""
    origin = typing.get_origin(annotation) or annotation
    is_one = isinstance(origin, type) and issubclass(origin, Mapping)
    return is_one or any(map(is_mapping, typing.get_args(annotation)))


def vocabulary(hint: Any) -> list[StrEnum]:
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return list(hint)
    return [word for inner in typing.get_args(hint) for word in vocabulary(inner)]


@pytest.mark.sweep
@pytest.mark.parametrize("name", PAIRS)
def test_what_the_sdk_knows_is_known(name: str) -> None:
    theirs, mine = PAIRS[name]
    allowed = {
        # The type of the message that carries the parameters, on a WebSocket; a body has none.
        "$.ResponseCreate: field 'type' is not known to ['ResponseCreateParams']",
    }
    assert [line for line in differences(theirs, mine, "$", set()) if line not in allowed] == []


def test_the_walk_sees_what_is_missing() -> None:
    lines = list(differences(sdk.Tool, ours.FunctionTool, "$", set()))
    assert any("WebSearchTool: no type for it" in line for line in lines)
    assert any(
        "field 'arguments' is not known" in line
        for line in differences(sdk.ResponseFunctionToolCall, CallWithoutArguments, "$", set())
    )


@ours.record
class CallWithoutArguments(ResponsesRecord):
    type: Literal["function_call"] = "function_call"
    call_id: str


def test_every_parameter_of_a_request_is_known() -> None:
    known = set(wire_keys(ours.ResponseCreateParams))
    assert {*ResponseCreateParamsBase.__annotations__, "stream"} <= known


def test_statuses_of_a_response_are_the_sdks() -> None:
    field = sdk_response.Response.model_fields["status"]
    assert tags(field.annotation) == {status.value for status in ours.ResponseStatus}


def test_reasons_of_incompleteness_are_the_sdks() -> None:
    field = sdk_response.IncompleteDetails.model_fields["reason"]
    assert tags(field.annotation) == {reason.value for reason in ours.IncompleteDetailsReason}


@pytest.mark.parametrize(
    "name", sorted(n for n in dir(sdk) if n.endswith("Event") and n.startswith("Response"))
)
def test_events_are_named_as_in_the_sdk(name: str) -> None:
    theirs = getattr(sdk, name)
    if not (isinstance(theirs, type) and issubclass(theirs, BaseModel)) or name == "ResponseSteerEvent":
        pytest.skip("a union, or a message of the client")
    assert own_tags(getattr(ours, name)) == model_tags(theirs)
