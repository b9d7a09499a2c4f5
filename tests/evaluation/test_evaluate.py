"""The command on sets whose accuracies are known."""

import importlib
import json
import math
import os
import shutil
import sys
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import timm
import torch
from bs4 import BeautifulSoup
from huggingface_hub import ModelCard
from PIL import Image
from rich.console import Console
from safetensors.torch import save_file
from typer.testing import CliRunner

from cleanset.classes import imagenet
from cleanset.cli import app
from cleanset.edition.options import PaperForm
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.evaluation import measured_models, rendering
from cleanset.evaluation.arguments import Arguments
from cleanset.evaluation.comparability import ComparabilityCard, first_difference
from cleanset.evaluation.compare.result_files import RESULTS
from cleanset.evaluation.evaluate import run
from cleanset.evaluation.function import evaluate
from cleanset.evaluation.measured_models import MeasuredModel, accuracy_card, results_json
from cleanset.evaluation.measures import Measure
from cleanset.evaluation.prediction_measures import MEASURES, Accuracy, Confusion, DeclaredMeasure, Measures
from cleanset.evaluation.rendering import as_text, leaderboard_for_paper, write_page
from cleanset.evaluation.run import PREDICTIONS
from cleanset.evaluation.sets import EvaluationImage, EvaluationSet
from cleanset.evaluation.specs import file_stems
from cleanset.plumbing.files import sha256
from cleanset.sets.folder import read_entries
from cleanset.tables import read_table, write_table
from cleanset.vocabulary import TIERS
from tests.checkouts import Checkout
from tests.evaluation.compare.command import cleanset
from tests.evaluation.conftest import draw
from tests.scoring.networks import settle
from tests.ten_images import id_of

pytestmark = pytest.mark.slow

NOWHERE = Edition(Path("nowhere"))
SURE = math.exp(10) / (math.exp(10) + 999)
"""Softmax probability of a logit of 10 and 999 of 0."""
Measured = tuple[EvaluationSet, list[MeasuredModel]]
ROLES = ("standard", "norm_robust", "corruption_robust")


def measure(folder: Path | str, *models: str, edition: Edition = NOWHERE, **options: Any) -> Measured:
    return run(edition, Arguments(str(folder), models, **options))


def printed(images: EvaluationSet, rows: list[MeasuredModel], width: int = 80, most: int = 10) -> str:
    out = StringIO()
    Console(file=out, width=width).print(as_text(images, rows, most), highlight=False)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def test_three_images_by_their_colour(mine: str, folder: Path) -> None:
    """Blue has equal logits everywhere, so class 0 is predicted, with a probability of a thousandth."""
    assert folder == Path("../set").resolve()
    images, (row,) = run(NOWHERE, Arguments("../set", [f"{mine}:colours"]))
    assert row.measures.overall == Accuracy(3, 2)
    assert row.measures.classes == {0: Accuracy(1, 1), 1: Accuracy(2, 1)}
    assert row.measures.tiers == {}
    assert row.measures.top5 == Accuracy(3, 3)
    assert row.measures.mean_confidence == pytest.approx((2 * SURE + 0.001) / 3, rel=1e-6)
    digest = accuracy_card(images, [row]).short_digest
    assert printed(images, [row]) == (
        "../set: 3 images, 2 classes\n"
        "no manifest: which images these are was not checked\n\n"
        "#  model                      accuracy           top-5  confidence   ECE\n"
        "1  mine:colours  66.67 % (20.77–93.85)          100.00        0.64  0.02\n"
        "                                        (43.85–100.00)\n\n"
        "wnid       hardest classes  images    #1\n"
        "n01443537  goldfish              2  50 %\n\n"
        "most frequent confusions  predicted as  #1\n"
        "goldfish                  tench          1\n\n"
        "Interval: Wilson's; for confidence, the mean probability of the top-1 class, by\n"
        "t. ECE: expected calibration error, 15 bins, debiased; of few images still some\n"
        "hundredths too high.\n"
        f"Card {digest}: comparable with results of the same card (cleanset compare)."
    )


