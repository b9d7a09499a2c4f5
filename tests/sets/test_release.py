"""`cleanset publish` of an edition, and `cleanset verify --from-verdicts` of what it wrote."""

import ast
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cleanset.classes import imagenet
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.images.boxes import known_box
from cleanset.plumbing.csv_files import csv_text
from cleanset.review import consensus
from cleanset.review.audit import new_plan, set_images
from cleanset.review.audit_files import verdicts_folder, write_plan
from cleanset.review.file_format import parse_review, review_fields
from cleanset.review.gold import GoldItem
from cleanset.review.gold_files import GOLD_KEY, gold_key_text
from cleanset.review.save import with_reviews
from cleanset.review.store import basis_of, read_votes
from cleanset.review.verdicts import Review
from cleanset.sets import from_verdicts, release, verify
from cleanset.sets.from_verdicts import Verdict, problems
from cleanset.stages import export, intersect, review_apply, select
from cleanset.stages.commands import STAGES
from cleanset.tables import INDEX, SELECTION, read_table
from tests.checkouts import Checkout
from tests.evaluation.compare.command import cleanset, says
from tests.properties import examples
from tests.sets.conftest import edit
from tests.sets.plants import KINDS, ROLES, Plant, planted, read, shifted, write
from tests.sets.test_publish import files, new_key
from tests.ten_images import drawn_image, jpeg

PROGRAM = Path(from_verdicts.__file__)
NAME = "cleanset-1.0.0"
PLANTS = 10
"""Planted changes of each kind."""


@pytest.fixture(scope="module")
def released(built: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample edition's release, without images; not to be changed."""
    out = tmp_path_factory.mktemp("released") / "out"
    release.run(Edition(built.folder), out, with_images=False, key=None)
    return out / NAME


@pytest.fixture
def copy(released: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(released, tmp_path / NAME))


def docstring_lines(program: ast.Module) -> set[int]:
    """The lines at which docstrings begin."""
    return {
        each.lineno for each in ast.walk(program) if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)
    }


def test_the_program_can_be_read_in_one_sitting() -> None:
    """As docs/publish.md says: some 440 lines of code, docstrings aside, that need pyarrow alone."""
    program = ast.parse(PROGRAM.read_text())
    code = [each for each in ast.walk(program) if isinstance(each, ast.stmt | ast.expr)]
    assert len({each.lineno for each in code} - docstring_lines(program)) <= 440
    modules = {
        name.partition(".")[0]
        for node in ast.walk(program)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names])
        if name
    }
    assert modules - sys.stdlib_module_names == {"pyarrow"}


def test_a_release_holds_what_its_sets_follow_from(released: Path) -> None:
    of_roles = {
        f"{folder}/{role}.{suffix}"
        for role in ROLES
        for folder, suffix in (
            ("scores", "parquet"), ("scores", "json"), ("crop_scores", "parquet"), ("candidates", "parquet"),
            ("audit", "json"),
        )
    }  # fmt: skip
    found = set(files(released))
    assert of_roles <= found
    assert {"classes.tsv", "gold.json", "index.parquet", "params.json", "verdicts.csv", PROGRAM.name} <= found
    assert {"reviews/board/n02782093.yaml", "reviews/ben/n02782093.yaml"} <= found
    for role in ROLES:
        found_in_set = verify.run(released / "sets" / role, decode=False)
        assert (found_in_set.problems, found_in_set.with_images) == ([], False)


def test_a_deposit_of_all_sets(released: Path) -> None:
    fields = json.loads((released / ".zenodo.json").read_text())
    assert all(f"The set of {role}: " in fields["description"] for role in ROLES)
    assert fields["title"].startswith(f"{NAME}: ")
    assert fields["access_right"] == "open"


def test_a_sceptic_needs_the_release_and_one_file(released: Path, tmp_path: Path) -> None:
    shutil.copy(PROGRAM, tmp_path)
    shutil.copytree(released, tmp_path / NAME)
    # isolated: no module of this folder or of PYTHONPATH can be imported
    command = [sys.executable, "-I", PROGRAM.name, NAME]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{NAME}: problems: 0\n", "")
    shutil.copy(released / "sets" / "standard" / "manifest.csv", tmp_path / NAME / "sets" / "norm_robust")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert (done.returncode, lines[0]) == (
        1,
        "sets/norm_robust/manifest.csv: not the file that checksums.sha256 lists",
    )
    assert f"{NAME}/sets/norm_robust/manifest.csv, n01443537 1: model standard; expected norm_robust" in lines


