"""The command `cleanset models`: show, pin, add and remove the models of an edition and their weights."""

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from rich.table import Table
from rich.text import Text

from cleanset.edition.code_link import CHECKOUT
from cleanset.edition.lists import check_list, list_files
from cleanset.edition.locks import check_idle
from cleanset.edition.models import Models, change_models, models_from_texts, pin_models, with_lists
from cleanset.edition.params import SOURCES_WITH, Model, read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.plumbing.files import sha256_of
from cleanset.plumbing.json_files import JsonObject
from cleanset.plumbing.validation import join_names
from cleanset.scoring.copied_modules import check_fit, pins_of, said_of_modules, with_modules
from cleanset.scoring.downloads import what_instead_of_weights
from cleanset.scoring.fingerprints import is_importable, sources_of, sources_sha256
from cleanset.scoring.models import preprocessing_of, weights_at_hand, weights_path
from cleanset.scoring.record import ListRecord, read_record

WeightsState = Literal["there", "missing", "other bytes", "not weights"]


@dataclass(frozen=True, slots=True)
class EnsembleModel:
    """A model of the ensemble; `weights` is relative to the edition's folder.

    SHA-256 of its weights: `found` on disk, `pinned` in params.yaml, and `scored` with, for data/scores. A published
    list, or the code of a custom model, is in place of weights; it has no `preprocessing`.
    """

    role: str
    source: str
    name: str
    threat_model: str | None
    preprocessing: str | None
    weights: str
    found: str | None
    pinned: str | None
    scored: str | None
    state: WeightsState


def members(edition: Edition) -> list[EnsembleModel]:
    """Every model of an edition, in the order of params.yaml. Downloads nothing."""
    return [_member(edition, role, model) for role, model in read_params(edition.folder).models.items()]


def _member(edition: Edition, role: str, model: Model) -> EnsembleModel:
    preprocessing = None
    if model.module is not None:
        # the code of a custom model, with all that it imports in the edition's folder, is in place of weights
        weights = next(iter(sources_of(model.module, edition.folder)), model.module)
        found = sources_sha256(model.module, edition.folder)
        pinned = model.module_sha256
        state: WeightsState = "there" if found or is_importable(model.module) else "missing"
    else:
        preprocessing = None if model.is_list else preprocessing_of(model).name
        relative = Path(model.file or "") if model.is_list else weights_path(model, Path())
        path = edition.folder / relative
        weights = relative.as_posix()
        found = sha256_of(path) if path.is_file() else None
        pinned = model.sha256
        state = "there" if found or model.source == "random" else "missing"
        if state == "there" and model.is_list and not _is_pinned_list(edition, model):
            state = "other bytes"
        elif state == "there" and not model.is_list and what_instead_of_weights(path) is not None:
            state = "not weights"
    if state == "there" and found and pinned not in (None, found):
        state = "other bytes"
    return EnsembleModel(
        role=role,
        source=model.source,
        name=model.name,
        threat_model=model.threat_model,
        preprocessing=preprocessing,
        weights=weights,
        found=found,
        pinned=pinned,
        scored=_scored_with(edition.scored_with(role), model),
        state=state,
    )


def _scored_with(path: Path, model: Model) -> str | None:
    """The SHA-256 of what a model was scored with, in the record of its scores; None without one."""
    if not path.is_file():
        return None
    record = read_record(path)
    if isinstance(record, ListRecord):
        return record.list_sha256
    return record.weights_sha256 if model.module is None else record.module_sha256


def _is_pinned_list(edition: Edition, model: Model) -> bool:
    """Whether every file of a list is there and has its SHA-256, where params.yaml has one."""
    files = {path: getattr(model, key) for key, path in list_files(edition.folder, model).items()}
    return all(path.is_file() and sha256_of(path) == digest for path, digest in files.items() if digest is not None)


def as_json(listed: list[EnsembleModel], others: Sequence[JsonObject] = ()) -> str:
    """The models for programs: a list of objects, in the order of params.yaml, then `others`."""
    return json.dumps([*(asdict(member) for member in listed), *others], indent=2)


def as_table(listed: list[EnsembleModel]) -> Table:
    """The models for people: 79 columns wide, as a SHA-256 needs."""
    return lines_table(map(_lines, listed))


