"""`data/scores/<role>.json`, the provenance record of a score table."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, NonNegativeInt

from cleanset.edition.params import Precision
from cleanset.images.preprocessing import ResizeAndCrop
from cleanset.plumbing.json_files import JsonObject, read_json, write_json
from cleanset.plumbing.validation import Sha256
from cleanset.scoring.distance import Distance


class ScoreRecord(BaseModel, extra="forbid", frozen=True):
    """The provenance record of computed scores; nothing in it depends on the machine.

    `code` names the version of the code that turns an image into scores. `against_float64` is None for precision
    float64. `versions`: the versions of the libraries that compute. `module_sha256`: digest of the code of a custom
    model in the edition's folder; None for a network of a zoo.
    """

    role: str
    source: str
    name: str
    threat_model: str | None = None
    preprocessing: ResizeAndCrop
    weights_sha256: Sha256
    precision: Precision
    images: NonNegativeInt
    against_float64: Distance | None
    versions: dict[str, str]
    code: str
    module_sha256: Sha256 | None = None


class ListRecord(BaseModel, extra="forbid", frozen=True):
    """The provenance record of scores without a network: nothing was computed, and no crop has a prediction.

    Source lists: a published list; scores: a table of scores; random: a random order by the seed `name`, without a
    model. `list_sha256` pins the file with the scores or list of the model `name`; `listed` counts its images.
    `beyond`: the ids of the images that people took from beyond a list, from a file with `beyond_sha256`; their
    confidences are unknown, as are all in a random order.
    """

    role: str
    source: Literal["lists", "scores", "random"]
    name: str
    list_sha256: Sha256 | None
    beyond_sha256: Sha256 | None
    images: NonNegativeInt
    listed: NonNegativeInt
    beyond: list[str]


def read_record(path: Path) -> ScoreRecord | ListRecord:
    """Read a record of stage score. Raises CleansetError if it is missing or invalid."""
    what = "the output of stage score of this version"
    source = read_json(path, JsonObject, what, "run dvc repro, or dvc pull to fetch it").get("source")
    if source in ("lists", "scores", "random"):
        return read_json(path, ListRecord, what, "run dvc repro")
    return read_json(path, ScoreRecord, what, "run dvc repro")


def write_record(path: Path, record: ScoreRecord | ListRecord) -> None:
    """Write a record."""
    content = record.model_dump(mode="json")
    if isinstance(record, ScoreRecord):
        for name in ("threat_model", "module_sha256"):
            if content[name] is None:
                del content[name]
        if record.against_float64 is not None:
            content["against_float64"] = record.against_float64.as_json()
    write_json(path, content)
