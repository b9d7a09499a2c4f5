"""Models on images outside a study, and further models in one: the sample's networks on a few changes."""

import json
import shutil
import signal
import time
from collections.abc import Generator, Iterable, Iterator
from dataclasses import replace
from functools import partial
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from huggingface_hub import ModelCard
from PIL import Image
from rich.console import Console

from cleanset.classes import imagenet
from cleanset.edition.params import Score
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.evaluation.arguments import Arguments
from cleanset.evaluation.compare.result_files import read_results
from cleanset.evaluation.measures import Measure
from cleanset.scoring import engine
from cleanset.scoring.shards import Shards
from cleanset.statistics.formats import decimal, p_value
from cleanset.studies.robustness import (
    answering,
    evaluation,
    families,
    image_sets,
    measuring,
    one_pass,
    pages,
)
from cleanset.studies.robustness import digests as stage_digests
from cleanset.studies.robustness.corruptions.params import C_BAR_AMOUNTS, Corruptions
from cleanset.studies.robustness.evaluation import Evaluated, as_text
from cleanset.studies.robustness.families import (
    FAMILIES,
    ChangePlan,
    OpenedStudy,
    change_plan,
    family_named,
)
from cleanset.studies.robustness.images import AnswerFiles, ChangeName, Study
from cleanset.studies.robustness.opened_images import open_images
from cleanset.studies.robustness.perturbations.params import Perturbations
from cleanset.studies.robustness.scenarios.params import Scenarios
from tests.checkouts import Checkout
from tests.documents import block, shell
from tests.report.pages import soup
from tests.scoring.networks import Linear
from tests.studies.robustness.few_classes import CLASSES, keep_classes
from tests.ten_images import FORK_SERVER

pytestmark = pytest.mark.slow

PARAMS = {
    "jpeg": None,
    "corruptions": {"names": ["contrast", "pixelate"], "severities": [2]},
    "bootstrap": {"draws": 20},
}
OTHER = "again"
"""A further model: the sample's norm_robust by another role."""


@pytest.fixture(scope="module", autouse=True)
def one_worker() -> Iterator[None]:
    """A process to make images in takes seconds to start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "available_cores", lambda: 1)
        yield


@pytest.fixture(scope="module")
def edition(built: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Edition:
    """A clone of the sample with five classes, whose study is small, and has a further model: norm_robust again.

    Other models than standard get its answers.
    """
    clone = built.clone_with_data(tmp_path_factory.mktemp("evaluated") / "cleanset")
    edition = Edition(clone.folder)
    keep_classes(clone.folder)
    models = yaml.safe_load(edition.params_yaml.read_text())["models"]
    study = Study(clone.folder / "studies" / "robustness")
    study.params_yaml.write_text(yaml.safe_dump(PARAMS | {"further_models": {OTHER: models["norm_robust"]}}))
    image_sets.run(study)
    answering.run(study, "standard", "corruptions")
    answering.run(study, OTHER)
    for family in (each.name for each in FAMILIES):
        files = study.answers
        for role in ("norm_robust", "corruption_robust", "standard"):
            if not files.predictions(family, role).exists():
                shutil.copy(files.predictions(family, OTHER), files.predictions(family, role))
                copy_record(study, family, (OTHER, role), models)
    return edition


def copy_record(study: Study, family: str, roles: tuple[str, str], models: dict[str, Any]) -> None:
    """The record of one role as that of another, whose weights it names."""
    record = json.loads(study.answers.record(family, roles[0]).read_text())
    changed = record | {"role": roles[1], "weights_sha256": models[roles[1]]["sha256"]}
    study.answers.record(family, roles[1]).write_text(json.dumps(changed))


def study_of(edition: Edition) -> Study:
    return Study(edition.folder / "studies" / "robustness")


@pytest.fixture(scope="module")
def measured_study(edition: Edition) -> Study:
    """The edition's study with its measures and its report."""
    study = study_of(edition)
    measuring.run(study)
    pages.run(study)
    return study


def plan_of(is_official: bool, *args: Any) -> ChangePlan:
    """The plan, which states whether all of a benchmark is read."""
    plan = change_plan(*args)
    return replace(plan, changing=replace(plan.changing, is_official=is_official))


def params_file(folder: Path, **others: object) -> Path:
    path = folder / "wanted.yaml"
    path.write_text(yaml.safe_dump(PARAMS | others))
    return path


def values(lines: list[Measure], selection: str, model: str) -> dict[tuple[str, str], float]:
    found = {(line.measure, line.change): line for line in lines if (line.selection, line.model) == (selection, model)}
    return {key: line.value for key, line in found.items()}


@pytest.fixture(scope="module")
def evaluated(edition: Edition, tmp_path_factory: pytest.TempPathFactory) -> tuple[Evaluated, Path]:
    """Two roles on the whole edition."""
    out = tmp_path_factory.mktemp("out")
    wanted = Arguments(str(edition.folder), ["standard", "norm_robust"]), out / "a", params_file(out)
    return evaluation.run(evaluation.request_of(edition, *wanted)), out / "a"


