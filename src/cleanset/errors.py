"""The exception for problems that a user can fix; any text as one line of bounded length."""

MAX_LINE = 600
"""Characters of a message: the longest list of known names, two paths and a remedy. Longer ones are cut."""


class CleansetError(Exception):
    """A problem that a user can fix.

    The message is one line: the object, what was found, what was expected, what to do. Characters
    that would break the line or hide a part of it are shown escaped, wherever they came from.
    """

    def __str__(self) -> str:
        return cut(one_line(super().__str__()), MAX_LINE)


def one_line(text: str) -> str:
    """The text with every character that is not printable escaped: line breaks, NEL, U+2028, controls, surrogates."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def cut(text: str, length: int) -> str:
    """The text; one of more than `length` characters with its middle left out, and their number behind it."""
    if len(text) <= length:
        return text
    number = f" ({len(text):,} characters)"
    kept = max(length - len(number) - 1, 2)
    return f"{text[: (kept + 1) // 2]}…{text[-(kept // 2) :]}{number}"


def reason(error: BaseException, length: int = 120) -> str:
    """The message of a library's exception on one line, cut to `length`; its type if it has no message."""
    return cut(one_line(" ".join(str(error).split())) or type(error).__name__, length)
