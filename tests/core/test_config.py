from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from crosswalk import normalize
from crosswalk.config import Settings, apply_settings, load_settings
from crosswalk.errors import ConfigurationError
from crosswalk.service import LLMService, SyncLLMService
from crosswalk.types import ToolCall

ANSWER = {
    "id": "c",
    "choices": [{"index": 0, "message": {"content": "lemonsqueezer"}, "finish_reason": "stop"}],
}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config.yml"


@pytest.fixture
def restored() -> Iterator[None]:
    yield
    apply_settings(Settings())


def test_without_file_and_environment_the_defaults_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_settings(environ={}) == Settings()
    assert Settings() == Settings(None, None, False, 200, frozenset())


def test_the_file_in_the_working_directory_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".agent").mkdir()
    (tmp_path / ".agent/config.yml").write_text("model: {default_provider: vllm}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CROSSWALK_TIMEOUT_SECONDS", "7")
    assert load_settings() == Settings("vllm", 7.0)


def test_all_keys_of_the_file(config: Path) -> None:
    config.write_text(
        """
        model:
          default_provider: ollama
          timeout_seconds: 120
        logging:
          include_response_content: true  # Truncates content in logs
          max_content_length: 0
        tools: {shell: allowed, 3: x}
        """
    )
    assert load_settings(config, {}) == Settings("ollama", 120.0, True, 0)
    assert type(load_settings(config, {}).timeout_seconds) is float


@pytest.mark.parametrize("text", ["", "model:\nlogging:\n", "model: {timeout_seconds: }", "# nothing"])
def test_what_is_empty_sets_nothing(config: Path, text: str) -> None:
    config.write_text(text)
    assert load_settings(str(config), {}) == Settings()


def test_the_environment_is_stronger(config: Path) -> None:
    config.write_text("model: {default_provider: ollama, timeout_seconds: 1}")
    environ = {
        "CROSSWALK_DEFAULT_PROVIDER": " vllm ",
        "CROSSWALK_TIMEOUT_SECONDS": "2.5",
        "CROSSWALK_INCLUDE_RESPONSE_CONTENT": "Yes",
        "CROSSWALK_MAX_CONTENT_LENGTH": "40",
        "CROSSWALK_DISABLED_PLUGINS": "acme, zeta,,",
        "CROSSWALK_OF_A_PLUGIN": "its own",
    }
    assert load_settings(config, environ) == Settings("vllm", 2.5, True, 40, frozenset({"acme", "zeta"}))


def test_an_empty_variable_sets_nothing(config: Path) -> None:
    config.write_text("model: {timeout_seconds: 1}")
    assert load_settings(config, {"CROSSWALK_TIMEOUT_SECONDS": " "}).timeout_seconds == 1.0


@pytest.mark.parametrize("text", ["off", "0", "FALSE", "no"])
def test_words_for_false(config: Path, text: str) -> None:
    config.write_text("logging: {include_response_content: true}")
    assert not load_settings(config, {"CROSSWALK_INCLUDE_RESPONSE_CONTENT": text}).include_response_content


