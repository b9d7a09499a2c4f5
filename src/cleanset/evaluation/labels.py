"""The command `labels`: what label sources say about the images of an edition, a set or a list, as tables and CSV."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from cleanset.classes import ClassTable
from cleanset.dataset.label_findings import (
    DENYING,
    FINDINGS,
    ImageFindings,
    SourceAgreement,
    agreements,
    counts_by_source,
    findings_of,
    labels_by_name,
)
from cleanset.dataset.label_sources import PLACE, ImageLabels, SourceLabels, known_sources, read_sources
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.errors import InputError
from cleanset.evaluation.image_lists import LIST_SUFFIX, read_list
from cleanset.evaluation.multilabel import REASSESSED
from cleanset.evaluation.table import Cell, MeasureTable
from cleanset.image_ids import check_matched
from cleanset.plumbing.csv_files import csv_text
from cleanset.plumbing.files import is_there, write_text
from cleanset.plumbing.json_files import JsonObject
from cleanset.sets.fetching.releases import opened
from cleanset.sets.folder import one_set, read_set
from cleanset.sets.manifest import MANIFEST
from cleanset.statistics.formats import counted

ORIGINAL = "ilsvrc"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledSet:
    """Images with their classes, and the labels that came with them."""

    name: str
    images: Sequence[tuple[str, int]]
    """Image ids with the class index that each has in the set."""

    own: Mapping[str, Mapping[str, ImageLabels]]
    """The original and the reassessed labels of all images, under ORIGINAL and REASSESSED, where they are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelReport:
    """What sources say about the images of a set."""

    name: str
    sources: Sequence[SourceLabels]
    images: Sequence[ImageFindings]
    agreements: Sequence[SourceAgreement]
    """For each pair of sources, and each with the set's own labels."""

    @property
    def denied(self) -> list[ImageFindings]:
        """The images whose class at least one source denies."""
        return [image for image in self.images if image.denied_by]

    @property
    def denied_by_several(self) -> list[ImageFindings]:
        """The images whose class sources of more than one study deny."""
        study_of = {each.source.name: each.source.study for each in self.sources}
        return [image for image in self.denied if len({study_of[name] for name in image.denied_by}) > 1]


def sources_text() -> str:
    """Each source with its study, file, address, SHA-256 and licence, in lines of their own."""
    parts = []
    for name, each in known_sources().items():
        parts.append(
            f"{name}\n  study    {each.study}\n  classes  {each.meaning}\n  file     {each.file}\n"
            f"  from     {each.address}\n  SHA-256  {each.sha256}\n  licence  {each.licence}"
        )
    return "\n".join(parts)


def run(
    name: str | None, edition: Edition, folder: Path | None, names: Sequence[str] = (), role: str | None = None
) -> LabelReport:
    """The report on a set, a list or, without a name, on all images of the edition that have one label.

    `folder`: the folder of the sources' files; None: PLACE in the edition. `names`: the sources; empty: all in the
    folder. `role`: picks the rows of a list. Raises CleansetError for images other than ImageNet's, and as
    `read_sources`.
    """
    found = labelled_set(name, edition, role)
    return report_on(found, read_sources(folder or edition.folder / PLACE, names))


def report_on(found: LabelledSet, sources: Sequence[SourceLabels]) -> LabelReport:
    """The report on images, by sources that are read."""
    of_sources = labels_by_name(sources)
    matched = sum(any(image_id in each for each in of_sources.values()) for image_id, _ in found.images)
    names = ", ".join(of_sources)
    check_matched(matched, len(found.images), f"images of {found.name} are in {names}", "images that a study has")
    image_ids = next(iter(found.own.values()), None) or [image_id for image_id, _ in found.images]
    return LabelReport(
        name=found.name,
        sources=sources,
        images=findings_of(found.images, of_sources),
        agreements=agreements({**found.own, **of_sources}, image_ids),
    )


def labelled_set(name: str | None, edition: Edition, role: str | None = None) -> LabelledSet:
    """The images of an edition, a role of it, a set or a CSV list, with their classes."""
    if name is not None and Path(name).suffix == LIST_SUFFIX and Path(name).name != MANIFEST:
        return _listed(Path(name), edition, role)
    if role is not None:
        raise InputError(f"--role {role}: goes with a list ({LIST_SUFFIX}); expected no such option")
    if name is None:
        return _of_edition(edition)
    roles = read_params(edition.folder).models if is_there(edition.params_yaml) else {}
    folder = edition.export(name) if name in roles else one_set(opened(name))
    found = read_set(folder)
    _check_imagenet(found.classes, name)
    return LabelledSet(
        name=name,
        images=[(entry.image_id, entry.class_index) for entry in found.entries],
        own={
            ORIGINAL: {entry.image_id: ImageLabels(classes=(entry.ilsvrc_class,)) for entry in found.entries},
            REASSESSED: {entry.image_id: ImageLabels(classes=entry.real_classes) for entry in found.entries},
        },
    )


