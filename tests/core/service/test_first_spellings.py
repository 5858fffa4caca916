"""The spellings that people type first. mypy checks this module strictly, so each is right for a type checker as well."""

# mypy: enable-error-code="arg-type,attr-defined,call-overload,comparison-overlap,dict-item,func-returns-value"
# mypy: enable-error-code="index,no-any-return,no-untyped-call,operator,type-var,union-attr,var-annotated"
# mypy: warn-unused-ignores

from __future__ import annotations

import asyncio
import base64
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypedDict, assert_type

import attrs
import pytest
from pydantic import BaseModel

from crosswalk import (
    AudioPart,
    ChatMessage,
    ChatResponse,
    ConfigurationError,
    FilePart,
    ImagePart,
    ResponseMetadata,
    ServerError,
    ToolCall,
    UnknownProviderError,
    UsageInfo,
    to_jsonable,
)
from crosswalk.agent import (
    Agent,
    AgentError,
    AsyncChatAgent,
    ChatAgent,
    ChatConfig,
    ChatSession,
    DirectoryStore,
    SQLiteStore,
    SyncAgent,
    ToolContext,
    ToolDefinitionError,
    ToolRunner,
    UsageLimits,
    mcp_tools,
    tool,
)
from crosswalk.config import Settings
from crosswalk.errors import ResponseValidationError
from crosswalk.service import (
    CallOptions,
    ChatRequest,
    Endpoint,
    JSONOptions,
    LLMService,
    RetriedJSONOptions,
    RetryPolicy,
    SyncLLMService,
    Timeouts,
    ToolDefinition,
    UnsupportedRequestError,
)
from crosswalk.testing import Answer, ReplayServer
from crosswalk.testing.exchange import Stall

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
)


ANSWER = ChatResponse.success(
    ChatMessage.assistant("Hi"), UsageInfo(1, 1), "m", ResponseMetadata("vllm", "m")
)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def service(server: ReplayServer) -> Iterator[SyncLLMService]:
    with SyncLLMService(Endpoint("vllm", model="m", base_url=server.url)) as asking:
        yield asking


class TestText:
    """1 to 4: the text of an answer, whole and while it comes."""

    def test_stream_text(self, server: ReplayServer, service: SyncLLMService) -> None:
        server.add(Answer.text("Hello, world."))
        texts: list[str] = []
        for text in service.stream("Hi").text:
            texts.append(text)
        assert "".join(texts) == "Hello, world."
        assert len(texts) > 1

    def test_stream_text_async(self, server: ReplayServer) -> None:
        server.add(Answer.text("Hello, world."))

        async def main() -> list[str]:
            async with LLMService(Endpoint("vllm", model="m", base_url=server.url)) as service:
                return [text async for text in service.stream("Hi").text]

        assert "".join(asyncio.run(main())) == "Hello, world."

    def test_a_failure_is_raised_behind_the_text(self, server: ReplayServer, service: SyncLLMService) -> None:
        server.add(Answer.of_json({"error": {"message": "down"}}, status=503), times=None)
        with pytest.raises(ServerError):
            list(service.stream("Hi", retry=0).text)

    def test_a_loop_that_is_left_ends_the_answer(self, server: ReplayServer, service: SyncLLMService) -> None:
        server.add(Answer.text("Hello, world."), Stall(after_events=3))
        stream = service.stream("Hi")
        texts = stream.text
        assert next(texts)
        texts.close()
        assert stream.response.finish_reason == "cancelled"

    def test_the_response_of_a_stream(self, server: ReplayServer, service: SyncLLMService) -> None:
        server.add(Answer.text("Hello."))
        stream = service.stream("Hi")
        assert "".join(stream.text) == "Hello." == stream.response.text

    @pytest.mark.parametrize("path", ["ollama", "anthropic", "openai_responses", "openai"])
    def test_an_answer_in_the_dialect_that_was_asked(self, path: str, server: ReplayServer) -> None:
        server.add(Answer.text("Hello."), times=None)
        with SyncLLMService(Endpoint(path, model="m", base_url=server.url, api_key="k")) as service:
            assert service.complete("Hi").text == "Hello."
            assert "".join(service.stream("Hi").text) == "Hello."


