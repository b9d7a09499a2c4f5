"""The digests of changed images, and the command that makes the images again."""

import json
import shutil
from collections.abc import Generator, Iterable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from cleanset.classes import imagenet
from cleanset.errors import CleansetError
from cleanset.plumbing.files import sha256
from cleanset.scoring import validity
from cleanset.studies.robustness import digests as stage
from cleanset.studies.robustness import image_sets as images
from cleanset.studies.robustness.answers import installed_versions
from cleanset.studies.robustness.digests import (
    DIGESTS,
    MAX_SHOWN,
    NAMED_DIGESTS,
    VERSIONS,
    DigestRun,
    DigestVerification,
    TakenDigests,
    digests_in,
    read_versions,
    verify,
)
from cleanset.studies.robustness.families import FAMILIES, ChangePlan, StudyParams, change_plan, family_named
from cleanset.studies.robustness.family import Changing
from cleanset.studies.robustness.images import ChangeName, Sources, Study
from cleanset.tables import write_table
from tests.checkouts import Checkout
from tests.evaluation.compare.command import cleanset
from tests.studies.robustness.drawn import drawn
from tests.studies.robustness.few_classes import keep_classes
from tests.studies.robustness.sources import sources_of

pytestmark = pytest.mark.slow

CHANGES = {"names": ["gaussian_noise", "impulse_noise", "fog", "contrast"], "severities": [1, 5]}


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    return sources_of(tmp_path)


def digest_run(sources: Sources, workers: int, jpeg: int | None = 85) -> DigestRun:
    wanted = StudyParams.model_validate({"jpeg": jpeg, "seed": 3, "corruptions": CHANGES})
    return DigestRun(change_plan(family_named("corruptions"), sources, wanted), workers)


