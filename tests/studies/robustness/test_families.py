"""A new family of changes is one object and one line in FAMILIES."""

import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from pydantic import Field

from cleanset.files import sha256
from cleanset.sections import Section
from cleanset.statistics.bootstrap import Resamples
from cleanset.studies.robustness import families
from cleanset.studies.robustness.answers import ReadAnswers, predictions_table, with_keys
from cleanset.studies.robustness.changed_images import ChangeName, StudyFile, base_pixels
from cleanset.studies.robustness.families import FAMILIES, Sources, change_plan, families_in, notice
from cleanset.studies.robustness.family import Changing, Family, FamilyStudy, NamedModel, Sheet
from cleanset.studies.robustness.images import images_sha256
from cleanset.studies.robustness.measuring import Studied, measure
from cleanset.studies.robustness.names import CLEAN, UNCHANGED
from cleanset.studies.robustness.results import Chosen, MeasureDifference, MeasureLine, SampledMeasure, StudiedImages
from cleanset.studies.robustness.sampled import sampled_means
from cleanset.studies.robustness.settings import CommonParams, with_sections
from cleanset.studies.robustness.study import AnswerFiles, Study
from cleanset.tables import read_table, write_table
from tests.studies.robustness.drawn import drawn


class Fades(Section):
    """A section with one change."""

    names: Annotated[list[str], Field(default_factory=list)]
    published: str | None = None

    def changes(self) -> list[tuple[str, int]]:
        return [(name, 0) for name in self.names]


class FadeMeasures(Section):
    """A section of `measures` with one key."""

    threshold: float = 0.5


@dataclass(frozen=True)
class FadeStudy:
    """The answers to one change: whether the top-1 class is the image's, by model."""

    images: StudiedImages
    answers: Mapping[str, np.ndarray]

    def lines(self) -> Iterator[MeasureLine]:
        return self.images.lines(self._measured)

    def differences(self) -> Iterator[MeasureDifference]:
        return self.images.differences(self._measured, ["accuracy"])

    def _measured(self, role: str, chosen: Chosen, resamples: Resamples) -> Iterator[SampledMeasure]:
        yield SampledMeasure(
            "accuracy", "", sampled_means(self.answers[role][chosen][:, None], ["fade"], resamples)["fade"]
        )

    def tables(self, params: CommonParams) -> dict[str, pd.DataFrame]:
        return {}