def lines_table(groups: Iterable[Iterable[tuple[str, Text]]]) -> Table:
    """Groups of lines of a name and a value, an empty line between them."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for number, lines in enumerate(groups):
        if number:
            table.add_row()
        for name, value in lines:
            table.add_row(name, value)
    return table


# the name of the file of a model, by source, where it does not hold weights
_FILES = {"lists": "list", "scores": "scores", "module": "module"}


def pinned_text(found: str | None, pinned: str | None) -> str:
    """Whether a digest is pinned, in words, next to the one that was found."""
    return "the same" if found and found == pinned else pinned or "no"


def _lines(member: EnsembleModel) -> Iterator[tuple[str, Text]]:
    """Name and value of each line; as Text, since rich would take brackets in a path for markup."""
    yield "role", Text(member.role, "bold")
    yield "model", Text(" ".join(filter(None, (member.source, member.name, member.threat_model))))
    if member.preprocessing is not None:
        yield "preprocessing", Text(member.preprocessing)
    if member.source != "random":
        yield _FILES.get(member.source, "weights"), Text(member.weights)
        yield "SHA-256", Text(member.found or "")
        yield "pinned", Text(pinned_text(member.found, member.pinned))
    if member.scored is not None:
        yield "scored with", Text("the same" if member.found == member.scored else member.scored)
    yield "state", Text(member.state, "green" if member.state == "there" else "red")


def pin(edition: Edition) -> list[str]:
    """Write the SHA-256 of all unpinned weights and lists into params.yaml; return the roles.

    Missing weights are downloaded first. Other bytes are refused afterwards. The code of custom models, and what
    it opens, is pinned. Raises CleansetError while DVC is running there.
    """
    folder = edition.folder
    check_idle(folder)
    digests: dict[str, Mapping[str, Any]] = {}
    for role, model in read_params(folder).models.items():
        if model.module is not None:
            pins = pins_of(model, folder)
            if any(getattr(model, key) != pin for key, pin in pins.items()):
                digests[role] = pins
        elif not model.is_pinned:
            if model.is_list:
                digests[role] = check_list(folder, role, model)
            else:
                digests[role] = {"sha256": sha256_of(weights_at_hand(model, folder))}
    if digests:
        pin_models(folder, digests)
    return list(digests)


def change(edition: Edition, add: list[str], weights: Path | None, remove: list[str]) -> list[str]:
    """Add and remove models in params.yaml and dvc.yaml; return a line for each change.

    `add`: as `model_from_text` takes it. `weights`: a local file for the one added model. Raises CleansetError while
    DVC is running there.
    """
    check_idle(edition.folder)
    new = with_lists(models_from_texts(add), edition.folder)
    new, modules = with_modules(new, Path(), edition.folder)
    check_fit(modules, edition.folder)
    modules = {name: path for name, path in modules.items() if not (edition.folder / name).exists()}
    if weights is not None:
        if len(new) != 1:
            raise CleansetError(f"--weights {weights}: goes with one --add; found {len(new) or 'none'}")
        new = {role: with_local_weights(model, weights, edition) for role, model in new.items()}
    check_known(new)
    change_models(edition.folder, new, remove)
    for name, path in modules.items():
        (edition.folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, edition.folder / name)
    lines = [f"removed {role}; its files in data/ stay until you delete them" for role in remove]
    for role, model in new.items():
        lines.append(f"added {role}; next: {'dvc repro' if model.is_pinned else 'cleanset models --pin'}")
    lines += said_of_modules(new, modules)
    if edition.folder.resolve() in (CHECKOUT, CHECKOUT / "imagenet", CHECKOUT / "imagenet-published"):
        lines.append("the dvc.yaml of this checkout's editions now differ; a test expects them equal")
    return lines


def check_known(models: Models) -> None:
    """Raise CleansetError for a model that its source does not have, or whose preprocessing is unknown."""
    for model in models.values():
        if not model.is_list and model.source != "module":
            preprocessing_of(model)


def with_local_weights(model: Model, weights: Path, edition: Edition) -> Model:
    """The same model with the weights in a local file, and their SHA-256."""
    if model.source not in SOURCES_WITH["weights"]:
        raise CleansetError(
            f"--weights {weights}: {model.name} is {model.kind} of source {model.source}; expected a network of "
            f"{join_names(SOURCES_WITH['weights'])}"
        )
    if (other := what_instead_of_weights(weights) if weights.is_file() else "missing") is not None:
        raise CleansetError(f"{weights}: {other}; expected weights of {model.name}")
    relative = Path(os.path.relpath(weights.resolve(), edition.folder.resolve())).as_posix()
    return model.model_copy(update={"weights": relative, "sha256": sha256_of(weights)})
