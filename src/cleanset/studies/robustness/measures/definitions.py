"""The two definitions of measures whose published numbers do not follow from their formulas."""

from typing import Literal, get_args

Definition = Literal["as_written", "as_published"]
DEFINITIONS: tuple[str, ...] = get_args(Definition)
"""The formula of the text, and what the published code or numbers rest on."""