def test_it_is_what_the_study_finds(measured_study: Study, evaluated: tuple[Evaluated, Path]) -> None:
    """The same answers, measures and intervals, bit for bit, of the same images."""
    found, out = evaluated
    stored = measured_study.answers.predictions("corruptions", "standard")
    assert (out / "corruptions" / "standard.parquet").read_bytes() == stored.read_bytes()
    record = json.loads((out / "corruptions" / "standard.json").read_text())
    assert record["changes"] == {"contrast": "2", "pixelate": "2"}
    assert record["images"] == 21
    both = [pd.read_csv(folder / "corruptions.csv") for folder in (measured_study.measures, out / "measures")]
    expected, given = (table[table["model"] == "standard"].reset_index(drop=True) for table in both)
    pd.testing.assert_frame_equal(expected, given)
    assert sorted(given["selection"].unique()) == ["common", "own", "union"]
    metrics = json.loads((out / "metrics" / "corruptions" / "mean_error.json").read_text())
    lines = found.measured["corruptions"][0]
    assert metrics["norm_robust"] == pytest.approx(values(lines, "union", "norm_robust")["mean_error", ""], abs=1e-6)


def test_the_difference_of_two_models_is_printed(evaluated: tuple[Evaluated, Path]) -> None:
    found, out = evaluated
    table = pd.read_csv(out / "measures" / "corruption_differences.csv")
    row = table[(table["measure"] == "mean_error") & (table["selection"] == "union") & table["change"].isna()].iloc[0]
    text = StringIO()
    Console(file=text, width=80).print(as_text(found), highlight=False)
    lines = [line.split() for line in text.getvalue().splitlines()]
    (line,) = [line for line in lines if line[:2] == ["standard", "norm_robust"]]
    assert line[2] == decimal(row["value"], 1, 100)
    assert line[-1] == p_value(row["p_holm"])
    assert decimal(row["low"], 1, 100) in line[3]
    assert any(" ".join(line).startswith("p: exact sign test") for line in lines)


@pytest.mark.long
def test_the_results_carry_a_card(edition: Edition, evaluated: tuple[Evaluated, Path], tmp_path: Path) -> None:
    """The numbers of the metrics; the digests of the images that models were shown; and a model card for the Hub."""
    found, out = evaluated
    results = read_results(out)
    (measured,) = results.measured.values()
    assert measured.card == found.cards["corruptions"]
    metrics = json.loads((out / "metrics" / "corruptions" / "mean_error.json").read_text())
    assert {name: round(each["mean_error"].value or 0, 6) for name, each in measured.models.items()} == metrics
    assert measured.card.images.count == 21
    assert measured.card.models["standard"].weights_sha256 != measured.card.models["norm_robust"].weights_sha256
    lines = (out / "digests" / "corruptions.txt").read_text().splitlines()[1:]
    assert len(lines) == 21 * 3
    found_lines = [line.split("  ", 1)[1] for line in lines]
    assert found_lines == sorted(found_lines)
    # a file of digests that is lost is made again: they are made without the models, and are the same
    again = tmp_path / "again"
    shutil.copytree(out, again)
    (again / "digests" / "corruptions.txt").unlink()
    wanted = Arguments(str(edition.folder), ["standard", "norm_robust"], hub=tmp_path / "hub")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answering, "predict", None)
        patch.setattr(stage_digests, "available_cores", lambda: 1)
        evaluation.run(evaluation.request_of(edition, wanted, again, params_file(tmp_path)))
    for name in ("results.json", "digests/corruptions.txt"):
        assert (again / name).read_bytes() == (out / name).read_bytes(), name
    (card,) = getattr(ModelCard.load(tmp_path / "hub" / "standard.md").data, "eval_results", [])
    assert (card.metric_type, card.dataset_revision) == ("mean_error", measured.card.digest)


