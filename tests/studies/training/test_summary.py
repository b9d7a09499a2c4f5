"""Stage summary on a study whose runs are written down: tables, metrics and pages."""

import json
from pathlib import Path

import pandas as pd
import pytest
import yaml
from playwright.sync_api import Browser

from cleanset.classes import imagenet
from cleanset.errors import CleansetError
from cleanset.studies.robustness.scenarios.params import ScenarioMeasures
from cleanset.studies.training import summary as stage
from cleanset.studies.training.finished import finished_runs
from cleanset.studies.training.params import read_training_params
from cleanset.studies.training.recipes import RECIPES
from cleanset.studies.training.run_params import Run
from cleanset.studies.training.study import TrainingStudy
from tests.report.pages import opened, soup, tables, violations
from tests.studies.training.finished_study import PARAMS, finished_study, write_fold


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> TrainingStudy:
    """The summary of the runs that are written down."""
    made = finished_study(tmp_path_factory.mktemp("training"))
    stage.run(made)
    return made


def test_tables(study: TrainingStudy) -> None:
    assert sorted(path.name for path in study.measures.iterdir()) == [
        "accuracies.csv", "class_accuracies.csv", "deviations.csv", "final_values.csv", "fold_accuracies.csv",
        "gains.csv", "histories.csv", "runs.csv", "segmentation_anova.csv", "segmentation_classes.csv",
        "segmentation_fitted.csv", "segmentation_folds.csv", "segmentation_means.csv", "segmentation_regression.csv",
        "table_2.csv", "trained.yaml", "trained_scores.csv",
    ]  # fmt: skip
    gains = pd.read_csv(study.measures / "gains.csv")
    assert gains[["scenario", "ex1", "ex2", "gain"]].values.tolist() == [
        ["blur_object", "ex1", "ex2_blur", 0.1], ["random_background", "ex1", "ex2_random", 0.4],
    ]  # fmt: skip
    runs = pd.read_csv(study.measures / "runs.csv")
    assert runs["settings"].tolist()[3] == "norm Linf, eps 4/255, steps 2, step 2/255, random start yes, " + (
        "warm up epochs 0, evaluation mode no, best iterate no"
    )


def test_metrics(study: TrainingStudy) -> None:
    """One line a file, as dvc metrics show reads them."""
    found = {
        path.relative_to(study.metrics).as_posix(): json.loads(path.read_text())
        for path in study.metrics.rglob("*.json")
    }
    assert found["accuracy/original.json"] == {"ex1": 0.9, "adversarial": 0.75}
    assert found["accuracy/blur_object.json"] == {"ex1": 0.7, "ex2_blur": 0.8}
    assert found["gain/random_background.json"] == {"ex1": 0.4}
    assert found["score_as_published.json"] == {"ex1": pytest.approx(1 - 0.53 - 0.1)}


def test_the_robustness_study_takes_the_trained_accuracies(study: TrainingStudy) -> None:
    trained = yaml.safe_load((study.measures / "trained.yaml").read_text())
    assert trained == {"ex1": {"original": 0.9, "blur_object": 0.8, "random_background": 0.6}}
    assert ScenarioMeasures.model_validate({"inner": "trained", "trained": trained}).trained == trained


def test_pages(study: TrainingStudy) -> None:
    assert sorted(path.name for path in study.report.iterdir()) == [
        "curves.html", "experiments.html", "index.html", "segmentation.html", "sheets",
    ]  # fmt: skip
    index = soup(study.report / "index.html")
    (runs,) = tables(index, "runs")
    assert [row[0] for row in runs[1:]] == [
        "ex1", "ex2_blur", "ex2_random", "adversarial", "ex3_fpn", "ex3_upernet",
    ]  # fmt: skip
    assert runs[2][-1].startswith("80.0 ")
    assert runs[1][-2] == "4 4 4: the smallest loss on images set aside"
    assert "A miniature: no run is trained on more than 54 images." in index.get_text()
    assert "so not tested here" not in index.get_text()
    (recipes,) = tables(index, "recipes")
    assert [row[-5] for row in recipes[1:]] == ["standard", "adversarial"]
    (final,) = tables(index, "final")
    assert final[1][:4] == ["ex1", "fold 01", "loss", "training"]
    assert final[1][5:] == ["0.1250", "4", "40", "4", "0.1250"]
    assert len(final) == 1 + 4 * 3 * 4 + 2 * 4


def test_curves(study: TrainingStudy) -> None:
    """By scenario a chart of each measure and part, by run one of each measure, raw and smoothed."""
    page = soup(study.report / "curves.html")
    assert [each.get_text() for each in page.select("#scenarios h3")] == [
        "original classification", "blur object classification", "random background classification",
        "original segmentation",
    ]  # fmt: skip
    first = page.select("#scenarios .curve-group")[0]
    assert [each.get_text() for each in first.select("figcaption")] == [
        "accuracy, training", "accuracy, validation", "loss, training", "loss, validation",
    ]  # fmt: skip
    assert len(first.select("svg.curve")[0].select("polyline")) == 4
    assert len(page.select("#runs svg.curve")) == 12