def _listed(path: Path, edition: Edition, role: str | None) -> LabelledSet:
    classes = edition.read_classes()
    _check_imagenet(classes, str(path))
    images = []
    for each in read_list(path, role, classes):
        if len(each.class_indices) > 1:
            raise InputError(
                f"{each.where}: {len(each.class_indices)} classes; expected one, which studies name or deny"
            )
        images.append((each.image_id, each.class_indices[0]))
    return LabelledSet(name=f"{path} ({role})" if role else str(path), images=images, own={})


def _of_edition(edition: Edition) -> LabelledSet:
    # Parquet, which sets and lists do without
    from cleanset.tables import INDEX, read_table

    classes = edition.read_classes()
    _check_imagenet(classes, str(edition.folder))
    index = read_table(edition.index, INDEX, classes)
    rows = list(zip(index["image_id"], index["ilsvrc_class"].tolist(), index["real_classes"], strict=True))
    reassessed = {image_id: tuple(map(int, real)) for image_id, _, real in rows}
    return LabelledSet(
        name=str(edition.folder),
        images=[(image_id, labels[0]) for image_id, labels in reassessed.items() if len(labels) == 1],
        own={
            ORIGINAL: {image_id: ImageLabels(classes=(original,)) for image_id, original, _ in rows},
            REASSESSED: {image_id: ImageLabels(classes=labels) for image_id, labels in reassessed.items()},
        },
    )


def _check_imagenet(classes: ClassTable, where: str) -> None:
    if not classes.is_imagenet:
        raise InputError(f"{where}: your own images, which no study has labelled; expected images of ImageNet")


def as_text(report: LabelReport) -> Group:
    """The two tables with their counts; fits into 80 columns."""
    parts: list[RenderableType] = [Text(f"{report.name}: {counted(len(report.images), 'image')}"), Text(counts(report))]
    parts += [Text(), sources_table(report).in_terminal(), Text(), agreement_table(report).in_terminal(), Text()]
    parts += [Text(each.caption) for each in (sources_table(report), agreement_table(report))]
    parts += [Text(), *(Text(_origin(each)) for each in report.sources)]
    return Group(*parts)


def counts(report: LabelReport) -> str:
    """The number of images whose class studies deny, in a line."""
    several = len(report.denied_by_several)
    return f"class denied by at least one study: {len(report.denied):,}, by several: {several:,}"


def _origin(each: SourceLabels) -> str:
    return f"{each.source.name}: {each.source.study}; {each.source.meaning}; licence: {each.source.licence}"


def sources_table(report: LabelReport) -> MeasureTable:
    """The number of images of each finding, by source."""
    rows = []
    for name, by_finding in counts_by_source(report.images).items():
        denied = sum(by_finding[each] for each in DENYING)
        rows.append(((name,), [Cell(f"{by_finding[each]:,}") for each in FINDINGS] + [Cell(f"{denied:,}")]))
    return MeasureTable(
        ("source",),
        (*FINDINGS, "denied"),
        rows,
        caption=(
            "same: the source names this class alone; among: this and others; unclear: its experts do not agree on it; "
            "other: it names others; none: it names no class; absent: it does not have the image. Denied: unclear, "
            "other and none. Classes are places of the sorted wnids, from 0."
        ),
    )


def agreement_table(report: LabelReport) -> MeasureTable:
    """How far each pair of sources agrees on the images that both have."""
    rows = []
    for each in report.agreements:
        numbers = (each.images, each.same, each.overlapping, each.disjoint, each.one_names_none)
        rows.append(((each.first, each.second), [Cell(f"{number:,}") for number in numbers]))
    return MeasureTable(
        ("source", "and"),
        ("both", "same", "overlap", "disjoint", "one\nnone"),
        rows,
        caption=(
            "Both: images that both have. Same: with equal classes; overlap: with a common class; disjoint: with none; "
            "one none: only one of the two names any."
        ),
    )


def as_json(report: LabelReport) -> JsonObject:
    """The counts, and the sources with origin, licence and SHA-256."""
    return {
        "name": report.name,
        "images": len(report.images),
        "denied": len(report.denied),
        "denied_by_several": len(report.denied_by_several),
        "sources": [
            {**asdict(each.source), "images": len(each.labels), "findings": by_source}
            for each, by_source in zip(report.sources, counts_by_source(report.images).values(), strict=True)
        ],
        "agreements": [asdict(each) for each in report.agreements],
    }


def images_csv(report: LabelReport) -> str:
    """A row for each image that a source denies or, of source joined, does not have: its findings and named classes."""
    labels = labels_by_name(report.sources)
    header = ["image_id", "class_index", "denied_by"]
    for name in labels:
        header += [name, f"{name}_classes"]
    rows = []
    for image in sorted(report.images, key=lambda each: each.image_id):
        if not image.denied_by and image.findings.get("joined") != "absent":
            continue
        row: list[object] = [image.image_id, image.class_index, " ".join(image.denied_by)]
        for name, of_source in labels.items():
            known = of_source.get(image.image_id)
            row += [image.findings[name], " ".join(map(str, known.classes)) if known else ""]
        rows.append(row)
    return csv_text(header, rows)


def write_images(report: LabelReport, path: Path) -> None:
    """Write `images_csv` into a file."""
    write_text(path, images_csv(report))
