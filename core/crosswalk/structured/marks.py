"""The marks that may surround an answer: fences, tags, reasoning, the channels of gpt-oss.

They are facts of model families and of markup. They contain no word of prose.
"""

from __future__ import annotations

import re
from typing import Final

from crosswalk.structured.strings import decode_string

ANSWER_NAMES: Final = frozenset(("answer", "final", "final_answer", "result", "response", "output"))
"""The names of a tag or heading that mark the answer."""
_OTHER_TAGS: Final = r"json|tool_call|function_call|structured_output"
SOFT_NAMES: Final = frozenset(
    ("plan", "planning", "draft", "drafts", "analysis", "reflection", "rationale", "scratchpad", "scratch_pad", "reason",
     "deliberation")
)  # fmt: skip
"""Names of reasoning that a request may also use as the tag of an answer."""

_NAME: Final = (
    r"(?:[a-z]{1,10}[:_]|ant)?think(?:ing)?|thoughts?|reasoning|cot|chain_of_thought|inner_(?:monologue|thoughts?)"
    rf"|(?:think(?:ing)?|thought|reasoning)_(?:process|mode)|{'|'.join(SOFT_NAMES)}"
)
_OPENING: Final = (
    rf"<(?P<name>{_NAME})(?:\s[^<>\n]{{0,99}})?>|\[(?:THINK(?:ING)?|REASONING)\]|\u25c1think\u25b7"
    r"|<\|(?:START_THINKING|begin_of_thought|think(?:ing)?|reasoning)\|>|\A\s*+Here(?: is|'s) my thought process:"
    r"|<unused94>|<start_working_out>|<\|channel>thought\b|<\|im_start\|>think\b"
    r"|\A\s*+(?:assistant)?analysis(?:(?-i:(?<=analysis)(?=[A-Z{\"])(?!\w*\s*[:=]))|(?=(?s:.*)assistantfinal))"
)
_CLOSING: Final = (
    rf"</(?P<closed>{_NAME})\s*>|\[/(?:THINK(?:ING)?|REASONING)\]|\u25c1/think\u25b7"
    r"|<\|(?:END_THINKING|end_of_thought|/think(?:ing)?|/reasoning)\|>|\nHere(?: is|'s) my response:"
    r"|<unused95>|<end_working_out>|<channel\|>|<\|im_start\|>answer\b|assistantfinal"
)
CLOSING: Final = re.compile(_CLOSING, re.IGNORECASE)

_CHANNEL: Final = (
    r"(?:(?:<\|start\|>)?assistant(?P<role_recipient>\s*to=[^<]*+)?)?<\|channel\|>\s*+(?P<channel_name>\w++)(?P<recipient>[^<]*?\bto=[^<]*+)?[^<]*+"
    r"(?:<\|constrain\|>[^<]*+)?<\|message\|>"
)
CHANNEL_END: Final = re.compile(r"<\|(?:end|return|call|start|channel)\|>")

_TOOL: Final = r"(?:tool|function)s?(?:[_\u2581 -]?calls?)?[_\u2581 -]?(?:response|result|output)s?"
_ROLE: Final = r"<\|(?:im_start|start_header_id|start_of_role|start)\|>(?!(?:assistant|think|answer)\b)\w"
_HIDDEN: Final = (
    rf"(?P<tool>(?:<[|\uff5c]?|\[)(?:start_)?{_TOOL}(?:[_\u2581](?:start|begin))?(?:\s[^<>\n]{{0,99}})?(?:[|\uff5c]?>|\]))"
    rf"|(?P<role>{_ROLE})|<(?P<struck_tag>del|s|strike)(?:\s[^<>\n]{{0,99}})?>"
    r"|(?P<struck>(?<!~)~~(?!~))|(?P<comment><!--)"
)


def hidden_end(found: re.Match[str]) -> re.Pattern[str]:
    """Return the pattern that ends the hidden part that *found* begins."""
    return next(end for name, end in _ENDS.items() if found[name])


