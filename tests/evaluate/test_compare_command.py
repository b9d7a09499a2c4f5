"""`cleanset compare` as a person runs it: its exit code, its lines of at most 80 columns, its JSON."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cleanset.edition import Edition
from cleanset.sets.manifest import Entry, manifest_csv
from cleanset.tables import CROP_SCORES, SCORES
from evaluate.command import cleanset, says
from evaluate.test_comparison import CROPPED, ENTRY
from inputs.made import Made
from rules.test_stages import SCORE_ROWS, answer, edition_in, put, val


@pytest.fixture
def edition(tmp_path: Path) -> Edition:
    """The tiny edition of the stages' tests: three models, two classes, two pictures each."""
    return edition_in(tmp_path / "edition")


def others(folder: Path) -> Path:
    """Other scores of model standard: surer of picture 3, and wrong about picture 5."""
    rows = [*SCORE_ROWS["standard"]]
    rows[2], rows[4] = answer(3, 0, 0.8125), answer(5, 2, 0.5)
    path = folder / "standard.parquet"
    put(path, rows, SCORES)
    return path


def export(folder: Path, *entries: Entry) -> Path:
    folder.mkdir()
    (folder / "manifest.csv").write_text(manifest_csv(entries))
    return folder


def test_the_same_scores(edition: Edition) -> None:
    table = "data/scores/standard.parquet"
    assert says(cleanset("compare", table, table, cwd=edition.folder)) == (
        0,
        "A  data/scores/standard.parquet\n"
        "B  data/scores/standard.parquet\n"
        "\n"
        "pictures             8 in both, 0 only in A, 0 only in B\n"
        "other scores         0\n"
        "other highest class  0\n"
        "largest difference   0 (in probability)\n",
        "",
    )


SCORE_LINES = """\
A  data/scores/standard.parquet
B  standard.parquet

pictures             8 in both, 0 only in A, 0 only in B
other scores         2
other highest class  1
largest difference   0.5 (in probability)

most different          difference  A                   B
ILSVRC2012_val_00000005        0.5  n01443537 0.500000  n01484850 0.500000
ILSVRC2012_val_00000003      0.312  n01440764 0.500000  n01440764 0.812500

Classes whose pictures would change, unreviewed ones taken for clean,
crops that were never scored for right
standard: 2
  n01440764  - ILSVRC2012_val_00000002
             + ILSVRC2012_val_00000003
  n01443537  - ILSVRC2012_val_00000005
norm_robust: none
corruption_robust: none
"""


def test_other_scores_and_what_becomes_of_the_classes(edition: Edition) -> None:
    others(edition.folder)
    tables = ("data/scores/standard.parquet", "standard.parquet")
    assert says(cleanset("compare", *tables, "--edition", ".", cwd=edition.folder)) == (1, SCORE_LINES, "")


def test_other_scores_as_json(edition: Edition) -> None:
    others(edition.folder).rename(edition.folder / "mine.parquet")
    arguments = ("data/scores/standard.parquet", "mine.parquet", "--edition", ".", "--json", "--most", "1")
    done = cleanset("compare", *arguments, cwd=edition.folder)
    assert (done.returncode, done.stderr) == (1, "")
    assert json.loads(done.stdout) == {
        "kind": "scores",
        "a": "data/scores/standard.parquet",
        "b": "mine.parquet",
        "same": False,
        "pictures": 8,
        "only_a": [],
        "only_b": [],
        "different": 2,
        "top1_changed": 1,
        "largest_difference": 0.5,
        "most_different": [
            {
                "image_id": "ILSVRC2012_val_00000005", "difference": 0.5,
                "top1_a": "n01443537", "confidence_a": 0.5, "top1_b": "n01484850", "confidence_b": 0.5,
            }
        ],
        "classes": {
            "standard": [
                {
                    "wnid": "n01440764",
                    "a": ["ILSVRC2012_val_00000002", "ILSVRC2012_val_00000004"],
                    "b": ["ILSVRC2012_val_00000003", "ILSVRC2012_val_00000004"],
                },
                {
                    "wnid": "n01443537",
                    "a": ["ILSVRC2012_val_00000005", "ILSVRC2012_val_00000006"],
                    "b": ["ILSVRC2012_val_00000006"],
                },
            ],
            "norm_robust": [],
            "corruption_robust": [],
        },
    }  # fmt: skip


def test_another_models_classes_may_change_too(edition: Edition) -> None:
    """Where one model errs on picture 1, it leaves tier top5 of all of them: picture 3 moves up."""
    rows = [*SCORE_ROWS["corruption_robust"]]
    rows[0] = answer(1, 5, 0.5)
    put(edition.folder / "other.parquet", rows, SCORES)
    (edition.reviews / "ann" / "n01440764.yaml").unlink()
    (edition.reviews / "bob" / "n01440764.yaml").unlink()
    arguments = ("data/scores/corruption_robust.parquet", "other.parquet", "--edition", ".", "--model")
    done = cleanset("compare", *arguments, "corruption_robust", cwd=edition.folder)
    assert done.stdout.partition("scored for right\n")[2] == (
        "standard: 1\n"
        "  n01440764  - ILSVRC2012_val_00000001\n"
        "             + ILSVRC2012_val_00000003\n"
        "norm_robust: 1\n"
        "  n01440764  - ILSVRC2012_val_00000001\n"
        "             + ILSVRC2012_val_00000003\n"
        "corruption_robust: 1\n"
        "  n01440764  - ILSVRC2012_val_00000001\n"
        "             + ILSVRC2012_val_00000003\n"
    )


