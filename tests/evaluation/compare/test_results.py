"""`cleanset compare` of results: the table, the field that keeps the rest out, and the notices."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from cleanset.errors import CleansetError
from cleanset.evaluation.comparability import CardImages
from cleanset.evaluation.compare.compared_tables import as_json, as_text, ranking_for_paper
from cleanset.evaluation.compare.result_files import ResultFile, are_results, parse_results, read_results
from cleanset.evaluation.compare.results import ComparedResults, compare_results, run
from tests.evaluation.compare.command import cleanset, says
from tests.evaluation.compare.drawn_results import (
    MODEL,
    NUMBERS,
    A,
    B,
    C,
    accuracies,
    corrupted,
    put_results,
    robustness,
)

SHORT_A, SHORT_B = f"{'a' * 12}…", f"{'b' * 12}…"


def compared(*contents: object) -> ComparedResults:
    """The comparison of results a, b, c."""
    return compare_results([parse_results(content, name) for name, content in zip("abcd", contents, strict=False)])


def printed(found: ComparedResults, width: int = 80) -> list[str]:
    out = StringIO()
    Console(file=out, width=width).print(as_text(found), highlight=False)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_two_models_of_two_results() -> None:
    """The best first, whichever file it is in; below a name what its network is given, below a value its interval."""
    found = compared(accuracies({"resnet": NUMBERS}), accuracies({"vit": (0.8125, 0.625, 0.9375)}))
    digest = found.cards["accuracy"][1].digest[:12]
    assert printed(found) == [
        "#  model                                 accuracy",
        "1  vit                                    81.25 %",
        "     timm-bicubic-235-224, float64  (62.50–93.75)",
        "2  resnet                                 75.00 %",
        "     timm-bicubic-235-224, float64  (50.00–87.50)",
        "",
        f"accuracy: card {digest}, 3 images of 2 classes; intervals: 95 %, Wilson",
        "",
        "Notes:",
        "  selection: chosen by hand",
        "  limits: A trial.",
        "  resnet (a) and vit (b) have the same weights, with the same preprocessing, but",
        "  with other numbers",
    ]
    assert max(map(len, printed(found, 120))) <= 120
    assert found.left_out == []


@pytest.mark.parametrize(("measured", "measure"), [("corruptions", "mce"), ("perturbations", "mfr")])
def test_a_measure_relative_to_a_reference_may_exceed_1(measured: str, measure: str) -> None:
    content = robustness(corrupted({"a": 0.5}, measured))
    content["families"][measured]["models"][0]["measures"][measure] = {"value": 1.25, "interval": [1.125, 1.5]}
    found = parse_results(content, "a").measured[measured].models["a"][measure]
    assert (found.value, found.interval) == (1.25, (1.125, 1.5))


def test_top5_and_calibration() -> None:
    """As `evaluate` writes them; None if no probabilities are known."""
    content = accuracies({"resnet": NUMBERS, "onnx": NUMBERS})
    content["models"][0] |= {
        "top5": {"images": 3, "correct": 3, "accuracy": 1.0, "interval": [0.4375, 1.0]},
        "calibration": {"definition": "15 bins", "error": 0.0625, "bins": []},
    }
    content["models"][1] |= {"top5": None, "calibration": None}
    lines = [line.split() for line in printed(compared(content, accuracies({"vit": NUMBERS})))]
    assert lines[0] == ["#", "model", "accuracy", "top-5", "ECE"]
    assert lines[1] == ["1", "resnet", "75.00", "%", "100.00", "%", "0.06"]
    assert lines[2][-2:] == ["(50.00–87.50)", "(43.75–100.00)"]
    assert lines[3][-4:] == ["–", "(1)", "–", "(1)"]


def test_errors_are_ranked_the_other_way_round() -> None:
    """By mean error; a measure that a file lacks is left empty, and does not exclude it."""
    found = compared(
        robustness(corrupted({"resnet": 0.5, "vit": 0.375})),
        robustness(corrupted({"lite": 0.25}), corrupted({"lite": 0.0625}, "perturbations")),
    )
    lines = printed(found)
    assert lines[0].split() == ["#", "model", "mean", "error", "mean", "FP"]
    assert [line.split() for line in lines[1:7:2]] == [
        ["1", "lite", "25.00", "%", "6.25", "%"], ["2", "vit", "37.50", "%", "–", "(1)"],
        ["3", "resnet", "50.00", "%", "–", "(1)"],
    ]  # fmt: skip
    assert "(1) not measured" in lines
    assert max(map(len, lines)) <= 80
    assert "intervals: 95 %, bootstrap within classes, one fewer drawn than there are, 1,000 draws" in " ".join(lines)


def test_the_first_field_that_differs() -> None:
    """Each family by itself, compared with the first result that has it."""
    other_images = corrupted({"vit": 0.25}, images=CardImages(count=3, sha256=B))
    found = compared(
        robustness(corrupted({"resnet": 0.5})),
        robustness(other_images, corrupted({"vit": 0.5}, "perturbations")),
        robustness(
            corrupted({"lite": 0.5}, settings={"jpeg": 90, "seed": 0}), corrupted({"lite": 0.5}, "perturbations")
        ),
        accuracies({"resnet": NUMBERS}),
    )
    lines = printed(found, 120)
    start = lines.index("Not comparable, and not in the table:")
    assert lines[start + 1 : start + 4] == [
        f"  b, corruptions: images {SHORT_B}, but {SHORT_A} in a",
        "  c, corruptions: settings.jpeg 90, but 85 in a",
        "  d: measured accuracy, but corruptions, perturbations in a",
    ]
    assert [(row.result, row.model, sorted(row.values)) for row in found.rows] == [
        ("a", "resnet", [("corruptions", "mean_error")]),
        ("b", "vit", [("perturbations", "mean_fp")]),
        ("c", "lite", [("perturbations", "mean_fp")]),
    ]
    content = json.loads(as_json(found))
    assert (content["kind"], content["comparable"]) == ("results", False)
    assert content["not_comparable"][1] == {
        "result": "c", "measured": "corruptions", "field": "settings.jpeg", "value": "90",
        "compared_with": "a", "its_value": "85",
    }  # fmt: skip
    assert content["rows"][1]["measures"] == {"perturbations": {"mean_fp": {"value": 0.5, "interval": [0.25, 0.5]}}}
    assert content["cards"]["perturbations"]["from"] == "b"


@pytest.mark.parametrize(
    ("other", "notice"),
    [
        ({"weights_sha256": C}, f"with other weights: {SHORT_A} and {'c' * 12}…; their ranks depend on it"),
        (
            {"preprocessing": "timm-bicubic-256-224", "preprocessing_sha256": C},
            "with another preprocessing: timm-bicubic-235-224 and timm-bicubic-256-224; their ranks depend on it",
        ),
        (
            {"preprocessing_sha256": C},
            "with a preprocessing of the same name with other pixels: "
            f"{SHORT_B} and {'c' * 12}…; their ranks depend on it",
        ),
        ({"precision": "float32"}, "with another precision: float64 and float32; their ranks depend on it"),
        ({"preprocessing": "given in Python"}, "with the same preprocessing and the same numbers"),
        ({}, "with the same preprocessing and the same numbers"),
    ],
)
def test_a_model_in_two_results(other: dict[str, Any], notice: str) -> None:
    """A fix of the preprocessing that swaps two places is seen."""
    part = {"resnet": MODEL.model_copy(update=other)}
    found = compared(accuracies({"resnet": NUMBERS}), accuracies({"resnet": NUMBERS}, part))
    assert found.notices[0] == f"resnet is in a and in b, {notice}"
    assert found.left_out == []
    assert [line.split()[:3] for line in printed(found)[1:5:2]] == [["1", "resnet", "(a)"], ["2", "resnet", "(b)"]]


def test_other_precisions_and_versions_are_reported() -> None:
    part = MODEL.model_copy(update={"precision": "tf32", "versions": {"torch": "2.4.0", "timm": "1.0.9"}})
    found = compared(accuracies({"resnet": NUMBERS}), accuracies({"vit": NUMBERS}, {"vit": part}))
    assert found.notices[1:] == [
        "precisions differ: float64 for resnet (a); tf32 for vit (b)",
        "versions of torch differ: 2.11.0 in a; 2.4.0 in b",
    ]


def test_predictions_made_elsewhere() -> None:
    """Their images are those of the set; how they were decoded and resized is not known, which is reported."""
    part = MODEL.model_copy(
        update=dict.fromkeys(("weights_sha256", "preprocessing", "preprocessing_sha256", "precision"))
        | {"versions": {}}
    )
    found = compared(accuracies({"resnet": NUMBERS}), accuracies({"onnx": NUMBERS}, {"onnx": part}, pixels_sha256=None))
    assert found.left_out == []
    assert found.notices == ["predictions made elsewhere, by a preprocessing that is not known: onnx (b)"]
    assert "     predictions made elsewhere" in printed(found)[4]


@given(st.permutations([("a", 0.25), ("b", 0.5), ("c", 0.75)]))
def test_the_order_of_the_files_does_not_rank(files: list[tuple[str, float]]) -> None:
    results = [parse_results(accuracies({name: (value, 0.0, 1.0)}), name) for name, value in files]
    assert [row.model for row in compare_results(results).rows] == ["c", "b", "a"]


def damaged(path: tuple[str | int, ...], value: object) -> dict[str, Any]:
    """A result file with another value at that place."""
    content = table = json.loads(json.dumps(accuracies({"resnet": NUMBERS})))
    for key in path[:-1]:
        table = table[key]
    table[path[-1]] = value
    return content  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ([], r"^a: \[\]; expected the JSON that cleanset evaluate, robustness evaluate or attacks evaluate wrote$"),
        ({}, "^a: no results of models; expected the JSON that"),
        ({"format": 2, "families": {}}, "^a: no results; expected the JSON that"),
        ({"format": 2, "models": []}, "^a: no comparability card; expected .* run it again with"),
        (damaged(("comparability",), "none"), "^a: comparability: "),
        (damaged(("comparability", "images", "count"), 4), "^a: comparability: digest .* edited since it was"),
        (damaged(("comparability", "images", "count"), "4"), "^a: comparability: images.count: expected an integer"),
        (damaged(("comparability", "models", "resnet", "precision"), "tf32"), "^a: comparability: checksum .* edited"),
        (damaged(("models", 0, "model"), "vit"), r"^a: models \['vit'\]; expected the card's, \['resnet'\]"),
        (damaged(("models", 0, "model"), None), "^a: models: None; expected the name of each model once"),
        (damaged(("models", 0, "model"), "\x1b[31m"), r"^a: '\\x1b\[31m'; expected printable texts"),
        (damaged(("models", 0, "accuracy"), "high"), "^a: resnet: accuracy: 'high', interval .* expected finite"),
        (damaged(("models", 0, "accuracy"), 10**400), "^a: resnet: accuracy: 1000.*; expected finite numbers"),
        (damaged(("models", 0, "accuracy"), True), "^a: resnet: accuracy: True, interval"),
        (damaged(("models", 0, "interval"), [0.5, 0.25]), r"interval \[0.5, 0.25\]; expected its lower end first"),
        (damaged(("models", 0, "interval"), [0.5]), r"interval \[0.5\]; expected finite numbers"),
        (damaged(("models",), {}), r"^a: models \[\]; expected the card's"),
        (damaged(("models", 0, "accuracy"), 0.875), "^a: resnet: accuracy 0.875, 750,000 of 1,000,000 images"),
        (damaged(("models", 0, "correct"), -1), "^a: resnet: accuracy 0.75, -1 of 1,000,000 images correct; expected"),
        (damaged(("models", 0, "correct"), 10**6 + 1), "^a: resnet: accuracy 0.75, 1,000,001 of 1,000,000 images"),
        (damaged(("models", 0, "accuracy"), 1.7), "^a: resnet: accuracy: 1.7, interval .* expected shares from 0 to 1"),
        (damaged(("models", 0, "interval"), [-3, 1]), r"^a: resnet: accuracy: 0.75, interval \[-3, 1\]; expected"),
        (damaged(("models", 0, "ece"), 5), "^a: resnet: ece: 5, interval None; expected shares from 0 to 1"),
        (
            json.loads(json.dumps(accuracies({"resnet": NUMBERS})).replace("0.75", "1e999")),
            "accuracy: inf, .* finite numbers",
        ),
        (
            {"format": 2, "attacks": {}, "search_precision": "float32", "models": []},
            "^a: no comparability card; .* run it again with the same --out",
        ),
    ],
)
def test_what_is_refused(content: object, problem: str) -> None:
    with pytest.raises(CleansetError, match=problem) as caught:
        parse_results(content, "a")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", r"a\.json, line 1: not JSON"),
        ('{"models": NaN}', r"a\.json: not JSON \(NaN is not a number\)"),
        ("[" * 5000, r"a\.json: not JSON \(lists or tables more than 100 deep\)"),
        ('{"a": 1, "a": 2}', "the key 'a' a second time"),
        ('{"models": []}', "no content_sha256; expected the digest of what it holds: run the evaluation again"),
    ],
)
def test_what_is_not_the_json_of_results(text: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(CleansetError, match=problem):
        read_results(path)


def test_a_folder_stands_for_the_result_in_it(tmp_path: Path) -> None:
    put_results(tmp_path / "a" / "results.json", accuracies({"resnet": NUMBERS}))
    found: ResultFile = read_results(tmp_path / "a")
    assert (found.name, found.images.name, list(found.measured)) == (str(tmp_path / "a"), "standard", ["accuracy"])
    assert are_results([tmp_path / "a", Path("b.json")])
    assert not are_results([tmp_path])
    with pytest.raises(CleansetError, match=r"scores\.parquet: missing; expected the JSON that"):
        are_results([tmp_path / "a", Path("scores.parquet")])
    (tmp_path / "scores.parquet").touch()
    with pytest.raises(CleansetError, match=r"scores\.parquet: not a result file; expected the JSON that"):
        are_results([tmp_path / "a", tmp_path / "scores.parquet"])
    with pytest.raises(
        CleansetError, match=r"b\.json: missing; expected the JSON that .* name its file, or the folder"
    ):
        run([tmp_path / "a", tmp_path / "b.json"])
    with pytest.raises(CleansetError, match=r"results\.json: given twice; expected each result once"):
        run([tmp_path / "a", tmp_path / "a" / "results.json"])
    with pytest.raises(CleansetError, match=r"compare: 1 result, of 1 model \(.*a\); expected two or more"):
        run([tmp_path / "a"])


def test_the_models_of_one_folder(tmp_path: Path) -> None:
    """By the folder, by the file in it, and by the record of each model; then again after another run has added one."""
    folder = tmp_path / "out"
    models = {"timm:resnet50": NUMBERS, "vit": (0.5, 0.25, 0.75)}
    put_results(folder / "results.json", accuracies(models))
    records = [folder / "timm_resnet50.json", folder / "vit.json"]
    for record in records:
        put_results(record, {"fingerprint": "0" * 64, "weights_sha256": A})
    for paths in ([folder], [folder / "results.json"], records):
        assert [row.model for row in run(paths).rows] == ["timm:resnet50", "vit"]
    (row,) = read_results(records[1]).measured["accuracy"].models
    assert row == "vit"
    put_results(folder / "results.json", accuracies(models | {"lite": NUMBERS}))
    assert len(run([folder]).rows) == 3
    assert [row.model for row in run(records).rows] == ["timm:resnet50", "vit"]
    put_results(folder / "other.json", {"fingerprint": "0" * 64})
    with pytest.raises(
        CleansetError, match=r"other\.json: the record of a model that results\.json next to it does not"
    ):
        read_results(folder / "other.json")


def test_models_of_one_folder_whose_names_are_alike(tmp_path: Path) -> None:
    """The files are in the order of the command, and the results in that of accuracy."""
    content = accuracies({"a_b": (0.75, 0.5, 0.875), "a b": (0.5, 0.25, 0.75)})
    for entry, predictions in zip(content["models"], ["a_b-1.parquet", "a_b.parquet"], strict=True):
        entry["predictions"] = predictions
    put_results(tmp_path / "results.json", content)
    for name in ("a_b", "a_b-1"):
        put_results(tmp_path / f"{name}.json", {"fingerprint": "0" * 64})
    records = [tmp_path / "a_b.json", tmp_path / "a_b-1.json"]
    assert [list(read_results(path).measured["accuracy"].models) for path in records] == [["a b"], ["a_b"]]


@pytest.mark.slow
def test_the_command(tmp_path: Path) -> None:
    """Exit code 1 if a result was left out, as for other comparisons that find a difference."""
    for name, content in {
        "a": accuracies({"resnet": NUMBERS}),
        "b": accuracies({"vit": (0.5, 0.25, 0.75)}),
        "c": accuracies({"lite": NUMBERS}, images=CardImages(count=2, sha256=A)),
    }.items():
        put_results(tmp_path / name / "results.json", content)
    code, stdout, stderr = says(cleanset("compare", "a", "b/results.json", cwd=tmp_path))
    assert (code, stderr) == (0, "")
    assert stdout.splitlines()[0].split() == ["#", "model", "accuracy"]
    code, stdout, stderr = says(cleanset("compare", "a", "b", "c", cwd=tmp_path))
    assert (code, stderr) == (1, "")
    assert "  c, accuracy: number of images 2, but 3 in a" in map(str.rstrip, stdout.splitlines())
    code, stdout, _ = says(cleanset("compare", "a", "b", "c", "--json", cwd=tmp_path))
    assert (code, [row["model"] for row in json.loads(stdout)["rows"]]) == (1, ["resnet", "vit"])
    assert says(cleanset("compare", "a", "b", "--edition", ".", cwd=tmp_path)) == (
        1, "", "error: compare: --edition and --model go with score tables; these are results of models\n"
    )  # fmt: skip
    assert says(cleanset("compare", "x.parquet", cwd=tmp_path)) == (
        1, "", "error: compare: 1 path; expected two, or two or more results of models (JSON)\n"
    )  # fmt: skip


KEYS = ["0 a", "0 b", "1 c"]


def with_answers(name: str, answers: str) -> dict[str, Any]:
    """The content of a result file on three images, with a digit for each: 1 is a correct answer."""
    correct = answers.count("1")
    content = accuracies({name: (correct / 3, 0, 1)})
    content["image_keys"] = KEYS
    content["models"][0] |= {"images": 3, "correct": correct, "answers": answers}
    return content


def test_results_that_know_their_misclassified_images_are_tested() -> None:
    """By image, whatever it is called; McNemar's exact test of 2 against 0 is 0.5."""
    found = compared(with_answers("vit", "001"), with_answers("resnet", "111"), accuracies({"old": NUMBERS}))
    (pair,) = found.pairs
    assert (pair.model, pair.other, pair.p, pair.only_model) == ("resnet", "vit", 0.5, ("0 a", "0 b"))
    lines = [line.split() for line in printed(found)]
    assert ["pair", "difference", "only", "first", "only", "second", "p"] in lines
    assert ["#1", "–", "#3", "66.67", "(-5.86", "to", "93.85)", "2", "0", "0.5000"] in lines
    assert json.loads(as_json(found))["pairs"][0]["p"] == 0.5
    text = ranking_for_paper(found).in_form("markdown")
    assert "| vit | 33.33 (0.00–100.00) | -66.67 (-93.85 to 5.86) | 0.5000 |" in text
    assert "| old | 75.00 (50.00–87.50) | – (2) | – (2) |" in text
    assert "\n- No value: (1) the others are compared with it; (2) not known which images it misclassifies\n" in text
    assert "\nShares in percent; difference from resnet in percentage points\n" in text
    assert "\n- Tests: p of McNemar's exact test, two-sided, against resnet\n" in text