def test_experiments(study: TrainingStudy) -> None:
    page = soup(study.report / "experiments.html")
    (gains,) = tables(page, "gains")
    assert gains[1][:6] == ["timm:test_vit", "own", "blur object", "70.0", "80.0", "+10.0"]
    assert gains[1][6].endswith("contains 0")
    (halves,) = tables(page, "table-2")
    assert [row[0] for row in halves] == ["trained on", "originals", "the scenario"]
    squares, scores = tables(page, "table-3")
    assert squares[1] == ["timm:test_vit own", "external", "4.00", "49.00", "0.5300"]
    assert squares[2] == ["timm:test_vit own", "internal", "1.00", "9.00", "0.1000"]
    assert scores[1] == ["timm:test_vit own", "as published", "0.5300", "0.1000", "0.3700"]


def test_segmentation(study: TrainingStudy) -> None:
    """Mean IoU of three classes, by hand: (600/800 + 620/780 + 640/760) / 3 on originals."""
    page = soup(study.report / "segmentation.html")
    mean_iou, *_ = tables(page, "means")
    expected = 100 * (600 / 800 + 620 / 780 + 640 / 760) / 3
    assert mean_iou[0] == ["mean IoU", "ex3_fpn", "ex3_upernet"]
    assert mean_iou[1] == ["original", f"{expected:.1f}", f"{expected:.1f}"]
    heat, _ = tables(page, "classes")
    assert heat[1][0] == "background"
    terms, anova = tables(page, "regression")
    assert [row[0] for row in terms[1:]][:3] == ["intercept", "run ex3_upernet", "scenario random background"]
    assert [row[0] for row in anova[1:]] == ["regression", "run", "scenario", "class", "residual", "total"]
    tiles = page.select("#sheets img")
    assert [each["src"] for each in tiles[:2]] == [
        "sheets/ex3_fpn/original_best_1.jpg", "sheets/ex3_fpn/original_worst_1.jpg",
    ]  # fmt: skip
    assert all((study.report / str(each["src"])).is_file() for each in tiles)
    found = json.loads((study.metrics / "mean_iou" / "original.json").read_text())
    assert found["ex3_fpn"] == pytest.approx(expected / 100, abs=1e-6)


def test_a_tile_that_is_missing(tmp_path: Path) -> None:
    found = finished_study(tmp_path)
    (found.fold("ex3_fpn", "fold_01").folder / "sheets" / "original_best_1.jpg").unlink()
    with pytest.raises(
        CleansetError, match=r"original_best_1\.jpg: missing; expected the tiles that sheets\.csv names"
    ):
        stage.run(found)


def test_costs_lie_next_to_the_report(study: TrainingStudy) -> None:
    """Those of every fold whose training left them, with the rate of the fastest run alike by theirs."""
    costs = pd.read_csv(study.costs / "costs.csv").set_index(["run", "fold"])
    assert costs.loc[("ex1", "fold_01"), "network":].to_dict() == {
        "network": "timm:test_vit", "size": 224, "batch": 32, "device": "cpu", "seconds": 10.0, "images": 1000,
        "images_per_second": 100.0, "peak_memory_bytes": 3 * 2**20, "finished": "2026-01-02T03:04:05Z", "step": 40,
        "times_the_fastest": 1.0,
    }  # fmt: skip
    assert costs.loc[("ex2_blur", "fold_01"), "times_the_fastest"] == 2


def test_runs_without_costs_are_left_out(tmp_path: Path) -> None:
    found = finished_study(tmp_path)
    runs, _ = finished_runs(found, read_training_params(found.params_yaml, imagenet()))
    found.cost("ex1", "fold_01").unlink()
    left = set(stage.costs_table(found, runs)[["run", "fold"]].itertuples(index=False))
    assert ("ex1", "fold_02") in left
    assert ("ex1", "fold_01") not in left
    for path in found.costs.glob("*/*.json"):
        path.unlink()
    stage.run(found)
    assert (found.costs / "costs.csv").read_text() == "\n"
    found.cost("ex1", "fold_01").write_text("{}")
    with pytest.raises(CleansetError, match=r"fold_01\.json: no seconds as a number; expected the costs of a run"):
        stage.costs_table(found, runs)


@pytest.mark.long
def test_the_same_inputs_give_the_same_bytes(study: TrainingStudy, tmp_path: Path) -> None:
    again = finished_study(tmp_path)
    stage.run(again)
    for folder in ("data/measures", "metrics", "report"):
        for path in sorted((study.folder / folder).rglob("*.*")):
            assert (again.folder / path.relative_to(study.folder)).read_bytes() == path.read_bytes()


