"""Files that one command writes and another one reads: a changed one is refused, or changes no result.

The list is the table in docs/formats.md.
"""

import io
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import cleanset
from cleanset.classes import imagenet
from cleanset.dataset.folder import read_images
from cleanset.dataset.pinned import check_pinned, digests_of, pinned_text, read_pinned
from cleanset.edition.params import Model
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.evaluation.arguments import Arguments
from cleanset.evaluation.compare.releases import diff
from cleanset.evaluation.compare.result_files import read_results
from cleanset.evaluation.evaluate import run as evaluate
from cleanset.evaluation.sets import open_set
from cleanset.plumbing.files import sha256
from cleanset.review.audit import SetImage, new_plan
from cleanset.review.audit_files import read_plan, write_plan
from cleanset.scoring.downloads import digest_file
from cleanset.scoring.models import load_model, weights_path
from cleanset.scoring.shards import Shards
from cleanset.studies.attacks.attacking import Attacking
from cleanset.studies.attacks.evaluation import run as attack
from cleanset.studies.attacks.request import AttackRequest, attack_params
from cleanset.studies.realness.plan_files import read_plan as read_study_plan
from cleanset.studies.robustness.digests import DigestRun, ShownPixels
from cleanset.studies.robustness.families import StudyParams, change_plan, family_named
from tests.evaluation.conftest import COLOURS, MODULE, draw
from tests.sets.conftest import make_edition
from tests.studies.realness.conftest import SIZES, command
from tests.studies.robustness.sources import sources_of
from tests.ten_images import drawn_image

pytestmark = pytest.mark.slow

ELSEWHERE = {
    "`data/` of an edition or a study, except for files listed below": "tests/project/test_stage_outputs.py",
    "`metrics/`, `tables.md5`": "tests/edition/test_doctor.py",
    "`scores.csv`, published lists": "tests/edition/test_lists.py",
    "tar of a release": "tests/sets/test_verify.py",
    "cache of fetched editions": "tests/remotes/test_damage.py",
    "`weights.safetensors`, `record.json` of a run": "tests/studies/training/test_entries.py",
    "`generated/images/` of a study": "tests/studies/robustness/scenarios/test_generating.py",
}
"""The rows that other tests change, where reading takes DVC, a network or a training."""


class Files(NamedTuple):
    """The files of a row in a folder, and what a command reads from them.

    `paths`: by file what another kind of change replaces, and by what; for a Parquet file, the column of flags that it
    inverts.
    """

    paths: Mapping[str, tuple[str, str]]
    read: Callable[[Path], object]


Maker = Callable[[Path], Files]
MAKERS: dict[str, Maker] = {}
"""What writes the files, by the row's first cell."""


def of_row(cell: str) -> Callable[[Maker], Maker]:
    def add(maker: Maker) -> Maker:
        MAKERS[cell] = maker
        return maker

    return add


@of_row("`*.partial-shards/`, `data/runs/*.partial/`")
def shards(folder: Path) -> Files:
    ids = [f"ILSVRC2012_val_{number:08}" for number in range(1, 7)]
    top5 = {"top5_class": [[0, 1, 2, 3, 4]] * 3, "top5_probability": [[0.5, 0.25, 0.125, 0.0, 0.0]] * 3}

    def opened(at: Path) -> Shards:
        return Shards(at / "scores.partial-shards", "0" * 32, ids, 3, classes=imagenet(), min_images=3)

    def finished(at: Path) -> list[object]:
        """The scores; a missing shard is computed again."""
        found = opened(at)
        for number in found.missing:
            found.keep(number, pd.DataFrame({"image_id": found.image_ids(number), **top5, "log_odds": number + 1.5}))
        return [str(table.to_dict("list")) for table in found.finished()]

    finished(folder)
    return Files({f"scores.partial-shards/{'0' * 32}/{number:05}.parquet": ("", "") for number in range(2)}, finished)


@of_row("`images.sha256`")
def own_images(folder: Path) -> Files:
    for name in ("cat/1.png", "cat/2.png", "dog/1.png", "dog/2.png"):
        (folder / "photos" / name).parent.mkdir(parents=True, exist_ok=True)
        drawn_image(20, 20, seed=len(name) + ord(name[0]) + ord(name[4])).save(folder / "photos" / name)
    found = digests_of(read_images(folder / "photos", None, None).locations)
    (folder / "images.sha256").write_text(pinned_text(found))
    # the line of `preprocess` names the folder of the images, and the file in what it expects
    read = lambda at: check_pinned("photos", read_pinned(at / "images.sha256"), found)  # noqa: E731
    return Files({"images.sha256": ("cat/1.png", "cat/3.png")}, read)


