"""The facts in a docstring about a function and its parameters, in the three forms that are in use."""

from __future__ import annotations

from hypothesis import given, strategies as st

from crosswalk.agent.tools import read_docstring


def google() -> None:
    """Look it up.

    In more
    than one line.

    Args:
        city: the place: where
            it is.

            More of it.
        unit (str, optional): one of two.
        **more: anything.

    Returns:
        city: not a parameter.
    """


def numpy() -> None:
    """Look it up.

    In more
    than one line.

    Parameters
    ----------
    city : str
        The place: where
        it is.

        More of it.
    unit
        one of two.

    Returns
    -------
    city : str
        Not a parameter.
    """


def sphinx() -> None:
    """Look it up.

    In more
    than one line.

    :param city: the place: where
        it is.

        More of it.
    :param str unit: one of two.
    :returns: city: not a parameter
    :raises ValueError: never
    """


DESCRIPTION = "Look it up.\n\nIn more than one line."


def test_google() -> None:
    assert read_docstring(google) == (
        DESCRIPTION,
        {"city": "the place: where it is.\n\nMore of it.", "unit": "one of two.", "more": "anything."},
    )


def test_numpy() -> None:
    assert read_docstring(numpy) == (
        DESCRIPTION,
        {"city": "The place: where it is.\n\nMore of it.", "unit": "one of two."},
    )


def test_sphinx() -> None:
    assert read_docstring(sphinx) == (
        DESCRIPTION,
        {"city": "the place: where it is.\n\nMore of it.", "unit": "one of two."},
    )


def test_a_word_that_is_no_heading() -> None:
    def function() -> None:
        """Give the arguments back.

        Notes for the model
        Returns
        nothing at all
        """

    assert read_docstring(function)[0].endswith("Notes for the model Returns nothing at all")


def test_nothing() -> None:
    assert read_docstring(lambda: None) == ("", {})


@given(st.text("abArgs:\n -()*", max_size=80))
def test_any_text_is_read(text: str) -> None:
    def function() -> None: ...

    function.__doc__ = text
    description, parameters = read_docstring(function)
    assert isinstance(description, str)
    assert all(isinstance(word, str) for pair in parameters.items() for word in pair)