class TestOptions:
    """5 to 9: options of one call."""

    def test_keywords_of_complete(self, server: ReplayServer, service: SyncLLMService) -> None:
        server.add(Answer.text("Hello."))
        answer = service.complete(
            "Hi", temperature=0, model="other", max_tokens=9, timeout=5, headers={"X-Team": "blue"}, retry=0
        )
        assert answer.text == "Hello."
        (request,) = server.requests
        assert request.json()["model"] == "other"
        assert request.json()["temperature"] == 0
        assert request.headers["x-team"] == "blue"

    def test_keywords_of_stream_and_json(self, server: ReplayServer, service: SyncLLMService) -> None:
        server.add(Answer.text("3"), times=None)
        assert "".join(service.stream("Hi", temperature=0).text) == "3"
        assert service.complete_json("How many?", int, temperature=0).value == 3
        assert list(service.stream_json("How many?", int, temperature=0))[-1] == 3
        assert [request.json()["temperature"] for request in server.requests] == [0, 0, 0]

    def test_keywords_async(self, server: ReplayServer) -> None:
        server.add(Answer.text("3"), times=None)

        async def main() -> tuple[str, int]:
            async with LLMService(Endpoint("vllm", model="m", base_url=server.url)) as service:
                text = (await service.complete("Hi", temperature=0)).text
                return text, (await service.complete_json("Hi", int, temperature=0)).value

        assert asyncio.run(main()) == ("3", 3)

    def test_the_limit_of_tokens_has_the_name_of_openai_as_well(
        self, server: ReplayServer, service: SyncLLMService
    ) -> None:
        server.add(Answer.text("3"), times=None)
        assert ChatRequest("Hi", max_completion_tokens=5) == ChatRequest("Hi", max_tokens=5)
        assert ChatRequest("Hi", max_tokens=4, max_completion_tokens=None).max_tokens == 4
        service.complete("Hi", max_completion_tokens=5)
        service.complete(ChatRequest("Hi", max_tokens=9), max_completion_tokens=5)
        list(service.stream("Hi", max_completion_tokens=5))
        service.complete_json("Hi", int, max_completion_tokens=5)
        assert [request.json()["max_tokens"] for request in server.requests] == [5, 5, 5, 5]
        with pytest.raises(ResponseValidationError, match="max_tokens"):
            ChatRequest("Hi", max_completion_tokens=0)

    def test_they_change_a_request(self, server: ReplayServer, service: SyncLLMService) -> None:
        server.add(Answer.text("Hello."))
        service.complete(ChatRequest("Hi", temperature=1, seed=3), temperature=0)
        assert (server.requests[0].json()["temperature"], server.requests[0].json()["seed"]) == (0, 3)

    def test_headers_of_one_call_are_secret_and_do_not_stay(
        self, server: ReplayServer, service: SyncLLMService
    ) -> None:
        server.add(Answer.of_json({"error": {"message": "no token-1234"}}, status=401))
        server.add(Answer.text("Hello."))
        with pytest.raises(Exception, match="<secret>") as raised:
            service.complete("Hi", headers={"authorization": "token-1234"})
        assert "token-1234" not in str(raised.value)
        service.complete("Hi")
        assert "authorization" not in server.requests[1].headers

    def test_a_wrong_keyword_names_the_right_one(self, service: SyncLLMService) -> None:
        with pytest.raises(ConfigurationError, match=r"'header', did you mean 'headers'"):
            service.stream("Hi", header={})  # type: ignore[call-arg]
        typed: Any = service
        for wrong, right in (("temprature", "temperature"), ("messages", "request"), ("prompt", "request")):
            with pytest.raises(ConfigurationError, match=f"{wrong!r}, did you mean {right!r}"):
                typed.complete(**{wrong: "Hi"})
        with pytest.raises(ConfigurationError, match="'max_output_tokens', did you mean 'max_tokens'"):
            typed.complete_json("Hi", int, max_output_tokens=3)
        for ask in (typed.complete_json, typed.stream_json):
            with pytest.raises(ConfigurationError, match="'proze', did you mean 'prose'"):
                ask("Hi", int, proze="refuse")

    def test_only_a_whole_value_is_asked_for_again(self, service: SyncLLMService) -> None:
        asynchronous: Any = LLMService("ollama:m")
        typed: Any = service
        for stream in (typed.stream_json, asynchronous.stream_json):
            with pytest.raises(ConfigurationError, match="there is no option 'retries'"):
                stream("Hi", int, retries=1)

    def test_both_services_take_the_same_options(self) -> None:
        for name in ("complete", "stream", "complete_json", "stream_json", "count_tokens"):
            of_both = [
                inspect.signature(getattr(kind, name)).parameters for kind in (LLMService, SyncLLMService)
            ]
            assert of_both[0] == of_both[1]
        assert JSONOptions.__annotations__.items() >= CallOptions.__annotations__.items()
        assert RetriedJSONOptions.__annotations__.keys() - JSONOptions.__annotations__ == {"retries"}

    def test_a_wrong_keyword_async(self) -> None:
        async def main() -> None:
            async with LLMService("ollama:m") as service:
                with pytest.raises(ConfigurationError, match="'messages', did you mean 'request'"):
                    await service.complete(messages="Hi")  # type: ignore[call-arg]

        asyncio.run(main())

    @pytest.mark.parametrize(
        ("make", "wrong", "right"),
        [
            (Endpoint, "url", "base_url"),
            (Endpoint, "api_keys", "api_key"),
            (ChatRequest, "max_output_tokens", "max_tokens"),
            (RetryPolicy, "attempt", "attempts"),
            (Timeouts, "totl", "total"),
            (ChatConfig, "temprature", "temperature"),
            (ChatSession, "messages", "turns"),
            (UsageLimits, "tokens", "total_tokens"),
            (ToolRunner, "timout", "timeout"),
            (SyncAgent, "max_turn", "max_turns"),
            (ChatAgent, "confg", "config"),
            (mcp_tools, "prefx", "prefix"),
            (ToolDefinition, "params", "parameters"),
            (Agent, "system_prompt", "instructions"),
            (SyncAgent("ollama:m").answer, "sesion", "session"),
            (SyncAgent("ollama:m").run, "dep", "deps"),
            (Agent("ollama:m").stream, "result", "results"),
            (tool, "naem", "name"),
            (ImagePart, "mime_type", "media_type"),
            (FilePart, "nme", "name"),
            (AudioPart, "dta", "data"),
            (DirectoryStore, "path", "folder"),
            (SQLiteStore, "path", "file"),
        ],
    )
    def test_every_call_that_people_type_names_it(self, make: Any, wrong: str, right: str) -> None:
        with pytest.raises(ConfigurationError, match=f"{wrong!r}, did you mean {right!r}"):
            make(*([str] if make is tool else ["ollama:m"]), **{wrong: 1})

    def test_an_option_of_another_class(self) -> None:
        with pytest.raises(ConfigurationError, match=r"give it in ChatConfig\(..., temperature=...\)"):
            SyncAgent("ollama:m", temperature=0)  # type: ignore[call-overload]
        with pytest.raises(ConfigurationError, match=r"give it in ChatConfig\(..., temperature=...\)"):
            ChatAgent("ollama:m", temperature=0)  # type: ignore[call-arg]
        with pytest.raises(ConfigurationError, match="there is no option 'colour'$"):
            SyncAgent("ollama:m", colour="red")  # type: ignore[call-overload]

    def test_a_type_as_response_format(self, service: SyncLLMService) -> None:
        with pytest.raises(ResponseValidationError, match=r"use complete_json\(request, OfAttrs\)"):
            service.complete("Hi", response_format=OfAttrs)  # type: ignore[arg-type]