_ENDS: Final = {
    "tool": re.compile(
        rf"(?:<[|\uff5c]?|\[)(?:/{_TOOL}|end_{_TOOL}|{_TOOL}[_\u2581]end)\s*(?:[|\uff5c]?>|\])", re.IGNORECASE
    ),
    "role": re.compile(r"<\|(?:im_end|eot_id|eom_id|end_of_text|end|call|return)\|>"),
    "struck_tag": re.compile(r"</(?:del|s|strike)\s*>", re.IGNORECASE),
    "struck": re.compile(r"(?<!~)~~(?!~)"),
    "comment": re.compile("-->"),
}
_TAG: Final = (
    rf"<(?P<slash>/?)(?P<tag>{'|'.join(sorted(ANSWER_NAMES, key=len, reverse=True))}|{_OTHER_TAGS})(?:\s[^<>\n]{{0,99}})?>"
    r"|(?P<token><\|[\w/ .-]{1,40}\|>(?:(?:(?<=start\|>)|(?<=header_id\|>))assistant\b)?|</s>|<\uff5c[^<>\n]{1,40}\uff5c>"
    r"|\[/?(?:INST|TOOL_CALLS|AVAILABLE_TOOLS)\])"
)
_FENCE: Final = r"(?P<fence>^[ \t>]*+)?+(?P<ticks>`{3,}+|~{3,}+)(?P<label>\{\.\w++\}|[\w+.-]*+)"

MARK: Final = (
    rf"(?P<channel>{_CHANNEL})|(?P<opening>{_OPENING})|(?P<closing>{_CLOSING})|(?P<hidden>{_HIDDEN})"
    rf"|(?P<mark>{_TAG})|(?P<fence_mark>{_FENCE})"
)
"""Any mark. The name of the group that matched last is its kind."""

HEADING: Final = re.compile(
    r"(?:\A|\n)[ \t]*(?:#{1,6}[ \t]*([^\n#*:]{1,40}?)[ \t:#]*|\*\*([^\n*:]{1,40}):?\*\*:?[ \t]*)\n?\s*"
    r"(?:(?:```|~~~)[\w+.-]*\s*)?\Z"
)
"""A Markdown heading, or a line in bold, right before an object."""

# ------------------------------------------------------------------------------- unwrapping a whole text

_ESCAPED: Final = re.compile(r'[\[{](?:\s|\\[nrt])*+\\"')
_ESCAPED_QUOTE: Final = re.compile(r"[\[{]\s*+&(?:quot|#34|#x22);")
_ENTITIES: Final = {
    "quot": '"', "#34": '"', "#x22": '"', "#39": "'", "#x27": "'", "apos": "'", "lt": "<", "gt": ">", "amp": "&",
}  # fmt: skip
_ENTITY: Final = re.compile(f"&({'|'.join(_ENTITIES)});")
_QUOTED_LINES: Final = re.compile(r"(?:^[ \t]*+>[^\n]*+(?:\n|\Z))+", re.MULTILINE)
_QUOTED_JSON: Final = re.compile(r"^[ \t]*+>[ \t]*+(?:```|~~~|[{\[])", re.MULTILINE)
_QUOTE_MARK: Final = re.compile(r"^[ \t]*+> ?", re.MULTILINE)


def unwrapped(text: str) -> str:
    """Return *text* without the marks of a Markdown quote around JSON, and decoded if it was escaped as a whole.

    A text that has unescaped quotes is never decoded.
    """
    if "&" in text and '"' not in text and _ESCAPED_QUOTE.search(text):
        text = _ENTITY.sub(lambda entity: _ENTITIES[entity[1]], text)
    quote = text.find('"')
    is_escaped = text[quote - 1 : quote] == "\\"  # to look at the first one takes no time
    if is_escaped and _ESCAPED.search(text) and '"' not in text.replace("\\\\", "").replace('\\"', ""):
        text = decode_string(text) or text
    if ">" in text:
        text = _QUOTED_LINES.sub(_unquoted, text)
    return text


def _unquoted(lines: re.Match[str]) -> str:
    # Not within JSON that is not quoted itself: there a line that begins so is part of a text.
    is_around_json = _QUOTED_JSON.search(lines[0]) and "{" not in lines.string[: lines.start()]
    return _QUOTE_MARK.sub("", lines[0]) if is_around_json else lines[0]