@of_row("`data/weights/`")
def weights(folder: Path) -> Files:
    model = Model(source="timm", name="test_efficientnet.r160_in1k")
    path = weights_path(model, folder)
    path.parent.mkdir(parents=True)
    shutil.copy(Path("sample/weights/standard.safetensors").resolve(), path)
    digest_file(path).write_text(f"{sha256(path.read_bytes())}  {path.name}\n")
    names = {path.relative_to(folder).as_posix(): ("", "")}
    return Files(names, lambda at: load_model(model, at).weights_sha256)


@of_row("`reviews/audit/<model>.yaml`, `<model>.csv`")
def audit(folder: Path) -> Files:
    images = [SetImage(number % 3, f"ILSVRC2012_val_{number:08}", None) for number in range(1, 20)]
    write_plan(folder, new_plan(model="standard", kind="fixed", seed="7", drawn=12, images=images, classes=imagenet()))
    names = {"audit/standard.yaml": ("fixed", "open"), "audit/standard.csv": ("00000004", "00000024")}
    return Files(names, lambda at: read_plan(at, "standard", imagenet()))


@of_row("folder of a set or a release")
def finished_set(folder: Path) -> Files:
    whole = make_edition(folder / "edition").export("standard")
    shutil.copytree(whole, folder / "set")
    shutil.copytree(whole, folder / "other")
    shutil.rmtree(folder / "edition")
    image = "n02119789/ILSVRC2012_val_00000004.JPEG"

    def read(at: Path) -> object:
        """As `load`, `evaluate` and `diff` do."""
        loaded = cleanset.load("standard", at / "set")
        opened = open_set(str(at / "set"), Edition(at), [])
        compared = diff(at / "other", at / "set")
        pixels = [image.tobytes() for image, _, _ in loaded]
        compared.content.pop("a"), compared.content.pop("b")
        return loaded.entries, loaded.notices, pixels, list(opened.items), opened.notes, compared.content

    names = {
        "set/manifest.csv": ("top5", "reserve"),
        "set/rejected.csv": ("blur", "noise"),
        "set/croissant.json": ("1.2.3", "1.2.4"),
        "set/checksums.sha256": ("manifest", "manifold"),
        f"set/{image}": ("", ""),
    }
    return Files(names, read)


@contextmanager
def module(folder: Path) -> Iterator[Path]:
    """A folder with drawn images and a module with models, which is the current folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "path", [str(folder), *sys.path])
        yield folder
    sys.modules.pop("mine", None)


def images_and_module(folder: Path) -> None:
    for name, colour in COLOURS.items():
        draw(folder / "set" / name, colour)
    (folder / "mine.py").write_text(MODULE)


def evaluated(folder: Path) -> object:
    with module(folder):
        evaluate(Edition(folder), Arguments("set", ["mine:named"], device="cpu", out=Path("out")))
    return json.loads((folder / "out" / "results.json").read_text())


@of_row("`results.json`, `attack_results.json`")
def results(folder: Path) -> Files:
    images_and_module(folder)
    evaluated(folder)
    measure = '"mean_confidence": 0', '"mean_confidence": 1'
    return Files({"out/results.json": measure}, lambda at: read_results(at / "out").measured)


@of_row("`<model>.parquet`, `<model>.json`")
def predictions(folder: Path) -> Files:
    images_and_module(folder)
    evaluated(folder)
    record = '"deterministic": true', '"deterministic": false'
    return Files({"out/mine_named.parquet": ("correct", ""), "out/mine_named.json": record}, evaluated)


@of_row("`digests/<family>.txt`")
def digests(folder: Path) -> Files:
    params = StudyParams.model_validate({"corruptions": {"names": ["fog", "contrast"], "severities": [1]}})
    sources = sources_of(folder / "images")
    run = DigestRun(change_plan(family_named("corruptions"), sources, params), 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DigestRun, "digests", lambda _, names: (sha256(str(name).encode()) for name in names))
        made = ShownPixels(folder / "corruptions.txt", run).finish()
    # None: the images are made again
    read = lambda at: ShownPixels(at / "corruptions.txt", run).stored() or made  # noqa: E731
    return Files({"corruptions.txt": ("1.png fog", "3.png fog")}, read)


@of_row("`attacks/<attack>/<model>/`")
def attacked(folder: Path) -> Files:
    images_and_module(folder)

    def run(at: Path) -> str:
        with module(at):
            wanted = Arguments("set", ["mine:named"], device="cpu")
            attack(AttackRequest.read(Edition(at), wanted, attack_params("none"), at / "out", warnings=False))
        return (at / "out" / "attack_results.json").read_text()

    def read(at: Path) -> object:
        """The results; those of the first run stand for what is computed again."""
        again = lambda *_, **__: shutil.copytree(folder / "out", at / "out", dirs_exist_ok=True)  # noqa: E731
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Attacking, "run", again)
            return run(at)

    run(folder)
    at = "out/attacks/none/mine_named"
    image = next((folder / at / "images").rglob("*.png")).relative_to(folder).as_posix()
    record = '"judged_anew": null', '"judged_anew": {"sign": "depends_on_others", "text": "two of them"}'
    return Files({f"{at}/record.json": record, f"{at}/attacked.parquet": ("was_correct", ""), image: ("", "")}, read)


def plan(folder: Path) -> None:
    export = make_edition(folder / "edition").export("standard")
    (folder / "attacked").mkdir()
    for path in export.glob("n*/*"):
        drawn_image(40, 40, seed=len(path.name)).save(folder / "attacked" / f"{path.name}.png")
    command("plan", "--set", export, "--attacked", folder / "attacked", "--out", folder / "plan", *SIZES)


@of_row("`key.csv`, `trials.csv`, `page/images/` of a plan")
def plan_files(folder: Path) -> Files:
    plan(folder)
    image = next((folder / "plan" / "page" / "images").iterdir()).name
    names = {"plan/key.csv": ("modified", "real"), "plan/trials.csv": ("attention", "real")}
    return Files(names | {f"plan/page/images/{image}": ("", "")}, lambda at: read_study_plan(at / "plan", images=True))


@of_row("`plan.json`")
def plan_json(folder: Path) -> Files:
    plan(folder)
    names = {"plan/plan.json": ('"shown_milliseconds": 300', '"shown_milliseconds": 0')}
    return Files(names, lambda at: read_study_plan(at / "plan", images=True))


def rows(repository: Path) -> dict[str, str]:
    """Whether people may edit the files of each row, by the row's first cell."""
    text = (repository / "docs" / "formats.md").read_text().split("## Files between two commands")[1]
    cells = [line.strip("| ").split(" | ") for line in text.partition("\n## ")[0].splitlines() if line.startswith("| ")]
    return {row[0]: row[-1] for row in cells[1:]}


