"""The stages of a study that run no model: the table of all attacks on all models, and the page on them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from cleanset.dataset.ilsvrc import class_names
from cleanset.edition.params import Model, Params, read_params
from cleanset.files import replacing, write_metrics, write_text
from cleanset.images import codec
from cleanset.images.preprocessing import Pixels, Preprocessing, enlarged_difference, jpeg
from cleanset.scoring.decoding import pixels_of
from cleanset.scoring.engine import settings_for
from cleanset.scoring.logits import Groups, ReadOff, stored_columns
from cleanset.scoring.models import preprocessing_of
from cleanset.studies.attacks.page import AttacksData, SheetRow, attacks_page
from cleanset.studies.attacks.results import ATTACKED, AttackMeasure, measure_lines, metrics_of
from cleanset.studies.attacks.study import AttackParams, AttackStudy, read_attack_params
from cleanset.studies.attacks.warnings import read_warnings
from cleanset.studies.robustness.answers import ReadAnswers
from cleanset.studies.robustness.changed_images import SetImages, StudyFile
from cleanset.studies.robustness.families import read_study_params
from cleanset.studies.robustness.images import STUDY_IMAGES, files_of
from cleanset.studies.robustness.measuring import write_csv
from cleanset.studies.robustness.params import further_roles
from cleanset.studies.robustness.trained_models import further_preprocessing
from cleanset.tables import read_table

SHEET_IMAGES = 3
"""Images of an attack on a model, each of another class."""
SHOWN_PIXELS, QUALITY = 112, 90
IMAGES = "images"
READ_OFF = ("largest_logit", "second_logit", "log_sum_exp", "log_odds")


def write_measures(study: AttackStudy, params: AttackParams | None = None) -> None:
    """Read the results of all attacks, write data/attack_measures.csv and attack_metrics/."""
    roles = list(read_params(study.edition.folder).models)
    further = further_roles(study.robustness.params_yaml)
    params = read_attack_params(study.params_yaml, roles, further) if params is None else params
    results = {
        (name, model): read_table(study.results(name, model).table, ATTACKED)
        for name, model in params.runs(roles, further)
    }
    lines = measure_lines(params.models(roles, further), results, params.of_image, params.resampling)
    write_csv(study.measures, AttackMeasure._fields, lines)
    # metrics are of the edition's models; the CSV file has the wrapped ones, too
    write_metrics(study.metrics, metrics_of(line for line in lines if line.model in roles))


def write_report(study: AttackStudy) -> None:
    """Read the results of the attacks and some images of the finished sets, write report/."""
    with replacing(study.report) as folder:
        write_text(folder / "index.html", attacks_page(attacks_data(study, folder)))


def attacks_data(study: AttackStudy, report: Path) -> AttacksData:
    """The contents of the page, with small copies of some images written below `report`."""
    params = read_params(study.edition.folder)
    roles = list(params.models)
    further = read_study_params(study.robustness.params_yaml, roles).further_models
    settings = read_attack_params(study.params_yaml, roles, list(further))
    files = files_of(study.edition, read_table(study.robustness.images, STUDY_IMAGES))
    models = settings.models(roles, further)
    seen_by: dict[str, Preprocessing] = {role: preprocessing_of(params.network(role)) for role in roles}
    seen_by |= {role: _preprocessing(study, params, role, entry) for role, entry in further.items()}
    seen_by |= {name: seen_by[each.model] for name, each in settings.wrapped.items()}
    groups = {name: each.two_groups for name, each in settings.wrapped.items()}
    answers, sheets = {}, {}
    (report / IMAGES).mkdir(parents=True)
    for name, model in settings.runs(roles, further):
        folder = study.results(name, model)
        results, grouped = read_table(folder.table, ATTACKED), groups.get(model)
        answers[name, model] = with_columns(results, read_off(params, grouped))
        if settings.attack(name).changes_images:
            sheet = AttackSheet(
                files, folder.folder, seen_by[model], report, f"{IMAGES}/{name}_{model}", names_of(grouped)
            )
            sheets[name, model] = [sheet.row(row, place) for place, row in enumerate(some_results(results))]
    sizes = {model: each.size for model, each in seen_by.items()}
    lines = [AttackMeasure(*row) for row in pd.read_csv(study.measures).itertuples(index=False)]
    warnings = [read_warnings(study.warnings(model)) for model in models]
    return AttacksData(models, settings, lines, answers, warnings, sheets, sizes)


def _preprocessing(study: AttackStudy, params: Params, role: str, entry: Model | str) -> Preprocessing:
    """The preprocessing of a further model; a module's callable is called for it."""
    folders = study.robustness.folder, study.edition.folder
    return further_preprocessing(entry, *folders, role, settings_for(params.score))