@pytest.mark.parametrize("answers", ["011", "01", "0011", "201", "００1", ["0", "0", "1"], 1])
def test_answers_that_do_not_fit_the_accuracy(answers: object) -> None:
    content = with_answers("vit", "001")
    content["models"][0]["answers"] = answers
    with pytest.raises(
        CleansetError, match=r"^a: vit: answers: .*; expected 0 or 1 for each of 3 images, 1 for the 1 correct ones: "
    ):
        compared(content, accuracies({"old": NUMBERS}))


@pytest.mark.parametrize("keys", [["0 a", "0 b"], "0 a", [0, 0, 1]])
def test_images_that_do_not_fit_the_card(keys: object) -> None:
    with pytest.raises(CleansetError, match=r"^a: image_keys: .*; expected a text for each of 3 images: run the eval"):
        compared(with_answers("vit", "001") | {"image_keys": keys}, accuracies({"old": NUMBERS}))


@pytest.mark.parametrize(
    ("content", "command"),
    [
        (accuracies({"vit": NUMBERS}), "evaluate"),
        (robustness(corrupted({"vit": 0.5})), "robustness evaluate"),
        (robustness(corrupted({"vit": 0.5})) | {"attacks": {}}, "attacks evaluate"),
    ],
)
@pytest.mark.parametrize("found", [None, 1])
def test_an_older_format_is_refused_with_the_command(content: dict[str, Any], command: str, found: int | None) -> None:
    given = {key: value for key, value in content.items() if key != "format"} | ({"format": found} if found else {})
    with pytest.raises(CleansetError) as refused:
        parse_results(given, "r")
    assert str(refused.value) == (
        f"r: format 1; expected 2, the format of results of this version: run cleanset {command} again with "
        "the same --out, which computes only the changes"
    )
