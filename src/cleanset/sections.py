"""The base of every table of keys that is checked on reading, and the types that many of them share.

It knows neither a path nor a file's format, so that rules can be written over what was read.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from cleanset.validation import shown

Role = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=64)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Section(BaseModel):
    """A section of a params file: an unknown key, or a value of another type, is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, section: object) -> object:
        fields = cls.model_fields
        unknown = [key for key in section if key not in fields] if isinstance(section, dict) else []
        if unknown:
            raise ValueError(f"unknown key {shown(unknown[0])}; expected {', '.join(fields)}")
        return section