def test_what_is_written(mine: str, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    images, rows = run(NOWHERE, Arguments(str(folder), [f"{mine}:colours", f"{mine}:named"], out=out))
    names = ["mine_colours.json", "mine_colours.parquet", "mine_named.json", "mine_named.parquet", RESULTS]
    assert sorted(path.name for path in out.iterdir()) == names
    table = read_table(out / "mine_colours.parquet", PREDICTIONS, imagenet())
    assert table[["file", "class_index", "prediction", "correct"]].to_numpy().tolist() == [
        ["n01440764/red.png", 0, 0, True],
        ["n01443537/blue.PNG", 1, 0, False],
        ["n01443537/green.png", 1, 1, True],
    ]
    assert table["tier"].isna().all()
    results = json.loads((out / RESULTS).read_text())
    assert results == json.loads(results_json(images, rows))
    assert [model["model"] for model in results["models"]] == ["mine:colours", "mine:named"]
    assert results["models"][0]["classes"]["n01443537"]["accuracy"] == 0.5
    assert results["models"][1]["predictions"] == "mine_named.parquet"
    record = json.loads((out / "mine_named.json").read_text())
    assert (record["preprocessing"], record["precision"], record["images"]) == ("timm-bilinear-8-8", "float64", 3)


def test_the_comparability_card(mine: str, folder: Path, edition: Edition, tmp_path: Path) -> None:
    """The images and their pixels, whatever their names; the preprocessing by what it does."""
    pixels = ((0, (255, 0, 0)), (1, (0, 0, 255)), (1, (0, 255, 0)))  # of COLOURS
    lines = sorted(f"{index} {sha256(bytes(colour) * 120)}" for index, colour in pixels)
    out = tmp_path / "out"
    card = accuracy_card(*measure(folder, f"{mine}:colours", f"{mine}:named", out=out))
    assert card.pixels_sha256 == sha256("\n".join(lines).encode())
    assert (card.images.count, card.classes.of_images) == (3, 2)
    assert card.images.manifest_sha256 is None
    colours, named = card.models.values()
    assert colours.weights_sha256 == named.weights_sha256
    assert colours.preprocessing_sha256 != named.preprocessing_sha256
    assert ComparabilityCard.from_json(json.loads((out / RESULTS).read_text())["comparability"]) == card
    # a record without digests is computed again
    record = json.loads((out / "mine_named.json").read_text())
    del record["pixels_sha256"], record["content_sha256"]
    (out / "mine_named.json").write_text(json.dumps(record))
    assert accuracy_card(*measure(folder, f"{mine}:named", out=out)).digest == card.digest
    image = folder / "n01440764" / "red.png"
    image = image.rename(image.with_name("first.png"))
    assert accuracy_card(*measure(folder, f"{mine}:named")).digest == card.digest
    draw(image, (254, 0, 0))
    other = accuracy_card(*measure(folder, f"{mine}:named"))
    assert first_difference(card, other) == ("images", *(f"{each.images.sha256[:12]}…" for each in (card, other)))
    export = edition.export("standard")
    of_export = accuracy_card(*measure(export, f"{mine}:named"))
    assert of_export.images.manifest_sha256 == sha256((export / "manifest.csv").read_bytes())


def test_what_limits_a_set_is_reported_with_its_results(mine: str, edition: Edition, tmp_path: Path) -> None:
    """Images that nobody has reviewed, on the terminal, in the JSON, on the page and on the card of a model."""
    folder = tmp_path / "set"
    shutil.copytree(edition.export("standard"), folder)
    for name in ("croissant.json", "checksums.sha256"):
        (folder / name).unlink()
    manifest = folder / "manifest.csv"
    table = pd.read_csv(manifest, dtype=str, keep_default_na=False).assign(reviewers="0")
    manifest.write_text(table.to_csv(index=False, lineterminator="\n"))
    hub, page = tmp_path / "card.md", tmp_path / "page"
    images, rows = run(NOWHERE, Arguments(str(folder), [f"{mine}:named"], hub=hub, report=page))
    (notice,) = (note for note in images.notes if "no reviewer" in note)
    assert notice in " ".join(printed(images, rows, 200).split())
    assert notice in json.loads(results_json(images, rows))["set"]["limits"]
    assert notice in (page / "index.html").read_text()
    assert f"- {notice}\n" in hub.read_text()


def test_a_callable_and_a_file_have_the_card_of_the_command(mine: str, folder: Path, tmp_path: Path) -> None:
    """They are ranked together, although nobody knows the pixels of predictions made elsewhere."""
    (tmp_path / "p.csv").write_text("image,class_index\nred,0\nblue,0\ngreen,1\n")
    images, rows = run(NOWHERE, Arguments(str(folder), [f"{mine}:named"]))
    of_file = accuracy_card(*run(NOWHERE, Arguments(str(folder), [], predictions=[str(tmp_path / "p.csv")])))
    assert of_file.pixels_sha256 is None
    assert of_file.digest == accuracy_card(images, rows).digest
    assert of_file.digest == evaluate(np.array([0, 0, 1]), folder).as_dict()["comparability"]["digest"]


def test_a_small_package_that_is_missing_is_reported(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not an extra of some gigabytes."""
    (tmp_path / "p.parquet").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "cleanset.tables", raising=False)
    with pytest.raises(CleansetError, match=r"needs pyarrow, which is not installed: pip install pyarrow$"):
        run(NOWHERE, Arguments(str(folder), [], predictions=[str(tmp_path / "p.parquet")]))


def test_json_holds_nothing_that_the_model_prints(mine: str, folder: Path) -> None:
    with Path("mine.py").open("a") as file:
        file.write("print('imported')\ndef loud(): return Changed(lambda logits: print('ran') or logits), small\n")
    done = cleanset("evaluate", str(folder), "--model", "mine:loud", "--json", cwd=Path.cwd())
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["models"][0]["model"] == "mine:loud"
    assert {"imported", "ran"} <= set(done.stderr.split())


def test_a_name_of_ones_own(mine: str, folder: Path, tmp_path: Path) -> None:
    """In the table for a paper, and of the files."""
    models = [f"Ours (v2)={mine}:colours"]
    images, rows = run(NOWHERE, Arguments(str(folder), models, out=tmp_path / "out", hub=tmp_path / "hub"))
    lines = leaderboard_for_paper(images, rows).in_form(PaperForm.latex).splitlines()
    assert [line.partition(" & ")[0] for line in lines if " & " in line] == ["model", "Ours (v2)"]
    names = ["Ours_v2.json", "Ours_v2.md", "Ours_v2.parquet", RESULTS]
    assert sorted(path.name for place in ("out", "hub") for path in (tmp_path / place).iterdir()) == names
    assert json.loads((tmp_path / "out" / RESULTS).read_text())["models"][0]["model"] == "Ours (v2)"


def test_a_card_for_the_hub(mine: str, folder: Path, tmp_path: Path) -> None:
    """A file for one model, or a folder; what somebody else has written is left alone, before anything is computed."""
    names = [f"{mine}:colours", f"{mine}:named"]
    run(NOWHERE, Arguments(str(folder), names, hub=tmp_path / "hub"))
    assert sorted(path.name for path in (tmp_path / "hub").iterdir()) == ["mine_colours.md", "mine_named.md"]
    found, *others = getattr(ModelCard.load(tmp_path / "hub" / "mine_named.md").data, "eval_results", [])
    assert [each.metric_type for each in others] == ["top_5_accuracy", "ece"]
    assert (found.metric_type, found.metric_value) == ("accuracy", 2 / 3)
    (tmp_path / "README.md").write_text("# My model\n")
    with pytest.raises(CleansetError, match=r"README\.md: a model card of another origin, .*; expected a new file"):
        run(NOWHERE, Arguments(str(folder), names[:1], hub=tmp_path / "README.md"))
    with pytest.raises(CleansetError, match=r"--hub card\.md: a file for 2 models; expected one --model, or a folder"):
        run(NOWHERE, Arguments(str(folder), names, hub=Path("card.md")))


@pytest.mark.long
def test_an_interrupted_evaluation_is_continued(mine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """600 images are two shards; the power cut comes in the second one."""
    for number in range(600):
        draw(tmp_path / "many" / "n01440764" / f"{number:03}.png", (255, number % 200, 0))
    module = importlib.import_module(mine)
    wanted = Arguments(str(tmp_path / "many"), [f"{mine}:colours"], device="cpu", out=tmp_path / "out")
    monkeypatch.setattr(module, "FAILS_AFTER", 560)
    with pytest.raises(CleansetError, match=r"^mine:colours: the network raises RuntimeError \(power cut\)"):
        run(NOWHERE, wanted)
    assert [path.name for path in (tmp_path / "out").rglob("*.parquet")] == ["00000.parquet"]
    monkeypatch.setattr(module, "FAILS_AFTER", 10**6)

    def computed() -> int:
        module.calls.clear()
        _, (row,) = run(NOWHERE, wanted)
        assert row.measures.overall == Accuracy(600, 600)
        # without the two images that the network was tried with, and a batch of four that it was given five times
        return int(sum(module.calls)) - 2 - (20 if sum(module.calls) > 2 else 0)

    assert computed() == 88
    assert computed() == 0  # finished
    assert not list((tmp_path / "out").glob("*partial*"))


@pytest.mark.long
def test_what_was_computed_otherwise_is_not_taken(mine: str, folder: Path, tmp_path: Path) -> None:
    """Another image, other code with the same weights, changed predictions, another precision.

    A batch has four; the three images are computed five times more.
    """
    module = importlib.import_module(mine)
    wanted = Arguments(str(folder), [f"{mine}:colours"], device="cpu", out=tmp_path / "out")

    def computed(wanted: Arguments = wanted) -> int:
        module.calls.clear()
        run(NOWHERE, wanted)
        return int(sum(module.calls)) - 2

    assert [computed(), computed()] == [4 + 15, 0]
    draw(folder / "n01440764" / "red.png", (254, 0, 0))
    assert [computed(), computed()] == [4 + 15, 0]
    forward = module.Colours.forward
    module.Colours.forward = lambda self, pixels: forward(self, pixels) * 0.5
    assert [computed(), computed()] == [4 + 15, 0]
    path = tmp_path / "out" / "mine_colours.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert [computed(), computed()] == [4 + 15, 0]
    assert path.read_bytes() == whole
    write_table(path, read_table(path, PREDICTIONS, imagenet()).assign(correct=True), PREDICTIONS, imagenet())
    assert [computed(), computed()] == [4 + 15, 0]
    assert path.read_bytes() == whole
    assert computed(Arguments(str(folder), wanted.models, precision="float32", device="cpu", out=wanted.out)) == 8 + 15


def test_answers_of_an_earlier_run_are_named_or_computed_again(
    mine: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the day of its record; `--fresh` computes them again."""
    out = tmp_path / "out"
    words = ["evaluate", str(folder), "--model", f"{mine}:colours", "--device", "cpu", "--out", str(out)]

    def told(*options: str) -> str:
        done = CliRunner().invoke(app, [*words, *options])
        assert done.exit_code == 0, done.output
        return done.stderr

    assert "answers of" not in told()
    os.utime(out / "mine_colours.json", (1_700_000_000, 1_700_000_000))
    assert f"{out}/mine_colours.parquet: reusing the answers of 14 November 2023; --fresh" in told()
    shards = out / "other.partial-shards"
    shards.mkdir()
    assert "answers of" not in told("--fresh")
    assert not shards.exists()
    assert "answers of" in told()


def test_models_before_one_that_fails_stay_finished(mine: str, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(CleansetError, match=r"^mine:nan, "):
        measure(folder, f"{mine}:colours", f"{mine}:nan", out=tmp_path)
    assert len(read_table(tmp_path / "mine_colours.parquet", PREDICTIONS, imagenet())) == 3
    assert not (tmp_path / RESULTS).exists()


def test_below_float64_it_says_how_far_it_is(mine: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, (row,) = run(NOWHERE, Arguments(str(folder), [f"{mine}:colours"], precision="bfloat16", device="cpu"))
    line = capsys.readouterr().err
    assert line.startswith("mine:colours: bfloat16 against float64: top-1 agreement 100.00% of 3 images")
    against = row.record["against_float64"]
    assert isinstance(against, dict)
    assert against["images"] == 3


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (Arguments("x", ["a:b"], role="standard"), r"--role standard: goes with a list \(.csv\); x is a set"),
        (Arguments("x", ["a:b"], precision="half"), "--precision: expected 'float64', .*; found 'half'"),
        (Arguments("x", ["a:b"], device="tpu"), "--device: .*found 'tpu'"),
        (
            Arguments("x", ["a:b"], out=Path(__file__)),
            "test_evaluate.py: a file; expected a folder, new or",
        ),
    ],
)
def test_what_cannot_be_measured(wanted: Arguments, message: str) -> None:
    with pytest.raises(CleansetError, match=message):
        run(NOWHERE, wanted)


def test_a_list_of_an_edition(mine: str, edition: Edition, tmp_path: Path) -> None:
    path = tmp_path / "list.csv"
    path.write_text(f"image_id,class_index\n{id_of(1)},0\n{id_of(4)},278\n")
    shutil.copytree(edition.folder, tmp_path / "edition")
    images, (row,) = run(Edition(tmp_path / "edition"), Arguments(str(path), [f"{mine}:keras"]))
    assert row.measures.overall.images == 2
    assert f"SHA-256 of every image as in {tmp_path}/edition/data/index.parquet" in printed(images, [row], 400)


def test_files_of_models_whose_names_are_alike() -> None:
    assert file_stems(["a:b", "a_b", "results", "../a", "…"]) == ["a_b", "a_b-1", "results-2", "a", "model"]
    # a number that another has is passed over
    assert file_stems(["results-1", "results", "a-2", "a", "a"]) == ["results-1", "results-2", "a-2", "a", "a-4"]


def leaderboard(models: int) -> tuple[EvaluationSet, list[MeasuredModel]]:
    """Models: the first classifies one of ten images of class 0 correctly, and so on; all 2,956 of class 1."""
    items = [EvaluationImage(str(number), 0, "top5", "") for number in range(10)]
    items += [EvaluationImage(str(10 + number), 1, "relaxed", "") for number in range(2956)]
    rows = []
    for number in range(models):
        classes = {0: Accuracy(10, number), 1: Accuracy(2956, 2956)}
        tiers = {"top5": classes[0], "reserve": Accuracy(1, 1), "relaxed": classes[1]}
        name = f"robustbench:Linf/Engstrom2019Robustness{number}"
        overall = Accuracy(2966, 2956 + number)
        measures = Measures(overall, overall, 0.75, None, tiers, classes, (Confusion(0, 1, 10 - number),))
        correct = {item.file: item.class_index == 1 or int(item.file) < number for item in items}
        rows.append(MeasuredModel(name, measures, {}, None, correct))
    images = EvaluationSet(
        name="standard",
        kind="export",
        items=items,
        read=lambda _: Image.new("RGB", (1, 1)),
        checked="the manifest",
        classes=imagenet(),
    )
    return images, rows


@pytest.mark.parametrize(("models", "last"), [(1, "n01440764 tench 10 0 %"), (8, "n01440764 tench 10 35 %")])
def test_the_table_fits_into_80_columns(models: int, last: str) -> None:
    """Every accuracy is printed whole, also of five tiers."""
    images, rows = leaderboard(models)
    tiers = {tier: Accuracy(1000, 900 + number) for number, tier in enumerate(TIERS)}
    first = replace(rows[0], measures=replace(rows[0].measures, tiers=tiers))
    for shown in (rows, [first]):
        lines = printed(images, shown).splitlines()
        assert max(map(len, lines)) <= 80
    assert all(f"{90 + number / 10:.1f}" in "\n".join(lines) for number in range(len(TIERS)))
    lines = printed(images, rows).splitlines()
    assert last in [" ".join(line.split()) for line in lines]
    line = next(line for line in lines if line.startswith("1  robustbench:Linf/"))
    assert " ".join(line.split()[2:]).startswith("99." if models == 1 else "99.9")


def rows_of_page(folder: Path, images: EvaluationSet, rows: list[MeasuredModel], heading: str) -> list[list[str]]:
    """The cells of each row of the table under a heading of the page."""
    write_page(folder, images, rows)
    (table, *_) = BeautifulSoup((folder / "index.html").read_text(), "html.parser").select(f"#{heading} ~ * tbody")
    return [[cell.get_text(" ", strip=True) for cell in row.select("th, td")] for row in table.select("tr")]


def test_the_page_has_the_digits_of_the_terminal(tmp_path: Path) -> None:
    """100 * (261 / 480) is 54.37499999999999."""
    images, (first, second) = leaderboard(2)
    images = replace(images, items=images.items[:480])
    files = [item.file for item in images.items]
    rows = []
    for row, count in ((first, 261), (second, 0)):
        accuracy = Accuracy(480, count)
        measures = replace(row.measures, overall=accuracy, top5=accuracy, tiers={})
        rows.append(replace(row, measures=measures, correct={file: place < count for place, file in enumerate(files)}))
    best = rows_of_page(tmp_path, images, rows, "accuracy")[0]
    assert best[2:4] + best[5:7] == ["54.38", "49.90 to 58.78", "54.38 49.90 to 58.78", "0.75"]
    (pair,) = rows_of_page(tmp_path, images, rows, "pairs")
    assert pair[2:4] == ["54.38", "49.83 to 58.78"]
    header = BeautifulSoup((tmp_path / "index.html").read_text(), "html.parser").header
    assert header is not None
    assert header.get_text("\n", strip=True).count(images.name) == 1


def test_a_further_measure_is_one_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has a column in the terminal, whole at any width, on the page and for papers, and a key in the results."""
    images, rows = leaderboard(2)
    further = DeclaredMeasure(
        name="share_of_classes",
        title="share of classes",
        of=lambda found: Measure.of(len(found.classes) / 1000, (0, 0.125)),
    )
    for module in (rendering, measured_models):
        monkeypatch.setattr(module, "MEASURES", (*MEASURES, further))
    for width in (80, 120):
        console = Console(width=width, color_system=None)
        with console.capture() as shown:
            console.print(as_text(images, rows), highlight=False)
        lines = shown.get().splitlines()
        assert max(map(len, lines)) <= width
        (head,) = [line for line in lines if line.endswith("  share of classes")]
        assert ("ECE" in head) == (width == 120)
        assert sum(line.endswith("(0.00–12.50)") for line in lines) == 2
    assert rows_of_page(tmp_path, images, rows, "accuracy")[0][-1] == "0.20 0.00 to 12.50"
    assert json.loads(results_json(images, rows))["models"][0]["share_of_classes"] == {
        "value": 0.002,
        "interval": [0, 0.125],
    }
    table = leaderboard_for_paper(images, rows).in_form("csv")
    assert 'ECE,share of classes,"share of classes, low","share of classes, high"' in table


def test_every_measure_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "evaluate.md").read_text()
    assert [each.title for each in MEASURES if f"\n| {each.title}" not in text] == []


def test_a_page_of_many_models_has_the_pairs_of_the_best_tested_one(tmp_path: Path) -> None:
    """Other models are not tested against one that chose the images; all pairs of up to six are shown."""
    images, rows = leaderboard(8)
    rows[-1] = replace(rows[-1], chose_images=True)
    pairs = [(row[0].split()[0], row[1].split()[0]) for row in rows_of_page(tmp_path, images, rows, "pairs")]
    assert pairs == [("#2", "#3"), ("#2", "#4"), ("#2", "#5"), ("#2", "#6"), ("#2", "#7"), ("#2", "#8")]
    assert len(rows_of_page(tmp_path, images, rows[1:], "pairs")) == 15


@pytest.mark.parametrize("count", [50, 51])
def test_a_page_says_that_it_has_no_more_than_fifty(count: int, tmp_path: Path) -> None:
    """Only where there are more."""
    images, (row,) = leaderboard(1)
    classes = dict.fromkeys(range(count), Accuracy(10, 5))
    confusions = tuple(Confusion(each, each + 1, 5) for each in range(count))
    rows = [replace(row, measures=replace(row.measures, classes=classes, confusions=confusions))]
    assert len(rows_of_page(tmp_path, images, rows, "classes")) == 50
    assert len(rows_of_page(tmp_path, images, rows, "confusions")) == 50
    text = (tmp_path / "index.html").read_text()
    assert ["first, at most 50." in text, "another one, at most 50 pairs." in text] == [count > 50] * 2


def test_the_best_comes_first_and_equal_ones_as_given() -> None:
    images, rows = leaderboard(3)
    order = json.loads(results_json(images, [rows[0], rows[2], rows[1]]))["models"]
    assert [model["correct"] for model in order] == [2958, 2957, 2956]


@pytest.mark.long
def test_models_of_the_zoos_without_an_edition(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their weights, here random ones, are at the path of the download."""
    monkeypatch.setenv("CLEANSET_CACHE", str(tmp_path / "cache"))
    weights = tmp_path / "cache" / "data" / "weights"
    state = settle(timm.create_model("resnet18"), 3).state_dict()
    of_timm = weights / "timm" / "resnet18.tv_in1k" / "model.safetensors"
    of_robustbench = weights / "imagenet" / "Linf" / "Salman2020Do_R18.pt"
    for path in (of_timm, of_robustbench):
        path.parent.mkdir(parents=True)
    save_file(state, of_timm)
    torch.save(state, of_robustbench)
    models = ["timm:resnet18.tv_in1k", "robustbench:Linf/Salman2020Do_R18"]
    _, rows = run(NOWHERE, Arguments(str(folder), models, precision="float32", device="cpu", out=tmp_path / "out"))
    found = [(row.record["preprocessing"], row.record["weights_sha256"]) for row in rows]
    assert found == [
        ("timm-bilinear-256-224", sha256(of_timm.read_bytes())),
        ("Res256Crop224", sha256(of_robustbench.read_bytes())),
    ]
    # the same weights, normalisation and resizing: the two zoos agree
    columns = ["file", "prediction", "correct", "confidence"]
    first, second = (read_table(row.path, PREDICTIONS, imagenet())[columns] for row in rows if row.path)
    pd.testing.assert_frame_equal(first, second, rtol=1e-5)


@pytest.mark.parametrize("name", ["timm:resnet50.nobody", "timm:vit_base_patch16_224.augreg_in21k"])
def test_a_model_that_no_zoo_has(name: str, folder: Path) -> None:
    with pytest.raises(CleansetError, match=f"^--model {name}: .*expected "):
        run(NOWHERE, Arguments(str(folder), [name]))


@pytest.mark.long
@pytest.mark.parametrize(
    "role", [pytest.param(role, marks=[] if role == "norm_robust" else pytest.mark.long) for role in ROLES]
)
def test_the_sample_s_models_on_its_sets(role: str, built: Checkout, tmp_path: Path) -> None:
    """Every model classifies all of its own set correctly, with the confidences of the manifest."""
    edition = Edition(built.folder)
    _, rows = run(edition, Arguments(role, ROLES, device="cpu", out=tmp_path / "out"))
    entries = read_entries(edition.export(role))
    tiers = pd.Series([entry.tier for entry in entries]).value_counts().to_dict()
    assert any(entry.crop for entry in entries)
    assert [row.name for row in rows] == list(ROLES)
    for row in rows:
        assert row.measures.overall.images == len(entries)
        assert {tier: accuracy.images for tier, accuracy in row.measures.tiers.items()} == tiers
    (own,) = [row for row in rows if row.name == role]
    assert own.measures.overall.share == 1.0
    assert {tier: accuracy.correct for tier, accuracy in own.measures.tiers.items()} == tiers
    table = read_table(tmp_path / "out" / f"{role}.parquet", PREDICTIONS, imagenet())
    expected = {entry.file: entry.confidence for entry in entries}
    assert dict(zip(table["file"], table["confidence"], strict=True)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.long
def test_a_file_of_weights_is_the_role_s_model(built: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(built.folder)
    weights = "sample/weights/standard.safetensors"
    _, rows = run(Edition(Path()), Arguments("norm_robust", ["standard", weights], architecture="test_efficientnet"))
    assert rows[0].measures == rows[1].measures
    assert rows[0].record["weights_sha256"] == rows[1].record["weights_sha256"]
    with pytest.raises(CleansetError, match=f"--model {weights}: .* missing keys .* expected the weights of exactly"):
        run(Edition(Path()), Arguments("norm_robust", [weights], architecture="resnet18"))


@pytest.mark.parametrize("record", ["[" * 50_000, '{"fingerprint": NaN}', "[]", "{}", "\udcff"])
def test_a_damaged_record_of_an_earlier_run(record: str, mine: str, folder: Path, tmp_path: Path) -> None:
    """The model is measured again."""
    wanted = Arguments(str(folder), [f"{mine}:colours"], out=tmp_path / "out")
    _, (first,) = run(NOWHERE, wanted)
    path = tmp_path / "out" / "mine_colours.json"
    before = path.read_bytes()
    path.write_text(record, errors="surrogateescape")
    _, (second,) = run(NOWHERE, wanted)
    assert (second.measures, path.read_bytes()) == (first.measures, before)


def test_names_of_models() -> None:
    """By these predictions and model cards are distinguished; without one it is the model as given."""
    assert Arguments("standard", ["Ours=timm:resnet18", "mine:make", "Also=command:a b=c"]).names == [
        "Ours", "mine:make", "Also",
    ]  # fmt: skip
