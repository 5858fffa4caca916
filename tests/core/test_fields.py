"""Values that compare, hash and show themselves by their fields do so as attrs would have them."""

from __future__ import annotations

import attrs
from hypothesis import given, strategies as st

from crosswalk.fields import by_fields


@attrs.frozen
class Written:
    number: int
    words: str = ""
    hidden: str = attrs.field(default="", repr=False)
    ignored: int = attrs.field(default=0, eq=False)
    unhashed: list[int] = attrs.field(factory=list, hash=False)


@by_fields
@attrs.frozen(eq=False, repr=False)
class Shared:
    number: int
    words: str = ""
    hidden: str = attrs.field(default="", repr=False)
    ignored: int = attrs.field(default=0, eq=False)
    unhashed: list[int] = attrs.field(factory=list, hash=False)


@by_fields
@attrs.frozen(eq=False, repr=False)
class Derived(Shared):
    more: int = 0


@by_fields
@attrs.frozen(eq=False, repr=False)
class Own:
    number: int

    def __hash__(self) -> int:
        return 7

    def __repr__(self) -> str:
        return "mine"


fields = st.tuples(st.integers(0, 1), st.sampled_from("ab"), st.sampled_from("xy"), st.integers(0, 1))


@given(fields, fields)
def test_it_is_what_attrs_writes(one: tuple[int, str, str, int], other: tuple[int, str, str, int]) -> None:
    assert (Shared(*one) == Shared(*other)) is (Written(*one) == Written(*other))
    assert (Shared(*one) != Shared(*other)) is (Written(*one) != Written(*other))
    assert repr(Shared(*one)) == repr(Written(*one)).replace("Written", "Shared")
    if Shared(*one) == Shared(*other):
        assert hash(Shared(*one)) == hash(Shared(*other))


def test_a_value_of_another_class_is_another() -> None:
    assert Shared(1) != Derived(1)
    assert Shared(1) != (1, "", "", 0, [])
    assert Derived(1, more=1) != Derived(1)
    assert Shared(1, unhashed=[1]) != Shared(1, unhashed=[2])
    assert {Shared(1): "a"}.get(Shared(1)) == "a"
    assert repr(Derived(1, more=2)) == "Derived(number=1, words='', ignored=0, unhashed=[], more=2)"


def test_a_hash_and_a_representation_of_its_own_stay() -> None:
    assert (hash(Own(1)), repr(Own(1))) == (7, "mine")
    assert Own(1) == Own(1)
    assert Own(1) != Own(2)
