"""Further models of a study of robustness, as `cleanset models` lists them."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from rich.table import Table
from rich.text import Text

from cleanset.edition.paths import Edition
from cleanset.evaluation.trained import preprocessing_of_entry
from cleanset.plumbing.files import sha256_of
from cleanset.scoring.ensemble import lines_table, pinned_text
from cleanset.scoring.models import weights_path
from cleanset.studies.robustness.families import OpenedStudy
from cleanset.studies.robustness.images import Study
from cleanset.studies.robustness.params import FurtherModel


@dataclass(frozen=True, slots=True)
class FurtherMember:
    """A model of `further_models`, as `cleanset models` lists it; only role and model are known for a custom model."""

    role: str
    """Its name."""
    model: str
    """Source and name, or module:callable."""
    classes: int | None = None
    """The number of its classes; None: all."""
    preprocessing: str | None = None
    """The name of its preprocessing."""
    trained_on: tuple[str, ...] = ()
    """The corruptions that it was trained with."""
    weights: str | None = None
    """The file of its weights, relative to the edition's folder."""
    found: str | None = None
    """The SHA-256 of that file; None if it is missing."""
    pinned: str | None = None
    """The SHA-256 in params.yaml."""
    state: str | None = None
    """Whether the weights are there, missing, or of other bytes."""


def further_members(edition: Edition) -> list[FurtherMember]:
    """Every model of `further_models`, in their order; empty without a study of robustness."""
    study = Study(edition.folder / "studies" / "robustness")
    if not study.params_yaml.is_file():
        return []
    params = OpenedStudy.read(study).params
    return [_member(edition, role, entry) for role, entry in params.further_models.items()]


def _member(edition: Edition, role: str, entry: FurtherModel) -> FurtherMember:
    if isinstance(entry, str):
        return FurtherMember(role=role, model=entry)
    path = edition.folder / weights_path(entry, edition.folder)
    found = sha256_of(path) if path.is_file() else None
    return FurtherMember(
        role=role,
        model=" ".join(filter(None, (entry.source, entry.name, entry.threat_model))),
        classes=len(entry.classes) if entry.classes else None,
        preprocessing=preprocessing_of_entry(entry).name,
        trained_on=tuple(entry.trained_on),
        weights=path.relative_to(edition.folder).as_posix(),
        found=found,
        pinned=entry.sha256,
        state="missing" if found is None else "there" if entry.sha256 in (None, found) else "other bytes",
    )


def as_objects(listed: list[FurtherMember]) -> list[dict[str, object]]:
    """The models for programs; `study` distinguishes them from the ensemble."""
    return [{"study": "robustness", **asdict(member)} for member in listed]


def as_table(listed: list[FurtherMember]) -> Table:
    """The models for people, in the form of the ensemble's."""
    return lines_table([(), *map(_lines, listed)])


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
    yield "pinned", Text(pinned_text(member.found, member.pinned))
    yield "state", Text(member.state or "", "green" if member.state == "there" else "red")
