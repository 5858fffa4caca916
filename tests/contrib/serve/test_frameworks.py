"""LangChain's three clients and ``llm``, unchanged, against a gateway; where they are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from contrib_serve import Live, says, streams
from crosswalk.testing.replay import ReplayServer
from leaving import collect_garbage

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """LangChain closes no client: their sockets go with the test, while its warnings are passed over."""
    yield
    collect_garbage()


def _openai(url: str) -> Any:
    return pytest.importorskip("langchain_openai").ChatOpenAI(
        model="tiny", base_url=f"{url}/v1", api_key="none", stream_usage=True
    )


def _responses(url: str) -> Any:
    return pytest.importorskip("langchain_openai").ChatOpenAI(
        model="tiny", base_url=f"{url}/v1", api_key="none", use_responses_api=True
    )


def _anthropic(url: str) -> Any:
    return pytest.importorskip("langchain_anthropic").ChatAnthropic(
        model="tiny", base_url=url, api_key="none", max_tokens=100
    )


def _ollama(url: str) -> Any:
    return pytest.importorskip("langchain_ollama").ChatOllama(model="tiny", base_url=url)


MODELS = {"openai": _openai, "responses": _responses, "anthropic": _anthropic, "ollama": _ollama}


@pytest.mark.parametrize("of", MODELS.values(), ids=MODELS)
class TestLangChain:
    @pytest.mark.sweep
    def test_whole(self, of: Callable[[str], Any], gateway: Live, upstream: ReplayServer) -> None:
        upstream.add(says("Hello"))
        answer = of(gateway.url).invoke("Hi")
        assert answer.text == "Hello"
        assert answer.usage_metadata["total_tokens"] == 13

    @pytest.mark.sweep
    def test_streamed(self, of: Callable[[str], Any], gateway: Live, upstream: ReplayServer) -> None:
        upstream.add(streams("Hel", "lo"))
        assert "".join(chunk.text for chunk in of(gateway.url).stream("Hi")) == "Hello"

    @pytest.mark.sweep
    def test_a_tool_over_two_turns(
        self, of: Callable[[str], Any], gateway: Live, upstream: ReplayServer
    ) -> None:
        def weather(city: str) -> str:
            """The weather there."""
            return f"sunny in {city}"

        messages = pytest.importorskip("langchain_core.messages")
        function = {"name": "weather", "arguments": '{"city":"Paris"}'}
        upstream.add(says("", tool_calls=[{"id": "call_1", "type": "function", "function": function}]))
        model = of(gateway.url).bind_tools([weather])
        asked = messages.HumanMessage("The weather in Paris?")
        answer = model.invoke([asked])
        (call,) = answer.tool_calls
        assert (call["name"], call["args"]) == ("weather", {"city": "Paris"})
        upstream.add(says("Sunny."))
        result = messages.ToolMessage(weather(**call["args"]), tool_call_id=call["id"])
        assert model.invoke([asked, answer, result]).text == "Sunny."
        *_, called, said = upstream.requests[-1].json()["messages"]
        assert (said["role"], said["content"]) == ("tool", "sunny in Paris")
        assert said["tool_call_id"] == called["tool_calls"][0]["id"]


def test_llm_asks(gateway: Live, upstream: ReplayServer, tmp_path: Path) -> None:
    command = shutil.which("llm")
    if command is None:
        pytest.skip("llm is not installed")
    (tmp_path / "extra-openai-models.yaml").write_text(
        f"- model_id: tiny\n  model_name: tiny\n  api_base: {gateway.url}/v1\n"
    )
    upstream.add(streams("Hel", "lo"))
    done = subprocess.run(
        [command, "-m", "tiny", "Hi"],
        env={**os.environ, "LLM_USER_PATH": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stdout) == (0, "Hello\n"), done.stderr
