"""A disagreement between params.yaml and the deps of dvc.yaml is one line."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition, images_are_official
from cleanset.edition.pipeline import JOINT_STAGES, check_params_named, check_roles
from cleanset.edition.versions import check_versions
from cleanset.errors import CleansetError
from cleanset.loading import load
from tests.ten_images import Made

ROLES = ("standard", "norm_robust", "corruption_robust")


def joint_lines(text: str) -> list[str]:
    return re.findall(r"(?m)^      - data/\w+/(?:standard|norm_robust|corruption_robust)\.parquet\n", text)


@pytest.fixture
def folder(repository: Path, tmp_path: Path) -> Path:
    shutil.copyfile(repository / "dvc.yaml", tmp_path / "dvc.yaml")
    return tmp_path


def test_the_editions_agree(repository: Path) -> None:
    for edition in (repository, repository / "imagenet", repository / "imagenet-published"):
        check_roles(Edition(edition), read_params(edition).models)


def test_every_file_of_a_model_is_missed(folder: Path) -> None:
    text = (folder / "dvc.yaml").read_text()
    lines = joint_lines(text)
    assert len(lines) == 3 * sum(map(len, JOINT_STAGES.values()))
    starts = [match.start() for line in dict.fromkeys(lines) for match in re.finditer(re.escape(line), text)]
    for start in starts:
        line = text[start : text.index("\n", start) + 1]
        (folder / "dvc.yaml").write_text(text[:start] + text[start + len(line) :])
        with pytest.raises(CleansetError, match=rf"lack {line.strip()[2:]}, of a model in params\.yaml: add it"):
            check_roles(Edition(folder), ROLES)


def test_every_surplus_file_is_reported(folder: Path) -> None:
    text = (folder / "dvc.yaml").read_text()
    for line in dict.fromkeys(joint_lines(text)):
        (folder / "dvc.yaml").write_text(text.replace(line, line + "      - data/scores/fourth.json\n", 1))
        with pytest.raises(
            CleansetError, match=r"the deps of \w+ (lack data/scores/\w+\.json|name data/scores/fourth\.json)"
        ):
            check_roles(Edition(folder), ROLES)
    (folder / "dvc.yaml").write_text(text)
    with pytest.raises(
        CleansetError,
        match=r"^\S+dvc\.yaml: the deps of intersect name data/scores/standard\.parquet, of a model that "
        r"params\.yaml lacks: remove it$",
    ):
        check_roles(Edition(folder), ROLES[1:])


def test_every_missing_param_is_reported(tmp_path: Path) -> None:
    """With the first stage that needs it; a section is missing if all of its keys are."""
    (tmp_path / "params.yaml").write_text("review: {seed: 1}\nmodels: {one: {name: a}}\n")
    first, second = "[review.policy, count]", '[count, export, export.date, "models.${item.model}.source"]'
    (tmp_path / "dvc.yaml").write_text(f"stages:\n  a: {{params: {first}}}\n  b: {{params: {second}}}\n")
    with pytest.raises(CleansetError) as error:
        check_params_named(Edition(tmp_path))
    assert str(error.value) == (
        f"{tmp_path}/params.yaml: no review.policy, count, export.date, models.one.source, which stages of "
        f"{tmp_path}/dvc.yaml name (a, b): add them, as in imagenet/params.yaml"
    )


def test_preprocess_says_it_before_anything_is_read(made: Made, repository: Path) -> None:
    made.archives()
    shutil.copyfile(repository / "dvc.yaml", made.folder / "dvc.yaml")
    made.fails(
        "dvc.yaml: the deps of intersect name data/scores/corruption_robust.parquet, of a model that params.yaml "
        "lacks: remove it"
    )


@pytest.mark.parametrize(
    "read",
    [
        lambda folder: check_roles(Edition(folder), ROLES),
        lambda folder: check_params_named(Edition(folder)),
        lambda folder: check_versions(Edition(folder), ".", "score"),
        lambda folder: images_are_official(Edition(folder), "images.tar"),
        lambda folder: load("standard", folder),
    ],
)
def test_a_broken_link_does_not_count_as_absent(read: Callable[[Path], object], tmp_path: Path) -> None:
    for name in ("dvc.yaml", "raw.md5", "requirements.txt", "manifest.csv"):
        (tmp_path / name).symlink_to("nowhere")
    with pytest.raises(CleansetError, match="broken symlink to nowhere; restore its target, or remove the link"):
        read(tmp_path)
