"""The command `robustness evaluate`: any models on any images, outside DVC, by the code of a study's stages."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.evaluation.command import Wanted
from cleanset.evaluation.specs import Spec, ZooModel, file_stems
from cleanset.files import remove_abandoned, sha256, write_text
from cleanset.studies.robustness.answers import StoredScores
from cleanset.studies.robustness.families import FAMILIES, ChangePlan, change_plan, families_in, family_named, notice
from cleanset.studies.robustness.family import Family
from cleanset.studies.robustness.image_sets import OpenedImages, open_images
from cleanset.studies.robustness.images import Sources
from cleanset.studies.robustness.measuring import Studied, measure
from cleanset.studies.robustness.results import MeasureLine
from cleanset.studies.robustness.scenarios.image_masks import masks_found
from cleanset.studies.robustness.settings import StudyParams, read_study_params
from cleanset.studies.robustness.study import AnswerFiles, Study

if TYPE_CHECKING:
    from cleanset.scoring.engine import Settings


DEFAULTS: dict[str, Any] = {family.name: {"names": list(family.default_names)} for family in FAMILIES}
"""Without a params file: the 15 corruptions at five severities, the 10 perturbations, and no scenarios."""


@dataclass(frozen=True, slots=True, eq=False)
class Evaluated:
    """The images, the params, and by family the lines and the notice beside them."""

    images: OpenedImages
    params: StudyParams
    lines: dict[str, list[MeasureLine]]
    notices: dict[str, str]


def run(edition: Edition, wanted: Wanted, out: Path, params_file: Path | None = None) -> Evaluated:
    """Measure the models; write their answers, CSV files and metrics into the folder `out`.

    `params_file`: as a study's params.yaml. What an earlier run has finished in `out` is not computed again. Names are
    checked and all images are read before torch is imported. Raises CleansetError that says what to do.
    """
    wanted = replace(wanted, out=out)
    asked = wanted.models_to_run(edition)
    specs = asked.specs
    params = _params(params_file, [spec.text for spec in specs], asked.roles)
    _remove_abandoned(out)
    images = open_images(str(wanted.name), edition, asked.roles)
    study = Study((params_file or out / "params.yaml").parent)
    masks = masks_found(images.images, images.files, study.masks, params)
    sources = Sources(images.images, masks, images.files, study, images.edition)
    plans = [change_plan(family, sources, params) for family in families_in(params)]

    from cleanset.evaluation.run import check
    from cleanset.scoring.engine import settings_for

    # report a missing weights file before spending hours on another model
    for spec in specs:
        check(spec)
    answers, settings, stems = AnswerFiles(out), settings_for(asked.score), file_stems([spec.text for spec in specs])
    for spec, stem in zip(specs, stems, strict=True):
        _Answering(spec, stem, images, params, answers, edition).run(plans, settings)
    models = {spec.text: stem for spec, stem in zip(specs, stems, strict=True)}
    studied = Studied(images.images, masks, params, models, images.owners, images.selections, answers)
    notices = {plan.name: notice(plan.family, params, images.images, is_official=plan.is_official) for plan in plans}
    official = [plan.name for plan in plans if plan.is_official]
    lines = measure(studied, notices, out / "measures", out / "metrics", official)
    return Evaluated(images, params, lines, notices)


def _params(path: Path | None, names: Sequence[str], roles: Sequence[str]) -> StudyParams:
    if path is None:
        return StudyParams.model_validate(DEFAULTS)
    # every model sees all images
    return read_study_params(path, names, roles, further=False).model_copy(update={"images": "union"})


def _remove_abandoned(out: Path) -> None:
    for folder in (out, *(out / family.name for family in FAMILIES)):
        remove_abandoned(folder)


@dataclass(frozen=True, slots=True, eq=False)
class _Answering:
    """One model, and where its answers are kept; torch is imported when it runs."""

    spec: Spec
    stem: str
    images: OpenedImages
    params: StudyParams
    answers: AnswerFiles
    edition: Edition

    def run(self, plans: Sequence[ChangePlan], settings: "Settings") -> None:
        """Write the answers to each family that are not there yet."""
        from cleanset.evaluation.run import load
        from cleanset.studies.robustness.predicting import AnsweringModel, predict

        loaded = load(self.spec, settings)
        check = self._stored() if settings.precision == "float64" else None
        classes, identity = self.images.classes, loaded.identity
        target = AnsweringModel(
            self.spec.text, loaded.loaded, settings, classes, self.answers, check, identity, self.stem
        )
        for plan in plans:
            record = target.record(self.params, plan)
            # the record alone does not tell which code changed the images
            record["fingerprint"] = target.label(record)
            path = self.answers.predictions(plan.name, self.stem)
            if not _is_finished(path, record):
                files = {file: self.images.files[file] for file in plan.images["file"]}
                predict(target, self.params, plan, files)
                written = self.answers.record(plan.name, self.stem)
                # below float64 it has more
                record |= json.loads(written.read_bytes())
                record["predictions_sha256"] = sha256(path.read_bytes())
                write_text(written, json.dumps(record, indent=2) + "\n")

    def _stored(self) -> "StoredScores | None":
        """The stored scores of a role on images of its own edition; None if none are stored."""
        edition = self.images.edition
        is_role = isinstance(self.spec, ZooModel) and self.spec.text in _roles(self.edition)
        if edition is None or not is_role or edition.folder.resolve() != self.edition.folder.resolve():
            return None
        tables = edition.scores(self.spec.text), edition.crop_scores(self.spec.text)
        return StoredScores(edition, self.spec.text) if all(path.is_file() for path in tables) else None


def _roles(edition: Edition) -> list[str]:
    return list(read_params(edition.folder).models) if edition.params_yaml.is_file() else []


def _is_finished(path: Path, record: dict[str, Any]) -> bool:
    """Whether stored answers match the record and have not been modified since."""
    try:
        stored = json.loads(path.with_suffix(".json").read_bytes())
        # through JSON, where tuples become lists; the stored record may have more keys
        expected = record | {"predictions_sha256": sha256(path.read_bytes())}
        return bool({**stored, **json.loads(json.dumps(expected))} == stored)
    except (OSError, TypeError, ValueError):
        return False


WITHOUT_INTERVAL = ("clean", "unchanged")

MEANING = "Intervals of 95 % by bootstrap over images."


def as_text(evaluated: Evaluated) -> Group:
    """The name of the image set, and a table for each family; fits into 80 columns."""
    images = evaluated.images
    count, classes = len(images.images), images.images["class_index"].nunique()
    parts: list[RenderableType] = [Text(f"{images.name}: {count:,} images of {classes:,} classes")]
    parts += map(Text, images.notes)
    for name, lines in evaluated.lines.items():
        family = family_named(name)
        chosen = [line for line in lines if line.selection == images.selections[0] and not line.change]
        if shown_measures(family, chosen):
            parts += [Text(), Text(f"{name}, {chosen[0].images:,} images: {family.unit}"), _table(family, chosen)]
            parts += map(Text, dict.fromkeys(each.problem for each in chosen if _is_shown_missing(family, each)))
        else:  # the means need all changes
            parts += [Text(), Text(f"{name}: no measures over all changes; measures/{name}.csv has those of each")]
        parts.append(Text(evaluated.notices[name]))
    return Group(*parts, Text(), Text(MEANING))


def _is_shown_missing(family: Family, line: MeasureLine) -> bool:
    return bool(line.problem) and line.measure in family.summary


def shown_measures(family: Family, lines: Sequence[MeasureLine]) -> dict[str, str]:
    """The measures of the summary that a model has."""
    measures = {line.measure for line in lines}
    return {name: title for name, title in family.summary.items() if name in measures}


def _table(family: Family, lines: Sequence[MeasureLine]) -> Table:
    """A row for each model, in the order in which they were named."""
    found = {(line.model, line.measure): line for line in lines}
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("model", overflow="fold", min_width=12, vertical="top")
    titles = shown_measures(family, lines)
    for title in titles.values():
        table.add_column(title, justify="right", no_wrap=True)
    for model in dict.fromkeys(line.model for line in lines):
        cells = (
            _cell(found.get((model, name)), family, is_alone=title in WITHOUT_INTERVAL)
            for name, title in titles.items()
        )
        table.add_row(Text(model), *cells)
    return table


def _cell(line: MeasureLine | None, family: Family, *, is_alone: bool) -> str:
    if line is None or not np.isfinite(line.value):
        return "–"
    factor, digits = (1, 3) if line.measure.startswith(family.not_shares) else (100, 1)
    value, low, high = (f"{factor * each:.{digits}f}" for each in (line.value, line.low, line.high))
    return value if is_alone else f"{value} ({low}–{high})"
