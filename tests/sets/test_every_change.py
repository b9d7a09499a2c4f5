"""Each param, table and file of an edition, changed alone: its set says so exactly if a build from nothing is another.

The params are those of the schema: a new one needs another value here.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from pydantic import BaseModel

from cleanset.edition.params import Params
from cleanset.edition.paths import Edition
from cleanset.edition.stage_inputs import declared_files
from cleanset.errors import CleansetError
from cleanset.plumbing.files import sha256_of
from cleanset.review.audit import AuditPlan, draw_order, set_images
from cleanset.review.audit_files import verdicts_folder, write_plan
from cleanset.review.file_format import parse_review
from cleanset.sets.made_from import outdated
from cleanset.tables import SELECTION, read_table
from tests import own_edition
from tests.evaluation.compare.command import cleanset, says
from tests.review.texts import save
from tests.ten_images import drawn_image

pytestmark = [pytest.mark.slow, pytest.mark.long]

KEYS = ("bird", "cat", "dog")
STAGES = ("preprocess", "score", "intersect", "select", "crops", "score_crops", "review_apply", "export")
ABOUT = """
title: T
authors: [{name: "Painter, Jo", affiliation: Here, orcid: 0000-0002-1825-0097}]
licence: CC-BY-4.0
doi: 10.5281/zenodo.1
funding: [A fund]
keywords: [drawings]
images: {source: Drawn, licence: CC0-1.0, url: "https://example.org", people: none, group: patient, access: all,
  citation: None}