def test_each_file_that_nobody_may_edit_is_changed_in_a_test(repository: Path) -> None:
    wanted = {cell for cell, edited in rows(repository).items() if edited.startswith("no")}
    assert wanted == MAKERS.keys() | ELSEWHERE.keys()
    assert not MAKERS.keys() & ELSEWHERE.keys()
    assert [path for path in ELSEWHERE.values() if not (repository / path).is_file()] == []


def changes(data: bytes, old: str, new: str) -> Iterator[tuple[str, bytes]]:
    """Yield the kind of each change, and the changed bytes; for a binary file, single bytes alone."""
    if old and not new:
        table = pq.read_table(pa.BufferReader(data))
        place = table.column_names.index(old)
        sink = io.BytesIO()
        pq.write_table(table.set_column(place, table.schema.field(old), pc.invert(table[old])), sink)
        yield "flag", sink.getvalue()
    if not new:
        for place in range(0, len(data), max(1, len(data) // 7)):
            yield "byte", data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        return
    lines = data.decode().splitlines(keepends=True)
    middle = next(place for place in range(len(lines) // 2, len(lines)) if re.search("[0-9a-f]", lines[place]))
    digit = re.sub("[0-9a-f]", lambda found: "1" if found[0] != "1" else "2", lines[middle], count=1)
    swapped = [*lines[: middle - 1], lines[middle], lines[middle - 1], *lines[middle + 1 :]]
    assert data.decode().count(old)
    yield "byte", "".join([*lines[:middle], digit, *lines[middle + 1 :]]).encode()
    yield "line", "".join([*lines[:middle], *lines[middle + 1 :]]).encode()
    yield "order", "".join(swapped).encode()
    yield "name", data.decode().replace(old, new, 1).encode()


LONG = {
    "`attacks/<attack>/<model>/`",
    "`<model>.parquet`, `<model>.json`",
    "`key.csv`, `trials.csv`, `page/images/` of a plan",
}


@pytest.mark.parametrize(
    "row", [pytest.param(each, marks=pytest.mark.long) if each in LONG else each for each in MAKERS]
)
def test_a_changed_file_is_refused_or_changes_no_result(
    row: str, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository)
    (tmp_path / "made").mkdir()
    paths, read = MAKERS[row](tmp_path / "made")
    at = tmp_path / "changed"
    shutil.copytree(tmp_path / "made", at)
    expected = read(at)
    for name, (old, new) in paths.items():
        data = (tmp_path / "made" / name).read_bytes()
        for kind, changed in changes(data, old, new):
            shutil.rmtree(at)
            shutil.copytree(tmp_path / "made", at)
            (at / name).write_bytes(changed)
            found = outcome(read, at)
            if isinstance(found, CleansetError):
                assert "\n" not in str(found)
                assert Path(name).name in str(found) or "page/images: changed" in str(found)
            else:
                assert found == expected, f"{name}: a changed {kind} gives another result"


def outcome(read: Callable[[Path], object], at: Path) -> object:
    """What is read, or the error that it is refused with."""
    try:
        return read(at)
    except CleansetError as error:
        return error
