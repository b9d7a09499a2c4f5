"""Stage `measure`: all measures of some models on one set of images, from their answers, as tables and metrics.

No model runs, no image is read. The tables are CSV files in the folder `data/measures`.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from cleanset.errors import CleansetError
from cleanset.evaluation.comparability import CardModel, ComparabilityCard
from cleanset.evaluation.measures import Difference, Measure, measures_frame, metrics_of
from cleanset.evaluation.specs import ZooModel
from cleanset.plumbing.csv_files import read_frame, write_csv, write_frame
from cleanset.plumbing.files import replacing
from cleanset.plumbing.json_files import JsonObject, json_record
from cleanset.plumbing.metrics import write_metrics
from cleanset.plumbing.validation import shown
from cleanset.statistics.basics import Flags
from cleanset.statistics.bootstrap import Bootstrap
from cleanset.studies.robustness.answer_arrays import Answers, answers_by_change
from cleanset.studies.robustness.answers import predictions_table, with_step
from cleanset.studies.robustness.cards import family_notes, study_card
from cleanset.studies.robustness.families import (
    FAMILIES,
    OpenedStudy,
    families_in,
    family_named,
    measured_images,
    notice,
)
from cleanset.studies.robustness.family import Family
from cleanset.studies.robustness.images import Study, images_sha256, is_seen, units_of
from cleanset.studies.robustness.results import (
    DIFFERENCE_COLUMNS,
    LINE_COLUMNS,
    FamilyStudy,
    StudiedImages,
)
from cleanset.studies.robustness.sections import CLEAN, UNCHANGED
from cleanset.tables import read_table

OFFICIAL_COLUMN = "official"
"""The column that says whether a table's numbers are a benchmark's official ones."""

MEASURE_REMEDY = "run dvc checkout measure to restore it, or dvc repro measure"
RESTORE = "run dvc checkout to restore it, or the stage that writes it once more"

TEXT_COLUMNS = frozenset((
    "answers", "change", "definition", "factor", "family", "level", "measure", "model", "notice", OFFICIAL_COLUMN,
    "note", "origin", "other", "part", "problem", "scenario", "selection", "source", "text",
))  # fmt: skip
"""The columns of text; all others hold numbers."""

NOTE_COLUMNS = ("family", "selection", "note", "text")
"""The columns of the file of notes, which every table of these measures carries."""

MEASURE_FILES: Mapping[str, tuple[str, ...]] = {
    "measures/notices.csv": ("family", "notice"),
    "measures/notes.csv": NOTE_COLUMNS,
    "measures/models.csv": ("model", "parameters"),
    **{
        f"measures/{stem}.csv": (*columns, OFFICIAL_COLUMN, *family.label_columns)
        for family in FAMILIES
        for stem, columns in {
            family.name: LINE_COLUMNS,
            family.differences: DIFFERENCE_COLUMNS,
            **family.files,
        }.items()
    },
}
"""The columns of each file, by its path in `data`."""


def read_measures(folder: Path, families: Sequence[Family], models: Sequence[str] | None) -> dict[str, pd.DataFrame]:
    """The tables in the folder `measures` by stem; `models`: those that they may name; None: any.

    Raises CleansetError for a table that stage measure did not write so.
    """
    tables = {path.stem: _read(path, models) for path in sorted(folder.glob("*.csv"))}
    for family in families:
        # optional tables need several scenarios, classes or models
        details = family.files.keys() - set(family.optional_files)
        for stem in ("models", "notes", family.name, family.differences, *sorted(details)):
            if stem not in tables:
                raise CleansetError(
                    f"{folder / stem}.csv: missing; expected the output of stage measure: {MEASURE_REMEDY}"
                )
        if tables[family.name].empty:
            raise CleansetError(
                f"{folder / family.name}.csv: no rows; expected a row for each measure: {MEASURE_REMEDY}"
            )
    return tables


def _read(path: Path, models: Sequence[str] | None) -> pd.DataFrame:
    table = read_frame(path, (), MEASURE_REMEDY, dtype={"model": str})
    columns = MEASURE_FILES.get(f"measures/{path.name}", tuple(table.columns))
    if tuple(table.columns) != columns:
        found = ", ".join(map(str, table.columns))
        raise CleansetError(f"{path}: columns {found}; expected {', '.join(columns)}: {MEASURE_REMEDY}")
    # a single damaged cell makes pandas read its whole column as text
    for name in columns:
        if name not in TEXT_COLUMNS and len(table) and not is_numeric_dtype(table[name]):
            raise CleansetError(
                f"{path}: column {name} has a value that is not a number; expected numbers: {MEASURE_REMEDY}"
            )
    for model in table["model"].unique() if "model" in columns else ():
        if models is not None and model not in models:
            raise CleansetError(
                f"{path}: unknown model {shown(model)}; expected one of {', '.join(models)}: {MEASURE_REMEDY}"
            )
    return table


class Measured(NamedTuple):
    """The measures of a family, for each model and each pair of models."""

    lines: list[Measure]
    differences: list[Difference]


def answers_of(opened: OpenedStudy, family: Family, images: pd.DataFrame) -> Iterator[tuple[str, Answers]]:
    """Yield each model and the values read off its answers to a family on some images.

    Raises CleansetError if an answer is missing, there twice, or to another image or change.
    """
    params = opened.params
    changes = [(CLEAN, 0), (UNCHANGED, 0), *family.section_in(params).changes()]
    table = predictions_table(family)
    class_of = images.set_index("file")["class_index"]
    # all columns of 1.3 million frames take gigabytes
    columns = [*table.key, "top5_class", "class_of_edition", *family.answer_columns]
    for name, stem in opened.stems.items():
        path = opened.answers.predictions(family.name, stem)
        answers = with_step(read_table(path, table, opened.classes, columns=columns), family)
        values = family.read(answers.assign(class_index=answers["file"].map(class_of)), params)
        seen = _seen(opened, images, name)
        yield name, answers_by_change(images["file"], answers, changes, values=values, seen=seen)


def _seen(opened: OpenedStudy, images: pd.DataFrame, name: str) -> Flags:
    """Flags of the images that a model sees."""
    params = opened.params
    return is_seen(images, params.images, name, params.classes_of(name, opened.classes))


def _check_answers(opened: OpenedStudy, families: Sequence[Family]) -> None:
    """Raise CleansetError for answers with other weights, images, seed or JPEG quality than the study's."""
    params = opened.params
    for name, stem in opened.stems.items():
        spec = opened.specs.get(name)
        weights = spec.model.sha256 if isinstance(spec, ZooModel) else None
        for family in families:
            images = _family_images(opened, family)
            record = read_record(path := opened.answers.record(family.name, stem))
            # without a pinned digest the first family decides, and the others must agree with it
            weights = weights or record.get("weights_sha256")
            expected = {
                "weights_sha256": weights,
                "images_sha256": images_sha256(images[_seen(opened, images, name)]),
                "seed": params.seed,
                "jpeg": family.jpeg(params),
            }
            for key, value in expected.items():
                if (found := record.get(key)) != value:
                    raise CleansetError(
                        f"{path}: answers with {key} {shown(found)}; expected {shown(value)}, as in this study: "
                        f"{RESTORE}"
                    )


