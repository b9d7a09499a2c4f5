"""The wheel in fresh environments: what a user of a finished set installs, and what they can do then."""

import csv
import json
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from cleanset.edition.versions import locked_versions
from cleanset.sets.published.image_set import select_images
from cleanset.sets.published.lists import PublishedChoice
from tests.checkouts import Checkout, files
from tests.sets.published.drawn_archive import draw_archive
from tests.ten_images import drawn_image

MAX_BYTES = 300e6
MAX_IMPORT_SECONDS = 0.2
OTHER_TORCH = "2.13.0+cpu"
OTHER_TIMM = "1.0.31"
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python")
"""This environment's pip; the path of another one's Python follows. To install pip in each takes longer."""
VENV = (sys.executable, "-m", "venv", "--without-pip")

IMPORT = "import time; start = time.perf_counter(); import cleanset; print(time.perf_counter() - start)"
USE = """
import json, sys
import cleanset
images = cleanset.load("standard", sys.argv[1])
table = cleanset.table("standard", sys.argv[1])
again = cleanset.load("standard", images.folder)
print(json.dumps({
    "files": [record["file"] for _, _, record in images], "table": table["file"].tolist(), "again": len(again),
    "mode": images[0][0].mode, "classes": [len(images.classes), images.classes[1]], "bases":
    [base.__module__ + "." + base.__name__ for base in type(images).__mro__], "cleanset": cleanset.__file__,
    "loaded": sorted({"torch", "timm", "dvc", "pyarrow"} & set(sys.modules)),
}))
"""
LOADER = """
import sys, cleanset, torch
images = cleanset.load("standard", sys.argv[1], transform=lambda image: torch.tensor(image.size))
assert isinstance(images, torch.utils.data.Dataset)
batches = list(torch.utils.data.DataLoader(images, batch_size=20, num_workers=2))
print([tuple(batch[0].shape) for batch in batches], torch.__version__)
"""