@pytest.mark.long
def test_the_command_checks_a_release_without_its_edition(built: Checkout, tmp_path: Path) -> None:
    new_key(tmp_path, "alice")
    done = built.run(
        "cleanset", "publish", ".", str(tmp_path / "out"), "--with-images", "--key", str(tmp_path / "alice")
    )
    assert f"{NAME}: 101 images, published with its images, signed" in done.stdout
    key = ("--signature", str(tmp_path / "alice.pub"))
    for name in (NAME, f"{NAME}.tar"):
        assert says(cleanset("verify", "--from-verdicts", name, *key, cwd=tmp_path / "out")) == (
            0, f"{name}: problems: 0\n", "",
        )  # fmt: skip
    image = next((tmp_path / "out" / NAME / "sets" / "standard").glob("*/*.JPEG"))
    image.write_bytes(b"another image")
    found = says(cleanset("verify", "--from-verdicts", NAME, cwd=tmp_path / "out"))
    assert found[0] == 1
    assert f"{image.relative_to(tmp_path / 'out' / NAME)}: not the file that checksums.sha256 lists" in found[1]
    assert "as in the manifest" in found[1]
    new_key(tmp_path, "mallory")
    found = says(
        cleanset("verify", "--from-verdicts", NAME, "--signature", str(tmp_path / "mallory.pub"), cwd=tmp_path / "out")
    )
    assert "checksums.sha256.sig: " in found[1]


def test_the_same_bytes_again(built: Checkout, released: Path, tmp_path: Path) -> None:
    release.run(Edition(built.folder), tmp_path / "out", with_images=False, key=None)
    assert (tmp_path / "out" / f"{NAME}.tar").read_bytes() == released.with_name(f"{NAME}.tar").read_bytes()


@pytest.mark.long
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.long if kind.startswith("a ") else ()) for kind in KINDS]
)
def test_planted_changes_are_found(kind: str, released: Path, tmp_path: Path) -> None:
    """With checksums that fit: what is found is found because it does not follow."""
    for number in range(PLANTS):
        changed = Path(shutil.copytree(released, tmp_path / str(number)))
        planted(changed, KINDS[kind], Random(f"{kind} {number}"))
        found = problems(changed)
        assert found, f"{kind}, number {number}"
        assert not [problem for problem in found if "checksums" in problem]


def beside_the_first(folder: Path, random: Random) -> None:
    """A score of an image that the model does not get right, with consistent numbers."""
    path = folder / "scores" / "standard.parquet"
    rows = read(path)
    candidates = {row["image_id"] for row in read(folder / "candidates" / "standard.parquet")}
    place = random.choice([n for n, row in enumerate(rows) if row["image_id"] not in candidates])
    rows[place] = shifted(rows[place], 0.25)
    write(path, rows)


def note(folder: Path, _: Random) -> None:
    path = folder / "reviews" / "ben" / "n02782093.yaml"
    path.write_text(path.read_text().replace("colours look washed out", "colours look fine"))


def source_check(folder: Path, _: Random) -> None:
    path = folder / "sets" / "standard" / "manifest.csv"
    path.write_text(path.read_text().replace(",archive_md5,", ",none,"))


def everywhere(folder: Path, random: Random) -> None:
    """Another reason to reject an image: in somebody's verdict, in verdicts.csv and in every set."""
    rejections = [
        row for row in read(folder / "verdicts.csv") if row["verdict"] == "reject" and row["file"][:3] == "ada"
    ]
    chosen = random.choice(rejections)
    reason = "blur" if chosen["reason"] != "blur" else "noise"
    path = folder / "reviews" / chosen["file"]
    content = yaml.safe_load(path.read_text())
    content[path.stem][chosen["image_id"]]["reason"] = reason
    path.write_text(yaml.safe_dump(content))
    for path in (folder / "verdicts.csv", *folder.glob("sets/*/rejected.csv")):
        rows = read(path)
        for row in rows:
            if (row["image_id"], row["reason"]) == (chosen["image_id"], chosen["reason"]):
                row["reason"] = reason
        write(path, rows)


