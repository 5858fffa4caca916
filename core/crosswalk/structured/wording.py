"""What the words around an object say about it: the answer, a draft, taken back, or with something left out.

Only what stands right before or right behind it is understood, in English and in the languages of the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from crosswalk.structured.languages import MARK, words

__all__ = [
    "is_among_own_keys",
    "is_awaited",
    "is_called_draft",
    "is_called_final",
    "is_left_out",
    "is_rejected",
    "says_again",
    "says_another_value",
]

_LONGEST_LABEL: Final = 80

# ------------------------------------------------------------------------------------------ before it

_FENCE: Final = re.compile(r"(?:```|~~~)[\w+.-]*\s*\Z")
_NOT_SAID: Final = (
    r"<(?:tool|function)_?(?:responses?|results?|outputs?)(?:\s[^<>\n]*)?>\s*"
    r"|(?:^|<)\W{0,3}(?:user|human|observation|tool (?:output|response|result))\b[*_`]*(?:\W{0,2}:|>)\W*"
)
"""What stands before what somebody else said: the user, or a tool."""
_DRAFT: Final = re.compile(
    rf"(?:{_NOT_SAID})\Z|"
    r"\b(?:drafts?|examples?|formats?|templates?|schema|attempt|try|guess|initial|first|before|original|old|wrong"
    r"|incorrect|previous)\b\W*(?:(?:version|answer|output|json|object|attempt|draft|try|guess|[0-9])\W*)?\Z",
    re.IGNORECASE | re.MULTILINE,
)
_FINAL: Final = re.compile(
    r"\b(?:final(?:ly)?|correct(?:ed|ion)?|revised|fixed|updated|answer|result|output)\b\W*"
    r"(?:(?:version|answer|result|output|json|object|response)\W*)?\Z",
    re.IGNORECASE,
)
_REJECTED: Final = re.compile(
    r"(?:\b(?:not|wrong|incorrect|invalid|rejected|bad)\b\W*(?:(?:version|answer|output|json|object|this|that)\W*)?"
    r"(?:would be\W*)?|\b(?:(?:only|just) an? (?:draft|example|sample)|placeholders?|templates?|dummy(?: \w+)?"
    r"|for (?:example|instance)|e\.g\.|schema example|expected format|previously|the old (?:\w+ )?was|drafts?)\W*"
    rf"|(?:{words('wrong')})\W*(?:(?:antwort|ответ|答案|回答|答え|답변?)\W*)?"
    r"|\bexamples?(?: (?:answer|json|object|output|response|of (?:the|an?) [^\n.,:;{}]{1,30}?))?(?: would be)?\W*"
    rf"|\b(?:hypothetically|if [^\n.:;{{}}]{{1,40}} (?:had|were))\b[^\n.:;{{}}]{{1,50}} would\b[^\n.;{{}}]{{0,30}}"
    r"|\bsomething (?:like|similar to|such as)(?: (?:this|that))?\W*"
    r"|\b(?:the )?(?:previous|earlier|former) (?:answer|json|object|output|response|version)(?: was)?\W*"
    r"|\b(?:formato?|formaat|формат|schema|template)\W+"
    r"(?:would be|wäre|serait|sería|seria|sarebbe|zou zijn|был бы|byłby|vore)\W*"
    rf"|{_NOT_SAID}|^\W{{0,3}}input\b\W*:\W*"
    r"|\b(?:do not|don['\u2019]t|never|avoid)\b[^\n.,:;!?]{0,40}|(?<!~)~~\s*|<(?:del|s|strike)>\s*|<!--[^<>{}\[\]]*+)\Z",
    re.IGNORECASE | re.MULTILINE,
)


def is_called_final(text: str, start: int) -> bool:
    """Whether what stands before *start* calls what begins there the answer."""
    return _FINAL.search(_label(text, start)) is not None


def is_called_draft(text: str, start: int) -> bool:
    """Whether what stands before *start* calls what begins there a draft, an example, a format …"""
    return _DRAFT.search(_label(text, start)) is not None


def _label(text: str, start: int) -> str:
    """The end of what stands before *start*, the mark of a fence left out."""
    return _FENCE.sub("", text[max(start - _LONGEST_LABEL, 0) : start])


# ------------------------------------------------------------------------------------------ behind it

_MADE_UP: Final = (
    r"(?:(?:an?|all|just|merely|only|the) )*(?:dummy|examples?|fictional|hypothetical|illustrative|invented|made[ -]up"
    r"|placeholders?|samples?|templates?)\b"
)
_NO_WORD: Final = r"(?:[^\w<]|</?\w+>)"
_RETRACTED: Final = re.compile(
    # All that is no word, as by *+, behind which Python before 3.11.5 goes on with what a group has begun in vain.
    rf"[\s`~]*+[\u274c\u2717\u2718]\s*+(?:\n|\Z)|{_NO_WORD}*(?!{_NO_WORD})(?:"
    r"(?:(?:oh|ah|uh|ugh|okay|ps)\b[ ,:]*+)?"
    r"(?:(?:oops|hmm+|scratch that|(?:up)?on (?:second thought|reflection|closer (?:look|inspection))|never ?mind)\b"
    r"|i (?:misread|miscounted|misunderstood|mistyped|overlooked)\b|make (?:that|it) [\"'`\d]"
    r"|<-+ ?(?:wrong|incorrect|not|should|no)\b"
    r"|(?:(?:the |(?<=[#/] ))[\"'`]?\w+[\"'`]? )?should (?:\w+ )?(?:be|have been|read|say) [\"'`\d]"
    r"|wrong\b(?![^.\n]{0,40}\?)|(?:not|never) (?:final|correct|right|valid)\b|error\s*+[:!]"
    r"|(?:strike|cancel|scrap|forget|scratch) (?:this|that|it)\b|i take (?:that|it) back\b"
    r"|i see (?:my|an|the) (?:error|mistake)\b"
    r"|(?:please )?(?:ignore|disregard|discard) (?:the|my) (?:\w+ )?(?:above|answer|json|object|output)\b"
    r"|(?:please )?(?:todo\W+)?(?:replace|fill in|substitute) (?:the|these|real|all|your)\b"
    r"|the (?:right|correct|actual|real|true) (?:answer|count|json|object|one|output|value)(?: (?:is|was|would|should)\b|:)"
    rf"|(?:where [^.\n]{{1,40}}|it|(?:this|that|these|those|the)(?: (?:above|data|json|numbers?|values?)){{0,2}})"
    rf" (?:is|are|was|were) {_MADE_UP}"
    rf"|{_MADE_UP}(?: (?:data|only|values?))?\s*+(?:[).]|\n|\Z)|drafts?\b\W*+(?:not|only)\b"
    r"|(?:wait|hold on|actually|sorry|correction|edit|update)(?:\W{0,2}[,.:;!\u2013\u2014\u2026]| -)"
    r"|no(?:[,;:!\u2014\u2026]|\.\s++\w)|correction\s*+\n"
    r"|(?:(?:but|please|which|i|we|was|is|have|then|later) )*(?:(?:rejected|discarded)(?:\s*+[.,;:)]| by\b)"
    r"|(?:rejected|discarded|withdrew|dropped|ignore|disregard|discard) (?:it|this|that|the above)\b)"
    r"|(?:this|that|it|the above)(?: \w+)? (?:is|was) "
    r"(?:wrong|incorrect|invalid|rejected|not (?:right|correct|valid))\b"
    r"|i (?:made (?:a mistake|an error)|was wrong|got (?:it|that) wrong)\b"
    r"|my (?:mistake|bad|error)\b|let me (?:correct|double|fix|re-?check|reconsider|redo|revise|start over|try)\b"
    rf"|(?:{words('wait')})\s?(?:{MARK}|[.\u3002]| -)|(?:{words('no')})\s?(?:{MARK}|[.\u3002]\s*+\w)|{words('is_wrong')}))",
    re.IGNORECASE,
)
"""How a model that takes back what it has just written goes on, with its first word."""
_AWAITED: Final = re.compile(
    r"\b(?:final|correct(?:ed|ion)?|revised|fixed|updated)\b[^\n:{}<>]*:\W*\Z"
    r"|<(?:final|corrected|revised|answer|tool_call|function_call)\w*>\s*\Z",
    re.IGNORECASE,
)
"""How an answer ends after which another was to come."""
_OPERAND: Final = re.compile(r"""\s*+[+*]\s*+[\[{("'\d]|\.\w+\s*+[(=]|\[["']|\s+if\b[^\n]{1,80}\belse\b""")
"""What makes an object the operand of a program."""
_REMARK: Final = re.compile(
    r"[\s`~]*+(?:(?P<dots>(?:\.{3}|\u2026)++(?=\s|\Z))|(?P<bare>(?:and|plus) [0-9]+ (?:more|others)\b)"
    r"|[(\[\uff08](?P<said>[^()\[\]\uff08\uff09\n]{1,80})[)\]\uff09])"
)
_LEFT_OUT: Final = re.compile(
    r"\.\.|\u2026|\b(?:(?:and )?[0-9]+ (?:\w+ )?(?:more|others)|and more|etc|truncated|cut off|continued|abbreviated"
    rf"|shortened)\b|{words('left_out')}",
    re.IGNORECASE,
)


def is_rejected(text: str, start: int, end: int) -> bool:
    """Whether the object from *start* to *end* is introduced as no answer, taken back, or an operand of a program."""
    return (
        _REJECTED.search(_label(text, start)) is not None
        or _RETRACTED.match(text, end) is not None
        or _OPERAND.match(text, end) is not None
    )


def is_awaited(text: str, end: int) -> bool:
    """Whether *text*, in which no object begins behind *end*, ends with the announcement of one."""
    return _AWAITED.search(text, max(end, len(text) - _LONGEST_LABEL)) is not None


def is_left_out(text: str, end: int) -> bool:
    """Whether the text says, right after the object that ends there, that something is left out."""
    remark = _REMARK.match(text, end)
    if remark is None:
        return False
    if remark["bare"]:
        return True
    if remark["dots"]:  # an excerpt has them at both ends
        return not text.lstrip().startswith(("...", "\u2026"))
    return _LEFT_OUT.search(remark["said"]) is not None


# ------------------------------------------------------------------------------------- its keys again

_MEMBER: Final = re.compile(
    r"""(?:["'`](?=[\w$-]+["'`])|\b\.(?=\w+\s*+[-+*/]?=[^=]))([\w$-]+)["'`]?\]?\s*+[-+*/]?[:=]\s*+[^\s}]"""
)
_YAML_KEY: Final = re.compile(r"(?:\A|\n)[ \t]*(?:- )?[\w-]+:[ \t]*\Z")
_YAML_MEMBER: Final = re.compile(r"^[ \t]*(?:- )?([\w-]+):[ \t]++\S", re.MULTILINE)
_FLAGS: Final = ("true", "false")
_SAYS_VALUE: Final = re.compile(
    r"(?<!\bif )(?<!\bif the )(?<!\bwhen )(?<!\bwhen the )\b([A-Za-z_][\w-]*)[\"'`*]*"
    r"(?: (?:is|was|equals|(?:should|must|has to) (?:be|have been))"
    r"(?: (?:actually|really|rather|in fact|only|now))?|\s?[:=\u2192])"
    r" [\"'`*]*(-?[0-9]+(?:\.[0-9]+)?|true|false)(?![\w%/:-]|[.,][0-9])"
)


def says_again(keys: frozenset[str], rest: str) -> bool:
    """Whether *rest*, in which no object begins, has one of *keys* with a value: a correction that lost its bracket."""
    return not keys.isdisjoint(_MEMBER.findall(rest))


def says_another_value(rest: str, data: Mapping[str, Any]) -> bool:
    """Whether *rest* begins with a sentence that gives a key of *data* another number, or another of true and false."""
    for key, word in _SAYS_VALUE.findall(rest[:_LONGEST_LABEL]):
        value = data.get(key)
        if type(value) is bool and word in _FLAGS:
            if value is not (word == "true"):
                return True
        elif type(value) in (int, float) and word not in _FLAGS and value != float(word):
            return True
    return False


def is_among_own_keys(text: str, start: int, end: int, keys: Iterable[str]) -> bool:
    """Whether the object from *start* to *end* is the value of one key of YAML, and others beside it are its own *keys*."""
    if _YAML_KEY.search(text[max(start - _LONGEST_LABEL, 0) : start]) is None:
        return False
    return not set(keys).isdisjoint(_YAML_MEMBER.findall(text[:start] + text[end:]))
