"""A run that is continued gives what a fresh run gives: every input of every kept result is changed, one at a time.

The result in a folder of an earlier run is compared with that in a new one. Each change shows in the results, but for
changes of the kept files themselves, which are made again.
"""

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from cleanset.edition.paths import Edition
from cleanset.evaluation import evaluate as measuring
from cleanset.evaluation.arguments import Arguments
from cleanset.scoring import engine
from cleanset.scoring.shards import Shards
from cleanset.studies.attacks import evaluation as attacks
from cleanset.studies.attacks import fresh
from cleanset.studies.attacks.request import AttackRequest, attack_params
from cleanset.studies.robustness import digests
from cleanset.studies.robustness import evaluation as robustness

pytestmark = [pytest.mark.slow, pytest.mark.long]

MODULE = """
from pathlib import Path
import numpy as np
import torch
import beside

class Step(torch.nn.Module):
    def forward(self, pixels):
        return torch.round(pixels * 51) / 51

class Colours(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.step = Step()
        self.strength = torch.nn.Parameter(torch.tensor(float(Path(__file__).with_name("strength.txt").read_text())))

    def forward(self, pixels):
        if beside.ROUNDS:
            pixels = self.step(pixels)
        means = pixels.mean(dim=(2, 3)) * self.strength
        to_green = torch.tensor([[-1.0, 1.0]]).to(pixels)
        is_flat = (pixels[:, 0].std(dim=(1, 2)) == 0)[:, None]
        means = means[:, :2] + to_green * (ALWAYS + FLAT * is_flat)
        return torch.nn.functional.pad(means, (0, 998), value=-9)

# code alone decides these; no image of random pixels is flat
ALWAYS = 0.0
FLAT = 0.0

def small(image):
    return np.asarray(image.resize((8, 8))).transpose(2, 0, 1)

def make():
    return Colours(), small
"""
PROGRAM = """
import os
import sys
import reading
limit = int(open(sys.argv[1]).read())
for name in sorted(os.listdir(sys.argv[-1])):
    print(f"{name}, {'n01440764' if reading.number(name) >= limit else 'n01443537'}")
"""
FILES = {
    "mine.py": MODULE,
    "beside.py": "ROUNDS = False\n",
    "strength.txt": "10",
    "source.py": MODULE.replace("import beside", "import beside_source as beside"),
    "beside_source.py": "ROUNDS = False\n",
    "another.py": MODULE.replace("FLAT = 0.0", "FLAT = 50.0"),
    "answer.py": PROGRAM,
    "reading.py": "def number(name):\n    return int(name[:5])\n",
    "limit.txt": "0",
}
MODULES = ("mine", "beside", "source", "beside_source", "another")
MINE = "mine:make"
PROGRAM_MODEL = f"command:{sys.executable} -S answer.py limit.txt"
IMAGES = {
    "n01440764": ((126, 114), (124, 116), (150, 90), (124, 119)),
    "n01443537": ((114, 126), (116, 124), (90, 150), (119, 124)),
}
"""Red and green of the images of each class; some are near the other class."""

Results = dict[str, object]
Run = Callable[[Path, Path], Results]
Change = Callable[[Path], object]


@pytest.fixture(autouse=True)
def in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process takes seconds to start: files are judged again in this one, by models loaded again."""

    def answered(self: fresh.FreshModel, parts: Sequence[Sequence[fresh.Asked]]) -> tuple[Any, Any]:
        found = [fresh.answered(self, Path.cwd(), part) for part in parts]
        return {key: each for answered, _ in found for key, each in answered.items()}, None

    monkeypatch.setattr(fresh.FreshModel, "answers", answered)
    monkeypatch.setattr(engine, "available_cores", lambda: 1)
    monkeypatch.setattr(digests, "available_cores", lambda: 1)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Images of two classes, models and a program, in the working folder."""
    folder = tmp_path / "here"
    for wnid, colours in IMAGES.items():
        for number, (red, green) in enumerate(colours):
            path = folder / "set" / wnid / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (12, 12), (red, green, 20 * number)).save(path)
    for name, text in FILES.items():
        (folder / name).write_text(text)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield folder
    forget_modules()


def forget_modules() -> None:
    """As in a new process."""
    for name in MODULES:
        sys.modules.pop(name, None)


def write(name: str, old: str, new: str) -> Change:
    """The change of a text in a file."""

    def change(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new))

    return change


def paint(name: str, colour: tuple[int, int, int]) -> Change:
    return lambda folder: Image.new("RGB", (12, 12), colour).save(folder / "set" / name)


def move(name: str, target: str) -> Change:
    return lambda folder: (folder / "set" / name).rename(folder / "set" / target)


