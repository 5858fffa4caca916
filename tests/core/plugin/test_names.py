"""A stranger's plugin says what others call its provider, as a shipped one does: telemetry, price lists, logs, servers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from crosswalk import ChatMessage, ChatResponse, Registry, ResponseMetadata, UsageInfo, cost_of, registry
from crosswalk.otel import otel_attributes, otel_provider_name
from crosswalk.plugins import Names, OpenAIChatDialect, ProviderInfo, hookimpl
from crosswalk.records import read_record, vendor_name
from crosswalk.service import Endpoint, SyncLLMService
from crosswalk.testing.replay import Answer, ReplayServer


class Kelp(OpenAIChatDialect):
    """A stranger's look-alike."""

    title = "Kelp"
    names = Names(
        otel="kelp.cloud", prices="openai", vendors=("Kelp-Cloud", "kelp ai"), owners=("kelp-models",)
    )


class Broken:
    """A plugin that cannot describe itself."""

    @hookimpl
    def map_delta(self, event: Any, state: Any) -> tuple[()]:
        return ()

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        raise RuntimeError("no network")


@pytest.fixture(autouse=True)
def _strangers() -> Iterator[None]:
    plugins = {"broken": Broken(), "kelp": Kelp()}
    for name, plugin in plugins.items():
        registry.register(plugin, name)
    yield
    for name, plugin in plugins.items():
        registry.unregister(plugin, name)


def answer_of(provider: str) -> ChatResponse:
    metadata = ResponseMetadata(provider, "gpt-4o")
    return ChatResponse.success(ChatMessage.assistant("Hi"), UsageInfo(1000, 100), "gpt-4o", metadata)


@pytest.mark.parametrize(
    ("provider", "name"), [("kelp", "kelp.cloud"), ("broken", "broken"), ("nobody", "nobody")]
)
def test_telemetry_calls_a_provider_as_its_plugin_says(provider: str, name: str) -> None:
    assert otel_provider_name(provider) == name
    assert otel_attributes(answer_of(provider))["gen_ai.provider.name"] == name


def test_a_price_list_is_searched_for_the_name_there() -> None:
    pytest.importorskip("genai_prices")
    cost = cost_of(answer_of("kelp"))
    assert cost is not None
    assert cost == cost_of(answer_of("kelp"), vendor="kelp") == cost_of(answer_of("openai"))
    assert cost_of(answer_of("broken")) is None


@pytest.mark.parametrize("word", ["kelp_cloud", "KELP-CLOUD", "Kelp AI", "kelp"])
def test_a_log_may_call_a_vendor_by_any_of_its_names(word: str) -> None:
    assert vendor_name(word) == "kelp"
    chat = {"choices": [{"index": 0, "message": {"content": "Hi"}, "finish_reason": "stop"}]}
    record = read_record(orjson.dumps({"provider": word, "body": chat}))
    assert (record.vendor, record.server or record.provider) == (word, "kelp")


@pytest.mark.parametrize(
    ("owner", "provider"), [("kelp-models", "kelp"), ("vllm", "vllm"), ("someone", "openai"), (7, "openai")]
)
def test_a_server_at_an_address_is_recognized_by_the_owner_of_its_models(owner: Any, provider: str) -> None:
    with ReplayServer() as server:
        models = [None, {"id": "small", "owned_by": owner}]
        server.add(Answer.of_json({"data": models}), path="/v1/models")
        server.add(Answer.text("Hello."), path="/v1/chat/completions")
        with SyncLLMService(Endpoint(base_url=server.url, model="small")) as service:
            assert service.complete("Hi").metadata.provider_id == provider


@pytest.mark.parametrize(("field", "wanted"), [("otel", "str or None"), ("prices", "str or None"),
                                               ("vendors", "a tuple of strings"), ("owners", "a tuple of strings")])  # fmt: skip
def test_a_name_of_another_type_is_refused(field: str, wanted: str) -> None:
    with pytest.raises(TypeError, match=wanted):
        Names(**{field: 5})  # type: ignore[arg-type]


def test_a_name_is_a_tuple_of_strings_and_needs_no_installed_plugin() -> None:
    with pytest.raises(TypeError, match="a tuple of strings"):
        Names(vendors="kelp")  # type: ignore[arg-type]
    assert Registry(installed=[]).names_of("kelp") == Names()
    assert Registry(installed=[]).named("owners", "kelp-models") is None