class TestService:
    """10 to 15: making a service."""

    def test_provider_and_model_in_one_text(
        self, server: ReplayServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        server.add(Answer.text("Hello."), times=None)
        for spelling in ("ollama:llama3.2:1b", "ollama/llama3.2:1b"):
            with SyncLLMService(spelling) as service:
                assert service.complete("Hi").text == "Hello."
        with SyncLLMService(Endpoint("ollama:llama3.2:1b")) as service:
            assert service.complete("Hi").text == "Hello."
        assert {request.json()["model"] for request in server.requests} == {"llama3.2:1b"}

    def test_an_agent_of_a_text(self, server: ReplayServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        server.add(Answer.text("Hello."), times=None)
        with SyncAgent("ollama:llama3.2") as agent, ChatAgent("ollama:llama3.2") as chat:
            assert agent.answer("Hi").final_output == chat.chat("Hi").text == "Hello."

        async def main() -> tuple[str | None, str]:
            async with Agent("ollama:llama3.2") as agent, AsyncChatAgent("ollama:llama3.2") as chat:
                return (await agent.answer("Hi")).final_output, (await chat.chat("Hi")).text

        assert asyncio.run(main()) == ("Hello.", "Hello.")

    @pytest.mark.parametrize(
        ("endpoints", "fields"),
        [
            ((), {"provider": "ollama", "model": "llama3.2:1b"}),
            ((), {"model": "ollama:llama3.2:1b"}),
            ((), {"model": "ollama:llama3.2:1b", "api_key": "sk-of-nobody"}),
            ((), {"provider": "ollama:llama3.2:1b"}),
            (("ollama",), {"model": "llama3.2:1b"}),
            ((Endpoint("ollama"),), {"model": "llama3.2:1b", "api_key": "sk-of-nobody"}),
        ],
    )
    def test_the_fields_of_an_endpoint(
        self,
        server: ReplayServer,
        monkeypatch: pytest.MonkeyPatch,
        endpoints: tuple[Any, ...],
        fields: dict[str, Any],
    ) -> None:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        server.add(Answer.text("Hello."), times=None)
        with SyncLLMService(*endpoints, **fields) as service:
            assert service.complete("Hi").text == "Hello."
        assert [request.json()["model"] for request in server.requests] == ["llama3.2:1b"]
        key = fields.get("api_key")
        assert server.requests[0].headers.get("authorization") == (key and f"Bearer {key}")

    def test_an_address_and_a_key(self, server: ReplayServer) -> None:
        server.add(Answer.text("Hello."), times=None)
        with SyncLLMService("vllm", base_url=server.url, api_key="sk-of-nobody", model="tiny") as service:
            assert service.complete("Hi").text == "Hello."
        assert server.requests[0].headers["authorization"] == "Bearer sk-of-nobody"

    @pytest.mark.parametrize(
        ("endpoints", "fields", "cause"),
        [
            (("ollama:llama3.2",), {"model": "other"}, "model is given twice"),
            (("ollama",), {"provider": "vllm"}, "provider is given twice"),
            (("ollama", "vllm"), {"model": "tiny"}, "give model= to each endpoint"),
            ((), {"model": "tiny"}, "needs a provider or base_url="),
            ((), {"model": 3}, "model must be a text, not int"),
        ],
    )
    def test_fields_that_fit_no_endpoint(
        self, endpoints: tuple[Any, ...], fields: dict[str, Any], cause: str
    ) -> None:
        for make in (SyncLLMService, LLMService):
            with pytest.raises(ConfigurationError, match=cause):
                make(*endpoints, **fields, settings=Settings())

    def test_a_model_of_the_default_provider(self) -> None:
        settings = Settings(default_provider="ollama")
        assert "model='tiny'" in repr(SyncLLMService(model="tiny", settings=settings))

    @pytest.mark.parametrize("provider", ["ollama", "ollama:of-both"])
    def test_a_key_for_the_default_provider_keeps_its_model(self, provider: str) -> None:
        settings = Settings(default_provider=provider, default_model="default")
        model = provider.partition(":")[2] or "default"
        assert f"model='{model}'" in repr(SyncLLMService(api_key="sk-of-nobody", settings=settings))

    def test_a_model_in_two_places(self) -> None:
        with pytest.raises(ConfigurationError, match="model"):
            Endpoint("ollama:llama3.2", model="other")

    def test_all_from_the_environment(self, server: ReplayServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        server.add(Answer.text("Hello."), times=None)
        for variables in (
            {"CROSSWALK_DEFAULT_PROVIDER": "ollama:llama3.2"},
            {"CROSSWALK_DEFAULT_PROVIDER": "ollama", "CROSSWALK_OLLAMA_MODEL": "llama3.2"},
        ):
            with monkeypatch.context() as patch:
                for name, value in variables.items():
                    patch.setenv(name, value)
                with SyncLLMService() as service:
                    assert service.complete("Hi").text == "Hello."
        assert {request.json()["model"] for request in server.requests} == {"llama3.2"}

    def test_retry_timeout_and_proxy(self, server: ReplayServer) -> None:
        server.add(Answer.text("Hello."), times=None)
        endpoint = Endpoint("vllm", model="m", base_url=server.url)
        with (
            SyncLLMService(endpoint, retry=3, timeout=30) as plain,
            SyncLLMService(endpoint, proxy=server.url) as behind,
        ):
            assert plain.complete("Hi").text == behind.complete("Hi").text == "Hello."
        assert server.requests[1].target == f"{server.url}/v1/chat/completions"

    def test_a_wrong_option_names_the_right_one(self) -> None:
        for make in (LLMService, SyncLLMService):
            for wrong, right in (
                ("timout", "timeout"),
                ("retries", "retry"),
                ("max_retries", "retry"),
                ("proxies", "proxy"),
            ):
                with pytest.raises(ConfigurationError, match=f"{wrong!r}, did you mean {right!r}"):
                    make("ollama", **{wrong: 3})  # type: ignore[arg-type]
        with pytest.raises(ConfigurationError, match=r"Endpoint\(..., headers=...\)"):
            SyncLLMService("openai", headers={"a": "b"})  # type: ignore[call-arg]

    def test_a_model_without_its_provider(self) -> None:
        with pytest.raises(UnknownProviderError, match="name its provider too: 'PROVIDER:gpt-4o'"):
            SyncLLMService("gpt-4o")
        for near in ("olama", "olama:llama3.2"):
            with pytest.raises(UnknownProviderError, match="did you mean 'ollama'") as raised:
                SyncLLMService(near)
            assert "PROVIDER" not in str(raised.value)

    def test_the_address_of_one_server(self, server: ReplayServer) -> None:
        server.add(Answer.text("Hello."), times=None)
        for endpoint in ("vllm:tiny", Endpoint("vllm", model="tiny")):
            with SyncLLMService(endpoint, base_url=server.url) as service:
                assert service.complete("Hi").text == "Hello."
        assert {request.json()["model"] for request in server.requests} == {"tiny"}
        with pytest.raises(ConfigurationError, match="given twice"):
            SyncLLMService(server.url, base_url=server.url)
        with pytest.raises(ConfigurationError, match="each endpoint"):
            SyncLLMService("vllm", "ollama", base_url=server.url)

    def test_nobody_there(self, server: ReplayServer) -> None:
        url = server.url
        server.close()
        with (
            SyncLLMService("vllm:tiny", base_url=url, retry=0) as service,
            pytest.raises(ServerError, match="start the server there, or name another address"),
        ):
            service.complete("Hi")

    def test_numbers_stand_for_policies(self) -> None:
        assert RetryPolicy.of(2) == RetryPolicy(attempts=3)
        assert RetryPolicy.of(0) == RetryPolicy(attempts=1)
        assert Timeouts.of(30) == Timeouts(whole=30, between_bytes=30)
        with pytest.raises(ConfigurationError, match="retry"):
            RetryPolicy.of(-1)
        with pytest.raises(ConfigurationError, match="retry"):
            RetryPolicy.of(True)
        with pytest.raises(ConfigurationError, match="timeout"):
            Timeouts.of(0)


class TestAddressAlone:
    """16: an address and no provider: the server is asked what it is."""

    def test_an_openai_server_with_one_model(self, server: ReplayServer) -> None:
        server.add(
            Answer.of_json({"data": [{"id": "qwen", "owned_by": "vllm"}]}), path="/v1/models", times=None
        )
        server.add(Answer.text("Hello."), path="/v1/chat/completions", times=None)
        with SyncLLMService(base_url=server.url) as service:
            answer = service.complete("Hi")
            assert service.complete("Hi").text == "Hello."
        assert (answer.text, answer.metadata.provider_id) == ("Hello.", "vllm")
        assert [request.path for request in server.requests].count("/v1/models") == 1

    def test_ollama(self, server: ReplayServer) -> None:
        listed = {"models": [{"name": "llama3.2"}, {"name": "qwen"}]}
        server.add(Answer.of_json(listed), path="/api/tags", times=None)
        server.add(Answer.of_json({}, status=404), path="/v1/models", times=None)
        server.add(Answer.text("Hello."), path="/api/chat", times=None)
        with SyncLLMService(Endpoint(base_url=server.url, model="qwen")) as service:
            assert service.complete("Hi").metadata.provider_id == "ollama"
        with (
            SyncLLMService(server.url) as service,
            pytest.raises(ConfigurationError, match="llama3.2, qwen"),
        ):
            service.complete("Hi")

    def test_async(self, server: ReplayServer) -> None:
        server.add(Answer.of_json({"data": [{"id": "q", "owned_by": "llamacpp"}]}), path="/v1/models")
        server.add(Answer.text("Hello."), path="/v1/chat/completions")

        async def main() -> str:
            async with LLMService(base_url=server.url) as service:
                return (await service.complete("Hi")).metadata.provider_id

        assert asyncio.run(main()) == "llamacpp"

    def test_a_server_that_says_nothing(self, server: ReplayServer) -> None:
        server.add(Answer.of_json({}, status=404), times=None)
        with (
            SyncLLMService(base_url=server.url) as service,
            pytest.raises(ConfigurationError, match="name the provider"),
        ):
            service.complete("Hi")


class Colour(Enum):
    RED = "red"


@attrs.frozen
class OfAttrs:
    n: int


@dataclass
class OfDataclass:
    n: int


class OfPydantic(BaseModel):
    n: int


class OfDict(TypedDict):
    n: int


class OfTuple(NamedTuple):
    n: int


class TestTypes:
    """17: every type of the one door, in each place that takes one."""

    def test_classes(self, server: ReplayServer, service: SyncLLMService) -> None:
        server.add(Answer.text('{"n": 3}'), times=None)
        of_attrs: OfAttrs = service.complete_json("Hi", OfAttrs).value
        of_dataclass: OfDataclass = service.complete_json("Hi", OfDataclass).value
        of_pydantic: OfPydantic = service.complete_json("Hi", OfPydantic).value
        of_dict: OfDict = service.complete_json("Hi", OfDict).value
        of_tuple: OfTuple = service.complete_json("Hi", OfTuple).value
        assert {of_attrs.n, of_dataclass.n, of_pydantic.n, of_dict["n"], of_tuple.n} == {3}
        streamed: OfPydantic = list(service.stream_json("Hi", OfPydantic))[-1]
        assert streamed.n == 3
        answered = SyncAgent(service, output_type=OfPydantic).answer("Hi")
        assert assert_type(answered.value, OfPydantic | None) == assert_type(answered.unwrap(), OfPydantic)
        assert answered.unwrap().n == 3

    def test_an_async_agent_knows_the_type_of_its_answers(self, server: ReplayServer) -> None:
        server.add(Answer.text("[3]"), times=None)

        async def main() -> list[int]:
            async with Agent(
                Endpoint("vllm", model="m", base_url=server.url), output_type=list[int]
            ) as agent:
                async with agent.run("Hi") as run:
                    assert_type((await run.finish()).value, list[int] | None)
                return assert_type((await agent.answer("Hi")).unwrap(), list[int])

        assert asyncio.run(main()) == [3]

    def test_an_answer_that_does_not_fit_raises_when_it_is_unwrapped(
        self, server: ReplayServer, service: SyncLLMService
    ) -> None:
        server.add(Answer.text("three"), times=None)
        answered = SyncAgent(service, output_type=int).answer("Hi")
        assert answered.value is None
        with pytest.raises(AgentError, match="invalid_output"):
            answered.unwrap()

    def test_a_notebook_shows_the_options(self) -> None:
        parameters = inspect.signature(SyncAgent).parameters
        assert parameters["service"].annotation == "SyncLLMService | Endpoint | str"
        assert {"output_type", "instructions", "limits"} <= set(parameters)
        assert list(inspect.signature(SyncLLMService).parameters)[:3] == ["endpoints", "retry", "timeout"]
        assert inspect.signature(LLMService) == inspect.signature(SyncLLMService)
        of_constructor = inspect.signature(LLMService.__init__)
        assert [*of_constructor.parameters][:3] == ["self", "endpoints", "retry"]
        assert of_constructor.return_annotation is None

    def test_lists_numbers_unions_and_choices(self, server: ReplayServer, service: SyncLLMService) -> None:
        server.add(Answer.text("[1, 2]"), times=2)
        numbers: list[int] = service.complete_json("Hi", list[int]).value
        again = SyncAgent(service, output_type=list[int]).answer("Hi").value
        assert numbers == again == [1, 2]
        server.add(Answer.text('{"n": 3}'), times=2)
        assert service.complete_json("Hi", OfAttrs | OfTuple).value == OfAttrs(3)
        assert SyncAgent(service, output_type=OfAttrs | OfTuple).answer("Hi").value == OfAttrs(3)
        server.add(Answer.text('"red"'), times=3)
        assert service.complete_json("Hi", Literal["red", "blue"]).value == "red"
        assert service.complete_json("Hi", Colour).value is Colour.RED
        assert list(service.stream_json("Hi", Literal["red", "blue"]))[-1] == "red"
        server.add(Answer.text("3"))
        assert service.complete_json("Hi", {"type": "integer"}).value == 3


CALL = Answer.of_json(
    {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "1",
                            "type": "function",
                            "function": {"name": "balance", "arguments": '{"account": "a"}'},
                        }
                    ],
                },
            }
        ],
    }
)


