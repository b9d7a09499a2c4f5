"""New editions: what is written, under which models, and that it is all or nothing."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cleanset.cli import main
from cleanset.dataset.folder import read_images
from cleanset.dataset.pinned import digests_of
from cleanset.edition import create
from cleanset.edition.code_link import TEMPLATE
from cleanset.edition.create import make_edition, make_own_edition
from cleanset.edition.models import models_from_texts
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.edition.pipeline import JOINT_STAGES, check_roles
from cleanset.errors import CleansetError
from tests.ten_images import drawn_image

TEXTS = ["standard=timm:resnet50.tv_in1k", "robust=robustbench:Linf/Salman2020Do_R50"]


def test_the_models_are_those_given(tmp_path: Path) -> None:
    make_edition(tmp_path / "mine", models_from_texts(TEXTS))
    params = read_params(tmp_path / "mine")
    named = {role: (model.source, model.name, model.threat_model) for role, model in params.models.items()}
    assert named == {
        "standard": ("timm", "resnet50.tv_in1k", None),
        "robust": ("robustbench", "Salman2020Do_R50", "Linf"),
    }
    assert list(named) == ["standard", "robust"]
    assert params.count.published_top1 == {}
    check_roles(Edition(tmp_path / "mine"), named)
    deps = (tmp_path / "mine" / "dvc.yaml").read_text()
    assert deps.count("/robust.parquet\n") == deps.count("/standard.parquet\n") == sum(map(len, JOINT_STAGES.values()))
    assert "norm_robust" not in deps
    assert (tmp_path / "mine" / params.root / "src" / "cleanset" / "cli.py").is_file()


def test_without_models_they_are_those_of_the_imagenet_edition(tmp_path: Path, repository: Path) -> None:
    make_edition(tmp_path / "mine")
    original, made = read_params(repository / "imagenet"), read_params(tmp_path / "mine")
    assert made.model_copy(update={"root": ".."}) == original
    assert (tmp_path / "mine" / "dvc.yaml").read_bytes() == (repository / "imagenet" / "dvc.yaml").read_bytes()


def test_own_images_of_a_network_and_a_random_order(tmp_path: Path) -> None:
    """What a random order cannot tell decides the params of all; half of a short edge limits the crops."""
    for seed, key in enumerate(("cat", "dog")):
        (tmp_path / "images" / key).mkdir(parents=True)
        drawn_image(20, 30, seed=seed).save(tmp_path / "images" / key / "1.png")
    models = models_from_texts(["a=random:0", "b=timm:resnet18"])
    found = read_images(tmp_path / "images", None, None)
    make_own_edition(tmp_path / "mine", tmp_path / "images", found, models, {}, digests_of(found.locations))
    params = read_params(tmp_path / "mine")
    assert list(params.models) == ["a", "b"]
    assert (params.review.wrong_after_crop, params.count.accuracy) == ("accept", False)
    assert params.review.min_crop_pixels == 10


@pytest.mark.long
@pytest.mark.slow
def test_it_is_what_dvc_works_in(tmp_path: Path) -> None:
    """Outside of any git repository, with a cache of its own."""
    folder = tmp_path / "mine"
    folder.mkdir()
    make_edition(folder, models_from_texts(TEXTS))
    listed = subprocess.run(["dvc", "stage", "list"], cwd=folder, capture_output=True, text=True, check=True)
    assert "score@robust" in listed.stdout
    cache = subprocess.run(["dvc", "cache", "dir"], cwd=folder, capture_output=True, text=True, check=True)
    assert Path(cache.stdout.strip()) == folder / ".dvc" / "cache"
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.slow
def test_inside_a_git_repository(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    make_edition(tmp_path / "editions" / "mine")
    status = subprocess.run(
        ["dvc", "status"], cwd=tmp_path / "editions" / "mine", capture_output=True, text=True, check=False
    )
    assert "not a git repository" not in status.stderr
    assert "no_scm" not in (tmp_path / "editions" / "mine" / ".dvc" / "config").read_text()


def test_no_program_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    make_edition(tmp_path / "mine")
    assert (tmp_path / "mine" / ".dvc" / "config").is_file()


def test_nothing_is_left_when_it_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copyfile", full)
        with pytest.raises(OSError, match="No space left"):
            make_edition(tmp_path / "mine")
    assert list(tmp_path.iterdir()) == []
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(tmp_path))  # no git
        with pytest.raises(CleansetError, match="expected the program git"):
            make_edition(tmp_path / "mine", with_git=True)
    assert list(tmp_path.iterdir()) == []
    make_edition(tmp_path / "mine")
    with pytest.raises(CleansetError, match="expected a new or empty folder"):
        make_edition(tmp_path / "mine")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("robust=timm:no_such_net", "'no_such_net': .*expected a model name of timm"),
        ("Robust=timm:resnet18", r"models\.Robust"),
        ("robust", "'robust': expected ROLE=timm:NAME, ROLE=torchvision:NAME.WEIGHTS or"),
    ],
)
def test_a_model_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, message: str) -> None:
    monkeypatch.setattr(sys, "argv", ["cleanset", "edition", str(tmp_path / "mine"), "--model", model])
    with pytest.raises(SystemExit, match=f"^error: .*{message}"):
        main()
    assert list(tmp_path.iterdir()) == []


def changed_template(monkeypatch: pytest.MonkeyPatch, name: str, old: str, new: str) -> None:
    """Let one file of the ImageNet edition have another text."""
    read = create._template

    def changed(each: str, folder: Path = TEMPLATE) -> str:
        text = read(each, folder)
        if each != name:
            return text
        assert old in text
        return text.replace(old, new, 1)

    monkeypatch.setattr(create, "_template", changed)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("params.yaml", "# The ImageNet edition", "\n# The ImageNet edition"),
        ("studies/robustness/params.yaml", "    trained_on: ", "    trained_on : "),
        ("studies/robustness/params.yaml", "    reference: standard ", "    reference:  standard "),
        (".dvc/config", "[cache]", "[ cache ]"),
        (".dvc/config", "[core]", "[ core ]"),
    ],
)
def test_a_template_in_another_layout_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, old: str, new: str
) -> None:
    changed_template(monkeypatch, name, old, new)
    with pytest.raises(CleansetError, match=rf"{name}: not in the layout that a new edition is made from; expected"):
        make_edition(tmp_path / "mine", models_from_texts(TEXTS))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("dvc.yaml", "stages:\n  preprocess:", "stages:\n\n  preprocess:"),
        ("studies/training/dvc.yaml", "      - ${data.images}", "    - ${data.images}"),
        (".dvc/config", "    remote = ", "    remote="),
    ],
)
def test_so_is_one_for_own_images(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, old: str, new: str
) -> None:
    for seed, key in enumerate(("cat", "dog")):
        (tmp_path / "images" / key).mkdir(parents=True)
        drawn_image(20, 30, seed=seed).save(tmp_path / "images" / key / "1.png")
    found = read_images(tmp_path / "images", None, None)
    changed_template(monkeypatch, name, old, new)
    models = models_from_texts(["a=timm:resnet18"])
    with pytest.raises(CleansetError, match=rf"{name}: not in the layout that a new edition is made from; expected"):
        make_own_edition(tmp_path / "mine", tmp_path / "images", found, models, {}, digests_of(found.locations))
    assert not (tmp_path / "mine").exists()


def test_values_are_set_whatever_the_spacing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed_template(monkeypatch, "params.yaml", "\nprotocol: as_written", "\nprotocol:   as_written  # of two")
    make_edition(tmp_path / "mine", models_from_texts(["a=random:0"]))
    params = read_params(tmp_path / "mine")
    assert (params.protocol, params.review.wrong_after_crop, params.count.accuracy) == ("as_published", "accept", False)
    assert "\nprotocol:   as_published  # of two\n" in (tmp_path / "mine" / "params.yaml").read_text()