def _family_images(opened: OpenedStudy, family: Family) -> pd.DataFrame:
    """The rows of STUDY_IMAGES that a family is measured on."""
    sources = opened.sources
    return measured_images(family, sources.images, sources.masks, opened.params)


def studied_images(opened: OpenedStudy, family: Family, images: pd.DataFrame) -> StudiedImages:
    """The images of a family as its measures take them."""
    params = opened.params
    found = opened.images
    of_models = {name: params.classes_of(name, opened.classes) for name in opened.stems}
    of_classes = {name: is_seen(images, "union", name, each) for name, each in of_models.items() if each}
    return StudiedImages(
        class_indices=images["class_index"].to_numpy(np.int64),
        sets=images["sets"].tolist(),
        classes=opened.classes,
        roles=list(opened.stems),
        bootstrap=Bootstrap(resamples=params.bootstrap.draws, seed=f"{family.name} {params.seed}"),
        selections=found.selections,
        owners=found.owners,
        chosen_by=found.selected_by,
        of_classes=of_classes,
        origins=images["origin"].to_numpy(object) if "origin" in images else None,
        units=units_of(images),
        is_whole=params.images == "union" and all(np.all(seen) for seen in of_classes.values()),
    )


def measure(
    opened: OpenedStudy,
    notices: Mapping[str, str],
    measures: Path,
    metrics: Path,
    *,
    official: Collection[str] = (),
    cards: Mapping[str, ComparabilityCard] | None = None,
    limits: Sequence[str] = (),
) -> dict[str, Measured]:
    """Measure some families; write CSV files into the folder `measures`, and JSON files into `metrics`.

    `notices`: by family, the notice next to its numbers. `official`: the families whose published images were all read.
    `cards`: the comparability cards by family; without them the notes of tables are made of cards without pixels.
    `limits`: limits of models' numbers, in sentences.
    Returns the measures of each family. Raises CleansetError if answers are missing, or of other images,
    weights or seed than the study has, and for a family with fewer than two images.
    """
    found: dict[str, Measured] = {}
    written: dict[str, Mapping[str, float | int | str | None]] = {}
    notes: list[tuple[str, ...]] = []
    families = [family_named(name) for name in notices]
    # before the folder of measures is replaced
    _check_answers(opened, families)
    with replacing(measures) as folder:
        folder.mkdir()
        write_csv(folder / "notices.csv", ("family", "notice"), notices.items())
        # a model has as many parameters in every family
        records = {name: opened.answers.record(families[0].name, stem) for name, stem in opened.stems.items()}
        parameters = [(name, read_record(path)["parameters"]) for name, path in records.items()]
        write_csv(folder / "models.csv", ("model", "parameters"), parameters)
        for family in families:
            name = family.name
            study = study_of(family, opened)
            lines = list(study.lines())
            differences = list(study.differences())
            found[name] = Measured(lines, differences)
            card = _card_without_pixels(opened, family) if cards is None else cards[name]
            for selection in dict.fromkeys(line.selection for line in lines):
                facts = opened.images.facts
                of_selection = family_notes(card, facts, lines, selection, limits=[notices[name], *limits])
                notes += [(name, selection, *note) for note in of_selection]
            if not lines:
                raise CleansetError(
                    f"{name}: images to measure on: {len(study.images.class_indices)}; expected two or more, which "
                    "intervals need: take more images, or fewer families in the params"
                )
            tables = {
                name: measures_frame(lines, LINE_COLUMNS),
                family.differences: measures_frame(differences, DIFFERENCE_COLUMNS),
                **study.tables(),
            }
            labels = {OFFICIAL_COLUMN: "yes" if name in official else "no", **family.labels(opened.params)}
            for stem, table in tables.items():
                write_frame(folder / f"{stem}.csv", table.assign(**labels))
            written |= metrics_of(
                (line for line in lines if line.selection == opened.images.selections[0]),
                partial(_metric_name, name),
                family.with_intervals,
            )
        write_csv(folder / "notes.csv", NOTE_COLUMNS, notes)
    write_metrics(metrics, written)
    return found