@attrs.frozen
class Bank:
    balances: dict[str, int]


@tool
def balance(context: ToolContext[Bank], account: str) -> int:
    """Look up a balance."""
    return context.deps.balances[account]


def whose(account: str, context: ToolContext) -> str:  # type: ignore[type-arg]  # as people write it
    return f"{context.deps} {context.call.id}"


def anybody(account: str, context: ToolContext[list[str]]) -> str:
    return f"{context.deps} {context.call.id}"


class TestContext:
    """Tools get objects of the program, which the model does not see."""

    def test_a_tool_gets_the_deps_of_the_run(self, server: ReplayServer, service: SyncLLMService) -> None:
        server.add(CALL)
        server.add(Answer.text("You have 7."))
        answered = SyncAgent(service, [balance]).answer("How much?", deps=Bank({"a": 7}))
        assert [result.value for result in answered.turns[0].tool_results] == [7]
        (sent,) = server.requests[0].json()["tools"]
        assert list(sent["function"]["parameters"]["properties"]) == ["account"]

    def test_an_async_agent_streams_and_resumes_with_them(self, server: ReplayServer) -> None:
        server.add(CALL, times=2)
        server.add(Answer.text("You have 7."))

        async def main() -> list[Any]:
            async with Agent(
                Endpoint("vllm", model="m", base_url=server.url), [balance], max_turns=1
            ) as agent:
                async with agent.stream("How much?", deps=Bank({"a": 7})) as run:
                    await run.finish()
                async with agent.resume(run) as again:
                    turns = (await again.finish()).turns
                return [result.value for turn in turns for result in turn.tool_results]

        assert asyncio.run(main()) == [7, 7]

    @pytest.mark.parametrize("function", [whose, anybody])
    def test_deps_of_any_type(self, function: Any) -> None:
        (result,) = asyncio.run(
            ToolRunner([function]).run([ToolCall("1", function.__name__, '{"account": "a"}')], deps=["Ann"])
        )
        assert result.output == "['Ann'] 1"

    def test_deps_of_another_type_are_refused_before_anything_is_sent(
        self, server: ReplayServer, service: SyncLLMService
    ) -> None:
        session = ChatSession()
        with pytest.raises(ConfigurationError, match="'balance' needs deps= of type Bank, not NoneType"):
            SyncAgent(service, [balance]).answer("How much?", session=session)
        assert len(server.requests) == len(session.turns) == 0
        with pytest.raises(ConfigurationError, match="of type Bank, not str"):
            asyncio.run(ToolRunner([balance]).run([], deps="a bank"))

    def test_it_is_called_directly_with_a_context(self) -> None:
        assert balance(ToolContext(Bank({"a": 7}), ToolCall("1", "balance", "{}")), account="a") == 7

    def test_one_parameter_takes_it(self) -> None:
        def twice(one: ToolContext[Bank], two: ToolContext[Bank]) -> None: ...

        with pytest.raises(ToolDefinitionError, match="two parameters take the context: 'one' and 'two'"):
            tool(twice)


