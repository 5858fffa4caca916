"""From names to services."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from crosswalk import registry
from crosswalk.errors import ConfigurationError
from crosswalk.plugins import HTTPRequest, ResponseDelta, hookimpl, take_string
from crosswalk.service import ChatRequest
from crosswalk.testing.replay import Answer, ReplayServer
from crosswalk_serve.config import load_config, located, read_config
from crosswalk_serve.routing import ModelRoute, Router

URL = "base_url: 'http://127.0.0.1:1'"


def router(models: str, more: str = "") -> Router:
    return Router(read_config(f"models:\n  {models}\n{more}", environ={}))


def found(routes: Router, name: str) -> ModelRoute:
    route = routes.find(name)
    assert route is not None
    return route


def models_asked(route: ModelRoute) -> list[str]:
    """The requests that the endpoints of each service get."""
    return [" ".join(r.endpoint.model or "-" for r in service._setup.routes) for service, _ in route.services]


def test_a_name_an_alias_and_the_longest_pattern() -> None:
    routes = router(
        f"a: {{provider: vllm, {URL}, aliases: [b]}}\n  'a-*': {{provider: vllm, {URL}}}\n  'a-b-*': {{provider: vllm, {URL}}}"
    )
    assert [found(routes, name).name for name in ("a", "b", "a-x", "a-b-x")] == ["a", "a", "a-*", "a-b-*"]
    assert routes.find("c") is None
    assert routes.names == ("a", "b", "a-*", "a-b-*")


@pytest.mark.parametrize(
    ("models", "name", "endpoint", "asked"),
    [
        (f"a: {{provider: vllm, {URL}}}", "a", "a", None),
        (f"a: {{provider: vllm, model: m, {URL}, aliases: [b]}}", "b", "m", None),
        (f"'a-*': {{provider: vllm, {URL}}}", "a-1", "-", "a-1"),
        (f"'a-*': {{provider: vllm, model: m, {URL}}}", "a-1", "m", None),
    ],
)
def test_what_the_server_is_asked_for(models: str, name: str, endpoint: str, asked: str | None) -> None:
    route = found(router(models), name)
    assert models_asked(route) == [endpoint]
    assert route.request(ChatRequest("Hi", model=name), name).model == asked


def test_a_list_is_asked_in_order_and_weights_choose_who_is_first() -> None:
    in_order = found(
        router(f"a:\n  - {{provider: vllm, model: x, {URL}}}\n  - {{provider: vllm, model: y, {URL}}}"), "a"
    )
    assert models_asked(in_order) == ["x y"]
    weighted = found(
        router(
            f"a:\n  - {{provider: vllm, model: x, weight: 3, {URL}}}\n  - {{provider: vllm, model: y, weight: 1, {URL}}}"
            f"\n  - {{provider: vllm, model: z, {URL}}}"
        ),
        "a",
    )
    assert models_asked(weighted) == ["x y z", "y x z"]
    chosen = Counter(id(weighted.service(iter([number / 1000]).__next__)) for number in range(1000))
    assert list(chosen.values()) == [750, 250]
    assert weighted.service(lambda: 1.0) is weighted.services[-1][0]
    assert weighted.service() in [service for service, _ in weighted.services]


def test_equal_endpoints_have_one_service_and_all_are_closed() -> None:
    routes = router(
        f"a: {{provider: vllm, model: m, {URL}}}\n  b: {{provider: vllm, model: m, {URL}}}\n"
        f"  c: {{provider: vllm, model: m, {URL}, headers: {{X-A: b}}}}\n  d: {{provider: vllm, model: m, {URL}, timeouts: {{total: 5}}}}"
    )
    services = [found(routes, name).services[0][0] for name in "abcd"]
    assert services[0] is services[1]
    assert len(set(map(id, services))) == 3

    async def main() -> None:
        await routes.aclose()
        for service in services:
            with pytest.raises(Exception, match="closed"):
                await service.complete("Hi")

    asyncio.run(main())


def test_defaults_and_options_stand_behind_what_the_client_says() -> None:
    route = found(
        router(
            f"a: {{provider: vllm, {URL}, options: {{min_p: 1, x: {{y: 1}}}}, defaults: {{stop: [a], temperature: 0}}}}"
        ),
        "a",
    )
    asked = route.request(ChatRequest("Hi", temperature=1, provider_options={"vllm": {"min_p": 2}}), "a")
    assert (asked.temperature, asked.stop) == (1, ("a",))
    assert asked.provider_options["vllm"] == {"min_p": 2, "x": {"y": 1}}
    plain = route.request(ChatRequest("Hi"), "a")
    assert (plain.temperature, plain.provider_options["vllm"]) == (0, {"min_p": 1, "x": {"y": 1}})


@pytest.mark.parametrize(
    ("models", "error"),
    [
        (f"a: {{provider: vllm, {URL}, defaults: {{temprature: 1}}}}", "models.a: defaults: no option of a request is called 'temprature'"),
        (f"a: {{provider: vllm, {URL}, defaults: {{messages: 1}}}}", "models.a: defaults: no option of a request is called 'messages'"),
        (f"a: {{provider: vllm, {URL}, defaults: {{temperature: hot}}}}", "models.a: temperature must be a number, at least 0"),
        ("a: {provider: vllm, base_url: nowhere://}", "models.a: vllm: base_url must be like http://host:port or https://host/path"),
        ("a: {provider: anthropic}", "models.a: anthropic: no API key; set CROSSWALK_ANTHROPIC_API_KEY or ANTHROPIC_API_KEY"),
        ("a: {provider: vllm, formats: messages}", "<config>, line 2: models.a.endpoints.0.base_url: other formats need the address of the server"),
        (f"'a*':\n  - {{provider: vllm, model: m, {URL}}}\n  - {{provider: vllm, {URL}}}", "models.a*: either each endpoint names a model, or none does"),
        (f"a:\n  - {{provider: vllm, options: {{x: 1}}, {URL}}}\n  - {{provider: vllm, {URL}}}", "models.a: options: two endpoints of vllm have different ones"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said_of_its_model(
    models: str, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(ConfigurationError) as raised:
        router(models)
    assert str(raised.value) == error


def test_a_provider_that_is_not_there() -> None:
    with pytest.raises(ConfigurationError, match="models.a: unknown provider 'vlm'") as raised:
        router(f"a: [{{provider: vllm, model: m, {URL}}}, {{provider: vlm, model: m}}]")
    assert raised.value.key == "models.a.endpoints.1.provider"


def test_a_wrong_default_is_found_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "g.yml"
    file.write_text(
        f"models:\n  a:\n    endpoints: {{provider: vllm, {URL}}}\n    defaults:\n      temprature: 1\n"
    )
    with pytest.raises(ConfigurationError) as raised:
        Router(load_config(file))
    assert str(located(raised.value, file)).startswith(f"{file}, line 5: models.a: defaults: no option")


class Parrot:
    """A stranger's plugin."""

    @hookimpl
    def map_delta(self, event: Any) -> list[ResponseDelta]:
        return [ResponseDelta(content_delta=take_string(event, "say"), raw_finish_reason="end")]

    @hookimpl
    def map_finish_reason(self, reason: str) -> str:
        return {"end": "stop"}[reason]

    @hookimpl
    def build_request(self, request: ChatRequest) -> HTTPRequest:
        return HTTPRequest("/talk", {"model": request.model})


def test_a_strangers_plugin_is_asked_as_any_other() -> None:
    registry.register(parrot := Parrot(), "parrot")
    try:
        with ReplayServer() as server:
            server.add(Answer.of_json({"say": "Hello"}))
            routes = router(f"bird: {{provider: parrot, base_url: '{server.url}'}}")

            async def main() -> str:
                route = found(routes, "bird")
                response = await route.service().complete(route.request(ChatRequest("Hi"), "bird"))
                await routes.aclose()
                return response.text

            assert asyncio.run(main()) == "Hello"
            assert server.requests[0].json() == {"model": "bird"}
    finally:
        registry.unregister(parrot, "parrot")


@pytest.mark.parametrize("place", ["retry: {after_first_token: true}", ""])
def test_what_a_client_got_cannot_be_void(place: str) -> None:
    own = "" if place else ", retry: {after_first_token: true}"
    with pytest.raises(ConfigurationError, match="after_first_token: the gateway cannot take back"):
        router(f"a: {{provider: vllm{own}}}", place)