@dataclass(frozen=True)
class Environment:
    """A virtual environment, and where its cleanset keeps sets."""

    folder: Path
    cache: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def run(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a program of its `bin`, far from any checkout."""
        changed = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
        variables = {name: value for name, value in os.environ.items() if name not in changed}
        variables["CLEANSET_CACHE"] = str(self.cache)
        program = [self.folder / "bin" / command[0], *command[1:]]
        return subprocess.run(program, cwd=self.folder, capture_output=True, text=True, check=False, env=variables)

    def pip(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run pip for it."""
        return self.run(*PIP, self.python, *arguments)


Making = Callable[..., Environment]


@pytest.fixture(scope="module")
def wheel(pristine: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as `pip install` from git does, but with the setuptools of this environment."""
    folder = tmp_path_factory.mktemp("wheel")
    source = pristine.clone(folder / "cleanset")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir"]
    subprocess.run([*command, folder, source.folder], check=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Making:
    """Make an environment with the wheel and other distributions; skips where pip cannot have them.

    Modules are compiled when they are imported: few of all that pip would compile.
    """

    def make(*distributions: str, without_their_own: tuple[str, ...] = ()) -> Environment:
        folder = tmp_path_factory.mktemp("environment")
        subprocess.run([*VENV, folder / "venv"], check=True)
        made = Environment(folder / "venv", folder / "cache")
        for names in ([str(wheel), *distributions], ["--no-deps", *without_their_own]):
            done = made.pip("install", "--quiet", "--no-compile", *names)
            if done.returncode and names[1:]:
                reason = f"pip cannot install {' '.join(names[1:])}: {done.stderr.strip().splitlines()[-1]}"
                if os.environ.get("CLEANSET_NO_SKIP") and not any("torch" in name for name in names):
                    pytest.fail(reason)
                pytest.skip(reason)
        return made

    return make


@pytest.fixture(scope="module")
def repository_of_set(published: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone, which may be moved away while other tests use `published`."""
    return published.clone(tmp_path_factory.mktemp("address") / "cleanset").folder


@pytest.fixture(scope="module")
def address(repository_of_set: Path) -> str:
    return f"file://{repository_of_set}"


@pytest.fixture(scope="module")
def core(environment: Making) -> Environment:
    """With the newest versions of what the core needs."""
    return environment()


@pytest.fixture(scope="module")
def complete(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """With the wheel, and the libraries of this environment: as with the extras build and review."""
    folder = tmp_path_factory.mktemp("complete")
    subprocess.run([*VENV, folder / "venv"], check=True)
    made = Environment(folder / "venv", folder / "cache")
    made.pip("install", "--quiet", "--no-deps", wheel).check_returncode()
    (packages,) = made.folder.glob("lib/python3*/site-packages")
    (packages / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    return made


def size(folder: Path) -> float:
    """Bytes of the installed files as pip compiles them; a compiled module takes 1.5 times as many as its source."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    return sum(path.lstat().st_size * (2.5 if path.suffix == ".py" else 1) for path in files)


@pytest.mark.long
def test_it_is_small_and_imported_at_once(core: Environment) -> None:
    (packages,) = core.folder.glob("lib/python3*/site-packages")
    assert size(packages) < MAX_BYTES
    names = {path.name.partition("-")[0].lower() for path in packages.glob("*.dist-info")}
    assert {"cleanset", "numpy"} <= names
    assert names.isdisjoint({"torch", "timm", "torchvision", "robustbench", "dvc", "scipy", "pyarrow", "nicegui"})
    assert min(float(core.run("python", "-c", IMPORT).stdout) for _ in range(5)) < MAX_IMPORT_SECONDS


@pytest.mark.exhaustive
def test_the_published_set(core: Environment, tmp_path: Path) -> None:
    """Without torch, DVC and pyarrow, from the lists and verdicts in the wheel; loaded from the cache, too."""
    archive = draw_archive(tmp_path / "val.tar", select_images(PublishedChoice()).candidates["image_id"])
    table = tmp_path / "digests.csv"
    out = tmp_path / "scooter"
    assert core.run("cleanset", "digests", "--images", archive, "--out", table).returncode == 0
    done = core.run("cleanset", "published", "--images", archive, "--out", out, "--digests", table)
    assert done.stdout.startswith(f"{out}: 2,857 whole images of 989 classes, model norm_robust\n"), done.stderr
    load = f"import cleanset; print(len(cleanset.load('scooter', images={str(archive)!r}, digests={str(table)!r})))"
    assert core.run("python", "-c", load).stdout == "2857\n"


@pytest.mark.long
def test_the_set_of_the_sample(
    core: Environment, address: str, repository_of_set: Path, published: Checkout, tmp_path: Path
) -> None:
    """Loaded, tabulated, fetched, verified, rebuilt and packed from a git address; offline the second time."""
    with (published.folder / "data" / "export" / "standard" / "manifest.csv").open(newline="") as file:
        expected = [row["file"] for row in csv.DictReader(file)]
    found = json.loads(core.run("python", "-c", USE, address).stdout)
    assert found["files"] == found["table"] == expected
    assert (found["again"], found["mode"], found["classes"]) == (34, "RGB", [1000, "n01443537"])
    assert found["bases"] == ["cleanset.sets.image_set.ImageSet", "builtins.object"]
    assert found["loaded"] == []
    assert Path(found["cleanset"]).is_relative_to(core.folder)
    out = tmp_path / "out"
    rebuilt = tmp_path / "rebuilt"
    hidden = repository_of_set.with_name("hidden")
    repository_of_set.rename(hidden)
    again = core.run("cleanset", "fetch", address, "standard", "--out", out)
    hidden.rename(repository_of_set)
    assert again.stdout.startswith(f"{out}: 34 images of model standard at commit "), again.stderr
    verified = core.run("cleanset", "verify", "--decode", out).stdout
    assert verified.startswith(f"{out}: 34 of 34 images are good\nMade from an archive with the MD5 ")
    archive = published.folder / "data" / "raw" / "ILSVRC2012_img_val.tar"
    done = core.run("cleanset", "rebuild", "--manifest", out, "--images", archive, "--out", rebuilt)
    assert done.stdout.startswith(f"{rebuilt}: 34 images; "), done.stderr
    same = files(out).items() & files(rebuilt).items()
    assert {name for name, _ in files(out).items() - same} == {"README.md", "checksums.sha256", "rejected.csv"}
    done = core.run("cleanset", "pack", out, "--out", tmp_path / "shards")
    assert done.stdout == f"{tmp_path}/shards: 34 images in shards: 1\n"


@pytest.mark.exhaustive
def test_editions_of_both_kinds(complete: Environment, tmp_path: Path) -> None:
    """One of own images from images to set, in an empty folder; after a clone, doctor finds the code again."""
    for position in range(8):
        path = tmp_path / "images" / ["cat", "dog"][position % 2] / f"{position}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        drawn_image(80, 90, seed=position).save(path)
    own = tmp_path / "own"
    imagenet = tmp_path / "imagenet"
    done = complete.run("cleanset", "edition", own, "--images", tmp_path / "images")
    assert done.stdout.startswith(f"{own}: 8 images of 2 classes (cat, dog); run there\ndvc repro\n"), done.stderr
    assert complete.run("cleanset", "edition", imagenet).returncode == 0
    for folder in (own, imagenet):
        assert "root: linked_by_cleanset_doctor\n" in (folder / "params.yaml").read_text()
        assert (folder / "linked_by_cleanset_doctor/src/cleanset/scoring/VERSION").is_file()
        assert "/linked_by_cleanset_doctor/\n" in (folder / ".gitignore").read_text()
    code = "import os, sys; os.chdir(sys.argv[1]); from dvc.cli import main; sys.exit(main(sys.argv[2:]))"
    os.environ["PATH"], before = f"{complete.folder / 'bin'}:{os.environ['PATH']}", os.environ["PATH"]
    try:
        assert "score@standard" in complete.run("python", "-c", code, imagenet, "stage", "list").stdout
        done = complete.run("python", "-c", code, own, "repro", "--quiet")
        assert done.returncode == 0, done.stderr
    finally:
        os.environ["PATH"] = before
    assert (own / "data/export/images/manifest.csv").is_file()
    assert str(tmp_path) not in (own / "dvc.lock").read_text()
    link = own / "linked_by_cleanset_doctor" / "src"
    link.unlink()
    done = complete.run("cleanset", "doctor", "--quick", "--edition", own)
    assert done.stdout.startswith(f"{link}: linked to the code of cleanset in {complete.folder}/lib/")
    assert complete.run("cleanset", "doctor", "--quick", "--edition", own).stdout == ""


@pytest.mark.long
def test_what_the_core_cannot_do_is_reported(core: Environment) -> None:
    done = core.run("cleanset", "count")
    assert (done.returncode, done.stdout) == (1, "")
    needed = r"error: \w+: not installed, and this command needs it: pip install 'cleanset\[build\] @ file:.*' .*\n"
    assert re.fullmatch(needed, done.stderr)
    assert "Traceback" not in core.run("cleanset", "--help").stderr


@pytest.mark.exhaustive
def test_next_to_another_torch_and_timm(environment: Making, address: str, repository: Path) -> None:
    """And the lowest versions of all else that the core says it works with."""
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    lowest = [each.replace(">=", "==") for each in project["dependencies"]]
    locked = locked_versions((repository / "requirements.txt").read_text(), ("torch", "timm"))
    assert {OTHER_TORCH.partition("+")[0], OTHER_TIMM}.isdisjoint(locked.values())
    other = environment(*lowest, f"torch=={OTHER_TORCH}", without_their_own=(f"timm=={OTHER_TIMM}",))
    found = json.loads(other.run("python", "-c", USE, address).stdout)
    assert (len(found["files"]), found["loaded"]) == (34, ["torch"])
    assert found["bases"][:3:2] == [
        "cleanset.sets.torch_dataset.TorchImageSet",
        "torch.utils.data.dataset.Dataset",
    ]
    done = other.run("python", "-c", LOADER, address)
    assert done.stdout == f"[(20, 2), (14, 2)] {OTHER_TORCH}\n", done.stderr
    assert "ADDRESS" in other.run("cleanset", "fetch", "--help").stdout
    listed = json.loads(other.pip("list", "--format", "json").stdout)
    assert {each["name"]: each["version"] for each in listed}["timm"] == OTHER_TIMM