@pytest.mark.long
def test_studies_next_to_it_are_linked_from_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where DVC runs the stage."""
    made = finished_study(tmp_path)
    beside = made.folder.parent / "robustness"
    beside.mkdir(exist_ok=True)
    (beside / "dvc.yaml").touch()
    monkeypatch.chdir(made.folder)
    stage.run(TrainingStudy(Path()))
    (pages,) = soup(made.report / "index.html").select("nav[aria-label=Pages]")
    assert [each.get_text() for each in pages.select("a")][-3:] == ["Costs", "Robustness", "Report of the sets"]


@pytest.mark.long
def test_a_run_that_is_not_trained_is_reported(tmp_path: Path) -> None:
    from shutil import rmtree

    found = finished_study(tmp_path)
    rmtree(found.run("adversarial"))
    stage.run(found)
    assert "Not trained: adversarial." in soup(found.report / "index.html").get_text()
    for name in ("ex1", "ex2_blur", "ex2_random", "ex3_fpn", "ex3_upernet"):
        rmtree(found.run(name))
    with pytest.raises(CleansetError, match="no finished run; expected at least one of ex1, ex2_blur"):
        stage.run(found)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("record.json", "[]", r"record\.json: .*; found \[\]; expected the record of a run: run dvc checkout"),
        ("record.json", None, r"record\.json: .*dvc checkout data/runs/ex1"),
        ("history.csv", "epoch\n1\n", r"history\.csv: no column 'step'; found epoch"),
        ("history.csv", "", r"history\.csv: no CSV table"),
    ],
)
def test_damaged_files(tmp_path: Path, name: str, text: str | None, message: str) -> None:
    found = finished_study(tmp_path)
    path = found.fold("ex1", "fold_01").folder / name
    path.unlink() if text is None else path.write_text(text)
    with pytest.raises(CleansetError, match=message):
        stage.run(found)


@pytest.mark.parametrize(
    ("recipe", "text"),
    [
        ("standard", ""),
        ("adversarial", "norm Linf, eps 4/255, steps 3, random start yes, warm up epochs 0, evaluation mode no, "
         "best iterate no"),
        ("madry", "norm Linf, eps 4/255, steps 7, random start no, warm up epochs 0, evaluation mode yes, "
         "best iterate yes"),
        ("augmix", "width 3, alpha 1.0, severity 3, consistency 12.0, all ops no"),
        ("augmix_mixing", "width 3, alpha 1.0, severity 3, all ops no"),
        ("noise", "largest 0.2"),
    ],
)  # fmt: skip
def test_the_settings_of_every_recipe(recipe: str, text: str) -> None:
    keys = {"recipe": recipe, "augmentation": "none", "trained_on": ["noise", "speckle_noise"]}
    run = Run.model_validate({"network": {"name": "a"}, "epochs": 1, **keys})
    assert run.training_recipe.settings_text() == text


def test_every_recipe_has_its_settings() -> None:
    assert list(RECIPES) == ["standard", "adversarial", "madry", "augmix", "augmix_mixing", "noise"]


def test_mixing_without_its_consistency() -> None:
    run = Run.model_validate({"network": {"name": "a"}, "epochs": 1, "recipe": "augmix_mixing"})
    assert "consistency" not in run.training_recipe.settings_text()
    assert "consistency 12" in run.model_copy(update={"recipe": "augmix"}).training_recipe.settings_text()


@pytest.mark.long
def test_the_pages_can_be_read_by_everybody(study: TrainingStudy, browser: Browser) -> None:
    """No violation that axe finds, nothing from elsewhere, and nothing wider than a phone."""
    for path, page in opened(browser, study.report):
        assert violations(page) == [], path.name
        page.set_viewport_size({"width": 390, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path.name


def test_the_page_says_what_its_numbers_are_of(tmp_path: Path) -> None:
    """A run on all images, one that is chosen as XIMAGENET-12 does, and enough images for more than a miniature."""
    whole = {"network": {"name": "test_vit"}, "epochs": 4, "folds": 0}
    made = finished_study(tmp_path, PARAMS | {"runs": {"ex1": PARAMS["runs"]["ex1"] | {"validation": "as_written"}}})
    params = yaml.safe_load(made.params_yaml.read_text())
    made.params_yaml.write_text(yaml.safe_dump({**params, "runs": {**params["runs"], "whole": whole}}))
    write_fold(made, "whole", "all", 4, [])
    record = made.fold("whole", "all").record
    record.write_text(json.dumps(json.loads(record.read_text()) | {"training_images": 20_000}))
    stage.run(made)
    text = soup(made.report / "index.html").get_text()
    assert "Trained on all images, and so not tested here: whole." in text
    assert "chosen on their test images, as in XIMAGENET-12, which inflates" in text
    assert "miniature" not in text