@pytest.mark.parametrize("plant", [beside_the_first, note, source_check, everywhere])
def test_what_nobody_can_find_from_a_release_alone(plant: Plant, copy: Path) -> None:
    """As the program's docstring says: one that decides nothing, or is made in every place that records it."""
    before = files(copy)
    planted(copy, plant, Random(1))
    assert problems(copy) == []
    assert files(copy) == before


def test_a_set_more(copy: Path) -> None:
    shutil.copytree(copy / "sets" / "standard", copy / "sets" / "further")
    assert (
        "sets: corruption_robust, further, norm_robust, standard; expected corruption_robust, norm_robust, standard"
        in (problems(copy))
    )


@pytest.mark.parametrize(
    ("old", "new", "says_so"),
    [
        ("verdict: clean", "verdict: {a: b}", "YAML in a form that this program does not read"),
        ("verdict: clean", "verdict: fine", "not a valid verdict"),
        ("n01443537:", "n01443538:", "expected the class that the file is named after"),
    ],
)
def test_a_file_that_cannot_be_read_is_a_problem(old: str, new: str, says_so: str, copy: Path) -> None:
    path = copy / "reviews" / "ada" / "n01443537.yaml"
    path.write_text(path.read_text().replace(old, new, 1))
    assert says_so in problems(copy)[1]


