"""What pydantic finds wrong, as one line for people."""

from pydantic import ValidationError


def first_problem(error: ValidationError) -> str:
    """The first wrong key, what was expected and what was found."""
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "model_type":
        key, what = key or "the file", "expected keys and values"
    else:
        what = first["msg"].removeprefix("Value error, ").replace("Input should be", "expected")
        what = what.replace("a valid integer", "an integer").replace("a valid ", "a ")
    found = "" if isinstance(first["input"], dict) else f"; found {first['input']!r}"
    return f"{key + ': ' if key else ''}{what}{found}"