def _metric_name(family: str, line: Measure) -> str:
    return "/".join(filter(None, (family, line.measure, line.change)))


def study_of(family: Family, opened: OpenedStudy) -> FamilyStudy:
    """The answers of all models to a family."""
    images = _family_images(opened, family)
    answers = dict(answers_of(opened, family, images))
    return family.study(studied_images(opened, family, images), answers, opened.params)


def _card_without_pixels(opened: OpenedStudy, family: Family) -> ComparabilityCard:
    """The comparability card of a family's measures, also without the facts about models."""
    return study_card(
        family,
        _family_images(opened, family),
        opened.params,
        classes=opened.classes,
        edition_classes=len(opened.images.edition_classes),
        models={name: CardModel() for name in opened.stems},
    )


def read_record(path: Path) -> JsonObject:
    """A record of answers. Raises CleansetError if it is missing or invalid."""
    return json_record(
        path, "the record of answers, with weights, parameters, seed and images", RESTORE, ["parameters"]
    )


def run(study: Study) -> None:
    """Read the images and the answers of all models, write data/measures/ and metrics/."""
    opened = OpenedStudy.read(study)
    params = opened.params
    rows = opened.images.rows
    notices = {family.name: notice(family, params, rows, opened.classes) for family in families_in(params)}
    measure(opened, notices, study.measures, study.metrics)
