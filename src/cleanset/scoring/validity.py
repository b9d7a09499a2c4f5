"""Whether a result, or a shard of one, may be used again, and what is reported if it is computed again.

What each was made from is in one record, for scores, predictions, answers, attacks and trainings; `made_from_images`
lists it for what is made of images. Code is identified by the VERSION files of its packages, which are raised when the
bytes that the code writes change: a reworded docstring must not cost a GPU hour. Building the sample from nothing shows
a forgotten raise (tests/project/test_guard.py).
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
    """The record of a result that was made from the same; None if the result has to be computed again.

    `result`: a file whose SHA-256 the record has as `predictions_sha256`. Prints the differences, or the result's date.
    None, too, if the record or the result is missing, damaged or edited. Raises CleansetError for a record of a newer
    version.
    """
    try:
        content = parse_json(read_bytes(record), str(record), "a record")
    except (OSError, CleansetError):
        return None
    check_not_newer(content, record)
    try:
        if differences := made_from.differences(content):
            print_again(result or record, "; ".join(differences))
            return None
        check_digest(content, record, "remove it")
        if result is not None and content["predictions_sha256"] != sha256_of(result):
            print_again(result, f"not the bytes that {record} names")
            return None
        day = day_written(record)
    except (OSError, LookupError, CleansetError):
        return None
    # what a model reads without our seeing it cannot be among the facts
    print_notice(f"{result or record}: reusing the answers of {day}; --fresh computes them again")
    return dict(content)


def forget_results(folder: Path | None) -> None:
    """Remove the records of results below a folder, and what is finished of others, so that all is computed again."""
    if folder is None:
        return
    for path in folder.rglob("*.json"):
        with suppress(OSError, CleansetError):
            content = parse_json(read_bytes(path), str(path), "a record")
            if isinstance(content, dict) and "code" in content:
                path.unlink()
    for shards in folder.rglob(partial_shards(Path("*")).name):
        shutil.rmtree(shards)


def code_of(*packages: str) -> str:
    """The versions of the code in packages of cleanset: `scoring 2, studies/robustness 3`."""
    return ", ".join(f"{each} {files('cleanset').joinpath(each, 'VERSION').read_text().strip()}" for each in packages)


def library_versions(libraries: Iterable[str] = COMPUTING) -> dict[str, str]:
    """The installed versions of libraries, without their local part: 2.11.0 for 2.11.0+cpu.

    Those that are not installed are left out: RobustBench, for example, is needed by its own models alone.
    """
    return {name: found for name in libraries if (found := installed_version(name)) is not None}
