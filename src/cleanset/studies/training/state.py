"""The file with the state of a training that may be killed: its format and checks, writing and reading it."""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from cleanset.errors import CleansetError
from cleanset.plumbing.files import remove_abandoned, sha256, sha256_of, write_bytes
from cleanset.plumbing.json_files import read_json, write_json
from cleanset.scoring.parts import NOTHING, FinishedPart
from cleanset.scoring.validity import MadeFrom

STATE_FILE = "state.pt"
FINISHED_FILE = "finished.json"
_REMEDY = "remove the folder to begin again"

Row = dict[str, float]
"""A line of the history: epoch, step, train_*, validation_*, rate."""


TrainingState = dict[str, Any]
"""A training after an epoch: the states `network` and `optimizer`, and the fields of `loop.Trained`."""


@dataclass(frozen=True, slots=True)
class _Finished:
    """The content of FINISHED_FILE."""

    settings: dict[str, object]
    files: dict[str, str]
    """SHA-256 by file."""


class StateFolder:
    """A folder with the state after the last finished epoch: a line with its SHA-256, then its bytes.

    Next to the files of a finished training there is, in place of the state, a list of them with their SHA-256.
    `settings`: everything that the result depends on, of JSON's types; a state of other settings is refused.
    """

    def __init__(self, folder: Path, settings: Mapping[str, object]) -> None:
        self.folder = folder
        self._settings = settings

    def load(self) -> TrainingState | None:
        """The state, or None if it is missing. Raises CleansetError for one of other settings, and a damaged file."""
        remove_abandoned(self.folder)
        path = self.folder / STATE_FILE
        if not path.is_file():
            return None
        if (found := _content(path)) is None:
            raise CleansetError(
                f"{path}: damaged, or not the state of a training; expected the bytes whose SHA-256 it begins with: "
                f"{_REMEDY}"
            )
        self._check_settings(found["settings"])
        state: TrainingState = found["state"]
        return state

    def is_finished(self) -> bool:
        """Whether the training is finished, and its files are there. Raises CleansetError as `load` does."""
        path = self.folder / FINISHED_FILE
        if not path.is_file():
            return False
        found = read_json(path, _Finished, "the end of a training", _REMEDY)
        self._check_settings(found.settings)
        for name, digest in found.files.items():
            file = self.folder / name
            if not file.is_file() or sha256_of(file) != digest:
                raise CleansetError(
                    f"{file}: missing or damaged since the training ended; expected SHA-256 {digest}: {_REMEDY}"
                )
        return True

    def has_ended(self) -> bool:
        """Whether the training is finished, whatever its settings; its files are not looked at."""
        return (self.folder / FINISHED_FILE).is_file()

    def finish(self) -> None:
        """List the files of the finished training, and remove its state, which is larger than they are."""
        state = self.folder / STATE_FILE
        files = sorted(path for path in self.folder.rglob("*") if path.is_file() and path != state)
        digests = {path.relative_to(self.folder).as_posix(): sha256_of(path) for path in files}
        content = {"settings": dict(self._settings), "files": digests}
        write_json(self.folder / FINISHED_FILE, content)
        state.unlink()

    def _check_settings(self, found: object) -> None:
        if differences := MadeFrom(self._settings).differences(found):
            raise CleansetError(
                f"{self.folder}: begun with {differences[0].removeprefix('settings.')}; expected the same settings: "
                f"put it back, or {_REMEDY}"
            )

    def finished_part(self) -> FinishedPart:
        """What the epochs in the state have, whatever its settings; nothing for a missing or damaged state."""
        path = self.folder / STATE_FILE
        found = _content(path) if path.is_file() else None
        if found is None:
            return NOTHING
        return FinishedPart(images=found["state"]["images"], seconds=found["state"]["seconds"])

    def save(self, state: TrainingState) -> None:
        """Replace the state; a killed process or a full disk leaves the one before."""
        self.folder.mkdir(parents=True, exist_ok=True)
        # into memory first: torch's own writer reports a full disk as an error of its own
        buffer = io.BytesIO()
        torch.save({"settings": dict(self._settings), "state": state}, buffer)
        content = buffer.getvalue()
        write_bytes(self.folder / STATE_FILE, b"%b\n%b" % (sha256(content).encode(), content))


def _content(path: Path) -> dict[str, Any] | None:
    """Settings and state in a file; None if it is damaged."""
    # torch itself reads a weight with a flipped bit as another weight
    digest, _, content = path.read_bytes().partition(b"\n")
    if digest != sha256(content).encode():
        return None
    found: dict[str, Any] = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    return found
