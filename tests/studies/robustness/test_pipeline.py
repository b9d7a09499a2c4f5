"""The sample's study with a real DVC, from finished sets and scores alone; and what it leaves alone."""

import csv
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from playwright.sync_api import Browser

from cleanset.classes import imagenet
from cleanset.edition.create import make_edition
from cleanset.edition.models import models_from_texts
from cleanset.images.preprocessing import RES256CROP224
from cleanset.scoring.decoding import SharedBatches
from cleanset.studies.robustness.corruptions.changes import corrupted_image
from cleanset.studies.robustness.corruptions.family import CORRUPTION_FAMILY
from cleanset.studies.robustness.corruptions.params import PUBLISHED_NUMBERS, CorruptionMeasures
from cleanset.studies.robustness.families import FAMILIES, read_study_params
from cleanset.studies.robustness.images import (
    STUDY_IMAGES,
    Change,
    ChangedImages,
    ChangeName,
    Study,
    files_of,
)
from cleanset.studies.robustness.measuring import MEASURE_FILES, study_of
from cleanset.studies.robustness.perturbations.changes import PerturbedImage
from cleanset.studies.robustness.perturbations.params import PerturbationMeasures
from cleanset.studies.robustness.scenarios.changes import scene_images
from cleanset.studies.robustness.scenarios.params import Scenarios
from cleanset.tables import read_table
from tests.checkouts import Checkout
from tests.documents import block, shell
from tests.report.pages import opened, soup, tables, violations
from tests.studies.robustness.sources import opened_of, stored_sources

NAMES = [family.name for family in FAMILIES]
STUDY, ATTACKS = "studies/robustness", "studies/attacks"
ROLES = ("standard", "norm_robust", "corruption_robust")
MEASURED = (*ROLES, "trained_standard", "trained_adversarial", "trained_augmix")
"""The edition's models and the further ones, in the order of the pages' columns."""


@pytest.mark.long
def test_two_stages_are_the_committed_ones(built: Checkout, tmp_path: Path) -> None:
    """From nothing, without the others: each changes no byte of the locks."""
    clone = built.clone_with_data(tmp_path / "cleanset").with_environment()
    for project, stage in ((STUDY, "images"), (ATTACKS, "attacks@spatial_grid-standard")):
        assert f"Running stage '{stage}'" in clone.run("dvc", "repro", "--single-item", stage, cwd=project).stdout
    assert clone.run("git", "status", "--porcelain").stdout == ""


@pytest.fixture(scope="module")
def shown(built: Checkout, repository: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Checkout, str]:
    """A clone in which README's line has run, and what they printed.

    It has the edition's finished sets and scores, but no archive and no index; and of the study what the checkout's
    own cache holds, in a fresh clone nothing.
    """
    clone = built.clone_with_data(tmp_path_factory.mktemp("studied") / "cleanset").with_environment()
    shutil.rmtree(clone.folder / "data" / "raw")
    (clone.folder / "data" / "index.parquet").unlink()
    for project in (STUDY, ATTACKS):
        clone.pull_what_is_in(repository / ".dvc" / "cache", project)
    done = shell(clone, block(repository, "make robustness"))
    assert done.returncode == 0, done.stderr
    return clone, done.stdout


@pytest.fixture(scope="module")
def studied(shown: tuple[Checkout, str]) -> Checkout:
    return shown[0]


def metric(checkout: Checkout, name: str, family: str = "corruptions", roles: tuple[str, ...] = ROLES) -> list[float]:
    values = json.loads((checkout.folder / STUDY / "metrics" / family / f"{name}.json").read_text())
    return [values[role] for role in roles]


def test_it_is_the_committed_one(studied: Checkout) -> None:
    """Lock and metrics: the same bytes of every table on any machine."""
    assert studied.run("git", "status", "--porcelain", "--", "studies").stdout == ""
    for project in (STUDY, ATTACKS):
        assert studied.run("dvc", "status", cwd=project).stdout == "Data and pipelines are up to date.\n"