class FadeFamily:
    """Images with half the contrast."""

    name, singular = "fades", "fade"
    section = Fades
    measures_section = FadeMeasures
    default_names: tuple[str, ...] = ()
    steps: Mapping[str, Any] = {}
    changing_modules: tuple[str, ...] = ()
    reserved_names: tuple[str, ...] = ()
    layout = "<fade>/<wnid>/<image>"
    benchmark = None
    notice_if_made = "Faded here."
    files: Mapping[str, tuple[str, ...]] = {}
    optional_files: tuple[str, ...] = ()
    label_columns: tuple[str, ...] = ()
    with_intervals = ("accuracy",)
    summary: Mapping[str, str] = {"accuracy": "accuracy"}
    unit = "percent"
    headlines: Mapping[str, str] = {"accuracy": "accuracy"}
    shown_differences = ("accuracy",)
    not_shares: tuple[str, ...] = ()
    page = "fades.html"
    sheet = Sheet(1, has_unchanged=False)

    def remark(self, params: CommonParams) -> str:
        return ""

    def labels(self, params: CommonParams) -> dict[str, str]:
        return {}

    def named_models(self, params: CommonParams) -> list[NamedModel]:
        return []

    def problem(self, params: CommonParams) -> str | None:
        return None

    def measured_images(self, images: pd.DataFrame, masks: pd.DataFrame, params: CommonParams) -> pd.DataFrame:
        return images

    def making(self, sources: Sources, images: pd.DataFrame, params: CommonParams) -> Changing:
        return Changing(lambda file, change, step, seed: base_pixels(file) // 2, {})

    def published(self, folder: Path, images: Sequence[StudyFile], params: CommonParams) -> Changing:
        raise NotImplementedError

    def study(self, studied: Studied, images: pd.DataFrame) -> FamilyStudy:
        answers = {}
        for name, _, seen, predictions in studied.answers(self, images):
            rows = predictions[predictions["change"] == "fade"].set_index("file").loc[seen["file"]]
            answers[name] = rows["top5_class"].str[0].to_numpy() == seen["class_index"].to_numpy()
        return FadeStudy(studied.images_of(self, images), answers)

    def sheet_changes(self, params: CommonParams) -> Sequence[str]:
        return ["fade"]

    def page_context(self, data: object) -> dict[str, Any]:
        return {}


FADES: Family = FadeFamily()


def test_a_new_family_runs_through_images_answers_and_measures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(families, "FAMILIES", (*FAMILIES, FADES))
    params = with_sections(families.FAMILIES).model_validate(
        {"fades": {"names": ["fade"]}, "measures": {"fades": {"threshold": 0.25}}, "jpeg": None}
    )
    assert params.measures_section("fades").threshold == 0.25
    assert [family.name for family in families_in(params)] == ["corruptions", "fades"]

    files, rows = {}, []
    for number in range(4):
        path = tmp_path / f"{number}.png"
        Image.fromarray(np.roll(drawn(), number, axis=1)).save(path)
        files[path.name] = StudyFile(path, sha256(path.read_bytes()), f"ILSVRC2012_val_{number:08}")
        rows.append((path.name, files[path.name].image_id, number % 2, None, files[path.name].sha256, ["standard"]))
    columns = ["file", "image_id", "class_index", "crop", "file_sha256", "sets"]
    images = pd.DataFrame(rows, columns=columns)
    masks = pd.DataFrame({"file": images["file"], "left_out": ["no_mask"] * 4})
    plan = change_plan(FADES, Sources(images, masks, files, Study(tmp_path)), params)
    assert len(plan.names()) == 8
    changed = plan.changed_images(files, params)(str(ChangeName("1.png", "fade", 0)))
    assert np.array_equal(np.array(changed), base_pixels(files["1.png"]) // 2)

    logits = np.full((4, 1000), -9.0)
    logits[[0, 1, 2, 3], [0, 1, 0, 5]] = 9.0  # the last is misclassified
    read = pd.DataFrame({name: list(values) for name, values in ReadAnswers([0, 1, 5])(logits).items()})
    table = predictions_table(FADES)
    assert table.key == ("file", "change")
    parts = [
        with_keys(read, [ChangeName(file, change, 0) for file in images["file"]], table)
        for change in (CLEAN, UNCHANGED, "fade")
    ]
    stored = AnswerFiles(tmp_path / "data")
    sorted_rows = pd.concat(parts).sort_values(["file", "change"], ignore_index=True)
    write_table(stored.predictions("fades", "standard"), sorted_rows, table)
    assert len(read_table(stored.predictions("fades", "standard"), table)) == 12
    record = {"images_sha256": images_sha256(images), "seed": 0, "jpeg": None, "parameters": 1}
    stored.record("fades", "standard").write_text(json.dumps(record))

    studied = Studied(images, masks, params, {"standard": "standard"}, ["standard"], ["union"], stored)
    notices = {"fades": notice(FADES, params, images)}
    lines = measure(studied, notices, tmp_path / "measures", tmp_path / "metrics")
    assert [(line.measure, line.value) for line in lines["fades"]] == [("accuracy", 0.75)]
    assert (tmp_path / "measures" / "notices.csv").read_text() == "family,notice\nfades,Faded here.\n"
    assert pd.read_csv(tmp_path / "measures" / "fades.csv")["official"].tolist() == ["no"]
    assert json.loads((tmp_path / "metrics" / "fades" / "accuracy.json").read_text()) == {"standard": 0.75}


def test_no_other_module_names_a_family(repository: Path) -> None:
    """Their folders do, and the commands that are called like them; which are in the pipelines."""
    package = repository / "src" / "cleanset" / "studies" / "robustness"
    names = {family.name for family in FAMILIES}
    own = [package / family.name for family in FAMILIES]
    found = {
        path.relative_to(package).as_posix()
        for path in sorted(package.rglob("*.py"))
        if not any(path.is_relative_to(folder) for folder in own)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value in names
    }
    assert found == {"commands.py"}
