"""Where a finished set comes from: its model, parameters, and the digests of the tables that it was made from."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cleanset.edition.params import Params
from cleanset.exports.release import Release
from cleanset.files import md5, sha256
from cleanset.scoring.record import ScoreRecord

_DETERMINING: dict[str, Any] = {
    "protocol": True,
    "dataset": {"classes", "label"},
    "models": {"__all__": {"source", "name", "threat_model", "sha256"}},  # not the path of the weights
    "select": True,
    "review": True,
    "export": {"images_per_class", "strict"},  # not the version and date of the release
}
"""The parameters that decide what is in a set, beside those of the scores, which their record has."""


@dataclass(frozen=True, slots=True)
class InputDigest:
    """A file that the set was made from: its path in the edition, its SHA-256, and its MD5, as in dvc.lock."""

    path: str
    sha256: str
    md5: str


@dataclass(frozen=True, slots=True)
class Provenance:
    """How a set was made: for which model, release and classes, with what scores, parameters and tables.

    `unreviewed_clean`: images that nobody has reviewed were taken for clean. `readings`: what was done where a
    source's text and its authors' practice differ, in sentences.
    """

    model: str
    release: Release
    classes: Sequence[int]
    images_per_class: int
    unreviewed_clean: bool
    readings: Sequence[str]
    scored: ScoreRecord
    params: Mapping[str, Any]
    inputs: Sequence[InputDigest]

    @property
    def params_sha256(self) -> str:
        """Of the parameters as JSON with sorted keys and no spaces."""
        return sha256(json.dumps(self.params, sort_keys=True, separators=(",", ":")).encode())


def determining_params(params: Params) -> dict[str, Any]:
    """The parameters that decide what is in a set, as far as params.yaml or its protocol gives them."""
    found = params.model_dump(mode="json", include=_DETERMINING, exclude_unset=True)
    return {name: values for name, values in found.items() if values}


def input_digests(folder: Path, paths: Sequence[Path]) -> list[InputDigest]:
    """The digests of files below `folder`."""
    found = []
    for path in paths:
        data = path.read_bytes()
        found.append(InputDigest(path.relative_to(folder).as_posix(), sha256(data), md5([data])))
    return found
