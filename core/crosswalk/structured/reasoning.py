"""What stands around an answer and is none of it: the model's reasoning, and the marks of a Markdown quote."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["without_reasoning"]

_NAME: Final = (
    r"(?:(?:[a-z]{1,10}[:_]|ant)?think(?:ing)?|thoughts?|reasoning|reflection|scratch_?pad|analysis|rationale|cot"
    r"|chain_of_thought|reason|plan(?:ning)?|drafts?|deliberation|inner_(?:monologue|thoughts?)|(?:think(?:ing)?|thought|reasoning)_(?:process|mode))"
)
_OPENING: Final = (
    rf"<{_NAME}(?:\s[^<>\n]{{0,99}})?>|\[(?:THINK(?:ING)?|REASONING)\]|\u25c1think\u25b7"
    r"|<\|(?:START_THINKING|begin_of_thought|think(?:ing)?|reasoning)\|>|\A\s*+Here(?: is|'s) my thought process:"
    r"|<unused94>|<start_working_out>|<\|channel>thought\b|<\|im_start\|>think\b"
)
_CLOSING: Final = (
    rf"</{_NAME}\s*>|\[/(?:THINK(?:ING)?|REASONING)\]|\u25c1/think\u25b7"
    r"|<\|(?:END_THINKING|end_of_thought|/think(?:ing)?|/reasoning)\|>|\nHere(?: is|'s) my response:"
    r"|<unused95>|<end_working_out>|<channel\|>|<\|im_start\|>answer\b"
)
_BRACKETED: Final = re.compile(r"\[/?(?:THINK|REASONING)", re.IGNORECASE)
_SAID_FIRST: Final = re.compile(r"\s*+(?:analysis|here)", re.IGNORECASE)
_SAID_LATER: Final = re.compile(r"\nhere(?: is|'s) my", re.IGNORECASE)
_IN_EVERY_MARK: Final = (
    "think",
    "though",
    "reasoning",
    "reflection",
    "scratch",
    "analysis",
    "rationale",
    "cot>",
    "reason>",
    "plan>",
    "planning>",
    "draft>",
    "drafts>",
    "deliberation>",
    "monologue",
    "working_out>",
    "<unused9",
    "<channel|>",
    "<|channel|>",
    "<|im_start|>",
)
# A mark in a string of JSON is a word like any other. Such a string stands in one line, and begins where a value does.
_MARK: Final = re.compile(
    rf'(?<![^\s{{\[,:(=])"(?:[^"\\\n]++|\\[^\n])*+"|(?P<opening>{_OPENING})|(?P<closing>{_CLOSING})',
    re.IGNORECASE,
)
_END: Final = re.compile(_CLOSING, re.IGNORECASE)

# The channels of gpt-oss ("harmony"), and what is left of their marks where a server drops special tokens.
_CHANNEL: Final = re.compile(
    r"<\|channel\|>\s*+(\w++)[^<]*+(?:<\|constrain\|>[^<]*+)?<\|message\|>"
    r"(.*?)(?=<\|(?:end|return|call|start|channel)\|>|\Z)",
    re.DOTALL,
)
_BARE_CHANNELS: Final = re.compile(r"\A\s*+analysis(?:.*assistantfinal(?P<final>.*)|(?=[A-Z{\"]))", re.DOTALL)

_QUOTED_LINES: Final = re.compile(r"(?:^[ \t]*+>[^\n]*+(?:\n|\Z))+", re.MULTILINE)
_QUOTED_JSON: Final = re.compile(r"^[ \t]*+>[ \t]*+(?:```|~~~|[{\[])", re.MULTILINE)
_QUOTE_MARK: Final = re.compile(r"^[ \t]*+> ?", re.MULTILINE)


def without_reasoning(text: str) -> tuple[str, bool]:
    """*text* without what the model thought before it answered, and without the marks of a quote around JSON.

    Returns:
        What is left, and whether the reasoning is never closed, so that nothing of an answer has come.
    """
    is_open = False
    if _may_hold_marks(text):
        text, is_open = _answered(text)
    if ">" in text:
        text = _QUOTED_LINES.sub(_unquoted, text)
    return text, is_open


def _may_hold_marks(text: str) -> bool:
    """Whether a mark begins somewhere, and one of their words stands there: most texts have none, and cost little."""
    if not (
        "<" in text
        or "\u25c1" in text
        or _SAID_FIRST.match(text)
        or _BRACKETED.search(text)
        or _SAID_LATER.search(text)
    ):
        return False
    lowered = text.lower()
    return any(word in lowered for word in _IN_EVERY_MARK)


def _answered(text: str) -> tuple[str, bool]:
    if "<|channel|>" in text:
        final = [said for channel, said in _CHANNEL.findall(text) if channel == "final"]
        return "\n".join(final), not final
    if bare := _BARE_CHANNELS.match(text):
        return bare["final"] or "", bare["final"] is None
    kept: list[str] = []
    start = position = 0
    while mark := _MARK.search(text, position):
        position = mark.end()
        if mark["closing"]:
            kept.clear()  # all before it was reasoning: where it began stood in the request
            start = position
        elif mark["opening"]:
            kept.append(text[start : mark.start()])
            end = _END.search(text, position)
            if end is None:
                return "\n".join(kept), True
            start = position = end.end()
    return "\n".join([*kept, text[start:]]), False


def _unquoted(lines: re.Match[str]) -> str:
    # Not within JSON that is not quoted itself: there a line that begins so is part of a text.
    is_around_json = _QUOTED_JSON.search(lines[0]) and "{" not in lines.string[: lines.start()]
    return _QUOTE_MARK.sub("", lines[0]) if is_around_json else lines[0]
