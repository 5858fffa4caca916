"""Requests for effort and for other options reach each model in a form that it takes, or are refused by name."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from crosswalk.service import ChatRequest, UnsupportedRequestError, build_http_request
from model_requests import EFFORTS, KEPT_BACK, NEIGHBOURS, PAIRS, REFUSED, WORDS, about_thinking

BARE: dict[str, Any] = {"messages": "Hi"}


@pytest.mark.untraced
@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize(("provider", "model"), EFFORTS)
def test_effort_reaches_each_model_in_its_own_words(provider: str, model: str, word: str) -> None:
    wanted = EFFORTS[provider, model][word]
    request = ChatRequest("Hi", model=model, reasoning_effort=word)
    if wanted == REFUSED:
        with pytest.raises(UnsupportedRequestError) as caught:
            build_http_request(request, provider)
        assert caught.value.options == ("reasoning_effort",)
        assert model in str(caught.value)
        return
    built = build_http_request(request, provider)
    assert about_thinking(built.body) == wanted
    assert not any(one.refuses for one in built.adaptations)
    is_same = word == "none" or f"{word!r}" in str(wanted).lower()
    changes = [change for change in built.adaptations if change.field == "reasoning_effort"]
    assert [change.asked for change in changes] == ([] if is_same else [word])


@pytest.mark.parametrize(
    ("provider", "model", "options", "wanted"), [*PAIRS, *NEIGHBOURS, *KEPT_BACK], ids=str
)
def test_each_option_reaches_a_model_or_is_refused_by_name(
    provider: str, model: str, options: dict[str, Any], wanted: Any
) -> None:
    request = ChatRequest(**{**BARE, "model": model, **options})
    if isinstance(wanted, str):
        with pytest.raises(UnsupportedRequestError, match=model.replace(".", r"\.")) as caught:
            build_http_request(request, provider)
        assert caught.value.options == (wanted,)
        return
    body = build_http_request(request, provider).body
    assert {name: body.get(name) for name in wanted} == wanted


# ------------------------------------------------------------------- the facts page beside the project, as a judge

FACTS = Path(__file__).parents[3] / "../shared/providers/model_classes.json"
needs_facts = pytest.mark.skipif(not FACTS.is_file(), reason=f"{FACTS.name} is not beside the project")
_FIVE = ["low", "medium", "high", "xhigh", "max"]
_LIST = re.compile(r"A5(?:\[:(\d)\])?")


def _arguments(rule: str) -> tuple[str, list[Any]]:
    """Return the name and the arguments of *rule*, such as ``claude(True,A5[:3],True)``."""
    name, _, inside = rule.rstrip(")").partition("(")
    plain = _LIST.sub(
        lambda match: json.dumps(_FIVE[: int(match[1] or 5)]), inside.replace('["none"]+A5', "SIX")
    )
    return name, ast.literal_eval(f"[{plain.replace('SIX', str(['none', *_FIVE]))}]")


def _takes(rule: str, model: str, body: dict[str, Any]) -> bool:
    """Return whether the vendor takes what *body* says about thinking, by the *rule* of the facts page."""
    said = about_thinking(body)
    if rule.startswith("body:"):
        kind = said.get("thinking", {}).get("type")
        return {
            "kimi-k2.6": kind in ("enabled", "disabled"),
            "glm-5.3": kind != "disabled" and said.get("reasoning_effort") in (None, "low", "high", "max"),
            "gpt-oss:20b": said.get("think") in ("low", "medium", "high"),
            "llama3.2": said.get("think", False) is False,
        }.get(model, True)
    name, arguments = _arguments(rule)
    if name == "word":
        word = said.get("reasoning_effort", said.get("reasoning", {}).get("effort"))
        return word is None or word in arguments[0]
    if name == "gem":
        thinking = said.get("thinkingConfig", {})
        level, budget = thinking.get("thinkingLevel"), thinking.get("thinkingBudget")
        if level is not None:
            return level.lower() in arguments[0]
        return arguments[1] if budget == 0 else budget is None or not arguments[0]
    takes_adaptive, words, takes_disabled = arguments
    thinking = said.get("thinking", {})
    if thinking.get("type") == "enabled" and not thinking["budget_tokens"] < body["max_tokens"]:
        return False
    effort = said.get("output_config", {}).get("effort")
    types = {"adaptive": takes_adaptive, "enabled": not takes_adaptive or model.endswith("4-6")}
    types |= {"disabled": takes_disabled, "between_tools": model.startswith("claude-sonnet-5-5"), None: True}
    return types[thinking.get("type")] and (effort is None or effort in words)


@needs_facts
def test_the_300_requests_of_the_facts_page() -> None:
    bar = json.loads(FACTS.read_bytes())["effort_bar"]
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    for row in bar["models"]:
        provider, model, rule = row["provider"], row["model"], row["rule"]
        for word in bar["words"]:
            request = ChatRequest("Hi", model=model, reasoning_effort=word)
            try:
                built = build_http_request(request, provider)
            except UnsupportedRequestError:
                has_form = word != "none" or EFFORTS[provider, model]["none"] != REFUSED
                verdict = "refused, though a form exists" if has_form else "rightly refused"
            else:
                is_named = any(change.field == "reasoning_effort" for change in built.adaptations)
                if not _takes(rule, model, built.body):
                    verdict = "refused by the vendor"
                elif about_thinking(built.body) or word == "none":
                    verdict = "taken"
                else:
                    verdict = "left out and named" if is_named else "without effect and unnamed"
                    if EFFORTS[provider, model][word] != {}:
                        verdict = "dropped though the model takes it"
            counts[verdict] += 1
            if verdict not in ("taken", "rightly refused", "left out and named"):
                wrong.append(f"{provider}:{model} {word}: {verdict}")
    assert not wrong
    assert sum(counts.values()) == 300
    assert set(counts) == {"taken", "rightly refused", "left out and named"}


@needs_facts
def test_the_facts_page_has_the_same_requests() -> None:
    page = json.loads(FACTS.read_bytes())
    assert {(row["provider"], row["model"]) for row in page["effort_bar"]["models"]} == set(EFFORTS)
    assert [(row["provider"], row["model"]) for row in page["pairs"]] == [pair[:2] for pair in PAIRS]
