"""`cleanset compare` as a person runs it: its exit code, its lines of at most 80 columns, its JSON."""

import json
import os
import shutil
from pathlib import Path

import pytest

from cleanset.classes import imagenet
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.evaluation.compare import report
from cleanset.sets.manifest import Entry, manifest_csv
from cleanset.tables import CROP_SCORES, SCORES
from tests.evaluation.compare.command import cleanset, says
from tests.evaluation.compare.test_comparison import CROP_OF_WHOLE
from tests.sets.entries import WHOLE, checked
from tests.stages.test_stages import SCORE_ROWS, answer, edition_in, put, val
from tests.ten_images import SCORED, Made
from tests.time_limits import at_most


@pytest.fixture
def edition(tmp_path: Path) -> Edition:
    """The tiny edition of the stages' tests: three models, two classes, two images each."""
    return edition_in(tmp_path / "edition")


def others(folder: Path) -> Path:
    """Other scores of model standard: more confident of image 3, and image 5 is misclassified."""
    rows = [*SCORE_ROWS["standard"]]
    rows[2], rows[4] = answer(3, 0, 0.8125), answer(5, 2, 0.5)
    path = folder / "standard.parquet"
    put(path, rows, SCORES)
    return path


def export(folder: Path, *entries: Entry) -> Path:
    folder.mkdir()
    (folder / "manifest.csv").write_text(manifest_csv(entries, imagenet()))
    return folder


SCORE_LINES = """\
A  data/scores/standard.parquet
B  standard.parquet
no record of what A was computed with: standard.json missing
no record of what B was computed with: standard.json missing

images             8 in both, 0 only in A, 0 only in B
other scores         2
other top-1 class    1
largest difference   0.5 (in probability)

most different          difference  A                   B
ILSVRC2012_val_00000005        0.5  n01443537 0.500000  n01484850 0.500000
ILSVRC2012_val_00000003      0.312  n01440764 0.500000  n01440764 0.812500

Classes whose images would change, unreviewed ones taken for clean,
crops that were never scored for correct
standard: 2
  n01440764  - ILSVRC2012_val_00000002
             + ILSVRC2012_val_00000003
  n01443537  - ILSVRC2012_val_00000005
norm_robust: none
corruption_robust: none
"""


def test_other_scores_and_what_becomes_of_the_classes(edition: Edition) -> None:
    table = "data/scores/standard.parquet"
    code, same, _ = says(cleanset("compare", table, table, cwd=edition.folder))
    assert (code, same.splitlines()[-1]) == (0, "largest difference   0 (in probability)")
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
        "images": 8,
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
        "computed_with_other": {},
        "computed_with_unknown": ["a", "b"],
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


def with_record(folder: Path, name: str, **changes: object) -> str:
    """A score table with a record next to it; its path."""
    put(folder / f"{name}.parquet", SCORE_ROWS["standard"], SCORES)
    (folder / f"{name}.json").write_text(json.dumps(SCORED | changes))
    return f"{name}.parquet"


OTHER_RECORD = {
    "code": "1" * 64,
    "precision": "float32",
    "against_float64": {
        "images": 10, "top1_agreement": 1.0, "largest_difference": 0.0, "classes": 3, "classes_reordered": 0,
        "classes_changed": 0,
    },
    "versions": SCORED["versions"] | {"pillow": "12.9.0", "torch": "2.12.0"},
    "weights_sha256": "6" * 64,
    "preprocessing": SCORED["preprocessing"] | {"name": "timm-bicubic-224-160", "resize": 224},
}  # fmt: skip