class TestMedia:
    """18: pictures, as people have them."""

    def test_a_file_bytes_and_a_path(self, tmp_path: Path) -> None:
        file = tmp_path / "cat.png"
        file.write_bytes(PNG)
        encoded = base64.b64encode(PNG).decode()
        for part in (
            ImagePart(str(file)),
            ImagePart(file),
            ImagePart(PNG),
            ImagePart(data=PNG),
            ImagePart(f"data:image/png;base64,{encoded}"),
        ):
            assert (part.data, part.media_type, part.url) == (encoded, "image/png", None)
        assert ImagePart("https://example.org/cat.png").url == "https://example.org/cat.png"

    def test_texts_and_paths_among_the_parts(self, tmp_path: Path) -> None:
        file = tmp_path / "cat.png"
        file.write_bytes(PNG)
        message = ChatMessage.user(["What is this?", file])
        assert message.text == "What is this?"
        assert message.content is not None
        assert isinstance(message.content[1], ImagePart)

    def test_a_file_that_is_not_there(self) -> None:
        with pytest.raises(ResponseValidationError, match="nowhere.png"):
            ImagePart("nowhere.png")
        with pytest.raises(ResponseValidationError, match="media_type"):
            ImagePart(b"nothing that is known")

    def test_an_address_from_a_file_of_json_never_reads_a_file(self, tmp_path: Path) -> None:
        file = tmp_path / "secret.png"
        file.write_bytes(PNG)
        assert ImagePart(url=str(file)).data is None
        said = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": str(file)}}]}
        (message,) = ChatRequest([said]).messages
        assert isinstance(message, ChatMessage)
        assert message.content is not None
        assert message.content[0] == ImagePart(url=str(file))


