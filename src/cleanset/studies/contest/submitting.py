"""`cleanset contest manifest`: the manifest of a submission, from its images."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from cleanset.errors import CleansetError
from cleanset.studies.contest.entries import Manifest
from cleanset.studies.contest.folder_checks import manifest_entry
from cleanset.validation import first_problem


def manifest_yaml(target: str, submitted: str, images: Sequence[Path]) -> str:
    """The manifest of a submission as YAML. Raises CleansetError for what cannot be submitted, in any contest."""
    for path in images:
        if not path.is_file():
            raise CleansetError(f"{path}: no file; expected a PNG or JPEG")
    entries = [manifest_entry(path) for path in images]
    try:
        Manifest.model_validate({"submitted": submitted, "target": target, "images": entries})
    except ValidationError as error:
        raise CleansetError(f"manifest: {first_problem(error)}") from None
    lines = [f'submitted: "{submitted}"', f"target: {target}", "images:"]
    for entry in entries:
        first, *others = (f"{key}: {_quoted(value)}" for key, value in entry.items())
        lines += [f"  - {first}", *(f"    {each}" for each in others)]
    return "\n".join(lines) + "\n"


def _quoted(value: str | int) -> str:
    """Text in quotes: a digest may look like a number."""
    return f'"{value}"' if isinstance(value, str) else str(value)
