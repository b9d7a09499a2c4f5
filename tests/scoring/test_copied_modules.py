"""The module of a custom model is copied into an edition and pinned; other code is refused until it is taken."""

import json
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from cleanset.classes import imagenet
from cleanset.cli import main
from cleanset.edition.params import Model, read_params
from cleanset.errors import CleansetError
from cleanset.evaluation.user_model import load_member
from cleanset.scoring.copied_modules import with_modules
from tests.ten_images import drawn_image

pytestmark = pytest.mark.slow

NETS = """import torch

from parts import size


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 1000)

    def forward(self, pixels):
        return self.linear(pixels.mean((2, 3)))


def make():
    return Net(), f"timm-bicubic-{size}-{size}"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with two classes of images and the module nets, which is the working folder."""
    for seed, key in enumerate(("cat", "dog")):
        (tmp_path / "photos" / key).mkdir(parents=True)
        drawn_image(40, 40, seed=seed).save(tmp_path / "photos" / key / "1.png")
    (tmp_path / "nets.py").write_text(NETS)
    (tmp_path / "parts.py").write_text("size = 32\n")
    (tmp_path / "unused.py").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name in ("nets", "parts"):
        sys.modules.pop(name, None)


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    """Run a command; the code with which it ends, or its error."""
    monkeypatch.setattr(sys, "argv", ["cleanset", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return str(ended.value)


def digest_of(folder: Path) -> str:
    """The pin of nets and parts: the SHA-256 of the table of theirs, as JSON."""
    digests = {name: sha256((folder / name).read_bytes()).hexdigest() for name in ("nets.py", "parts.py")}
    return sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest()


@pytest.mark.long
def test_a_new_edition_gets_the_code(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ("edition", "mine", "--images", "photos", "--model", "net=module:nets:make")
    assert run(monkeypatch, *given) == "0"
    said = "Copied and pinned: nets.py, parts.py\n"
    assert said in capsys.readouterr().out
    mine = folder / "mine"
    assert sorted(path.name for path in mine.glob("*.py")) == ["nets.py", "parts.py"]
    assert (mine / "nets.py").read_text() == NETS
    model = read_params(mine).models["net"]
    assert model.module_sha256 == digest_of(mine)
    assert "- The model `net`: `nets:make`, a network of the code in this folder.\n" in (mine / "README.md").read_text()

    (mine / "parts.py").write_text("size = 64\n")
    with pytest.raises(CleansetError, match=rf"^nets: SHA-256 {digest_of(mine)} of it and its imports in .*/mine, "):
        load_member(model, mine, imagenet())
    assert run(monkeypatch, "models", "--pin", "--edition", "mine", "--json") == "0"
    (listed,) = json.loads(capsys.readouterr().out)
    assert (listed["found"], listed["pinned"], listed["state"]) == (digest_of(mine), digest_of(mine), "there")
    (mine / "parts.py").write_text("size = 48\n")
    assert run(monkeypatch, "models", "--edition", "mine", "--json") == "0"
    assert json.loads(capsys.readouterr().out)[0]["state"] == "other bytes"
    (mine / "parts.py").write_text("size = 64\n")
    assert load_member(read_params(mine).models["net"], mine, imagenet()).preprocessing.name == "timm-bicubic-64-64"


@pytest.mark.long
def test_a_model_is_added(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "edition", "mine", "--images", "photos") == "0"
    added = ("models", "--edition", "mine", "--add", "net=module:nets:make")
    mine = folder / "mine"
    (mine / "parts.py").write_text("size = 1\n")
    assert run(monkeypatch, *added).startswith("error: mine/parts.py: differs from parts.py; expected the same file,")
    assert list(read_params(mine).models) == ["images"]
    (mine / "parts.py").unlink()
    capsys.readouterr()
    assert run(monkeypatch, *added) == "0"
    assert capsys.readouterr().err == ("added net; next: dvc repro\nCopied and pinned: nets.py, parts.py\n")
    assert read_params(mine).models["net"].module_sha256 == digest_of(mine)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "other:make",
            r"^one=module:other:make: no module other in .* or installed; expected other\.py in this ",
        ),
        ("data.nets:make", r"^data/nets\.py: in a folder that an edition keeps for its own files; expected another$"),
    ],
)
def test_what_cannot_be_copied(folder: Path, name: str, message: str) -> None:
    (folder / "data").mkdir()
    (folder / "data" / "nets.py").write_text("")
    with pytest.raises(CleansetError, match=message):
        with_modules({"one": Model(source="module", name=name)}, folder)


def test_an_installed_module_is_taken_by_its_name(folder: Path) -> None:
    models = {"one": Model(source="module", name="timm.models:resnet18"), "two": Model(source="random", name="0")}
    assert with_modules(models, folder) == (models, {})


def test_a_pin_is_of_a_module() -> None:
    with pytest.raises(ValueError, match="module_sha256 with source timm, but only module has it: remove it"):
        Model(source="timm", name="resnet18", module_sha256="0" * 64)