@pytest.mark.long
def test_what_is_finished_is_not_computed_again(
    edition: Edition, evaluated: tuple[Evaluated, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But answers that have changed are."""
    out = tmp_path / "again"
    shutil.copytree(evaluated[1], out)
    computed: list[str] = []
    predict = answering.predict

    def counted(targets: list[answering.AnsweringModel], *arguments: Any, **named: Any) -> None:
        computed.extend(target.name for target in targets)
        predict(targets, *arguments, **named)

    monkeypatch.setattr(answering, "predict", counted)
    wanted = Arguments(str(edition.folder), ["standard", "norm_robust"]), out, params_file(tmp_path)
    evaluation.run(evaluation.request_of(edition, *wanted))
    assert computed == []
    shutil.copy(out / "corruptions" / "norm_robust.parquet", out / "corruptions" / "standard.parquet")
    evaluation.run(evaluation.request_of(edition, *wanted))
    assert computed == ["standard"]
    path = Path("corruptions", "standard.parquet")
    assert (out / path).read_bytes() == (evaluated[1] / path).read_bytes()


@pytest.mark.long
def test_stored_scores_are_compared(edition: Edition, tmp_path: Path) -> None:
    """For a role on its set, not for one on an exported folder."""
    other = tmp_path / "edition"
    shutil.copytree(edition.folder, other, ignore=shutil.ignore_patterns("studies", "raw", ".git", ".dvc"))
    scores = other / "data" / "scores"
    shutil.copy(scores / "norm_robust.parquet", scores / "standard.parquet")
    params = params_file(tmp_path, corruptions={"names": ["contrast"], "severities": [1]})
    with pytest.raises(CleansetError, match=r"the stored scores .* expected the same bits"):
        evaluation.run(
            evaluation.request_of(Edition(other), Arguments("standard", ["standard"]), tmp_path / "out", params)
        )
    export = str(other / "data" / "export" / "standard")
    found = evaluation.run(
        evaluation.request_of(Edition(other), Arguments(export, ["standard"]), tmp_path / "out", params)
    )
    assert values(found.measured["corruptions"][0], "all", "standard")["error_clean", ""] == 0


@pytest.mark.long
def test_a_folder_per_wnid(edition: Edition, tmp_path: Path) -> None:
    """Without manifest: its images have the seeds of their numbers, and the classes are those of the folder."""
    export = edition.export("standard")
    chosen = sorted(path for path in export.rglob("*") if path.parent.name in CLASSES)[:4]
    for number, path in enumerate(chosen):
        name = path.name if number else "mine.png"
        (tmp_path / "set" / path.parent.name).mkdir(parents=True, exist_ok=True)
        shutil.copy(path, tmp_path / "set" / path.parent.name / name)
    found = open_images(str(tmp_path / "set"), edition, ["standard"])
    wnid = chosen[0].parent.name
    assert found.rows["image_id"].tolist()[-1 if wnid == chosen[-1].parent.name else 2] == f"{wnid}/mine.png"
    assert set(found.rows["image_id"]) >= {path.name[:23] for path in chosen[1:]}
    assert list(found.edition_classes) == sorted(set(found.rows["class_index"]))
    wanted = Arguments(str(tmp_path / "set"), ["norm_robust"]), tmp_path / "out", params_file(tmp_path)
    result = evaluation.run(evaluation.request_of(edition, *wanted))
    assert values(result.measured["corruptions"][0], "all", "norm_robust").keys() >= {("error", "contrast")}
    out = StringIO()
    Console(file=out, width=80).print(as_text(result), highlight=False)
    lines = out.getvalue().splitlines()
    assert "no manifest: which images these are was not checked" in lines
    assert max(map(len, lines)) <= 80
    assert "corruptions, 4 images: error in percent" in lines
    answers = pd.read_parquet(tmp_path / "out" / "corruptions" / "norm_robust.parquet")
    stored = pd.read_parquet(study_of(edition).answers.predictions("corruptions", "norm_robust"))
    both = answers.merge(stored, on=["file", "change", "severity"])
    assert len(both) == 3 * 4
    assert (both["log_odds_x"] == both["log_odds_y"]).all()


def test_a_file_of_names(edition: Edition, tmp_path: Path) -> None:
    """All images of these ids that are in the sets, of the edition's classes."""
    table = pd.read_parquet(study_of(edition).images)
    names, path = table["image_id"].tolist()[5:2:-1], tmp_path / "names.txt"
    path.write_text("\n".join(names) + "\n")
    found = open_images(str(path), edition, ["standard"])
    assert found.rows["file"].tolist() == table[table["image_id"].isin(names)]["file"].tolist()
    assert len(found.edition_classes) == 12
    assert (found.selections, found.notes) == (("all",), ["of 21 images of the sets those that names.txt names"])
    path.write_text("ILSVRC2012_val_00050000\n")
    with pytest.raises(
        CleansetError,
        match=r"names\.txt, line 1: 'ILSVRC2012_val_00050000'; expected one of the 21 images",
    ):
        open_images(str(path), edition, ["standard"])
    path.write_text("\n")
    with pytest.raises(CleansetError, match=r"names\.txt: no images; expected an image id a line"):
        open_images(str(path), edition, ["standard"])
    classes = table.set_index("image_id")["class_index"].to_dict()
    listed = tmp_path / "list.csv"
    listed.write_text("image_id,class_index\n" + "".join(f"{each}.JPEG,{classes[each]}\n" for each in names))
    again = open_images(str(listed), edition, ["standard"])
    assert again.rows["file"].tolist() == found.rows["file"].tolist()
    other = next(each for each in classes.values() if each != classes[names[0]])
    listed.write_text(f"image_id,class_index\n{names[0]},{other}\n")
    with pytest.raises(CleansetError, match=r"line 2: ILSVRC2012_val_.* with this class; expected one of the 21"):
        open_images(str(listed), edition, ["standard"])


@pytest.mark.long
def test_one_image_is_too_few(edition: Edition, tmp_path: Path) -> None:
    """It has no interval, and no measure is given without one."""
    names = tmp_path / "names.txt"
    names.write_text(pd.read_parquet(study_of(edition).images)["image_id"].iloc[0] + "\n")
    path = params_file(tmp_path, corruptions={"names": ["fog"], "severities": [1]})
    with pytest.raises(CleansetError, match="corruptions: images to measure on: 1; expected two or more"):
        evaluation.run(evaluation.request_of(edition, Arguments(str(names), ["standard"]), tmp_path / "out", path))


@pytest.mark.long
def test_a_further_model_is_measured(measured_study: Study, evaluated: tuple[Evaluated, Path]) -> None:
    """On all images and the common ones, as the role of the same weights is; it has no set of its own."""
    study = measured_study
    answers = study.answers.predictions("corruptions", OTHER)
    assert answers.read_bytes() == (evaluated[1] / "corruptions" / "norm_robust.parquet").read_bytes()
    table = pd.read_csv(study.measures / "corruptions.csv")
    assert set(table[table["model"] == OTHER]["selection"]) == {"union", "common"}
    assert table[table["selection"] == "common"]["images"].unique().tolist() == [5]
    same = [table[table["model"] == role].drop(columns="model") for role in (OTHER, "norm_robust")]
    keys = ["selection", "measure", "change"]
    both = same[0].merge(same[1], on=keys)
    assert len(both) == len(same[0]) > 0
    np.testing.assert_array_equal(both["value_x"], both["value_y"])
    metrics = json.loads((study.metrics / "corruptions" / "mean_error.json").read_text())
    assert list(metrics) == ["standard", "norm_robust", "corruption_robust", OTHER]
    assert OTHER in soup(study.report / "index.html").select_one("#models").get_text()  # type: ignore[union-attr]


def test_pages_of_measures_that_lack_rows(measured_study: Study) -> None:
    """One line that names the folder, and the report of before stays."""
    study = measured_study
    path, before = study.measures / "corruption_errors.csv", (study.report / "index.html").read_bytes()
    text = path.read_text()
    path.write_text("".join(text.splitlines(keepends=True)[:5]))
    with pytest.raises(CleansetError, match=r"measures: rows are missing \(.*\); expected tables of one run of stage"):
        pages.run(study)
    path.write_text(text)
    assert (study.report / "index.html").read_bytes() == before


def test_a_study_without_masks_has_no_scenarios(measured_study: Study) -> None:
    """Answers to no images, which are tables without rows."""
    assert len(pd.read_parquet(measured_study.answers.predictions("scenarios", OTHER))) == 0
    assert (measured_study.report / "index.html").is_file()
    assert not (measured_study.report / "scenarios.html").exists()


@pytest.mark.long
def test_the_documented_lines(edition: Edition, repository: Path) -> None:
    done = shell(Checkout(edition.folder), block(repository, "mkdir -p build"))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "standard: 13 images of 5 classes"
    assert [line.split()[0] for line in lines if "norm_robust" in line] == ["norm_robust"]
    assert "(1) no mCE: severities 1, 3; CE needs 1 to 5, and lacks 2, 4, 5" in lines
    assert (edition.folder / "build" / "robustness" / "metrics" / "corruptions" / "error" / "fog.json").is_file()


@pytest.mark.exhaustive
def test_the_documented_lines_of_imagenet_c_bar(edition: Edition, repository: Path) -> None:
    """All ten are made; mCE is missing without AlexNet's errors on them."""
    (edition.folder / "build").mkdir(exist_ok=True)
    done = shell(
        Checkout(edition.folder),
        block(repository, "echo 'corruptions: {names: [c_bar], severities: [1, 5]}' > build/c_bar.yaml"),
    )
    assert done.returncode == 0, done.stderr
    assert "mCE" not in done.stdout
    assert "No official ImageNet-C-bar numbers" in done.stdout
    errors = edition.folder / "build" / "c_bar" / "metrics" / "corruptions" / "error"
    assert {path.stem for path in errors.glob("*.json")} == set(C_BAR_AMOUNTS)


@pytest.mark.parametrize(
    ("models", "images_of", "params", "message"),
    [
        ([], "standard", None, "no --model"),
        (["vgg"], "standard", None, "--model 'vgg': no such model"),
        (["standard"], "nowhere", None, "nowhere: unknown set; expected one of the edition's roles"),
        (
            ["standard"],
            "standard",
            {"measures": {"perturbations": {"reference": "robust"}}},
            "unknown model 'robust'; expected one of standard",
        ),
        (["standard"], "standard", {"scenarios": {"names": ["blur"]}}, "scenarios need masks"),
        (
            ["standard"],
            "standard",
            {"measures": {"corruptions": {"trained_on": {"x": ["fog"]}}}},
            "unknown model 'x'; expected one of standard",
        ),
    ],
)
def test_what_is_wrong_is_reported(
    edition: Edition, tmp_path: Path, models: list[str], images_of: str, params: dict[str, object] | None, message: str
) -> None:
    path = params_file(tmp_path, **params) if params else None
    with pytest.raises(CleansetError) as error:
        evaluation.run(evaluation.request_of(edition, Arguments(images_of, models), tmp_path / "out", path))
    assert message in str(error.value)


def test_the_defaults() -> None:
    params = evaluation._params(None, ["a"], [], imagenet())
    assert (len(params.section(Corruptions).changes()), len(params.section(Perturbations).changes())) == (
        75,
        9 * 31 + 41,
    )
    assert params.section(Scenarios).changes() == []


def test_a_list_of_files_or_folders(tmp_path: Path) -> None:
    """As cleanset evaluate takes it, but for images of several classes."""
    for name in ("bench/a.png", "bench/b.png", "1/c.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("RGB", (300, 300), (len(name), ord(name[-5]), 0)).save(tmp_path / name)
    listed = tmp_path / "list.csv"
    listed.write_text("\ufefffolder,class_index\nbench,703\n1,7\n")
    found = open_images(str(listed), Edition(tmp_path), [])
    assert found.rows["file"].tolist() == ["1/c.png", "bench/a.png", "bench/b.png"]
    assert found.rows["class_index"].tolist() == [7, 703, 703]
    assert found.files["1/c.png"].path == (tmp_path / "1" / "c.png").resolve()
    listed.write_text("file,wnid\nbench/a.png,n01440764\n")
    found = open_images(str(listed), Edition(tmp_path), [])
    assert (found.rows["file"].tolist(), found.rows["class_index"].tolist()) == (["bench/a.png"], [0])
    listed.write_text("file,class_index\nbench/a.png,1 2\n")
    with pytest.raises(CleansetError, match=r"list\.csv: bench/a\.png with several classes; expected one class"):
        open_images(str(listed), Edition(tmp_path), [])


def test_a_damaged_image(tmp_path: Path) -> None:
    (tmp_path / "n01440764").mkdir()
    Image.new("RGB", (300, 300)).save(tmp_path / "n01440764" / "a.png")
    found = open_images(str(tmp_path), Edition(tmp_path), [])
    assert found.rows["image_id"].tolist() == ["n01440764/a.png"]
    assert (found.selections, found.owners, found.edition) == (("all",), (), None)


@pytest.mark.long
def test_below_float64_the_record_says_how_far(
    edition: Edition, evaluated: tuple[Evaluated, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a sample of the changed images, here all of them; and it is not computed again."""
    monkeypatch.setattr(answering, "sample_size", lambda images: images)
    wanted = Arguments("standard", ["standard"], precision="float32"), tmp_path / "out", params_file(tmp_path)
    evaluation.run(evaluation.request_of(edition, *wanted))
    found = json.loads((tmp_path / "out" / "corruptions" / "standard.json").read_text())["against_float64"]
    answers, exact = (
        pd.read_parquet(folder / "corruptions" / "standard.parquet") for folder in (tmp_path / "out", evaluated[1])
    )
    both = answers[answers["change"] != "clean"].merge(exact, on=["file", "change", "severity"])
    assert found["images"] == len(both) == 3 * 13
    same = [one[0] == other[0] for one, other in zip(both["top5_class_x"], both["top5_class_y"], strict=True)]
    assert found["top1_agreement"] == pytest.approx(np.mean(same), abs=1e-6)
    probabilities = [
        {int(c): float(p) for c, p in zip(classes, values, strict=True)}
        for side in "xy"
        for classes, values in zip(both[f"top5_class_{side}"], both[f"top5_probability_{side}"], strict=True)
    ]
    pairs = zip(probabilities[: len(both)], probabilities[len(both) :], strict=True)
    largest = max(abs(one[c] - other[c]) for one, other in pairs for c in one.keys() & other.keys())
    assert 0 < largest <= found["largest_difference"] * 1.01
    assert found["largest_difference"] < 1e-3
    monkeypatch.setattr(answering, "predict", None)
    evaluation.run(evaluation.request_of(edition, *wanted))


class _SinglePrecision(torch.nn.Module):
    """Logits by a constant of float32 that is not a buffer, so that the network runs in float32 alone."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean((2, 3)) @ torch.eye(3, 1000)


def single_precision() -> tuple[torch.nn.Module, str]:
    return _SinglePrecision(), "timm-bilinear-8-8"


@pytest.mark.long
def test_a_network_that_runs_in_float32_alone(
    edition: Edition, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"{__name__}:single_precision"
    wanted = Arguments("standard", [name], precision="float32"), tmp_path / "out", params_file(tmp_path)
    evaluation.run(evaluation.request_of(edition, *wanted))
    (record,) = (tmp_path / "out" / "corruptions").glob("*.json")
    assert json.loads(record.read_text())["against_float64"] is None
    assert "float32 against float64: not compared, as the network does not run in it" in capsys.readouterr().err


@pytest.mark.long
def test_processes_and_order_change_no_byte(edition: Edition, monkeypatch: pytest.MonkeyPatch) -> None:
    """One process; and three, the other order and smaller batches and shards."""
    params = PARAMS | {"perturbations": {"names": ["shot_noise"], "max_images": 2}}
    one, three = studies = [Study(edition.folder / "studies" / name) for name in ("one", "three")]
    one.folder.mkdir()
    one.params_yaml.write_text(yaml.safe_dump(params))
    image_sets.run(one)
    shutil.copytree(one.folder, three.folder)
    answering.run(one, "standard", "perturbations")
    names, settings_for = ChangePlan.names, engine.settings_for
    used: list[engine.Settings] = []

    def settings(score: Score) -> engine.Settings:
        used.append(replace(settings_for(score), batch_size=5))
        return used[-1]

    monkeypatch.setattr(engine, "available_cores", lambda: 3)
    monkeypatch.setattr(answering, "settings_for", settings)
    monkeypatch.setattr(ChangePlan, "names", lambda self: names(self)[::-1])
    monkeypatch.setattr(answering, "Shards", partial(Shards, min_images=40))
    answering.run(three, "standard", "perturbations")
    assert [each.workers for each in used] == [3]
    for path_of in (AnswerFiles.predictions, AnswerFiles.record):
        found = [path_of(study.answers, "perturbations", "standard").read_bytes() for study in studies]
        assert found[0] == found[1]


@pytest.mark.parametrize(
    "images", [pytest.param("union", marks=pytest.mark.long), pytest.param("own", marks=pytest.mark.exhaustive)]
)
def test_the_images_are_made_once_for_all_stages(
    edition: Edition, monkeypatch: pytest.MonkeyPatch, images: str
) -> None:
    """The first stage leaves finished shards to the others, and digests; a model that lacks answers costs itself."""
    study, whole = Study(edition.folder / "studies" / images), study_of(edition)
    study.folder.mkdir()
    one_change: dict[str, object] = {
        "corruptions": {"names": ["contrast"], "severities": [2]},
        "perturbations": {"names": []},
    }
    study.params_yaml.write_text(yaml.safe_dump(PARAMS | one_change | {"images": images}))
    image_sets.run(study)
    shown: list[list[str]] = []
    answer = one_pass.OnePass.answer

    def counted(shared: one_pass.OnePass) -> dict[str, Exception]:
        shown.append(list(shared.models))
        return answer(shared)

    monkeypatch.setattr(one_pass.OnePass, "answer", counted)
    # one of the models cannot be loaded by now: its own stage tells
    weights = edition.folder / "sample" / "weights" / "corruption_robust.safetensors"
    moved = weights.rename(weights.with_suffix(".moved"))
    answering.run(study, "standard", "corruptions")
    moved.rename(weights)
    partial_shards = study.answers.partial("corruptions", "norm_robust")
    assert partial_shards.is_dir()
    # it writes into data what dvc.yaml names as its outs, and nothing of another model
    written = {path.name for path in (study.folder / "data").rglob("*") if path.is_file()}
    assert written == {"images.parquet", "masks.parquet", "standard.parquet", "standard.json"}
    answering.run(study, "norm_robust", "corruptions")
    assert shown == [["standard", "norm_robust"]]
    assert not partial_shards.exists()
    answering.run(study, "corruption_robust", "corruptions")
    assert shown[1:] == [["corruption_robust"]]
    for role in ("standard", "norm_robust"):
        stored = pd.read_parquet(whole.answers.predictions("corruptions", OTHER if role == "norm_robust" else role))
        table = pd.read_parquet(study.images)
        seen = table[table["sets"].map(lambda sets, role=role: images == "union" or role in sets)]["file"]
        expected = stored[stored["file"].isin(seen) & (stored["change"] != "pixelate")].reset_index(drop=True)
        pd.testing.assert_frame_equal(pd.read_parquet(study.answers.predictions("corruptions", role)), expected)
    made: list[str] = []
    digests = stage_digests.DigestRun.digests

    def counted_digests(self: stage_digests.DigestRun, names: Iterable[ChangeName]) -> Generator[str, None, None]:
        listed = [*names]
        made.extend(f"{self.plan.name} {name}" for name in listed)
        yield from digests(self, listed)

    monkeypatch.setattr(stage_digests.DigestRun, "digests", counted_digests)
    monkeypatch.setattr(stage_digests, "available_cores", lambda: 1)
    stage_digests.run(study)
    # with images: own the last model saw further ones
    assert [name for name in made if name.startswith("corruptions ")] == [] or images == "own"
    assert not list(study.folder.rglob("*partial*"))
    # what stage digests knows already is not left for it
    study.answers.predictions("corruptions", "standard").unlink()
    answering.run(study, "standard", "corruptions")
    assert shown[2:] == [["standard"]]
    assert not list(study.folder.rglob("*partial*"))


def test_a_model_with_other_answers_lacks_its_own(edition: Edition) -> None:
    """Another seed, other weights aside: its stage will run, so it is shown the images now."""
    study, whole = Study(edition.folder / "studies" / "lacking"), study_of(edition)
    shutil.copytree(whole.folder, study.folder, ignore=shutil.ignore_patterns("measures", "report", "*partial*"))
    plan = OpenedStudy.read(study).plan(family_named("corruptions"))

    def lacking() -> list[str]:
        models = answering.StudyModels(OpenedStudy.read(study), engine.settings_for(Score(device="cpu")))
        return [each.name for each in models.lacking(plan, "standard")]

    assert lacking() == []
    study.answers.predictions("corruptions", OTHER).unlink()
    assert lacking() == [OTHER]
    record = study.answers.record("corruptions", "norm_robust")
    record.write_text(json.dumps(json.loads(record.read_text()) | {"seed": 5}))
    assert lacking() == ["norm_robust", OTHER]
    no_column = study.answers.predictions("corruptions", "corruption_robust")
    pd.read_parquet(no_column).drop(columns="class_logit").to_parquet(no_column)
    assert lacking() == ["norm_robust", "corruption_robust", OTHER]


class Growing(Linear):
    """A network for whose copies there is room `ROOM[0]` times."""

    def _apply(self, *given: Any, **named: Any) -> "Growing":
        ROOM[0] -= 1
        if ROOM[0] < 0:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate a lot")
        super()._apply(*given, **named)  # type: ignore[no-untyped-call]
        return self


ROOM = [0]


@pytest.mark.long
@pytest.mark.parametrize("room", [0, 1])
def test_a_network_that_does_not_fit_into_memory_is_reported(edition: Edition, tmp_path: Path, room: int) -> None:
    """For clean images, and for changed ones, which come after them."""
    opened = OpenedStudy.read(study_of(edition))
    plan = opened.plan(family_named("corruptions"))
    target = answering.StudyModels(opened, engine.settings_for(Score(device="cpu"))).load("standard")
    model = replace(target.model, network=Growing())
    asked = replace(target, model=model, check=None, answers=AnswerFiles(tmp_path))
    ROOM[0] = room
    message = (
        "^standard: its network does not fit into the memory of cpu; expected a larger device: end other programs on "
        "it, or set the device cpu$"
    )
    with pytest.raises(CleansetError, match=message):
        answering.predict([asked], plan)


def answer_in_small_shards(study: Study) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answering, "Shards", partial(Shards, min_images=16))
        patch.setattr(engine, "available_cores", lambda: 1)
        answering.run(study, "standard", "corruptions")


def test_shards_of_other_libraries_are_not_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = engine.settings_for(Score(device="cpu"))
    target = answering.AnsweringModel(
        name="standard", model=cast(Any, SimpleNamespace(code="", weights_sha256="")), settings=settings,
        edition_classes=[], answers=AnswerFiles(tmp_path),
    )  # fmt: skip
    monkeypatch.setattr(answering.AnsweringModel, "record", lambda *_: {"role": "standard"})
    rows = pd.DataFrame({"file": ["a.png"], "file_sha256": ["0" * 64], "class_index": [3], "image_id": ["a"]})
    plan = cast(Any, SimpleNamespace(images=rows, classes=imagenet()))
    before = target.made_from(plan)
    assert before == target.made_from(plan)
    monkeypatch.setattr(answering, "installed_versions", lambda: {"numba": "0.1"})
    assert target.made_from(plan).fingerprint != before.fingerprint


@pytest.mark.exhaustive
def test_a_killed_stage_continues_where_it_was(edition: Edition, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was finished is not computed again, and the answers are the same bytes."""
    study, whole = Study(edition.folder / "studies" / "killed"), study_of(edition)
    study.folder.mkdir()
    shutil.copy(whole.params_yaml, study.params_yaml)
    image_sets.run(study)
    shards = study.answers.partial("corruptions", "standard")

    def finished() -> list[str]:
        return sorted(path.name for path in shards.glob("*/[0-9]*.parquet"))

    process = FORK_SERVER.Process(target=answer_in_small_shards, args=(study,))
    process.start()
    while not finished() and process.is_alive():
        time.sleep(0.005)
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert not study.answers.predictions("corruptions", "standard").exists()
    kept, keep, before = list[str](), Shards.keep, finished()
    assert 1 <= len(before) < 4  # of 63 answers

    def counted(self: Shards, number: int, table: pd.DataFrame) -> None:
        if self._all == shards:  # other models' answers, and the digests, are kept in folders of their own
            kept.append(f"{number:05}.parquet")
        keep(self, number, table)

    monkeypatch.setattr(Shards, "keep", counted)
    answer_in_small_shards(study)
    assert sorted(kept + before) == [f"{number:05}.parquet" for number in range(4)]
    for path_of in (AnswerFiles.predictions, AnswerFiles.record):
        files = [path_of(each.answers, "corruptions", "standard") for each in (study, whole)]
        assert files[0].read_bytes() == files[1].read_bytes()
    assert not shards.exists()


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("seed", 3, "answers with seed 3; expected 0, as in this study"),
        ("jpeg", 85, "answers with jpeg 85; expected None, as in this study"),
        ("weights_sha256", "0" * 64, f"answers with weights_sha256 '{'0' * 64}'; expected '005427ace323"),
        ("images_sha256", "0" * 64, f"answers with images_sha256 '{'0' * 64}'; expected '"),
        ("parameters", "many", "no parameters as a number; expected the record of answers, with weights, "),
    ],
)
def test_answers_with_something_else_are_not_measured(edition: Edition, key: str, value: object, expected: str) -> None:
    study = study_of(edition)
    path = study.answers.record("corruptions", "standard")
    before = path.read_text()
    path.write_text(json.dumps(json.loads(before) | {key: value}))
    with pytest.raises(CleansetError) as error:
        measuring.run(study)
    path.write_text(before)
    assert f"{path}: {expected}" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.long
def test_published_images_give_the_answers_of_made_ones(
    edition: Edition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bit for bit, in a study's stages and outside DVC, of the images that are whole."""
    study, made = Study(edition.folder / "studies" / "published"), study_of(edition)
    table, folder = pd.read_parquet(made.images), study.folder / "images of the benchmark"
    family = OpenedStudy.read(made).plan(family_named("corruptions"))
    changed, whole = family.changed_images(), table[table["crop"].isna()]
    for file in whole["file"]:
        for change, severity in family.changes:
            path = folder / change / str(severity) / file
            path.parent.mkdir(parents=True, exist_ok=True)
            changed(ChangeName(file, change, severity)).save(path, format="PNG")
    published = {"corruptions": PARAMS["corruptions"] | {"published": folder.name}, "jpeg": 85}  # type: ignore[operator]
    study.params_yaml.write_text(yaml.safe_dump(PARAMS | published))
    image_sets.run(study)
    answering.run(study, "standard", "corruptions")
    stored, found = (pd.read_parquet(each.answers.predictions("corruptions", "standard")) for each in (made, study))
    is_made = stored["file"].isin(whole["file"]) & (stored["change"] != "unchanged")
    is_read = found["change"] != "unchanged"  # which has the JPEG step
    assert is_read.sum() == is_made.sum() == 3 * len(whole)
    pd.testing.assert_frame_equal(
        found[is_read].reset_index(drop=True), stored[is_made].reset_index(drop=True), check_exact=True
    )
    for role in ("norm_robust", "corruption_robust"):
        shutil.copy(
            study.answers.predictions("corruptions", "standard"), study.answers.predictions("corruptions", role)
        )
        models = yaml.safe_load(edition.params_yaml.read_text())["models"]
        copy_record(study, "corruptions", ("standard", role), models)
    measuring.run(study)
    pages.run(study)
    notice = soup(study.report / "index.html").select_one(".notice").get_text()  # type: ignore[union-attr]
    left_out = len(table) - len(whole)
    assert notice == (
        "Published images, unverified, but not all of ImageNet-C: no official numbers. Published images are whole: "
        f"{left_out} that are cropped in the sets are left out."
    )
    few = PARAMS | {"corruptions": {"names": ["contrast"], "severities": [2], "published": str(folder.resolve())}}
    params_file(tmp_path, **few)
    wanted = Arguments("standard", ["standard"]), tmp_path / "out", tmp_path / "wanted.yaml"
    printed = StringIO()
    Console(file=printed, width=80).print(
        as_text(evaluation.run(evaluation.request_of(edition, *wanted))), highlight=False
    )
    answers = pd.read_parquet(tmp_path / "out" / "corruptions" / "standard.parquet")
    both = answers.merge(stored, on=["file", "change", "severity"])
    assert len(both) == len(answers) == 3 * sum("standard" in each for each in whole["sets"])
    assert (both["log_odds_x"] == both["log_odds_y"]).all()
    assert "no official numbers" in " ".join(printed.getvalue().split())
    assert "own implementation" not in printed.getvalue()
    for is_official, expected in ((False, "no"), (True, "yes")):
        monkeypatch.setattr(families, "change_plan", partial(plan_of, is_official))
        evaluation.run(evaluation.request_of(edition, *wanted))
        for name in ("corruptions", "corruption_differences", "corruption_errors", "errors_by_severity"):
            table = pd.read_csv(tmp_path / "out" / "measures" / f"{name}.csv")
            assert set(table["official"]) <= {expected}
            assert len(table) or name == "corruption_differences"  # one model has none