class TestAroundAnswers:
    """19 to 22: other things of servers than answers."""

    def test_models(self, server: ReplayServer, service: SyncLLMService) -> None:
        server.add(Answer.of_json({"data": [{"id": "a"}, {"id": "b"}]}), path="/v1/models")
        assert service.models() == ("a", "b")

    def test_models_async(self, server: ReplayServer) -> None:
        server.add(Answer.of_json({"models": [{"name": "a"}]}), path="/api/tags")

        async def main() -> tuple[str, ...]:
            async with LLMService(Endpoint("ollama", base_url=server.url)) as service:
                return await service.models()

        assert asyncio.run(main()) == ("a",)

    def test_embed(self, server: ReplayServer, service: SyncLLMService) -> None:
        data = [{"index": 1, "embedding": [3.0, 4]}, {"index": 0, "embedding": [1.0, 2]}]
        server.add(
            Answer.of_json({"data": data, "usage": {"prompt_tokens": 5, "total_tokens": 5}}), times=None
        )
        vectors = service.embed(["a", "b"])
        assert vectors.vectors == ((1.0, 2.0), (3.0, 4.0))
        assert vectors.prompt_tokens == 5
        assert service.embed(["a", "b"], model="e").model == "e"
        assert server.requests[0].path == "/v1/embeddings"

    def test_embed_ollama(self, server: ReplayServer) -> None:
        server.add(Answer.of_json({"embeddings": [[1, 2]], "prompt_eval_count": 2}), path="/api/embed")

        async def main() -> tuple[tuple[float, ...], ...]:
            async with LLMService(Endpoint("ollama", model="e", base_url=server.url)) as service:
                return (await service.embed("a")).vectors

        assert asyncio.run(main()) == ((1.0, 2.0),)

    def test_an_api_without_embeddings(self, server: ReplayServer) -> None:
        with (
            SyncLLMService(Endpoint("anthropic", model="m", base_url=server.url, api_key="k")) as service,
            pytest.raises(UnsupportedRequestError, match="embed"),
        ):
            service.embed("a")

    def test_count_tokens(self, server: ReplayServer) -> None:
        server.add(Answer.of_json({"input_tokens": 12}), path="/v1/messages/count_tokens")
        with SyncLLMService(Endpoint("anthropic", model="m", base_url=server.url, api_key="k")) as service:
            count = service.count_tokens("Hi")
        assert (count.tokens, count.is_estimated) == (12, False)

    def test_count_tokens_where_nobody_counts(self, service: SyncLLMService) -> None:
        count = service.count_tokens("Hello, world. " * 10)
        assert (count.tokens, count.is_estimated) == (35, True)

    def test_a_limit_of_concurrency(self, server: ReplayServer) -> None:
        server.add(Answer.text("Hello."), times=None)

        async def main() -> None:
            endpoint = Endpoint("vllm", model="m", base_url=server.url)
            async with LLMService(endpoint, max_concurrency=2) as service:
                await asyncio.gather(*(service.complete("Hi") for _ in range(10)))

        asyncio.run(main())
        assert server.connections <= 2
        assert len(server.requests) == 10


class TestValues:
    """23 to 25: an answer in the hands of others."""

    def test_to_dict(self) -> None:
        answer = ANSWER
        assert answer.to_dict() == to_jsonable(answer)

    def test_a_card_in_a_notebook(self) -> None:
        card = attrs.evolve(ANSWER, message=ChatMessage.assistant("<b>Hi</b>"))._repr_html_()  # type: ignore[attr-defined]  # set by a decorator
        assert "&lt;b&gt;Hi&lt;/b&gt;" in card

    def test_a_table(self) -> None:
        pandas = pytest.importorskip("pandas")
        import crosswalk

        table = crosswalk.to_pandas([ANSWER])
        assert isinstance(table, pandas.DataFrame)
        assert table.loc[0, "text"] == "Hi"