def test_order_and_processes_change_no_digest(sources: Sources, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are those of the pixels that models see, rows of red, green and blue, made in this process."""
    monkeypatch.setattr(stage, "BATCH_SIZE", 4)
    run = digest_run(sources, 2)
    changed, names = run.plan.changed_images(), run.plan.names()
    expected = {name: sha256(np.asarray(changed(name)).tobytes()) for name in names}
    assert len(set(expected.values())) == len(names) == 2 * (1 + 4 * 2)
    mixed = names[::2] + names[::-2]
    assert dict(zip(mixed, run.digests(mixed), strict=True)) == expected


def test_of_which_pixels(sources: Sources) -> None:
    """An unchanged image without the JPEG step: rows of red, green and blue, of the crop after a resize to 256."""
    with Image.open(sources.files["1.png"].path) as image:
        pixels = np.array(image.resize((256, 256), Image.Resampling.BILINEAR))[16:240, 16:240]
    name = ChangeName("1.png", "unchanged", 0)
    assert list(digest_run(sources, 1, jpeg=None).digests([name])) == [sha256(pixels.tobytes())]


def test_finished_shards_are_kept(sources: Sources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = digest_run(sources, 1)
    made: list[ChangeName] = []

    def counted(_: DigestRun, names: Iterable[ChangeName]) -> Generator[str, None, None]:
        for name in names:
            made.append(name)
            yield sha256(str(name).encode())

    monkeypatch.setattr(DigestRun, "digests", counted)
    run.complete(tmp_path / "shards")
    assert made == run.plan.names()
    again = run.complete(tmp_path / "shards")
    assert len(made) == len(run.plan.names())
    assert again.table().columns.tolist() == NAMED_DIGESTS.names
    other = digest_run(sources, 1, jpeg=84).shards(tmp_path / "shards")
    assert other.missing == [0]
    run.complete(tmp_path / "shards")
    monkeypatch.setattr(validity, "code_of", lambda *_: "other code")
    assert run.shards(tmp_path / "shards").missing == [0]


def test_taken_digests_are_those_of_the_stage(sources: Sources, tmp_path: Path) -> None:
    """In any order; the shards are kept until all of them are known."""
    run = digest_run(sources, 1)
    names = run.plan.names()
    expected = {name: sha256(str(name).encode()) for name in names}
    taken = TakenDigests(run.shards(tmp_path / "shards"))
    for some in (names[5:], names[:3]):
        taken.take(some, [expected[name] for name in some])
        assert run.shards(tmp_path / "shards").missing == [0]
    taken.take(names[3:5], [expected[name] for name in names[3:5]])
    shards = run.shards(tmp_path / "shards")
    assert shards.missing == []
    assert digests_in(shards.table()) == expected
    for known in ({}, expected | {names[0]: "0" * 64}):
        taken.remove_known(known)
        assert (tmp_path / "shards").is_dir()
    taken.remove_known(expected)
    assert not (tmp_path / "shards").exists()


def test_an_image_that_has_changed_is_reported(sources: Sources) -> None:
    run = digest_run(sources, 1)
    path = sources.files["2.png"].path
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(CleansetError, match=r"2\.png: SHA-256 .* as in the manifest"):
        list(run.digests(run.plan.names()))


@pytest.mark.parametrize(
    ("text", "message"),
    [("[]", "expected an object; found"), ('{"numpy": 2}', "numpy: expected a string; found 2"), ("{", "JSON")],
)
def test_versions_that_are_none(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / VERSIONS).write_text(text)
    with pytest.raises(CleansetError, match=f"{message}.*dvc checkout digests"):
        read_versions(tmp_path / VERSIONS)


def test_what_is_printed() -> None:
    different = [f"{number:02} fog 01: a...; expected b..." for number in range(MAX_SHOWN + 2)]
    versions = {"numpy": "2.4.6", "scipy": "1.17.1"}
    lines = list(DigestVerification(1000, different, versions, versions | {"numpy": "2.5.0"}).lines())
    assert lines[0] == "00 fog 01: a...; expected b..."
    assert lines[MAX_SHOWN:] == [
        "and 2 more",
        "22 of 1,000 changed images differ",
        "numpy 2.5.0; the digests were made with 2.4.6",
        "scipy 1.17.1",
    ]
    assert next(DigestVerification(5, [], versions, versions).lines()) == "all 5 changed images are the same"


def test_every_library_is_there() -> None:
    assert "not installed" not in installed_versions().values()


def test_families_have_their_columns() -> None:
    assert set(DIGESTS) == {family.name for family in FAMILIES}
    assert [table.key for table in DIGESTS.values()] == [
        ("file", "change", "severity"), ("file", "change", "frame"), ("file", "change"), ("file", "change"),
    ]  # fmt: skip


def test_a_familys_names() -> None:
    images = pd.DataFrame({"file": ["b.JPEG", "a.JPEG"]})
    family = ChangePlan(
        family=family_named("perturbations"),
        images=images,
        changes=[("scale", 0), ("scale", 10)],
        changing=Changing(lambda *_: drawn(), {}),
        files={},
        params=StudyParams.model_validate({}),
        classes=imagenet(),
    )
    assert list(map(str, family.names())) == [
        "a.JPEG scale 00", "a.JPEG scale 10", "a.JPEG unchanged 00",
        "b.JPEG scale 00", "b.JPEG scale 10", "b.JPEG unchanged 00",
    ]  # fmt: skip


@pytest.mark.long
def test_verify(built: Checkout, tmp_path: Path) -> None:
    """On a study of one corruption; then with a changed digest, then without one image, then without any."""
    clone = built.clone_with_data(tmp_path / "cleanset")
    keep_classes(clone.folder)
    study = Study(clone.folder / "studies" / "robustness")
    study.params_yaml.write_text("corruptions: {names: [contrast], severities: [2]}\n")
    images.run(study)
    stage.run(study)
    assert not list(study.folder.rglob("*partial*"))
    lines = list(verify(study, workers=1).lines())
    # 21 images, in three families with one change or none and the unchanged image; and none has a mask
    assert lines[0] == "all 84 changed images are the same"
    assert lines[1:] == [f"{library} {version}" for library, version in installed_versions().items()]
    path = study.digests / "corruptions.parquet"
    table = pd.read_parquet(path)
    name = table[["file", "change", "severity"]].to_numpy().tolist()[5]
    table.loc[5, "sha256"] = "0" * 64
    rewritten(table, path)
    versions = study.digests / VERSIONS
    versions.write_text(json.dumps(json.loads(versions.read_text()) | {"numpy": "1.0.0"}))
    done = cleanset("robustness", "verify", cwd=study.folder)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"corruptions {name[0]} {name[1]} {name[2]:02}: ")
    assert lines[0].endswith("; expected 000000000000...")
    assert lines[1] == "1 of 84 changed images differ"
    assert "; the digests were made with 1.0.0" in next(line for line in lines if line.startswith("numpy "))
    rewritten(table[1:], path)
    with pytest.raises(
        CleansetError, match=r"corruptions\.parquet: made from other images or changes than the study's"
    ):
        verify(study)
    shutil.rmtree(study.digests)
    with pytest.raises(CleansetError, match="data/digests: missing; expected the output of stage digests"):
        verify(study)


def rewritten(table: pd.DataFrame, path: Path) -> None:
    """Write rows as the stage does."""
    write_table(path, table, DIGESTS["corruptions"], imagenet())
