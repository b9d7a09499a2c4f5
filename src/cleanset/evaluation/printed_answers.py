"""The answers that a program prints about the files that it was given."""

from collections.abc import Callable, Collection

from cleanset.errors import CleansetError
from cleanset.plumbing.validation import shown


def printed_answers(
    text: str, files: Collection[str], name: str, is_answer: Callable[[str], bool], *, kind: str, expected: str
) -> dict[str, str]:
    """The answer to each file, from lines `file, answer` in any order; empty lines are skipped.

    `kind` and `expected` are used in messages for the text after the comma, and for the possible answers. Raises
    CleansetError, beginning `name`, for another line, another answer, and a file without exactly one.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        file, comma, answer = (part.strip() for part in line.partition(","))
        where = f"{name}: line {number} of its output"
        if not comma or file not in files:
            raise CleansetError(f"{where}: {shown(line)}; expected a file that it was given, a comma and {kind}")
        if not is_answer(answer):
            raise CleansetError(f"{where}: answers {shown(answer)}; expected {expected}")
        if file in found:
            raise CleansetError(f"{where}: {file} a second time; expected one line for each image")
        found[file] = answer
    missing = sorted(set(files) - found.keys())
    if missing:
        raise CleansetError(
            f"{name}: no answer to {len(missing)} of {len(files)} images, {missing[0]} among them; expected a line "
            f"of a file, a comma and {kind} for each"
        )
    return found