def test_a_crop_that_the_model_gets_wrong_is_in_neither(edition: Edition) -> None:
    """Picture 2 then has no place to lose: pictures 3 and 4 are kept on both sides."""
    others(edition.folder)
    rows = [(val(2), 0, 0, 40, 30, *answer(2, 1, 0.5)[1:])]
    put(edition.crop_scores("standard"), rows, CROP_SCORES)
    tables = ("data/scores/standard.parquet", "standard.parquet", "--edition", ".")
    rejecting = cleanset("compare", *tables, cwd=edition.folder).stdout.partition("scored for right\n")[2]
    assert rejecting == (
        "standard: 2\n"
        "  n01440764  the same in another order\n"
        "  n01443537  - ILSVRC2012_val_00000005\n"
        "norm_robust: none\n"
        "corruption_robust: none\n"
    )
    params = edition.folder / "params.yaml"
    params.write_text(params.read_text().replace("unreviewed: pending", "wrong_after_crop: accept"))
    accepting = cleanset("compare", *tables, cwd=edition.folder).stdout.partition("scored for right\n")[2]
    assert accepting == SCORE_LINES.partition("scored for right\n")[2]


EXPORT_LINES = """\
A  a
   standard: 3 pictures of 2 classes
B  b
   standard: 3 pictures of 1 classes

added                 1
dropped               1
other crop            1
other rank            1
other tier            0
other confidence      0
other source          0
other file            1

n01440764
  ILSVRC2012_val_00000007  added       rank 3, reserve
  ILSVRC2012_val_00000293  crop        whole -> 0 1 480 330
  ILSVRC2012_val_00000294  rank        2 -> 1
  ILSVRC2012_val_00000294  file        aaaaaaaaaaaa... -> cccccccccccc...

n01443537
  ILSVRC2012_val_00000009  dropped     rank 1, top5
"""


def two_exports(folder: Path) -> None:
    second = replace(ENTRY, rank=2, image_id="ILSVRC2012_val_00000294")
    export(
        folder / "a", ENTRY, second,
        replace(ENTRY, wnid="n01443537", class_index=1, image_id="ILSVRC2012_val_00000009"),
    )  # fmt: skip
    export(
        folder / "b", CROPPED, replace(second, rank=1, file_sha256="c" * 64),
        replace(ENTRY, rank=3, tier="reserve", image_id="ILSVRC2012_val_00000007"),
    )  # fmt: skip


def test_two_exports(tmp_path: Path) -> None:
    two_exports(tmp_path)
    assert says(cleanset("compare", "a", "b", cwd=tmp_path)) == (1, EXPORT_LINES, "")
    assert cleanset("compare", "a", "a/manifest.csv", cwd=tmp_path).returncode == 0


def test_two_exports_as_json(tmp_path: Path) -> None:
    two_exports(tmp_path)
    content = json.loads(cleanset("compare", "a", "b", "--json", cwd=tmp_path).stdout)
    assert content["changes"][1] == {
        "wnid": "n01440764", "image_id": "ILSVRC2012_val_00000293", "what": "crop", "a": "whole", "b": "0 1 480 330",
    }  # fmt: skip
    assert [change["what"] for change in content["changes"]] == ["added", "crop", "rank", "file", "dropped"]
    assert (content["kind"], content["same"], content["counts"]["added"]) == ("exports", False, 1)


def test_no_line_is_wider_than_80_columns() -> None:
    assert max(map(len, (SCORE_LINES + EXPORT_LINES).splitlines())) <= 80


def test_errors_are_one_line(edition: Edition) -> None:
    table, other = "data/scores/standard.parquet", "mine.parquet"
    (edition.folder / other).write_bytes((edition.folder / table).read_bytes())
    export(edition.folder / "export", ENTRY)
    (edition.folder / "empty").mkdir()
    for arguments, message in (
        ((table, "nope.parquet"), "nope.parquet: missing; expected a score table (.parquet) or the folder of an"),
        ((table, "export"), "export is an export, data/scores/standard.parquet is not; expected two of a kind\n"),
        (("export", "empty"), "empty/manifest.csv: missing; expected the folder of an export, or its manifest.csv\n"),
        ((table, "data/index.parquet"), "data/index.parquet: columns image_id string, size int64,"),
        ((table, "params.yaml"), "params.yaml: not a Parquet file ("),
        (("export", "export", "--edition", "."), "compare: --edition and --model go with score tables;"),
        ((other, other, "--edition", "."), "compare: whose scores are these? say --model, one of standard, norm_"),
        ((other, other, "--edition", ".", "--model", "vit"), "params.yaml: no model 'vit'; expected one of"),
        ((other, other, "--model", "standard"), "compare: --model says whose scores these are in --edition;"),
        ((other, other, "--edition", "empty"), "empty/params.yaml: missing; expected the folder of an edition"),
    ):
        code, stderr = Made(edition.folder).run("compare", *arguments)
        assert code == 1, arguments
        assert stderr.startswith(f"error: {message}"), stderr
        assert stderr.count("\n") == 1