def read_off(params: Params, groups: Groups | None) -> ReadOff:
    """The function that reads from logits the columns that confidences are computed from."""
    return ReadAnswers(params.dataset.class_list()) if groups is None else stored_columns


def names_of(groups: Groups | None) -> Sequence[str]:
    """The names of what a model predicts, in the order of its logits."""
    return [each.name for each in class_names()] if groups is None else groups.names


def with_columns(results: pd.DataFrame, read: ReadOff) -> pd.DataFrame:
    """The rows of ATTACKED with what confidences are read from, of the logits before and after."""
    found = results[["file", "was_correct", "is_error"]].copy()
    for column, suffix in (("logits_before", ""), ("logits_after", "_after")):
        columns = read(np.stack(results[column].tolist()).astype(np.float64))
        for name in READ_OFF:
            found[f"{name}{suffix}"] = columns[name]
    return found


def some_results(results: pd.DataFrame) -> list[dict[str, Any]]:
    """Some rows of ATTACKED, each of another class, spread over all: successes, if there is one."""
    # an unsuccessful candidate shows little of an attack
    success = results[results["was_correct"] & results["is_error"]]
    first = (success if len(success) else results).drop_duplicates("class_index").sort_values("class_index")
    count = min(SHEET_IMAGES, len(first))
    places = [place * len(first) // count for place in range(count)]
    return [{str(key): value for key, value in row.items()} for row in first.iloc[places].to_dict("records")]


class AttackSheet:
    """The images of an attack on a model, in small copies whose names begin with `images`.

    `names` are those of what the model predicts.
    """

    def __init__(
        self,
        files: Mapping[str, StudyFile],
        attacked: Path,
        preprocessing: Preprocessing,
        report: Path,
        images: str,
        names: Sequence[str],
    ) -> None:
        self._source, self._attacked, self._names = SetImages(files), attacked, names
        self._preprocessing, self._report, self._images = preprocessing, report, images

    def row(self, row: dict[str, Any], place: int) -> SheetRow:
        """A row of ATTACKED as it is shown, its three files written."""
        before = pixels_of(str(row["file"]), self._source, self._preprocessing).transpose(1, 2, 0)
        after = np.asarray(codec.decode((self._attacked / str(row["png"])).read_bytes(), ("PNG",)).convert("RGB"))
        image, factor = enlarged_difference(before, after, (SHOWN_PIXELS, SHOWN_PIXELS))
        contents = {"clean.jpg": small(before), "attacked.jpg": small(after), "difference.png": codec.png(image)}
        files = []
        for name, content in contents.items():
            files.append(f"{self._images}_{place}_{name}")
            (self._report / files[-1]).write_bytes(content)
        return SheetRow(
            str(row["image_id"]),
            class_names()[row["class_index"]].name,
            prediction_text(row["logits_before"], self._names),
            prediction_text(row["logits_after"], self._names),
            bool(row["was_correct"] and row["is_error"]),
            float(row["l2"]),
            float(row["linf"]),
            (files[0], files[1], files[2]),
            factor,
        )


def prediction_text(logits: NDArray[np.float32], names: Sequence[str]) -> str:
    """The top-1 class, or group, by name, with its probability."""
    # the largest is subtracted first, since exp overflows above 709
    exponentials = np.exp(logits.astype(np.float64) - logits.max())
    return f"{names[int(logits.argmax())]} {exponentials.max() / exponentials.sum():.2f}"


def small(pixels: Pixels) -> bytes:
    """A copy of at most SHOWN_PIXELS a side, as a JPEG."""
    image = Image.fromarray(np.ascontiguousarray(pixels))
    return jpeg(np.asarray(image.resize((SHOWN_PIXELS, SHOWN_PIXELS), Image.Resampling.BICUBIC)), QUALITY)