def leave_out(*names: str) -> Change:
    def change(folder: Path) -> None:
        for name in names:
            (folder / "set" / name).unlink()

    return change


def unchanged(_folder: Path) -> None:
    """Where an option of the run changes."""


def text_of(out: Path, *names: str) -> Results:
    return {name: (out / name).read_text() for name in names}


def evaluate(model: str, _folder: Path, out: Path, **options: Any) -> Results:
    forget_modules()
    measuring.run(Edition(Path("nowhere")), Arguments("set", [model], device="cpu", out=out, **options))
    return text_of(out, "results.json")


def evaluate_shards(model: str, folder: Path, out: Path) -> Results:
    """As if killed after the last shard of the run before."""
    for path in (*out.glob("*.json"), *out.glob("*.parquet")):
        path.unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Shards, "remove", lambda self: None)
        return evaluate(model, folder, out)


def measure(models: Sequence[str], folder: Path, out: Path) -> Results:
    forget_modules()
    wanted = Arguments("set", models, device="cpu")
    robustness.run(robustness.request_of(Edition(Path("nowhere")), wanted, out, folder / "robustness.yaml"))
    return text_of(out, "results.json", "digests/corruptions.txt")


def attack(model: str, _folder: Path, out: Path, **options: Any) -> Results:
    forget_modules()
    wanted = Arguments("set", [model], device="cpu")
    params = attack_params("attacks.yaml")
    sources = options.pop("transfer_from", ["source:make"])
    edition = Edition(Path("nowhere"))
    attacks.run(AttackRequest.read(edition, wanted, params, out, transfer_from=sources, warnings=False, **options))
    pngs = {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*.png")}
    assert pngs
    # the logits, too: an accuracy may be the same by chance
    tables = {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("attacked.parquet")}
    return text_of(out, "attack_results.json") | pngs | tables


def check(
    folder: Path, run: Run, changes: Mapping[str, Change], again: Run | None = None, *, is_finished: bool = True
) -> None:
    """Run, change one input, run again into the same folder and into a new one: both have to give the same.

    `again`: the run after the change, where an option is what changes. `is_finished`: whether results, not shards, are
    what is kept, so that nothing is written without a change.
    """
    parent = folder.parent
    out = parent / "out"
    before = run(folder, out)
    written = {path: path.stat().st_mtime_ns for path in out.rglob("*.parquet") if "partial" not in str(path)}
    assert run(folder, out) == before
    if is_finished:
        assert {path: path.stat().st_mtime_ns for path in written} == written, "what is finished is used again"
    shutil.copytree(folder, parent / "kept")
    for name, change in changes.items():
        kept = parent / f"out of {name}"
        shutil.copytree(out, kept)
        change(folder)
        continued = (again or run)(folder, kept)
        fresh = (again or run)(folder, parent / f"fresh of {name}")
        assert continued == fresh, name
        assert fresh != before, f"{name}: expected a change that shows"
        # not the folder itself, in which this process works
        for path in folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(parent / "kept", folder, dirs_exist_ok=True)


OF_IMAGES: dict[str, Change] = {
    "an image": paint("n01440764/0.png", (110, 130, 0)),
    "a class": move("n01440764/0.png", "n01443537/9.png"),
}
OF_MODULE: dict[str, Change] = {
    "the module, as random pixels show": write("mine.py", "ALWAYS = 0.0", "ALWAYS = 50.0"),
    "the module, as they do not": write("mine.py", "FLAT = 0.0", "FLAT = 50.0"),
    "what it imports": write("beside.py", "False", "True"),
    "its weights": write("strength.txt", "10", "-10"),
}
OF_PROGRAM: dict[str, Change] = {
    "the program": write("answer.py", ">= limit", "< limit"),
    "what it imports": write("reading.py", "return int", "return -1 - int"),
    "a file that it is given": write("limit.txt", "0", "1"),
}


@pytest.mark.parametrize(
    ("run", "model", "of_model"),
    [
        (evaluate, MINE, OF_MODULE),
        (evaluate_shards, MINE, OF_MODULE),
        (evaluate, PROGRAM_MODEL, OF_PROGRAM),
        pytest.param(evaluate_shards, PROGRAM_MODEL, OF_PROGRAM, marks=pytest.mark.exhaustive),
    ],
)
def test_evaluate(run: Callable[..., Results], model: str, of_model: dict[str, Change], folder: Path) -> None:
    check(folder, partial(run, model), OF_IMAGES | of_model, is_finished=run is evaluate)


@pytest.mark.parametrize("options", [{"restricted": True}, {"precision": "float32"}])
def test_evaluate_otherwise(options: dict[str, Any], folder: Path) -> None:
    check(folder, partial(evaluate, MINE), {"options": unchanged}, partial(evaluate, MINE, **options))


PGD = {"eps": "8/255", "steps": 3, "max_steps": 3}


def with_params(folder: Path, attack: str, settings: dict[str, Any]) -> None:
    (folder / "attacks.yaml").write_text(json.dumps({"images": 4, "seed": 0, "attacks": {attack: settings}}))


def test_attacks_on_a_module(folder: Path) -> None:
    with_params(folder, "pgd", PGD)
    changes = {
        "eps": write("attacks.yaml", "8/255", "4/255"),
        "steps": write("attacks.yaml", '"steps": 3', '"steps": 2'),
        "number of images": write("attacks.yaml", '"images": 4', '"images": 3'),
    }
    check(folder, partial(attack, MINE), OF_IMAGES | OF_MODULE | changes)


@pytest.mark.exhaustive
def test_attacks_on_a_program(folder: Path) -> None:
    with_params(folder, "none", {})
    check(folder, partial(attack, PROGRAM_MODEL), OF_IMAGES | OF_PROGRAM)


def test_images_made_on_other_models(folder: Path) -> None:
    with_params(folder, "transfer", {"eps": "8/255", "steps": 3})
    changes = {
        "the other model, as random pixels do not show": write("source.py", "FLAT = 0.0", "FLAT = 50.0"),
        "what it imports": write("beside_source.py", "False", "True"),
        "its weights": write("strength.txt", "10", "-10"),
    }
    check(folder, partial(attack, MINE), changes)


def test_images_that_an_attack_begins_with(folder: Path) -> None:
    """Two images are attacked: those that are changed are only begun with."""
    with_params(folder, "boundary", {"images": 2, "queries": 30, "eps": 20, "after": None})
    changes = {
        "the images to begin with": lambda folder: [
            paint(f"n01443537/{number}.png", (20, 220, 0))(folder) for number in (1, 2, 3)
        ],
        "their number": leave_out("n01443537/1.png", "n01443537/2.png"),
        "their classes": move("n01440764/1.png", "n01443537/8.png"),
    }
    check(folder, partial(attack, MINE), changes)


@pytest.mark.parametrize(
    ("name", "settings", "options"),
    [
        ("pgd", PGD, {"straight_through": ["step"]}),
        ("transfer", {"eps": "8/255", "steps": 3}, {"transfer_from": ["another:make"]}),
    ],
)
def test_attacks_otherwise(name: str, settings: dict[str, Any], options: dict[str, Any], folder: Path) -> None:
    if name == "pgd":
        # only then is the step taken
        write("beside.py", "False", "True")(folder)
    with_params(folder, name, settings)
    check(folder, partial(attack, MINE), {"options": unchanged}, partial(attack, MINE, **options))


def draw(png: Path) -> None:
    image = Image.open(png)
    image.putpixel((0, 0), (0, 0, 0))
    image.save(png)


def remove(png: Path) -> None:
    png.unlink()


def exchange(png: Path) -> None:
    other = next(each for each in sorted(png.parents[1].rglob("*.png")) if each.read_bytes() != png.read_bytes())
    first = png.read_bytes()
    png.write_bytes(other.read_bytes())
    other.write_bytes(first)


@pytest.mark.parametrize("change", [draw, exchange, remove])
def test_changed_images_are_made_again(
    change: Callable[[Path], None], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with_params(folder, "pgd", PGD)
    before = attack(MINE, folder, folder / "out")
    png = min((folder / "out").rglob("*.png"))
    bytes_before = png.read_bytes()
    change(png)
    assert not png.is_file() or png.read_bytes() != bytes_before
    assert attack(MINE, folder, folder / "out") == before
    assert f"{png}: computed again: missing, or changed since it was judged" in capsys.readouterr().err


@pytest.mark.exhaustive
@pytest.mark.parametrize(("model", "of_model"), [(MINE, OF_MODULE), (PROGRAM_MODEL, OF_PROGRAM)])
def test_robustness(model: str, of_model: dict[str, Change], folder: Path) -> None:
    params = {"jpeg": None, "seed": 0, "corruptions": {"names": ["gaussian_noise"], "severities": [1]}}
    (folder / "robustness.yaml").write_text(json.dumps(params | {"bootstrap": {"draws": 20}}))
    changes = {
        "seed": write("robustness.yaml", '"seed": 0', '"seed": 1'),
        "jpeg": write("robustness.yaml", '"jpeg": null', '"jpeg": 30'),
        "severities": write("robustness.yaml", "[1]", "[2]"),
    }
    check(folder, partial(measure, [model]), OF_IMAGES | of_model | changes)