"""
CLEAN: dict[str, Any] = {"verdict": "clean"}
REJECT: dict[str, Any] = {"verdict": "reject", "reason": "blur"}
CROP: dict[str, Any] = {"verdict": "crop", "reason": "border", "object_fully_visible": True, "crop": [0, 0, 30, 30]}
REVIEWED = {
    "bird/000.png": CLEAN, "bird/001.png": CLEAN, "bird/002.png": REJECT, "bird/003.png": CLEAN,
    "cat/000.png": CROP, "cat/001.png": CLEAN, "cat/002.png": CLEAN,
    "dog/000.png": CLEAN, "dog/001.png": CLEAN, "dog/002.png": CLEAN,
}  # fmt: skip
"""Nobody has reviewed cat/003 and later; dog/003 and later are not needed."""

Change = Callable[[Edition], object]
Entry = dict[str, Any] | None


def write_tables(folder: Path) -> list[str]:
    """Images of three classes with labels, names, scores and facts; the names of the images."""
    files = []
    for number, key in enumerate(KEYS):
        (folder / "images" / key).mkdir(parents=True)
        for place in range(5):
            name = f"{key}/{place:03d}.png"
            drawn_image(40, 40, seed=100 * number + place).save(folder / "images" / name)
            files.append(name)
    (folder / "others").symlink_to("images")
    groups = {name: f"g{place // 2}" for place, name in enumerate(files)}
    rows = "".join(f"{name},{name.partition('/')[0]},{groups[name]}\n" for name in files)
    (folder / "labels.csv").write_text(f"file,class,group\n{rows}")
    (folder / "names.csv").write_text("class,name\nbird,Vogel\ncat,Katze\ndog,Hund\n")
    (folder / "card.yaml").write_text(ABOUT)
    with (folder / "scores.csv").open("w") as file:
        file.write(f"file,model,{','.join(KEYS)}\n")
        for place, name in enumerate(files):
            confidence = round(0.9 - 0.01 * place, 4)
            of_others = round((1 - confidence) / 2, 6)
            shares = [confidence if key == name.partition("/")[0] else of_others for key in KEYS]
            file.write(f"{name},net,{','.join(map(str, shares))}\n")
    return files


def review(edition: Edition, reviewer: str, given: Mapping[str, Entry], reviews: Path | None = None) -> None:
    classes = edition.read_classes()
    for name, entry in given.items():
        digest = {"sha256": sha256_of(edition.folder / "../images" / name)}
        parsed = None if entry is None else parse_review(entry | digest, "here")
        save(reviews or edition.reviews, reviewer, name.partition("/")[0], name, parsed, classes=classes)


def audit(edition: Edition) -> None:
    classes = edition.read_classes()
    drawn = draw_order(set_images(read_table(edition.selection("net"), SELECTION, classes)), "7", classes)
    plan = AuditPlan(classes=classes, model="net", kind="fixed", seed="7", drawn=3, images=drawn)
    write_plan(edition.reviews, plan)
    folder = verdicts_folder(edition.reviews, "net")
    for name in sorted(each.image_id for each in plan.draws):
        review(edition, "cy", {name: CLEAN}, folder)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Edition:
    """An edition with every kind of table, reviews and an audit; not to be changed."""
    folder = tmp_path_factory.mktemp("finished")
    write_tables(folder)
    tables = [f"--{name}={name}.csv" for name in ("labels", "names", "scores")]
    options = ("--images=images", *tables, "--card=card.yaml", "--no-git")
    assert says(cleanset("edition", "own", *options, cwd=folder))[0] == 0
    edition = Edition(folder / "own")
    own_edition.change_params(edition, export={"date": "2026-01-31"})
    own_edition.run(edition, *STAGES[:4])
    review(edition, "ada", REVIEWED)
    own_edition.run(edition, *STAGES[4:7])
    audit(edition)
    own_edition.run(edition, *STAGES[6:])
    return edition


@pytest.fixture(scope="module")
def without_model(tmp_path_factory: pytest.TempPathFactory) -> Edition:
    """An edition whose images are in a random order; not to be changed."""
    folder = tmp_path_factory.mktemp("without_model")
    write_tables(folder)
    assert says(cleanset("edition", "own", "--images", "images", "--no-git", cwd=folder))[0] == 0
    edition = Edition(folder / "own")
    own_edition.change_params(edition, review={"unreviewed": "clean"})
    own_edition.run(edition, *STAGES)
    return edition


def leaves(section: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """The keys of a section of params, with dots between their parts; the key in a table of sections is `net`."""
    for name, field in section.model_fields.items():
        inner = list(sections_in(field.annotation))
        is_table = "dict[" in str(field.annotation)
        for each in inner:
            yield from leaves(each, f"{prefix}{name}.{'net.' if is_table else ''}")
        if not inner:
            yield f"{prefix}{name}"


def sections_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The sections that a value may be, but those in lists."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif getattr(annotation, "__origin__", None) is not list:
        for each in get_args(annotation):
            yield from sections_in(each)


OTHER: dict[str, Any] = {
    "root": "./.",
    "protocol": "as_published",
    "dataset.reader": "ilsvrc",
    "dataset.images": "../others",
    "dataset.labels": "other_labels.csv",
    "dataset.names": "other_names.csv",
    "dataset.classes_are_folders": True,
    "dataset.devkit": "devkit.tar",
    "dataset.reassessed": "other.json",
    "dataset.expect_images": 14,
    "dataset.label": "both",
    "dataset.classes": ["cat", "dog"],
    "models.net.source": "random",
    "models.net.name": "other",
    "models.net.threat_model": "Linf",
    "models.net.weights": "w.pt",
    "models.net.file": "./scores.csv",
    "models.net.beyond": "beyond.csv",
    "models.net.sha256": "0" * 64,
    "models.net.beyond_sha256": "0" * 64,
    "models.net.module_sha256": "0" * 64,
    "models.net.files": {"w.pt": "0" * 64},
    "engine": "ray",
    "score.device": "cpu",
    "score.precision": "float32",
    "score.batch_size": 8,
    "select.candidates": 2,
    "select.pool": "model",
    "select.order": "float32",
    "select.tiers": ["top5"],
    "review.policy": "unanimous",
    "review.min_reviewers": 2,
    "review.min_crop_pixels": 9,
    "review.box_tolerance": 0.1,
    "review.unreviewed": "clean",
    "review.wrong_after_crop": "reject",
    "review.crops": "in_rank",
    "review.unknown_boxes": "count",
    "review.accept": ["explicit"],
    "review.assign": {"ada": "0-1"},
    "review.overlap": 0.5,
    "review.seconds_per_image": 2,
    "review.opinions": ["opinions.csv"],
    "review.reasons.net.key": "e",
    "review.reasons.net.rule": "Spots of the sun in the lens.",
    "review.hints": ["my_hints:Glare"],
    "review.gold.folder": "gold",
    "review.gold.share": 0.25,
    "export.images_per_class": 2,
    "export.strict": True,
    "export.version": "1.1.0",
    "export.date": "2026-02-01",
    "export.label_sources": ["finegrained"],
    "export.columns.file": "cameras.csv",
    "export.columns.names": ["camera"],
    "export.about.title": "Q",
    "export.about.authors": [{"name": "Writer, Jo"}],
    "export.about.licence": "CC-BY-NC-4.0",
    "export.about.doi": "10.5281/zenodo.2",
    "export.about.funding": [],
    "export.about.keywords": ["paintings"],
    "export.about.images.source": "Painted",
    "export.about.images.licence": "CC-BY-4.0",
    "export.about.images.url": "",
    "export.about.images.people": "some",
    "export.about.images.group": "pond",
    "export.about.images.access": "",
    "export.about.images.citation": "C",
    "count.accuracy": False,
    "count.published_top1": {"net": 50},
}


def param(key: str, role: str = "net") -> Change:
    """Give a key of params.yaml its other value."""

    def change(edition: Edition) -> None:
        params = yaml.safe_load(edition.params_yaml.read_text())
        *path, last = key.replace(".net.", f".{role}.").split(".")
        section = params
        for part in path:
            section = section.setdefault(part, {}) if section.get(part) is not None else section.update({part: {}})
            section = section if section is not None else {}
        section[last] = OTHER[key]
        if key.startswith("review.gold"):
            params["review"]["gold"] = {"folder": "gold", "share": 0.1} | {last: OTHER[key]}
        if key.startswith("review.reasons"):
            params["review"]["reasons"] = {"lens_flare": {"key": "x", "rule": "Spots."} | {last: OTHER[key]}}
        edition.params_yaml.write_text(yaml.safe_dump(params, sort_keys=False))

    return change


def edit(name: str, before: str, after: str) -> Change:
    def change(edition: Edition) -> None:
        text = edition.path(name).read_text()
        assert before in text
        edition.path(name).write_text(text.replace(before, after, 1))

    return change


def verdict(reviewer: str, name: str, entry: Entry) -> Change:
    return lambda edition: review(edition, reviewer, {name: entry})


def answer(auditor: str, entry: Entry) -> Change:
    """Another answer on the first image of the audit."""

    def change(edition: Edition) -> None:
        folder = verdicts_folder(edition.reviews, "net")
        path = min(folder.rglob("*.yaml"))
        review(edition, auditor, {next(iter(yaml.safe_load(path.read_text())[path.stem])): entry}, folder)

    return change


def rename_reviewer(edition: Edition) -> None:
    (edition.reviews / "ada").rename(edition.reviews / "eve")


def swap_scores(edition: Edition, *, pin: bool) -> None:
    before = sha256_of(edition.path("scores.csv"))
    edit("scores.csv", "0.9,", "0.5,")(edition)
    if pin:
        edit("params.yaml", before, sha256_of(edition.path("scores.csv")))(edition)


def pin_another(edition: Edition) -> None:
    edition.images_sha256.write_text("0" * 64 + edition.images_sha256.read_text()[64:])


FILES: dict[str, Change] = {
    "nothing": lambda edition: None,
    "a selected image rejected": verdict("ada", "dog/000.png", REJECT),
    "rejected by a second reviewer": verdict("ben", "dog/000.png", REJECT),
    "clean behind a crop": verdict("ada", "cat/003.png", CLEAN),
    "clean and not needed": verdict("ada", "dog/003.png", CLEAN),
    "rejected and not needed": verdict("ben", "dog/004.png", REJECT),
    "a crop of what is not needed": verdict("ben", "dog/004.png", CROP),
    "unsure of what is not needed": verdict("ben", "dog/004.png", {"verdict": "unsure"}),
    "agreed": verdict("ben", "dog/000.png", CLEAN),
    "the board decides": verdict("board", "dog/000.png", REJECT | {"note": "seen"}),
    "withdrawn": verdict("ada", "dog/000.png", None),
    "another reason": verdict("ada", "bird/002.png", REJECT | {"reason": "text"}),
    "another box": verdict("ada", "cat/000.png", CROP | {"crop": [0, 0, 30, 34]}),
    "no box": verdict("ada", "cat/000.png", CLEAN),
    "a note": verdict("ada", "dog/000.png", CLEAN | {"note": "x"}),
    "implied": verdict("ada", "dog/000.png", CLEAN | {"basis": "implied"}),
    "guidelines": lambda edition: (edition.reviews / "GUIDELINES.md").write_text("# R\n"),
    "a reviewer with another name": rename_reviewer,
    "an audited image is flawed": answer("cy", REJECT),
    "an answer of the audit withdrawn": answer("cy", None),
    "a second auditor": answer("di", CLEAN),
    "an auditor's note": answer("cy", CLEAN | {"note": "x"}),
    "no audit": lambda edition: shutil.rmtree(edition.reviews / "audit"),
    "names.csv": edit("names.csv", "Katze", "Kater"),
    "a name with blanks around it": edit("names.csv", "Katze", " Katze "),
    "labels.csv, another class": edit("labels.csv", "dog/004.png,dog", "dog/004.png,cat"),
    "labels.csv, the class of a selected image": edit("labels.csv", "dog/001.png,dog", "dog/001.png,cat"),
    "labels.csv, a group": edit("labels.csv", ",g3\n", ",g9\n"),
    "labels.csv, a row for no image": edit("labels.csv", "bird/000.png", "bird/009.png"),
    "scores.csv": lambda edition: swap_scores(edition, pin=False),
    "scores.csv, pinned": lambda edition: swap_scores(edition, pin=True),
    "images.sha256": lambda edition: edition.images_sha256.write_text(
        "0" * 64 + edition.images_sha256.read_text()[64:]
    ),
}


UNCHANGED = (
    "nothing",
    "clean and not needed",
    "a crop of what is not needed",
    "a note",
    "implied",
    "an auditor's note",
    "a name with blanks around it",
)


def build_anew(edition: Edition) -> str:
    """Build an edition from nothing; the error of a stage that refuses."""
    shutil.rmtree(edition.folder / "data")
    (edition.folder / "data").mkdir()
    try:
        own_edition.run(edition, *STAGES)
    except (CleansetError, OSError) as error:
        return str(error)
    return ""


def digests(folder: Path) -> dict[str, str]:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): sha256_of(path) for path in paths}


def check_change(finished: Edition, tmp_path: Path, change: Change, key: str = "") -> list[str]:
    """Check that a set is reported as outdated exactly if it is, and that DVC would export it; return the reported
    changes."""
    shutil.copytree(finished.folder.parent, tmp_path / "copy", symlinks=True)
    edition = Edition(tmp_path / "copy" / finished.folder.name)
    (edition.folder / "other_labels.csv").write_text(
        (edition.folder / "../labels.csv").read_text().replace(",g3", ",g9")
    )
    (edition.folder / "other_names.csv").write_text("class,name\nbird,Bird\ncat,Cat\ndog,Dog\n")
    (role,) = yaml.safe_load(edition.params_yaml.read_text())["models"]
    change(edition)
    try:
        said = outdated(edition.export(role))
    except CleansetError as error:
        # refused by every command
        said = [str(error)]
        assert build_anew(edition), said
        return said
    before = digests(edition.folder)
    refused = build_anew(edition)
    after = digests(edition.folder)
    folder = f"data/export/{role}"
    changed = {name for name in before | after if before.get(name) != after.get(name)}
    is_another = bool(refused) or any(name.startswith(folder) for name in changed)
    assert bool(said) == is_another, (said, refused, changed)
    if said and not refused:
        export = declared_files(edition.folder)[f"export@{role}"]
        named = {key.replace(".net.", f".{role}.")} & set(export.params["params.yaml"])
        above = [each for each in export.params["params.yaml"] if key.startswith(f"{each}.")]
        assert named or above or set(export.deps) & changed, (said, changed)
    return said


def test_every_param_has_another_value() -> None:
    assert list(OTHER) == list(leaves(Params))


@pytest.mark.parametrize("key", OTHER)
def test_each_param(key: str, finished: Edition, tmp_path: Path) -> None:
    check_change(finished, tmp_path, param(key), key)


@pytest.mark.exhaustive
@pytest.mark.parametrize("key", [key for key in OTHER if not key.startswith(("dataset.", "export.about.", "count."))])
def test_each_param_without_a_model(key: str, without_model: Edition, tmp_path: Path) -> None:
    check_change(without_model, tmp_path, param(key, "images"), key)


@pytest.mark.parametrize("name", FILES)
def test_each_file(name: str, finished: Edition, tmp_path: Path) -> None:
    assert (not check_change(finished, tmp_path, FILES[name])) == (name in UNCHANGED)
