"""The least that anybody's Python can do: written by hand for one very stream or body, it knows beforehand what changes.

It finds the values that change by the bytes around them, which it compares, parses these values, makes the same objects as
the delta or the response has, of the same classes and without a check, and keeps them. Of a log that is read for the
response alone it makes no deltas. Whoever reads what was not known
beforehand has more to do: to be sure of all the rest. A bar below this cannot be met in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import attrs
import orjson

from crosswalk import ResponseDelta
from crosswalk.mapping.learnt.marks import mutable_twin
from crosswalk.types import RawEvents
from crosswalk.types.json import FrozenObject

Reading: TypeAlias = Callable[[Sequence[bytes]], tuple[list[str], list[bytes]]]

__all__ = ["Reading", "maker", "parsing", "parsing_reader", "stream_readers", "text_of"]


def maker(value: Any, text: str) -> Callable[[str], Any]:
    """What makes another object like *value*, with another text where *text* stands in it."""
    names: dict[str, Any] = {"new": object.__new__}
    lines: list[str] = []

    def made(part: Any) -> str:
        """The expression for *part*."""
        if type(part) is str and part == text:
            return "text"
        if type(part) is tuple and part:
            return f"({', '.join(map(made, part))},)"
        name = f"v{len(names)}"
        names[name] = part
        if type(part) in (FrozenObject, RawEvents):
            slot, *_ = type(part).__slots__
            held = getattr(part, slot)
            if held:
                names.update({f"{name}_of": type(part), f"{name}_held": held})
                lines.append(f"{name} = new({name}_of)")
                lines.append(f"{name}.{slot} = {name}_held" + ".copy()" * (type(held) is dict))
                return f"{name}"
        elif attrs.has(type(part)):
            names.update({f"{name}_of": type(part), f"{name}_twin": mutable_twin(type(part))})
            fields = {field.name: made(getattr(part, field.name)) for field in attrs.fields(type(part))}
            lines.append(f"{name} = {name}_twin()")
            lines.extend(f"{name}.{field} = {said}" for field, said in fields.items())
            lines.append(f"{name}.__class__ = {name}_of")
        return name

    result = made(value)
    return _function("make(text)", [*lines, f"return {result}"], names)


def parsing(literals: Sequence[bytes], lines: Sequence[str], **names: Any) -> Callable[..., Any]:
    """A function ``(data, found)`` that finds in bytes what stands between these *literals*, and then runs *lines*.

    They have this as ``cuts``, and see what is in *names*. What does not have the literals gives ``None``.
    """
    first, *between, last = literals
    code = ["if not (data.startswith(first) and data.endswith(last)): return None", f"s0 = {len(first)}"]
    for number, literal in enumerate(between):
        code += [
            f"e{number} = data.find(b{number}, s{number})",
            f"if e{number} < 0: return None",
            f"s{number + 1} = e{number} + {len(literal)}",
        ]
    code.append(f"e{len(between)} = len(data) - {len(last)}")
    cuts = ", ".join(f"data[s{number}:e{number}]" for number in range(len(between) + 1))
    names |= {"first": first, "last": last, **{f"b{number}": one for number, one in enumerate(between)}}
    return _function("read(data, found)", [*code, *(line.replace("cuts", cuts) for line in lines)], names)


def text_of(delta: ResponseDelta) -> str:
    """The text, reasoning or arguments of *delta*."""
    call = delta.tool_call_delta
    return delta.content_delta or delta.reasoning_delta or (call and call.arguments_delta) or ""


def stream_readers(
    before: bytes, end: bytes, literals: Sequence[bytes], values: Sequence[Any], delta: ResponseDelta
) -> tuple[Reading, Reading]:
    """What reads a stream whose events are like one: live, an event a read; and from a log, for the response alone.

    Args:
        before: what its framing puts before it.
        end: what its framing puts behind it.
        literals: its bytes between what changes.
        values: what changes.
        delta: what it says.
    """
    text = text_of(delta)
    make, number = maker(delta, text), values.index(text)
    raw: list[bytes] = []
    texts: list[str] = []
    names = {"raw": raw, "texts": texts, "make": make, "loads": orjson.loads}
    first, *more, last = literals
    said = ["text = loads(cuts)"] if not more else [f"text = loads(b'[%b]' % b','.join((cuts)))[{number}]"]
    live_one = parsing(
        [before + first, *more, last + end],
        [f"raw.append(data[{len(before)}:{-len(end)}])", *said, "texts.append(text)", "make(text)"],
        **names,
    )
    logged_one = parsing(
        [before + first, *more, last], [f"raw.append(data[{len(before)}:])", "found += (cuts,)"], **names
    )

    def live(reads: Sequence[bytes]) -> tuple[list[str], list[bytes]]:
        raw.clear()
        texts.clear()
        for read in reads:
            live_one(read, None)
        return texts, raw

    def logged(reads: Sequence[bytes]) -> tuple[list[str], list[bytes]]:
        raw.clear()
        texts.clear()
        rest = b""
        for read in reads:
            *frames, rest = (rest + read).split(end)
            found: list[bytes] = []
            for one in frames:
                logged_one(one, found)
            texts.extend(orjson.loads(b"[%b]" % b",".join(found))[number :: len(values)])
        return texts, raw

    return live, logged


def parsing_reader(
    before: bytes, end: bytes, path: Sequence[Any], delta: ResponseDelta, text: str
) -> Reading:
    """What reads a stream from a log by parsing each event, as one must who has learnt nothing.

    Args:
        before: what its framing puts before an event.
        end: what its framing puts behind it.
        path: where in the event its text is.
        delta: what one says.
        text: the text of that one.
    """
    make = maker(delta, text)

    def logged(reads: Sequence[bytes]) -> tuple[list[str], list[bytes]]:
        texts: list[str] = []
        raw: list[bytes] = []
        rest = b""
        for read in reads:
            *frames, rest = (rest + read).split(end)
            for frame in frames:
                if not frame.startswith(before) or frame.endswith(b"[DONE]"):
                    continue
                data = frame[len(before) :]
                raw.append(data)
                holder = orjson.loads(data)
                try:
                    for key in path[:-1]:
                        holder = holder[key]
                    said = holder.pop(path[-1])
                except KeyError:
                    continue  # another event: there are some at the start and at the end
                if type(said) is str:
                    texts.append(said)
                    make(said)
        return texts, raw

    return logged


def _function(head: str, lines: Sequence[str], names: dict[str, Any]) -> Callable[..., Any]:
    exec(f"def {head}:\n" + "".join(f"    {line}\n" for line in lines), names)
    function: Callable[..., Any] = names[head.partition("(")[0]]
    return function
