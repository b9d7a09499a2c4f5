"""The further models of an edition's study of robustness, for `cleanset models`."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table
from rich.text import Text

from cleanset.edition.params import Model, read_params
from cleanset.edition.paths import Edition
from cleanset.scoring.models import preprocessing_of, sha256_of, weights_path
from cleanset.studies.robustness.params import TrainedModel
from cleanset.studies.robustness.settings import read_study_params
from cleanset.studies.robustness.study import Study
from cleanset.studies.robustness.trained_models import trained_preprocessing


@dataclass(frozen=True, slots=True)
class FurtherMember:
    """A model of `further_models`; `classes`: the number that it has, `weights` relative to the edition's folder.

    `model`: source and name, or module:callable, of which nothing else is known.
    """

    role: str
    model: str
    classes: int | None = None
    preprocessing: str | None = None
    trained_on: tuple[str, ...] = ()
    weights: str | None = None
    found: str | None = None
    pinned: str | None = None
    state: str | None = None


def further_members(edition: Edition) -> list[FurtherMember]:
    """Every model of `further_models`, in their order; none without a study of robustness."""
    study = Study(edition.folder / "studies" / "robustness")
    if not study.params_yaml.is_file():
        return []
    params = read_study_params(study.params_yaml, list(read_params(edition.folder).models))
    return [_member(edition, role, entry) for role, entry in params.further_models.items()]


def _member(edition: Edition, role: str, entry: Model | str) -> FurtherMember:
    if isinstance(entry, str):
        return FurtherMember(role, entry)
    path = edition.folder / weights_path(entry, edition.folder)
    found = sha256_of(path) if path.is_file() else None
    size = entry.size if isinstance(entry, TrainedModel) else None
    seen = preprocessing_of(entry) if size is None else trained_preprocessing(size)
    return FurtherMember(
        role,
        " ".join(filter(None, (entry.source, entry.name, entry.threat_model))),
        len(entry.classes) if isinstance(entry, TrainedModel) and entry.classes else None,
        seen.name,
        tuple(entry.trained_on) if isinstance(entry, TrainedModel) else (),
        path.relative_to(edition.folder).as_posix(),
        found,
        entry.sha256,
        "missing" if found is None else "there" if entry.sha256 in (None, found) else "other bytes",
    )


def as_objects(listed: list[FurtherMember]) -> list[dict[str, Any]]:
    """The models for programs; `study` tells them from those of the ensemble."""
    return [{"study": "robustness", **asdict(member)} for member in listed]


def as_table(listed: list[FurtherMember]) -> Table:
    """The models for people, as those of the ensemble are shown."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for member in listed:
        table.add_row()
        for name, value in _lines(member):
            table.add_row(name, value)
    return table


def _lines(member: FurtherMember) -> Iterator[tuple[str, Text]]:
    """Name and value of each line; as Text, since rich would take brackets in a path for markup."""
    yield "role", Text(member.role, "bold").append(" (further model of studies/robustness)", "not bold")
    yield "model", Text(member.model)
    if member.weights is None:
        return
    if member.classes is not None:
        yield "classes", Text(str(member.classes))
    yield "preprocessing", Text(member.preprocessing or "")
    if member.trained_on:
        yield "trained on", Text(", ".join(member.trained_on))
    yield "weights", Text(member.weights)
    yield "SHA-256", Text(member.found or "")
    yield "pinned", Text("the same" if member.found and member.found == member.pinned else member.pinned or "no")
    yield "state", Text(member.state or "", "green" if member.state == "there" else "red")
