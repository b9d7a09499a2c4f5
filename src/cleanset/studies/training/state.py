"""The state of an unfinished training: written whole after every epoch, refused by a run with other settings."""

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from cleanset.errors import CleansetError
from cleanset.files import remove_abandoned, replacing
from cleanset.validation import shown

_FILE = "state.pt"
_REMEDY = "remove the folder to begin again"


class StateFolder:
    """A folder with the state after the last finished epoch.

    `settings`: everything that the result depends on, of JSON's types; a state of other settings is refused.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        self.folder = folder
        # through JSON, so that tuples and lists compare as equal
        self._settings = json.loads(json.dumps(settings))

    def load(self) -> dict[str, Any] | None:
        """The state, or None if there is none. Raises CleansetError for one of other settings, and a damaged file."""
        remove_abandoned(self.folder)
        path = self.folder / _FILE
        if not path.is_file():
            return None
        try:
            content = torch.load(path, map_location="cpu", weights_only=True)
            settings, state = content["settings"], content["state"]
        except Exception:  # torch.load raises whatever the bytes lead it to
            raise CleansetError(f"{path}: not the state of a training; {_REMEDY}") from None
        if (key := _first_difference(settings, self._settings)) is not None:
            name, found, wanted = key
            raise CleansetError(
                f"{self.folder}: begun with {name} {shown(found)}, now {shown(wanted)}; expected the same settings: "
                f"put it back, or {_REMEDY}"
            )
        return dict(state)

    def save(self, state: Mapping[str, Any]) -> None:
        """Replace the state; a killed process or a full disk leaves the one before."""
        self.folder.mkdir(parents=True, exist_ok=True)
        # into memory first: torch's own writer reports a full disk as an error of its own
        buffer = io.BytesIO()
        torch.save({"settings": self._settings, "state": dict(state)}, buffer)
        with replacing(self.folder / _FILE) as partial:
            partial.write_bytes(buffer.getbuffer())


def _first_difference(one: Any, other: Any, name: str = "settings") -> tuple[str, Any, Any] | None:
    """The first key in which two settings differ, with both values; None for equal ones."""
    if one == other:
        return None
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other}):
            inner = key if name == "settings" else f"{name}.{key}"
            if (found := _first_difference(one.get(key), other.get(key), inner)) is not None:
                return found
    return name, one, other