def test_what_the_sample_shows(studied: Checkout) -> None:
    """As measured beforehand with another seed and another resizing: .42, .38, .31 and 52, 47, 39."""
    assert metric(studied, "mean_error") == pytest.approx([0.42, 0.38, 0.31], abs=0.02)
    assert metric(studied, "mce") == pytest.approx([0.52, 0.47, 0.39], abs=0.02)
    unseen = metric(studied, "mce_unseen")
    assert unseen[:2] == metric(studied, "mce")[:2]
    assert unseen[2] < metric(studied, "mce")[2]


def test_what_the_sample_shows_with_a_model_as_the_reference(studied: Checkout, tmp_path: Path) -> None:
    """The order turns, as measured beforehand: 100, 77 and 88; and corruptions on which the reference hardly errs are
    reported."""
    study = Study(studied.folder / STUDY)
    text = study.params_yaml.read_text().replace("reference: alexnet", "reference: standard")
    (tmp_path / "params.yaml").write_text(text.replace("draws: 1000", "draws: 10"))
    params = read_study_params(tmp_path / "params.yaml", ROLES, imagenet())
    of_all = opened_of(stored_sources(study), params, *ROLES, owners=ROLES)
    lines = {(line.measure, line.model): line for line in study_of(CORRUPTION_FAMILY, of_all).lines()}
    standard, norm_robust, corruption_robust = (lines["mce", role].value for role in ROLES)
    assert standard == 1
    assert norm_robust < corruption_robust < 1
    assert metric(studied, "mce")[1] > metric(studied, "mce")[2]
    problem = "no relative mCE: 2 of 15 corruptions have no relative CE: elastic_transform, jpeg_compression"
    assert {lines["relative_mce", role].problem for role in ROLES} == {problem}


def test_what_the_sample_shows_of_attacks(studied: Checkout) -> None:
    """PGD at 4/255 with 10 steps, and whole levels that fill the ball; nothing breaks a clean score."""
    error = {name: attack_metric(studied, name, "error") for name in ("none", "pgd", "spatial_grid", "spsa", "guess")}
    assert error["pgd"] == pytest.approx([0.94, 0.17, 0.41], abs=0.03)
    assert error["pgd"][0] - error["pgd"][1] >= 0.4
    assert error["none"] == pytest.approx([1 / 71, 1 / 71, 5 / 71], abs=1e-6)
    assert error["guess"] == [1, 1, 1]
    # 11 places and 6 files a start; the second one is for those that withstood the first
    for queries, after in zip(attack_metric(studied, "pgd", "queries"), error["pgd"], strict=True):
        assert 17 * (2 - after) <= queries + 1e-6 < 34
    assert all(signs(studied, role) == set() for role in ROLES)


def signs(checkout: Checkout, model: str) -> set[str]:
    path = checkout.folder / ATTACKS / "data" / "attack_warnings" / f"{model}.json"
    return {each["sign"] for each in json.loads(path.read_text())["warnings"]}


def test_what_the_sample_shows_of_the_uninteresting_defense(studied: Checkout) -> None:
    """Appendix E of the paper: SPSA and boundary achieve no more on it than its noise, the spatial grid does."""
    assert signs(studied, "uninteresting") >= {"random_answers", "saturated_answers", "no_gradient"}
    table = {name: successes(studied, name, "uninteresting") for name in ("none", "spsa", "boundary", "spatial_grid")}
    for name in ("spsa", "boundary"):
        noise = table["none"].reindex(table[name].index)
        assert len(noise) == 6
        assert table[name].sum() <= noise.sum()
    grid = table["spatial_grid"]
    assert grid.sum() >= 2 + table["none"].reindex(grid.index).sum()


def successes(checkout: Checkout, attack: str, model: str) -> pd.Series:
    """By file."""
    table = pd.read_parquet(checkout.folder / ATTACKS / "data" / "attacks" / attack / model / "attacked.parquet")
    return (table["was_correct"] & table["is_error"]).set_axis(table["file"])


def attack_metric(checkout: Checkout, attack: str, measure: str) -> list[float]:
    values = json.loads((checkout.folder / ATTACKS / "attack_metrics" / attack / f"{measure}.json").read_text())
    return [values[role] for role in ROLES]


