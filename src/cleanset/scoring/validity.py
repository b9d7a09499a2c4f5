"""Whether a result, or a shard of one, may be used again, and what is told where it is computed again.

What each was made from is in one record, for scores, predictions, answers, attacks and trainings; of what is made of
images, `made_from_images` lists it. Code is named by the VERSION files of its packages, which are raised when the bytes
that the code writes change: a reworded docstring must not cost a GPU hour. Building the sample from nothing shows a
forgotten raise (tests/project/test_guard.py).
"""

import json
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from cleanset.classes import ClassTable
from cleanset.edition.versions import COMPUTING, installed_version
from cleanset.errors import CleansetError
from cleanset.plumbing.files import day_written, partial_shards, read_bytes, sha256, sha256_of
from cleanset.plumbing.json_files import JsonMapping, JsonObject, check_digest, parse_json
from cleanset.plumbing.progress import print_notice
from cleanset.plumbing.validation import check_not_newer, shown

if TYPE_CHECKING:
    from cleanset.scoring.engine import Settings
    from cleanset.scoring.models import LoadedModel


@dataclass(frozen=True, slots=True)
class MadeFrom:
    """Everything that a result depends on: values of JSON's types by name, which its record holds under these names."""

    facts: JsonMapping

    @property
    def fingerprint(self) -> str:
        """32 hexadecimal digits that differ where any fact does."""
        return sha256(json.dumps(self.facts, sort_keys=True).encode())[:32]

    def differences(self, record: object, here: str = "now") -> list[str]:
        """The reasons why a result with this record may not be used again, a phrase for each fact; empty if it may.

        Further keys of the record, such as digests of the result itself, do not count. `here`: the word before these
        facts.
        """
        if not isinstance(record, dict):
            return ["no record of its inputs"]
        # through JSON, where tuples become lists
        return list(_differences(record, json.loads(json.dumps(self.facts)), here))


def made_from_images(
    record: JsonMapping,
    *,
    images: JsonMapping,
    classes: ClassTable,
    code: Sequence[str],
    model: "LoadedModel | None",
    settings: "Settings | None",
    further: JsonMapping = MappingProxyType({}),
) -> MadeFrom:
    """Everything that a result on images depends on: what its record shows, then what it need not show.

    `images`: digests of their list. `code`: the packages that compute it. `model`: None if no model runs;
    `settings`: how it runs. `further`: what results of one kind alone depend on.
    """
    found = {**record, "code": code_of(*code), **images, "classes_sha256": classes.keys_sha256}
    if model is not None:
        found |= {"weights_sha256": model.weights_sha256, "model_code": model.code}
    if settings is not None:
        found |= below_float64(settings)
    return MadeFrom({**found, **further})


def below_float64(settings: "Settings") -> dict[str, object]:
    """Batch size and device for a precision below float64, where results depend on them; empty for float64."""
    if settings.precision == "float64":
        return {}
    return {"batch_size": settings.batch_size, "computed_on": settings.devices[0].torch.type}


def _differences(found: JsonMapping, wanted: JsonMapping, here: str, above: str = "") -> Iterable[str]:
    for key, value in wanted.items():
        name = f"{above}{key}"
        before = found.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            yield from _differences(before, value | dict.fromkeys(before.keys() - value.keys()), here, f"{name}.")
        elif before != value:
            yield f"{name} {shown(before)}, {here} {shown(value)}"


def print_again(result: Path, why: str) -> None:
    """Print why a result of an earlier run is computed again."""
    print_notice(f"{result}: computed again: {why}")


def read_finished(record: Path, made_from: MadeFrom, result: Path | None = None) -> JsonObject | None:
    """The record of a result that was made from the same; None where the result has to be computed again.

