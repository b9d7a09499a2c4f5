"""A key of any local page, as the browser sends it."""

from pydantic import BaseModel, ConfigDict


class SentKey(BaseModel):
    """A key as the browser sends it. `number`: counts the keys of a tab; `seen`: the images on screen then."""

    model_config = ConfigDict(frozen=True, strict=True)

    key: str
    number: int
    seen: list[str]