def test_metrics_fit_a_terminal(shown: tuple[Checkout, str]) -> None:
    """With the edition's three models; each further one takes a column more."""
    lines = []
    for part, roles in zip(shown[1].split("Path ")[1:], (MEASURED, ROLES), strict=True):
        head, *rows = part.partition("\n\n")[0].splitlines()
        assert head.split() == sorted(roles)
        further = sum(len(role) + 4 for role in set(roles) - set(ROLES))
        assert max(len(row.rstrip()) for row in rows) - further <= 120
        lines += rows
    assert {
        "attack_metrics/pgd/error_low.json",
        "metrics/corruptions/error/fog.json", "metrics/corruptions/mce.json", "metrics/perturbations/fp/tilt.json",
        "metrics/scenarios/accuracy/image_grey.json", "metrics/scenarios/score_as_published.json",
        "metrics/watermarks/in_w_gap.json",
    } <= {line.split()[0] for line in lines}  # fmt: skip


def test_every_selection_has_its_lines(studied: Checkout) -> None:
    with (studied.folder / STUDY / "data" / "measures" / "corruptions.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["measure"] == "mean_error"]
    assert {(row["selection"], row["model"]): int(row["images"]) for row in rows} == {
        **{("union", role): 71 for role in MEASURED},
        **{("common", role): 9 for role in MEASURED},
        ("own", "standard"): 34, ("own", "norm_robust"): 34, ("own", "corruption_robust"): 33,
    }  # fmt: skip
    assert all(float(row["low"]) <= float(row["value"]) <= float(row["high"]) for row in rows)


def test_the_edition_is_untouched(studied: Checkout, built: Checkout) -> None:
    """Its metrics and stages are the same whether the study has run or not."""
    metrics = [each.run("dvc", "metrics", "show").stdout for each in (studied, built)]
    assert metrics[0] == metrics[1] != ""
    assert "studies" not in studied.run("dvc", "stage", "list").stdout
    assert built.run("dvc", "status", "--quiet", check=False).returncode == 0


def changes(studied: Checkout) -> dict[str, tuple[Change, list[tuple[str, int]]]]:
    """How each family changes an image, and some of its changes, all that draw among them."""
    study = Study(studied.folder / STUDY)
    params = read_study_params(study.params_yaml, list(ROLES), imagenet())
    frames = [(name, frame) for name in ("snow", "zoom_blur", "shot_noise", "scale") for frame in (0, 3, 11, 30)]
    return {
        "corruptions": (
            corrupted_image,
            [("frost", 2), ("impulse_noise", 5), ("glass_blur", 1), ("elastic_transform", 3), ("unchanged", 0)],
        ),
        "perturbations": (PerturbedImage({name: 1 for name, _ in frames}), frames),
        "scenarios": (
            scene_images(stored_sources(study), params.section(Scenarios)),
            params.section(Scenarios).changes(),
        ),
    }


@pytest.mark.parametrize(
    "family", [*(pytest.param(name, marks=pytest.mark.exhaustive) for name in NAMES[:2]), "scenarios"]
)
def test_order_and_processes_change_no_pixel(studied: Checkout, family: str) -> None:
    study = Study(studied.folder / STUDY)
    files = files_of(study.edition, read_table(study.images, STUDY_IMAGES, imagenet()))
    change, steps = changes(studied)[family]
    names = [ChangeName(file, *step) for file in list(files)[:3] for step in steps]
    found = []
    for order, workers in ((names, 1), (names[::-1], 3)):
        source = ChangedImages(files, change, 85, 0)
        with SharedBatches(source, RES256CROP224, 4, workers) as batches:
            groups = [order[start : start + 4] for start in range(0, len(order), 4)]
            pixels: dict[ChangeName, bytes] = {}
            for batch in batches.batches(groups):
                pixels |= {name: batch.pixels[place].tobytes() for place, name in enumerate(batch.image_ids)}
        found.append(pixels)
    assert found[0] == found[1]
    # the first frames of noise and zoom blur are the base image; segmented and transparent over black are one
    same = 0 if family == "corruptions" else 3
    assert len(set(found[0].values())) == len(names) - same


def test_what_the_sample_shows_of_perturbations_and_scenarios(studied: Checkout) -> None:
    """The model that is robust to a norm flips least; and the files say what they rest on."""
    flips = metric(studied, "mean_fp", "perturbations")
    assert flips[1] < flips[2] < flips[0] < 0.1
    accuracy = metric(studied, "accuracy/blur_background", "scenarios")
    assert min(accuracy) > 0.85
    assert all(low < 0.45 for low in metric(studied, "accuracy/segmented_image", "scenarios"))
    folder = studied.folder / STUDY / "data" / "measures"
    assert {path.name for path in folder.iterdir()} == {
        "corruptions.csv", "corruption_differences.csv", "corruption_errors.csv",
        "perturbations.csv", "perturbation_differences.csv", "perturbation_frames.csv",
        "scenarios.csv", "scenario_differences.csv", "scenario_accuracies.csv", "scenario_scores.csv",
        "scenario_regression.csv", "scenario_anova.csv", "scenario_fitted.csv",
        "scenario_by_image.csv", "scenario_by_image_anova.csv", "notes.csv",
        "watermarks.csv", "watermark_differences.csv", "watermark_accuracies.csv",
        "notices.csv", "models.csv", "errors_by_severity.csv", "flips_by_frame.csv",
    }  # fmt: skip
    columns = {f"measures/{path.name}": path.read_text("utf-8").partition("\n")[0] for path in folder.iterdir()}
    # the sample's masks are all of one origin
    absent = "measures/scenario_origins.csv"
    assert columns == {
        name: ",".join(of) for name, of in MEASURE_FILES.items() if name.startswith("measures/") and name != absent
    }
    for family in NAMES:
        for path in folder.glob(f"{family.removesuffix('s')}*.csv"):
            table = pd.read_csv(path)
            assert set(table["official"]) == {"no"}, path.name
            assert set(table.get("answers", [])) == ({"all"} if family == "scenarios" else set()), path.name
    with (folder / "notices.csv").open() as file:
        notices = {row["family"]: row["notice"] for row in csv.DictReader(file)}
    assert notices["corruptions"].startswith("No official ImageNet-C numbers: a subset")
    assert notices["perturbations"].startswith("No official ImageNet-P numbers: a subset")
    assert notices["scenarios"].endswith("of all 1,000 (answers: all).")
    assert notices["watermarks"].startswith("The watermark of ImageNet-W on these images")
    with (folder / "perturbations.csv").open() as file:
        missing = [row for row in csv.DictReader(file) if row["measure"] == "mfr" if not row["value"]]
    many = [row for row in missing if int(row["images"]) > 1]
    assert {row["selection"] for row in many} == {"union", "own"}
    told = re.compile(r"[0-9]+ of 10 perturbations have no ratio: [a-z_, ]+")
    assert [row["problem"] for row in many if not told.fullmatch(row["problem"])] == []
    few = {(row["selection"], row["model"], row["problem"]) for row in missing if int(row["images"]) < 2}
    assert few == {
        *(("own", role, "1 image; intervals need 2 or more") for role in ("standard", "corruption_robust")),
        *(("common", role, "0 images; intervals need 2 or more") for role in MEASURED),
    }


@pytest.mark.long
def test_another_score_stops_the_stage(studied: Checkout, tmp_path: Path) -> None:
    clone = studied.clone(tmp_path / "cleanset")
    for name in ("export", "scores", "crop_scores"):
        (clone.folder / "data" / name).symlink_to(studied.folder / "data" / name)
    (clone.folder / STUDY / "data").mkdir()
    for name in ("images.parquet", "masks.parquet"):
        (clone.folder / STUDY / "data" / name).symlink_to(studied.folder / STUDY / "data" / name)
    path = clone.folder / "params.yaml"
    path.write_text(path.read_text().replace("test_efficientnet\n", "test_efficientnet.r160_in1k\n"))
    weights = clone.folder / "data" / "scores"
    scores = (weights / "norm_robust.parquet").read_bytes()
    weights.unlink()
    weights.mkdir()
    (weights / "standard.parquet").write_bytes(scores)
    done = clone.run(
        "cleanset",
        "robustness",
        "stage",
        "answers",
        "--model",
        "standard",
        "--family",
        "corruptions",
        cwd=STUDY,
        check=False,
    )
    assert done.returncode != 0
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert "expected the same bits: run dvc repro --single-item --force score@standard in the edition" in line
    assert not (clone.folder / STUDY / "data" / "corruptions" / "standard.parquet").exists()


@pytest.mark.long
@pytest.mark.parametrize(
    ("project", "expected"),
    [
        (STUDY, ["images.html", "index.html", "perturbations.html", "scenarios.html", "watermarks.html"]),
        (ATTACKS, ["index.html"]),
    ],
)
@pytest.mark.parametrize("width", [390, 1280])
def test_the_pages(width: int, project: str, expected: list[str], studied: Checkout, browser: Browser) -> None:
    """They load without a network, are no wider than the window, and axe finds nothing."""
    folder = studied.folder / project / "report"
    names = []
    for path, page in opened(browser, folder, width):
        names.append(path.name)
        assert page.evaluate("document.documentElement.scrollWidth") == width, path.name
        assert violations(page) == [], path.name
        widths = page.evaluate(
            """async () => {
                for (const image of document.images) image.loading = "eager"
                await Promise.all([...document.images].map((image) => image.decode()))
                return [...document.images].map((image) => image.naturalWidth)
            }"""
        )
        assert set(widths) <= {112}
    assert names == expected
    assert (folder / "index.html").stat().st_size < 2_000_000


def test_the_pages_show_the_measures(studied: Checkout) -> None:
    page = soup(studied.folder / STUDY / "report" / "index.html")
    rows = {row[0]: row[1:] for row in reversed(tables(page, "models")[0])}  # the first of a name: of all sets
    for title, name in (("mean error", "mean_error"), ("mCE", "mce"), ("mCE, unseen", "mce_unseen")):
        values = metric(studied, name, roles=MEASURED)
        assert [cell.split()[0] for cell in rows[title]] == [f"{100 * value:.1f}" for value in values]
    heat = tables(page, "errors")
    for table, error in zip(heat, metric(studied, "mean_error", roles=MEASURED), strict=True):
        assert [row[0] for row in table[1:4]] == ["gaussian noise", "shot noise", "impulse noise"]
        mean = np.mean([[float(cell) for cell in row[1:]] for row in table[1:]])
        assert mean == pytest.approx(100 * error, abs=0.5)
    bars = page.select("#published svg rect")
    lengths = [float(str(bar["width"])) for bar in bars]
    assert len(bars) == len(MEASURED) + 12
    values = [
        *(100 * value for value in metric(studied, "mce", roles=MEASURED)),
        *(mce for _, mce in PUBLISHED_NUMBERS["models"].values()),
    ]
    np.testing.assert_allclose(
        np.array(lengths) / lengths[-1], np.array(values) / 100, atol=2e-3
    )  # the last is AlexNet
    ends = [(line["x1"], line["x2"]) for line in page.select("#published svg g line")]
    low, high = (np.array([float(str(end)) for end in side]) - 190 for side in zip(*ends, strict=True))
    np.testing.assert_allclose(low / lengths[-1], metric(studied, "mce_low", roles=MEASURED), atol=2e-3)
    np.testing.assert_allclose(high / lengths[-1], metric(studied, "mce_high", roles=MEASURED), atol=2e-3)
    assert len(page.select("#errors td.seen")) == 25
    assert "No official ImageNet-C numbers" in page.select_one(".notice").get_text()  # type: ignore[union-attr]


def test_the_scenarios_page_has_the_size_of_the_models_and_of_the_images(studied: Checkout) -> None:
    folder = studied.folder / STUDY
    page = soup(folder / "report" / "scenarios.html")
    sizes = next(row[1:] for row in tables(page, "accuracy")[0] if row[0] == "parameters, millions")
    records = [json.loads((folder / "data" / "scenarios" / f"{role}.json").read_text()) for role in MEASURED]
    assert sizes == [f"{record['parameters'] / 1e6:.2f}" for record in records]
    assert "the same 71 images of 12 classes" in page.select_one("#cells").get_text()  # type: ignore[union-attr]
    assert "The inner spread is over the classes" in page.select_one("#models").get_text()  # type: ignore[union-attr]
    rows = {row[0]: row[1:] for row in tables(page, "score")[0]}
    variances = zip(rows["variance over scenarios"], rows["variance over classes"], strict=True)
    for role, pair in enumerate(variances):
        expected = 1 - sum(map(float, pair)) / 100
        assert metric(studied, "score_as_published", "scenarios", MEASURED)[role] == pytest.approx(expected, abs=2e-4)


@pytest.mark.long
def test_a_published_top1_is_next_to_score(studied: Checkout, tmp_path: Path) -> None:
    clone = studied.clone(tmp_path / "cleanset")
    (clone.folder / "data" / "export").symlink_to(studied.folder / "data" / "export")
    (clone.folder / STUDY / "data").symlink_to(studied.folder / STUDY / "data")
    params = clone.folder / "params.yaml"
    params.write_text(params.read_text().replace("published_top1: {}", "published_top1: {norm_robust: 64.02}"))
    clone.run("cleanset", "robustness", "stage", "pages", cwd=STUDY)
    rows = tables(soup(clone.folder / STUDY / "report" / "scenarios.html"), "score")[0]
    assert ["top-1 on ImageNet, published", "–", "64.02", "–", "–", "–", "–"] in rows


def test_what_is_drawn_by_dvc_plots(studied: Checkout) -> None:
    """A line for each model, by severity and by frame, whose mean is the measure."""
    drawn = json.loads(studied.run("dvc", "plots", "show", "--json", cwd=STUDY).stdout)["data"]
    points = {name: chart["content"]["data"]["values"] for name, (chart,) in drawn.items()}
    assert set(points) == {"data/measures/errors_by_severity.csv", "data/measures/flips_by_frame.csv"}
    errors, flips = (pd.DataFrame(points[name]) for name in sorted(points))
    assert len(errors) == len(MEASURED) * 15 * 5
    assert len(flips) == len(MEASURED) * (9 * 30 + 40)
    for role, error, flipped in zip(
        MEASURED,
        metric(studied, "mean_error", roles=MEASURED),
        metric(studied, "mean_fp", "perturbations", MEASURED),
        strict=True,
    ):
        mean = errors[errors["model"] == role]["error"].astype(float).mean()
        assert mean == pytest.approx(error, abs=1e-5)
        of_role = flips[flips["model"] == role].astype({"flips": float})
        assert of_role.groupby("change")["flips"].mean().mean() == pytest.approx(flipped, abs=1e-5)


def test_the_pages_show_the_attacks(studied: Checkout) -> None:
    """Every attack; PGD's error as in the metrics; on clean images the accuracy that the attack none leaves."""
    page = soup(studied.folder / ATTACKS / "report" / "index.html")
    success, error = tables(page, "success")
    names = ["none", "spatial grid", "spsa", "boundary", "pgd", "square", "transfer", "guess"]
    assert [row[0] for row in success[1:]] == [row[0] for row in error[1:]] == names
    pgd = [f"{100 * value:.1f}" for value in attack_metric(studied, "pgd", "error")]
    assert [cell.split()[0] for cell in error[5][2:5]] == pgd
    clean = [f"{100 - 100 * value:.1f}" for value in attack_metric(studied, "none", "error")]
    assert tables(page, "coverage")[0][-1][:4] == ["at 100 %", *clean]
    attacked = [f"{100 - 100 * value:.1f}" for value in attack_metric(studied, "pgd", "error")]
    assert tables(page, "coverage")[4][-1][:4] == ["at 100 %", *attacked]
    assert len(page.select("#images figure")) >= 2 * 3 * 4
    seen = {row[0] for row in tables(page, "warnings")[0][1:]}
    assert seen == {"uninteresting"}
    assert "standard; wrapper uninteresting" in page.select_one("#success").get_text()  # type: ignore[union-attr]
    assert "10−142072.2" in page.select("#bound tr")[-1].get_text()
    (contest,) = page.find_all("a", string="the contest's page")
    assert (studied.folder / ATTACKS / "report" / str(contest["href"])).is_file()
    assert len(soup(studied.folder / STUDY / "report" / "images.html").select("p.notice")) == len(FAMILIES)
    for other in ("index.html", "images.html", "perturbations.html", "scenarios.html", "watermarks.html"):
        (link,) = soup(studied.folder / STUDY / "report" / other).select("nav a[href*=attacks]")
        assert (studied.folder / STUDY / "report" / str(link["href"])).samefile(
            studied.folder / ATTACKS / "report" / "index.html"
        ), other


def test_every_edition_has_the_same_pipeline(repository: Path) -> None:
    folders = [repository / STUDY, repository / "imagenet" / STUDY]
    for name in ("dvc.yaml", ".dvcignore", ".gitignore", ".dvc/.gitignore", ".dvc/plots/line_per_model.json"):
        assert len({(folder / name).read_bytes() for folder in folders}) == 1
    folders = [repository / ATTACKS, repository / "imagenet" / ATTACKS]
    for name in ("dvc.yaml", ".dvcignore", ".gitignore", ".dvc/.gitignore"):
        assert len({(folder / name).read_bytes() for folder in folders}) == 1


def test_a_change_of_measures_asks_for_no_new_images(repository: Path) -> None:
    stages = yaml.safe_load((repository / STUDY / "dvc.yaml").read_text("utf-8"))["stages"]
    named = {stage: set(entry["params"][0]["params.yaml"]) for stage, entry in stages.items()}
    assert {stage for stage, keys in named.items() if any(key.startswith("measures") for key in keys)} == {
        "measure", "pages",
    }  # fmt: skip
    families = {family.name for family in FAMILIES}
    for stage in ("digests", "further", "measure", "pages"):
        assert families <= named[stage], stage
    for family in families:
        assert named[family] & families == {family}


@pytest.mark.long
@pytest.mark.slow
def test_a_new_edition_has_a_study(tmp_path: Path) -> None:
    make_edition(tmp_path / "mine", models_from_texts(["mine=timm:resnet18.a1_in1k"]))
    study = Study(tmp_path / "mine" / STUDY)
    params = read_study_params(study.params_yaml, ["mine"], imagenet())
    assert params.section(CorruptionMeasures).trained_on == {}
    assert params.section(PerturbationMeasures).reference is None
    assert all((folder / "README.md").is_file() for folder in (study.masks, study.backgrounds, study.generated.parent))
    stages = Checkout(tmp_path / "mine").run("dvc", "stage", "list", cwd=STUDY).stdout
    attacked = yaml.safe_load((tmp_path / "mine" / ATTACKS / "params.yaml").read_text())
    kinds = list(attacked["attacks"])
    assert [line.split()[0] for line in stages.splitlines()] == [
        "images", "corruptions@mine", "perturbations@mine", "scenarios@mine", "watermarks@mine", "digests", "measure",
        "pages",
    ]  # fmt: skip
    stages = Checkout(tmp_path / "mine").run("dvc", "stage", "list", cwd=ATTACKS).stdout
    assert [line.split()[0] for line in stages.splitlines()] == [
        *(f"attacks@{kind}-mine" for kind in kinds), "guess@mine", "attack_warnings@mine", "attack_results", "pages",
    ]  # fmt: skip
    for project in (STUDY, ATTACKS):
        config = Checkout(tmp_path / "mine").run("dvc", "cache", "dir", cwd=project).stdout.strip()
        assert Path(config) == (tmp_path / "mine" / ".dvc" / "cache").resolve()


@pytest.mark.parametrize("project", [STUDY, ATTACKS])
def test_what_the_pipeline_names_is_there(project: str, repository: Path) -> None:
    pipeline = yaml.safe_load((repository / project / "dvc.yaml").read_text())
    named = [dep for stage in pipeline["stages"].values() for dep in stage["deps"] if "${root}" in dep]
    assert named
    for dep in named:
        assert (repository / dep.replace("../../${root}/", "")).exists(), dep