def test_what_scores_were_computed_with(tmp_path: Path) -> None:
    """The exit code is about the scores only."""
    a, b = with_record(tmp_path, "a"), with_record(tmp_path, "b", **OTHER_RECORD)
    done = cleanset("compare", a, b, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    different = {
        "weights": ("5" * 64, "6" * 64),
        "preprocessing": (
            "timm-bicubic-182-160 (182, 160, bicubic)", "timm-bicubic-224-160 (224, 160, bicubic)",
        ),
        "precision": ("float64", "float32"),
        "code": ("0" * 64, "1" * 64),
        "version of pillow": ("13.0.0", "12.9.0"),
        "version of torch": ("2.11.0", "2.12.0"),
    }  # fmt: skip
    assert done.stdout.partition("\n\n")[0].splitlines()[2:] == [
        f"computed with other {name}: {' -> '.join(f'{each[:12]}...' if len(each) == 64 else each for each in pair)}"
        for name, pair in different.items()
    ]
    content = json.loads(cleanset("compare", a, b, "--json", cwd=tmp_path).stdout)
    assert content["computed_with_other"] == {name: {"a": a, "b": b} for name, (a, b) in different.items()}
    assert (content["computed_with_unknown"], content["same"]) == ([], True)


@pytest.mark.parametrize("text", ["", "{}", "[1", "\ufffe"])
def test_a_file_that_is_not_a_record_is_a_note(tmp_path: Path, text: str) -> None:
    a, b = with_record(tmp_path, "a"), with_record(tmp_path, "b")
    (tmp_path / "b.json").write_text(text)
    done = cleanset("compare", a, b, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    note = "no record of what B was computed with: b.json unreadable"
    assert done.stdout.startswith(f"A  a.parquet\nB  b.parquet\n{note}\n\nimages ")


def changed_classes(*arguments: str, edition: Edition) -> str:
    done = cleanset("compare", *arguments, "--edition", ".", cwd=edition.folder)
    return done.stdout.partition("scored for correct\n")[2]


def test_another_models_classes_may_change_too(edition: Edition) -> None:
    """If one model errs on image 1, it leaves tier top5 of all of them: image 3 moves up."""
    rows = [*SCORE_ROWS["corruption_robust"]]
    rows[0] = answer(1, 5, 0.5)
    put(edition.folder / "other.parquet", rows, SCORES)
    for reviewer in ("ann", "bob"):
        (edition.reviews / reviewer / "n01440764.yaml").unlink()
    arguments = ("data/scores/corruption_robust.parquet", "other.parquet", "--model", "corruption_robust")
    assert changed_classes(*arguments, edition=edition) == "".join(
        f"{role}: 1\n  n01440764  - ILSVRC2012_val_00000001\n             + ILSVRC2012_val_00000003\n"
        for role in ("standard", "norm_robust", "corruption_robust")
    )


@pytest.mark.long
def test_a_crop_that_the_model_misclassifies_is_in_neither(edition: Edition) -> None:
    """Image 2 then has no place to lose: images 3 and 4 are kept on both sides."""
    others(edition.folder)
    rows = [(val(2), [0, 0, 40, 30], *answer(2, 1, 0.5)[1:])]
    put(edition.crop_scores("standard"), rows, CROP_SCORES)
    tables = ("data/scores/standard.parquet", "standard.parquet")
    assert changed_classes(*tables, edition=edition) == (
        "standard: 2\n"
        "  n01440764  the same images in another order\n"
        "  n01443537  - ILSVRC2012_val_00000005\n"
        "norm_robust: none\n"
        "corruption_robust: none\n"
    )
    params = edition.folder / "params.yaml"
    params.write_text(params.read_text().replace("unreviewed: pending", "wrong_after_crop: accept"))
    assert changed_classes(*tables, edition=edition) == SCORE_LINES.partition("scored for correct\n")[2]


EXPORT_LINES = """\
in                     1
out                    1
other crop             1
other source           0
other file             1
otherwise listed       0
Why they are out: unknown, because rejected.csv is missing 1
Why they were not in: unknown, because rejected.csv is missing 1

n01440764 tench
  + ILSVRC2012_val_00000007  rank 3, reserve; was left out: unknown, because rejected.csv is missing
  ~ ILSVRC2012_val_00000293  other crop: whole -> 0 1 480 330
  ~ ILSVRC2012_val_00000294  other file: cccccccccccc... -> dddddddddddd...

n01443537 goldfish
  - ILSVRC2012_val_00000009  rank 1, top5; left out: unknown, because rejected.csv is missing
"""


def two_exports(folder: Path) -> None:
    png = "n01440764/ILSVRC2012_val_00000294.png"
    second = checked(CROP_OF_WHOLE, rank=1, image_id="ILSVRC2012_val_00000294", file=png, file_sha256="c" * 64)
    goldfish = {"wnid": "n01443537", "class_index": 1, "class_name": "goldfish", "ilsvrc_class": 1, "real_classes": [1]}
    export(
        folder / "a", second, checked(WHOLE, rank=2),
        checked(WHOLE, image_id=val(9), file=f"n01443537/{val(9)}.JPEG", **goldfish),
    )  # fmt: skip
    export(
        folder / "b", CROP_OF_WHOLE, checked(second, rank=2, file_sha256="d" * 64),
        checked(WHOLE, rank=3, tier="reserve", image_id=val(7), file=f"n01440764/{val(7)}.JPEG"),
    )  # fmt: skip


def test_two_exports(tmp_path: Path) -> None:
    two_exports(tmp_path)
    done = cleanset("compare", "a", "b", cwd=tmp_path)
    assert says(done) == says(cleanset("diff", "a", "b", cwd=tmp_path))
    assert (done.returncode, done.stdout.partition("\n\n")[2]) == (1, EXPORT_LINES)
    assert cleanset("compare", "a", "a/manifest.csv", cwd=tmp_path).returncode == 0


def test_two_exports_as_json(tmp_path: Path) -> None:
    two_exports(tmp_path)
    content = json.loads(cleanset("compare", "a", "b", "--json", cwd=tmp_path).stdout)
    assert content["changes"][1] == {
        "wnid": "n01440764", "image_id": "ILSVRC2012_val_00000293", "what": "crop", "a": "whole", "b": "0 1 480 330",
        "reason": None,
    }  # fmt: skip
    assert [change["what"] for change in content["changes"]] == ["added", "crop", "rank", "rank", "file", "dropped"]
    assert (content["same"], content["counts"]["in"]) == (False, 1)


def test_no_line_is_wider_than_80_columns() -> None:
    assert max(map(len, SCORE_LINES.splitlines())) <= 80


@pytest.mark.long
def test_errors_are_one_line(edition: Edition) -> None:
    table, other = "data/scores/standard.parquet", "mine.parquet"
    (edition.folder / other).write_bytes((edition.folder / table).read_bytes())
    export(edition.folder / "export", WHOLE)
    (edition.folder / "empty").mkdir()
    (edition.folder / "top5.csv").write_text("model,class_index,rank,image_id,confidence\n")
    for arguments, message in (
        ((table, "nope.parquet"), "nope.parquet: missing; expected a score table (.parquet) or the folder of an"),
        ((table, "export"), "export is an export, data/scores/standard.parquet is not; expected two of a kind"),
        (("top5.csv", table), "top5.csv is an export, data/scores/standard.parquet is not; expected two of a kind"),
        (("export", "empty"), "empty/manifest.csv: missing; expected the folder of an export, or its manifest.csv\n"),
        ((table, "data/index.parquet"), "data/index.parquet: columns 'image_id, size, sha256,"),
        ((table, "params.yaml"), "params.yaml: not a Parquet file ("),
        (("export", "export", "--edition", "."), "compare: --edition and --model go with score tables;"),
        (
            (other, other, "--edition", "."),
            "compare: unknown model of the scores; pass --model, one of standard, norm_",
        ),
        ((other, other, "--edition", ".", "--model", "vit"), "params.yaml: no model 'vit'; expected one of"),
        ((other, other, "--model", "standard"), "compare: --model without --edition; expected both, or neither"),
        ((other, other, "--edition", "empty"), "empty/params.yaml: missing; expected the folder of an edition"),
    ):
        code, stderr = Made(edition.folder).run("compare", *arguments)
        assert code == 1, arguments
        assert stderr.startswith(f"error: {message}"), stderr
        assert stderr.count("\n") == 1


def test_a_named_pipe_is_refused_at_once(edition: Edition, tmp_path: Path) -> None:
    table, pipe = edition.scores("standard"), tmp_path / "pipe.parquet"
    os.mkfifo(pipe)
    for pair in ((table, pipe), (pipe, table), (pipe, pipe)):
        with at_most(20), pytest.raises(CleansetError, match=r"pipe\.parquet: a named pipe; expected a regular file"):
            report.run(*pair, None, None, 10)


def test_score_tables_of_own_images(own: Edition, tmp_path: Path) -> None:
    """Their classes are those of the edition around a table, or of the given one."""
    elsewhere = tmp_path / "before" / "images.parquet"
    elsewhere.parent.mkdir()
    shutil.copy(own.scores("images"), elsewhere)
    tables = (str(elsewhere), str(own.scores("images")))
    for options in ([], ["--edition", str(own.folder)]):
        code, shown, errors = says(cleanset("compare", *tables, *options, cwd=tmp_path))
        assert (code, errors) == (0, "")
        assert "images             12 in both, 0 only in A, 0 only in B" in shown