@pytest.mark.parametrize(
    ("text", "key", "message"),
    [
        (
            "model: {timeout: 3}",
            "model.timeout",
            "unknown key 'model.timeout'; known: model.default_provider, ",
        ),
        ("logging: {on: 3}", "logging.True", "unknown key"),
        ("model: []", "model", "expected a mapping"),
        ("model: {default_provider: 3}", "model.default_provider", "expected a provider id"),
        ("model: {default_provider: ' '}", "model.default_provider", "expected a provider id"),
        ("model: {timeout_seconds: 0}", "model.timeout_seconds", "expected a number above 0"),
        ("model: {timeout_seconds: .inf}", "model.timeout_seconds", "expected a number above 0"),
        ("model: {timeout_seconds: true}", "model.timeout_seconds", "expected a number above 0"),
        ("logging: {include_response_content: 1}", "logging.include_response_content", "true or false"),
        ("logging: {max_content_length: -1}", "logging.max_content_length", "a whole number of at least 0"),
        ("logging: {max_content_length: 1.5}", "logging.max_content_length", "a whole number of at least 0"),
        ("[1, 2]", None, "expected a mapping of sections"),
        ("model: {", None, "line 1: not YAML"),
        ("secret: 2020-99-99", None, ": not YAML"),
        ("\x00", None, "not YAML"),
    ],
)
def test_what_is_wrong_in_the_file_is_named(config: Path, text: str, key: str | None, message: str) -> None:
    config.write_text(text)
    with pytest.raises(ConfigurationError, match="config.yml") as caught:
        load_settings(config, {})
    assert message in str(caught.value)
    assert (caught.value.key, caught.value.source) == (key, str(config))


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("CROSSWALK_TIMEOUT_SECONDS", "soon"),
        ("CROSSWALK_TIMEOUT_SECONDS", "nan"),
        ("CROSSWALK_INCLUDE_RESPONSE_CONTENT", "perhaps"),
        ("CROSSWALK_MAX_CONTENT_LENGTH", "-5"),
    ],
)
def test_a_wrong_variable_is_named_and_not_quoted(variable: str, text: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^environment: {variable}: expected ") as caught:
        load_settings(environ={variable: text})
    assert (caught.value.key, caught.value.source) == (variable, "environment")
    assert text not in str(caught.value)


def test_a_file_that_was_asked_for_has_to_be_there(config: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no such file"):
        load_settings(config, {})
    with pytest.raises(ConfigurationError, match="directory"):
        load_settings(tmp_path, {})


@pytest.mark.usefixtures("restored")
def test_applied_settings_say_how_much_content_is_shown() -> None:
    call = ToolCall("1", "f", '{"a": "' + "x" * 500 + '"}')
    apply_settings(Settings(max_content_length=30))
    assert len(repr(call)) < 80
    apply_settings(Settings(max_content_length=300))
    assert len(repr(call)) > 200


def test_yaml_is_loaded_only_where_a_file_exists(tmp_path: Path) -> None:
    code = "import sys, crosswalk.config as c; c.load_settings(environ={}); print('yaml' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize("kind", [LLMService, SyncLLMService])
@pytest.mark.parametrize("is_file", [True, False])
def test_a_service_that_reads_the_settings_applies_all_of_them(
    kind: type[LLMService] | type[SyncLLMService],
    is_file: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.chdir(tmp_path)
    if is_file:
        (tmp_path / ".agent").mkdir()
        (tmp_path / ".agent/config.yml").write_text(
            "model: {default_provider: vllm}\n"
            "logging: {include_response_content: true, max_content_length: 7}\n"
        )
    else:
        monkeypatch.setenv("CROSSWALK_DEFAULT_PROVIDER", "vllm")
        monkeypatch.setenv("CROSSWALK_INCLUDE_RESPONSE_CONTENT", "true")
        monkeypatch.setenv("CROSSWALK_MAX_CONTENT_LENGTH", "7")
    assert "vllm" in repr(kind())
    with caplog.at_level("DEBUG", "crosswalk"):
        response = normalize(ANSWER, "vllm")
    assert "squeezer" not in repr(response)
    logged = [str(vars(record)) for record in caplog.records]
    assert any("lemons" in text for text in logged)
    assert not any("squeezer" in text for text in logged)


@pytest.mark.usefixtures("restored")
def test_a_service_with_settings_of_its_own_leaves_the_process_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CROSSWALK_MAX_CONTENT_LENGTH", "7")
    LLMService("vllm", settings=Settings(max_content_length=3))
    assert "lemonsqueezer" in repr(normalize(ANSWER, "vllm"))


@pytest.mark.usefixtures("restored")
def test_a_service_that_cannot_be_made_applies_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CROSSWALK_MAX_CONTENT_LENGTH", "7")
    with pytest.raises(ConfigurationError, match="no endpoint"):
        LLMService()
    assert "lemonsqueezer" in repr(normalize(ANSWER, "vllm"))