def test_an_edition_whose_sets_do_not_follow_is_not_published(
    built: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A set that is older than its edition reports it; where it does not, the program that checks releases does."""
    edition = copied(built, tmp_path / "edition")
    path = edition.reviews / "ada" / "n01443537.yaml"
    content = yaml.safe_load(path.read_text())
    first = next(iter(content["n01443537"].values()))
    first |= {"verdict": "reject", "reason": "blur"}
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(
        CleansetError, match=r"the first: outdated .* a change of reviews; .*today's set: run dvc repro"
    ):
        release.run(edition, tmp_path / "out", with_images=False, key=None)
    monkeypatch.setattr("cleanset.sets.made_from.outdated", lambda _: [])
    with pytest.raises(CleansetError, match=r"problems: \d+, the first: .*: run dvc repro$"):
        release.run(edition, tmp_path / "out", with_images=False, key=None)
    assert not (tmp_path / "out").exists()


def copied(built: Checkout, folder: Path) -> Edition:
    """The files of the sample edition that are read after the scores."""
    folder.mkdir()
    for name in ("params.yaml", "dvc.yaml", "raw.md5", "reviews", "data"):
        path = built.folder / name
        shutil.copytree(path, folder / name) if path.is_dir() else shutil.copy(path, folder)
    return Edition(folder)


OTHER_RULES: dict[str, dict[str, Any]] = {
    "select": {"candidates": 3, "pool": "model", "order": "float32", "tiers": ["top5", "reserve"]},
    "review": {"policy": "majority", "crops": "in_rank", "unknown_boxes": "count", "unreviewed": "clean"},
}


@pytest.mark.long
def test_audits_gold_items_and_other_rules(built: Checkout, tmp_path: Path) -> None:
    """What follows by other rules; publish refuses what the program recomputes in another way."""
    edition = copied(built, tmp_path / "edition")
    params = yaml.safe_load(edition.params_yaml.read_text())
    params["dataset"]["label"] = "both"
    for section, keys in OTHER_RULES.items():
        params[section] |= keys
    edition.params_yaml.write_text(yaml.safe_dump(params, sort_keys=False))
    index = read_table(edition.index, INDEX, imagenet()).set_index("image_id")
    # the most confident image of a class shall be cropped, but nobody has drawn the box
    path = edition.reviews / "ada" / "n01443537.yaml"
    first = next(row["image_id"] for row in read(edition.export("standard") / "manifest.csv"))
    of_ada = yaml.safe_load(path.read_text())
    unknown = {"verdict": "crop", "reason": "border", "crop": "unknown", "object_fully_visible": True}
    of_ada["n01443537"][first] = unknown | {"sha256": of_ada["n01443537"][first]["sha256"]}
    path.write_text(yaml.safe_dump(of_ada, sort_keys=False))
    # a third reviewer with an answer to a gold item, in a file written by hand
    of_ben = yaml.safe_load((edition.reviews / "ben" / "n02782093.yaml").read_text())["n02782093"]
    gold, *others = sorted(of_ben)
    digest = "0" * 64
    (edition.reviews / GOLD_KEY).write_text(gold_key_text([GoldItem(417, gold, digest, "text", "planted")], imagenet()))
    lines = [f"  {gold}:  # a gold item", "    verdict: reject", "    reason: 'text'", f'    sha256: "{digest}"']
    for image_id in others:
        lines += [
            f"  {image_id}:",
            "    verdict: crop",
            "    reason: border",
            "    crop: unknown",
            "    object_fully_visible: true",
            f"    sha256: {index['sha256'][image_id]}",
            "    note: >",
            "      a border: on the left",
            "",
            "      and on the right",
        ]
    (edition.reviews / "cy").mkdir()
    (edition.reviews / "cy" / "n02782093.yaml").write_text("\n".join(["# by hand", "n02782093:", *lines, ""]))
    intersect.run(edition)
    for role in ROLES:
        select.run(edition, role)
        review_apply.run(edition, role)
    selection = read_table(edition.selection("standard"), SELECTION, imagenet())
    plan = new_plan(model="standard", kind="open", seed="1", drawn=4, images=set_images(selection), classes=imagenet())
    write_plan(edition.reviews, plan)
    for number, each in enumerate(plan.draws[:3]):
        path = verdicts_folder(edition.reviews, "standard") / "dan" / f"{imagenet().keys[each.class_index]}.yaml"
        path.parent.mkdir(exist_ok=True)
        content = yaml.safe_load(path.read_text()) if path.exists() else {path.stem: {}}
        verdict = {"verdict": "reject", "reason": "blur"} if number == 1 else {"verdict": "clean"}
        content[path.stem][each.image_id] = verdict | {"sha256": str(index["sha256"][each.image_id])}
        path.write_text(yaml.safe_dump(content))
    for role in ROLES:
        review_apply.run(edition, role)
        export.run(edition, role)
    release.run(edition, tmp_path / "out", with_images=True, key=None)
    folder = tmp_path / "out" / NAME
    assert json.loads((folder / "audit" / "standard.json").read_text())["flawed"] == 1
    assert list(json.loads((folder / "gold.json").read_text())) == ["cy"]
    assert any(row["reason"] == "box_unknown" for row in read(folder / "sets" / "standard" / "rejected.csv"))
    # of the audit
    path = next(path for path in folder.glob("reviews/audit/standard/dan/*.yaml") if "reject" in path.read_text())
    path.write_text(path.read_text().replace("    reason: blur\n", "").replace("verdict: reject", "verdict: clean"))
    assert any(problem.startswith("audit/standard.json: flawed 1") for problem in problems(folder))


KEYS = ("pears, ripe", "x-ray (old)", "Äpfel")
CARD = """title: Fruit
authors: [{name: "Curie, Marie"}]
images: {source: ours, licence: CC0-1.0, people: nobody}
"""


@pytest.mark.long
@pytest.mark.slow
def test_own_images(tmp_path: Path) -> None:
    """Their sets have other names of columns and files, and any names of classes and images."""
    random, scores = Random(1), [["file", "model", *KEYS]]
    for number, key in enumerate(KEYS):
        for name in ("0: a.jpg", "deep/1.jpg", "2.jpg", "3.jpg", "4.jpg"):
            path = tmp_path / "images" / key / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(jpeg(drawn_image(80, 70, seed=random.randrange(1000))))
            for model in ("A net", "b"):
                chances = [random.random() + (each == number) for each in range(len(KEYS))]
                scores.append([f"{key}/{name}", model, *(f"{each / sum(chances):.6f}" for each in chances)])
    (tmp_path / "scores.csv").write_text(csv_text(scores[0], scores[1:]))
    (tmp_path / "card.yaml").write_text(CARD)
    made = ("edition", "own", "--images", "images", "--scores", "scores.csv", "--card", "card.yaml")
    assert says(cleanset(*made, cwd=tmp_path))[0] == 0
    own, roles = tmp_path / "own", ("a_net", "b")
    edit(own / "params.yaml", 'date: ""', 'date: "2026-01-31"')

    def run(*stages: str) -> None:
        for stage in stages:
            for arguments in [["--model", role] for role in roles] if STAGES[stage] else [[]]:
                assert says(cleanset(stage, *arguments, cwd=own))[0] == 0

    run("preprocess", "score", "intersect", "select")
    images = read(own / "data" / "index.parquet")
    for reviewer, count in (("ada", 3), ("ben", 2)):
        for number, key in enumerate(KEYS):
            of_class = [each for each in images if each["classes"] == [number]][:count]
            crop = {"verdict": "crop", "reason": "text", "crop": [0, 0, 60, 50], "object_fully_visible": True}
            entries = {each["image_id"]: {"verdict": "clean", "sha256": each["sha256"]} for each in of_class}
            entries[of_class[1]["image_id"]] |= crop
            path = own / "reviews" / reviewer / f"{key}.yaml"
            path.parent.mkdir(exist_ok=True)
            path.write_text(yaml.safe_dump({key: entries}, allow_unicode=reviewer == "ada"))
    run("crops", "score_crops", "review_apply", "export")
    assert says(cleanset("publish", ".", "../out", "--with-images", cwd=own))[0] == 0
    rows = read(tmp_path / "out" / NAME / "sets" / "b" / "manifest.csv")
    assert {row["class"] for row in rows} == set(KEYS)
    assert any(row["file"].endswith(".crop.png") for row in rows)
    release_of_own = str(tmp_path / "out" / NAME)
    assert says(cleanset("verify", "--from-verdicts", release_of_own, cwd=tmp_path))[:2] == (
        0, f"{release_of_own}: problems: 0\n",
    )  # fmt: skip
    right, rows[0]["file"] = rows[0]["file"], rows[1]["file"]
    write(tmp_path / "out" / NAME / "sets" / "b" / "manifest.csv", rows)
    assert f"file {rows[1]['file']}; expected {right}" in "\n".join(problems(tmp_path / "out" / NAME))


boxes = st.sampled_from([(0, 0, 100, 100), (0, 0, 101, 100), (1, 0, 100, 99), (0, 0, 50, 50)])
reasons = st.sampled_from(["border", "text", "watermark"])
votes = st.one_of(
    st.just(Verdict("clean", None, None, "explicit", "")),
    st.builds(lambda reason: Verdict("reject", reason, None, "explicit", ""), reasons),
    st.just(Verdict("unsure", None, None, "explicit", "")),
    st.builds(lambda reason, box: Verdict("crop", reason, box, "explicit", ""), reasons, st.none() | boxes),
)
crops = st.builds(lambda box: Verdict("crop", "text", box, "explicit", ""), boxes)


def as_review(vote: Verdict) -> Review:
    fields: dict[str, Any] = {"verdict": vote.verdict, "reason": vote.reason, "sha256": "0" * 64}
    if vote.verdict == "crop":
        fields |= {"crop": list(vote.box) if vote.box else "unknown", "object_fully_visible": True}
    return parse_review(fields, "here")


def given_fields(review: Review) -> dict[str, object]:
    return {name: value for name, value in review_fields(review).items() if value is not None}


@examples(400)
@given(
    st.lists(votes, max_size=5) | st.lists(crops, max_size=5), st.none() | votes,
    st.sampled_from(["single", "majority", "unanimous"]), st.integers(1, 3), st.sampled_from([0.0, 0.02]),
)  # fmt: skip
def test_both_programs_decide_alike(
    others: list[Verdict], board: Verdict | None, policy: consensus.Policy, least: int, tolerance: float
) -> None:
    rules = {"policy": policy, "min_reviewers": least, "box_tolerance": tolerance, "unknown_boxes": "open"}
    by_name = {f"r{number}": vote for number, vote in enumerate(others)} | ({"board": board} if board else {})
    expected = consensus.asking_for_box(
        consensus.consensus(
            [as_review(vote).verdict for vote in others],
            as_review(board).verdict if board else None,
            policy,
            least,
            tolerance,
        )
    )
    found = from_verdicts.decision_of(by_name, rules)
    assert (found.verdict, found.reason, found.box) == (expected.verdict, expected.reason, known_box(expected.box))


def of_verdict(verdict: str) -> Verdict:
    reason = "blur" if verdict == "reject" else None
    return Verdict(verdict=verdict, reason=reason, box=None, basis="explicit", sha256="0" * 64)


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        (["clean", "reject"], ("undecided", "conflict")),
        (["reject", "clean"], ("undecided", "conflict")),
        (["clean", "clean", "reject", "reject"], ("undecided", "conflict")),
        (["reject", "clean", "reject", "clean"], ("undecided", "conflict")),
        (["clean", "clean", "reject"], ("clean", None)),
        (["reject", "clean", "reject"], ("reject", "blur")),
        (["clean", "reject", "reject", "reject"], ("reject", "blur")),
    ],
)
def test_a_tie_is_no_majority_in_either_program(verdicts: list[str], expected: tuple[str, str | None]) -> None:
    votes = [of_verdict(verdict) for verdict in verdicts]
    found = from_verdicts.consensus(votes, "majority", 1, 0.02)
    assert (found.verdict, found.reason) == expected
    stage = consensus.consensus([as_review(vote).verdict for vote in votes], None, "majority", 1, 0.02)
    assert (stage.verdict, stage.reason) == expected


notes = (
    st.none()
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
    | st.text("a:#-\n \"'[{|>&*!%", max_size=12)
)


@examples(120)
@given(st.lists(st.tuples(votes, notes), min_size=1, max_size=3), st.sampled_from([20, 80]), st.booleans())
def test_both_programs_read_alike(written: list[tuple[Verdict, str | None]], width: int, own: bool) -> None:
    """Review files with any notes, as the review page or PyYAML writes them."""
    reviews = [replace(as_review(vote), note=note) for vote, note in written]
    by_id = {f"ILSVRC2012_val_{number:08d}": review for number, review in enumerate(reviews, start=1)}
    if own:
        text = ""
        for image_id, review in by_id.items():
            text = with_reviews(text, "n01440764", {image_id: review}, "test")
    else:
        entries = {name: given_fields(review) for name, review in by_id.items()}
        text = yaml.safe_dump({"n01440764": entries}, width=width, sort_keys=False)
    with TemporaryDirectory() as folder:
        path = Path(folder, "ada", "n01440764.yaml")
        path.parent.mkdir()
        path.write_text(text, encoding="utf-8", newline="")
        found = from_verdicts.read_verdicts(Path(folder))
    assert found == {
        ("ada/n01440764.yaml", name): replace(vote, sha256="0" * 64)
        for name, (vote, _) in zip(by_id, written, strict=True)
    }


@pytest.mark.parametrize("edition", [".", "imagenet"])
def test_both_programs_read_the_same_reviews(edition: str, repository: Path) -> None:
    reviews = repository / edition / "reviews"
    expected = {
        (f"{name}/{imagenet().keys[index]}.yaml", image_id): Verdict(
            verdict=vote.review.verdict.kind,
            reason=vote.review.reason,
            box=known_box(vote.review.box),
            basis=basis_of(vote.review),
            sha256=vote.review.sha256,
        )
        for (index, image_id), by_name in read_votes(reviews, imagenet()).items()
        for name, vote in by_name.items()
    }  # fmt: skip
    assert from_verdicts.read_verdicts(reviews) == expected


@pytest.mark.parametrize("name", ["params.json", "checksums.sha256", "scores/standard.json"])
def test_a_pipe_in_a_release(name: str, copy: Path) -> None:
    """The program would wait for whoever writes into it."""
    (copy / name).unlink()
    os.mkfifo(copy / name)
    with pytest.raises(CleansetError, match=rf"{name}: a named pipe; expected a regular file"):
        release.verify(copy, None)
