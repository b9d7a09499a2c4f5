"""`attacks evaluate` on a folder of drawn images: custom models, a command, what is written, what is refused."""

import json
import re
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from PIL import Image
from rich.console import Console
from typer.testing import CliRunner

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.evaluation.arguments import Arguments
from cleanset.scoring.engine import settings_for
from cleanset.studies.attacks import ascent, earlier_disk
from cleanset.studies.attacks.base import Ball
from cleanset.studies.attacks.commands import tools
from cleanset.studies.attacks.earlier_disk import beginning
from cleanset.studies.attacks.evaluated_models import EvaluatedModel
from cleanset.studies.attacks.evaluation import run
from cleanset.studies.attacks.evaluation_results import AttackedModels
from cleanset.studies.attacks.evaluation_tables import as_text, paper_table
from cleanset.studies.attacks.gradient_attacks import PgdAttack, SpsaAttack
from cleanset.studies.attacks.planning import notice_of_signs
from cleanset.studies.attacks.request import AttackRequest, attack_params
from cleanset.studies.attacks.results import PROBLEMS
from tests.conftest import without

pytestmark = pytest.mark.slow

MODULE = '''
from pathlib import Path

import numpy as np
import torch

class Colours(torch.nn.Module):
    """Class 0 for red images, class 1 for green ones."""

    def __init__(self, step):
        super().__init__()
        self.step = step
        self.weight = torch.nn.Parameter(torch.tensor(10.0))

    def forward(self, pixels):
        means = self.step(pixels).mean(dim=(2, 3)) * self.weight
        return torch.nn.functional.pad(means[:, :2], (0, 998), value=-9)

class Rounded(torch.nn.Module):
    def forward(self, pixels):
        return torch.round(pixels * 51) / 51

class Red(torch.nn.Module):
    def forward(self, pixels):
        return pixels * torch.tensor([1, 0, 0]).to(pixels)[:, None, None]

SEEN = []

class Remembering(Colours):
    """What is near an image that was asked before gets its answer; `seen` outlives a copy of the network."""

    def __init__(self, seen):
        super().__init__(torch.nn.Identity())
        self.seen = seen

    def forward(self, pixels):
        rows = []
        for image, own in zip(pixels, super().forward(pixels)):
            near = [answer for key, answer in self.seen if (key - image.detach().double()).abs().max() < 0.07]
            if not near:
                self.seen.append((image.detach().double(), own.detach().double()))
            rows.append((near[0] if near else own).to(own) + (own - own.detach()))
        return torch.stack(rows)

class Disk:
    """What was seen, in a file next to the images: the list of a process that comes later, too."""

    path = Path("seen.pt")

    def __iter__(self):
        return iter(torch.load(self.path) if self.path.exists() else [])

    def append(self, pair):
        torch.save([*self, pair], self.path)

class Exact(Colours):
    """Answers to red alone unless the pixels are float64, in which files are judged."""

    def forward(self, pixels):
        found = super().forward(pixels)
        return found if pixels.dtype == torch.float64 else found * 0 + torch.arange(1000).to(found)

def small(image):
    return np.asarray(image.resize((8, 8))).transpose(2, 0, 1)

def honest(): return Colours(torch.nn.Identity()), small
def remembering(): return Remembering([]), small
def remembering_on_disk(): return Remembering(Disk()), small
def remembering_in_module(): return Remembering(SEEN), small
def red(): return Colours(Red()), small
def exact(): return Exact(torch.nn.Identity()), small
def rounded(): return Colours(Rounded()), small
'''
COMMAND = """
import sys
from pathlib import Path
from PIL import Image
for path in sorted(Path(sys.argv[-1]).iterdir()):
    red, green, _ = Image.open(path).resize((1, 1)).getpixel((0, 0))
    print(f"{path.name}, {'n01440764' if red > green else 'n01443537'}")
"""
EPS = "8/255"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Six images of each of two classes, some far from the other one and some near, next to the modules."""
    folder = tmp_path_factory.mktemp("attacked")
    for number, distance in enumerate((6, 8, 10, 10, 60, 60)):
        for wnid, sign, blue in (("n01440764", 1, 8), ("n01443537", -1, 134)):
            path = folder / "set" / wnid / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            red, green = 120 + sign * distance // 2, 120 - sign * distance // 2
            Image.new("RGB", (12, 12), (red, green, blue + 21 * number)).save(path)
    (folder / "mine.py").write_text(MODULE)
    (folder / "answer.py").write_text(COMMAND)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "path", [str(folder), *sys.path])
        yield folder
    sys.modules.pop("mine", None)


def evaluated(
    folder: Path, out: str, models: list[str], names: str, images: int | None = None, **others: Any
) -> AttackedModels:
    wanted = Arguments(str(folder / "set"), models, device="cpu")
    return run(AttackRequest.read(Edition(folder), wanted, attack_params(names, EPS, images), folder / out, **others))


@pytest.fixture(scope="module")
def both(folder: Path) -> AttackedModels:
    """PGD and images made on the other model; 8 of 255 reach the other class from eight images."""
    return evaluated(folder, "both", ["mine:honest", "mine:rounded"], "pgd,transfer")


def accuracies(found: AttackedModels, model: str, threat: str = "Linf 8/255") -> list[float]:
    """Clean accuracy, and robust accuracy if it is known."""
    lines = [found.value(threat, model, name) for name in ("clean_accuracy", "robust_accuracy")]
    return [line.value for line in lines if line is not None and line.is_defined]


def success(found: AttackedModels, attack: str, model: str) -> float:
    line = found.value(attack, model, "success")
    assert line is not None
    return line.value


def test_the_worst_case_comes_first(both: AttackedModels) -> None:
    """PGD finds nothing on rounded pixels, where images of the other model break all but the four far ones."""
    assert accuracies(both, "mine:honest") == pytest.approx([1, 4 / 12])
    # its robust accuracy is not known, since signs of gradient masking were seen
    assert accuracies(both, "mine:rounded") == [1]
    assert success(both, "pgd", "mine:honest") == pytest.approx(8 / 12)
    assert success(both, "pgd", "mine:rounded") == 0
    assert success(both, "transfer", "mine:rounded") == pytest.approx(8 / 12)


def test_the_warnings(both: AttackedModels) -> None:
    signs = {model: {each.sign for each in record.warnings} for model, record in both.warnings.items()}
    assert signs == {
        "mine:honest": set(),
        "mine:rounded": {
            "no_gradient",
            "black_box_better",
            "transfer_beats_gradient",
            "whole_cube_withstood",
        },
    }


def test_what_is_printed(both: AttackedModels) -> None:
    text = StringIO()
    Console(file=text, width=80, color_system=None).print(as_text(both), highlight=False)
    lines = text.getvalue().splitlines()
    # the folder may be long
    assert "set: 12 images of 2 classes" in " ".join(" ".join(lines[:3]).split())
    assert any(
        line.split() == ["mine:rounded", "Linf", "8/255", "12", "100.0", "0.0", "to", "33.3", "0.0314"]
        for line in lines
    )
    assert "mine:rounded: the probe breaks 8 of 12 correctly classified images in Linf 8/255" in lines
    assert "mine:honest: of 12 correctly classified images, PGD of a few steps breaks" in text.getvalue()
    assert "mine:honest: no sign that it only looks strong (12 images)" in lines
    assert all(len(line.rstrip()) <= 80 for line in lines)


def test_the_page(folder: Path, both: AttackedModels) -> None:
    """The checklist tells an honest model from one without a gradient, by what was measured of each."""
    page = BeautifulSoup((folder / "both" / "index.html").read_text(), "html.parser")
    points = {}
    for model in ("mine:honest", "mine:rounded"):
        table = page.select_one(f'[aria-label="Checklist of {model}"]')
        assert table is not None
        rows = [[each.get_text() for each in row.find_all(["th", "td"])] for row in table.find_all("tr")]
        points[model] = {row[0]: row[1:] for row in rows if len(row) == 3}
    honest, rounded = points.values()
    assert [len(honest), list(honest)] == [25, list(rounded)]
    assert honest["State a precise threat model"] == [
        "seen",
        "Linf 8/255; any other class is a success; attackers know the model by its weights",
    ]
    text = "PGD breaks {} of 12 correctly classified images where every pixel is free"
    large = "With high distortion nothing withstands"
    assert [honest[large], rounded[large]] == [["seen", text.format(12)], ["not seen", text.format(0)]]
    assert honest["Report clean accuracy"] == ["seen", "100.0 % of 12 images"]
    better = "Attacks on the model itself perform better than any other"
    # SPSA breaks as many of the honest model's
    assert [honest[better][0], rounded[better][0]] == ["undecided", "not seen"]
    assert honest[better][1].startswith("of 12 images, pgd of ")
    techniques = "Apply differentiable techniques to non-differentiable components"
    assert [honest[techniques][0], rounded[techniques][0]] == ["does not apply", "not seen"]
    assert honest["Test broader threat models"] == ["not seen", "rotations: none; corruptions: none"]
    assert honest["Attack with random noise"][0] == "not seen"
    growing = page.select_one('[aria-label="Images broken in growing balls and by random points"]')
    assert growing is not None
    assert [each.get_text() for each in growing.find_all("tr")[0].find_all("th")][2:-1] == ["4", "8", "16", "32", "255"]


def test_a_model_that_classifies_nothing_correctly_is_not_called_strong(both: AttackedModels) -> None:
    wrong = [replace(each, value=1.0) if each.measure == "clean_error" else each for each in both.lines]
    text = StringIO()
    Console(file=text, width=200, color_system=None).print(as_text(replace(both, lines=wrong)), highlight=False)
    assert (
        "mine:honest: classifies none of 12 images correctly, which says nothing about its strength: check the order "
        "of its classes and its preprocessing\n"
    ) in text.getvalue()
    assert "no sign" not in text.getvalue()


def test_a_table_for_a_paper(both: AttackedModels) -> None:
    text = paper_table(both).in_form("csv")
    columns = 'model,threat model,images,clean,robust,"robust, low","robust, high",distance'
    notes = "set,version,digest,number of images,selection,settings,intervals,limits"
    assert text.splitlines()[0] == f"{columns},{notes}"
    assert text.splitlines()[2].startswith("mine:rounded,Linf 8/255,12,100.0,0.0 to 33.3,,,0.0314,")


def test_what_is_written(folder: Path, both: AttackedModels) -> None:
    """Every changed image as a file in its ball; the results as JSON, without a path of this machine."""
    results = json.loads((folder / "both" / "attack_results.json").read_text())
    assert [each["model"] for each in results["models"]] == ["mine:honest", "mine:rounded"]
    (threat,) = results["models"][1]["threat_models"]
    assert (threat["name"], threat["attacks"]) == ("Linf 8/255", ["pgd", "transfer"])
    assert threat["robust_accuracy"] == {
        "images": 12, "value": None, "interval": None, "problem": PROBLEMS["robust_accuracy"],
    }  # fmt: skip
    assert threat["robust_high"] == {"images": 12, "value": pytest.approx(1 / 3), "interval": None}
    assert results["attacks"]["pgd"]["eps"] == 8 / 255
    for path in (folder / "both" / "attacks" / "pgd" / "mine_honest" / "images").rglob("*.png"):
        clean = np.asarray(Image.open(folder / "set" / path.parent.name / path.stem).resize((8, 8)), np.int64)
        assert np.abs(clean - np.asarray(Image.open(path))).max() <= 8
    record = (folder / "both" / "attacks" / "transfer" / "mine_rounded" / "record.json").read_text()
    assert str(folder) not in record


def test_what_is_finished_is_not_computed_again(
    folder: Path, both: AttackedModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path: path.read_bytes() for path in (folder / "both").rglob("*") if path.is_file()}
    monkeypatch.setattr(ascent, "gradient", lambda *_: pytest.fail("computed again"))
    evaluated(folder, "both", ["mine:honest", "mine:rounded"], "pgd,transfer", warnings=False)
    after = {path: path.read_bytes() for path in (folder / "both").rglob("*.p*") if path.is_file()}
    assert after == {path: before[path] for path in after}
    with pytest.raises(pytest.fail.Exception, match="computed again"):
        evaluated(folder, "both", ["mine:honest"], "pgd", warnings=False, straight_through=["step"])
    with pytest.raises(pytest.fail.Exception, match="computed again"):
        evaluated(folder, "both", ["mine:honest"], "transfer", warnings=False, transfer_from=["mine:rounded"])


@pytest.mark.parametrize(
    ("name", "warnings"),
    [
        ("remembering", True),
        pytest.param("remembering_in_module", False, marks=pytest.mark.exhaustive),
        pytest.param("remembering_on_disk", False, marks=pytest.mark.exhaustive),
    ],
)
@pytest.mark.long
def test_a_memory_of_earlier_queries(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, warnings: bool) -> None:
    """Images made on the honest model are judged by the model loaded again, which they break; so says a rerun."""
    if name == "remembering_on_disk":
        if beginning(time.time(), ()) is None:
            without("bubblewrap (the program bwrap) is not installed, or this machine does not let it run")
        monkeypatch.setattr(earlier_disk, "beginning", beginning)
    options: dict[str, Any] = {"transfer_from": ["mine:honest"], "warnings": warnings}
    found = evaluated(folder, name, [f"mine:{name}"], "none,transfer", **options)
    assert accuracies(found, f"mine:{name}") == [1]
    assert success(found, "transfer", f"mine:{name}") == pytest.approx(8 / 12)
    seen = found.warnings[f"mine:{name}"].warnings[0]  # of 12 images and twice 12 files
    # and of the probe's 12 files
    files = "21 of 48" if warnings else "12 of 36"
    text = f"{files} files get another answer from the model loaded again, 8 of them another verdict, which counts"
    assert (seen.sign, seen.text) == ("depends_on_others", text)
    table = pd.read_parquet(folder / name / "attacks" / "transfer" / f"mine_{name}" / "attacked.parquet")
    assert table["is_error"].sum() == 8
    assert (np.stack(table["logits_after"].tolist()).argmax(axis=1) != table["class_index"]).sum() == 8


@pytest.mark.long
def test_a_network_that_answers_otherwise_in_the_precision_of_the_search(folder: Path) -> None:
    found = evaluated(folder, "exact", ["mine:exact"], "none")
    assert "precision_changes_answers" in {each.sign for each in found.warnings["mine:exact"].warnings}


@pytest.mark.long
def test_no_sign_is_not_printed_of_what_is_undecided(folder: Path) -> None:
    # under another name it is the same model
    found = evaluated(folder, "alone", ["Ours=mine:honest"], "none", transfer_from=["mine:honest"])
    assert list(found.warnings) == ["Ours"]
    text = StringIO()
    Console(file=text, width=80, color_system=None).print(as_text(found), highlight=False)
    assert "transfer_beats_gradient is undecided" in text.getvalue()
    assert "no sign" not in text.getvalue()


@pytest.mark.long
def test_an_attack_that_cannot_begin_loses_nothing(folder: Path) -> None:
    """The model that sees red alone classifies images of one class alone correctly, so boundary has no start."""
    found = evaluated(folder, "problems", ["mine:red", "mine:honest"], "none,boundary", images=2, warnings=False)
    assert list(found.problems) == [("boundary", "mine:red")]
    assert "no image of another class that the model classifies correctly" in found.problems["boundary", "mine:red"]
    assert accuracies(found, "mine:red") == []
    assert found.value("boundary", "mine:honest", "success") is not None
    results = json.loads((folder / "problems" / "attack_results.json").read_text())
    assert [list(each["problems"]) for each in results["models"]] == [["boundary"], []]
    text = StringIO()
    Console(file=text, width=80, color_system=None).print(as_text(found), highlight=False)
    assert "mine:red: boundary: " in text.getvalue()


@pytest.mark.long
def test_a_table_for_a_paper_ends_with_all_problems(folder: Path) -> None:
    models = ["--model", "mine:red", "--model", "Again=mine:red"]
    given = ["--attacks", "none,boundary", "--eps", EPS, "--limit", "2", "--device", "cpu", "--format", "csv"]
    done = CliRunner().invoke(
        tools, ["evaluate", "set", *models, *given, "--no-warnings", "--out", "both_fail", "--edition", "."]
    )
    assert isinstance(done.exception, CleansetError)
    message = str(done.exception)
    assert "boundary mine:red: " in message
    assert "; boundary Again: " in message
    assert message.endswith("(all other results are in both_fail)")


def printed(found: AttackedModels) -> str:
    text = StringIO()
    Console(file=text, width=80, color_system=None).print(as_text(found), highlight=False)
    return text.getvalue()


@pytest.mark.long
def test_what_the_probe_breaks_is_broken(folder: Path) -> None:
    """Square of one query breaks nothing; the probe's PGD breaks the eight near images, judged as files."""
    path = folder / "weak.yaml"
    path.write_text(
        "seed: 0\nprobe: {images: 12, eps: 8/255, steps: 10, group: 12, spsa_steps: 2, spsa_samples: 8}\n"
        "attacks: {square: {eps: 8/255, queries: 1, group: 12}}\n"
    )
    wanted = Arguments(str(folder / "set"), ["mine:honest"], device="cpu")
    found = run(AttackRequest.read(Edition(folder), wanted, attack_params(str(path)), folder / "weak"))
    assert success(found, "square", "mine:honest") == 0
    assert accuracies(found, "mine:honest") == pytest.approx([1, 4 / 12])
    assert (
        "mine:honest: the probe breaks 8 of 12 correctly classified images in Linf 8/255; 8 of them withstood every "
        "attack in Linf 8/255 and now count as broken there"
    ) in " ".join(printed(found).split())
    kept = folder / "weak" / "attacks" / "probe" / "mine_honest"
    table = pd.read_parquet(kept / "attacked.parquet").set_index("file")
    assert table["is_error"].sum() == 8
    for file, row in table.iterrows():
        clean = np.asarray(Image.open(folder / "set" / str(file)).resize((8, 8)), np.int64)
        candidate = np.asarray(Image.open(kept / row["png"]), np.int64)
        assert np.abs(clean - candidate).max() <= 8
        means = candidate.mean(axis=(0, 1))
        assert row["is_error"] == ((means[0] > means[1]) != ("n01440764" in str(file)))


@pytest.mark.long
def test_no_attack_has_no_robust_accuracy(folder: Path) -> None:
    found = evaluated(folder, "nothing", ["mine:honest"], "none", warnings=False)
    assert not [line for line in found.lines if "robust" in line.measure]
    assert [line.split() for line in printed(found).splitlines() if "no attack" in line and "mine" in line] == [
        ["mine:honest", "no", "attack", "12", "100.0", "–", "(1)", "–", "(1)"]
    ]
    rows = {form: paper_table(found).in_form(form).splitlines() for form in ("latex", "markdown", "csv")}
    assert rows["latex"][7] == r"mine:honest & no attack & 12 & 100.0 & -- (1) & -- (1) \\"
    assert rows["markdown"][2] == "| mine:honest | no attack | 12 | 100.0 | – (1) | – (1) |"
    assert rows["csv"][1] == "mine:honest,no attack,12,100.0,,,robust: no attack ran; distance: no attack ran"
    results = json.loads((folder / "nothing" / "attack_results.json").read_text())
    assert results["models"][0]["threat_models"] == []


@pytest.mark.long
def test_attacks_of_two_kinds_never_join(folder: Path) -> None:
    """PGD breaks eight of twelve in its ball; the rotations have a line of their own."""
    found = evaluated(folder, "kinds", ["mine:honest"], "pgd,random_spatial", warnings=False)
    assert accuracies(found, "mine:honest") == pytest.approx([1, 4 / 12])
    names = [line.change for line in found.lines if line.measure == "robust_high"]
    assert names == ["Linf 8/255", "random_spatial"]
    texts = [line.split() for line in printed(found).splitlines() if "mine:honest" in line and "8/255" in line]
    assert texts == [["mine:honest", "Linf", "8/255", "12", "100.0", "33.3", "(13.8–60.9)", "0.0314"]]


def test_boundary_needs_two_classes(folder: Path) -> None:
    shutil.copytree(folder / "set" / "n01440764", folder / "red" / "n01440764")
    wanted = Arguments(str(folder / "red"), ["mine:honest"], device="cpu")
    with pytest.raises(CleansetError, match=r"boundary: all images of .* are of one class; expected one of another"):
        AttackRequest.read(Edition(folder), wanted, attack_params("pgd,boundary"), folder / "never")
    assert not (folder / "never" / "attacks").exists()


@pytest.mark.long
def test_steps_that_gradients_pass_straight_through(folder: Path) -> None:
    found = evaluated(folder, "bpda", ["mine:rounded"], "pgd", straight_through=["step"], warnings=False)
    assert success(found, "pgd", "mine:rounded") == pytest.approx(8 / 12)


@pytest.mark.long
def test_a_command(folder: Path) -> None:
    """It is asked for classes; images made on a network with a gradient break it; other signs are undecided."""
    command = f"command:{sys.executable} answer.py"
    found = evaluated(folder, "command", [command], "none,transfer", transfer_from=["mine:honest"], images=2)
    assert accuracies(found, command) == [1]
    high = found.value("Linf 8/255", command, "robust_high")
    assert high is not None
    assert high.value == 0
    record = found.warnings[command]
    assert record.warnings == ()
    assert {each.text for each in record.not_told} == {"a command gives only classes"}


def test_a_search_for_signs_that_takes_longer_than_the_attacks_is_announced(folder: Path) -> None:
    """No attack judges 12 images and their candidates; SPSA by its defaults takes more than the search for signs."""
    wanted = Arguments(str(folder / "set"), ["mine:honest"], device="cpu")

    def notice(names: str, images: int | None = None, warnings: bool = True) -> str | None:
        params = attack_params(names, EPS, images)
        return notice_of_signs(AttackRequest.read(Edition(folder), wanted, params, folder / "never", warnings=warnings))

    told = r"the search for signs .* takes up to [\d,]+ passes, the attacks 24; --no-warnings leaves it out"
    assert re.fullmatch(told, str(notice("none")))
    assert notice("none", warnings=False) is None
    assert notice("spsa") is None


def test_a_command_is_asked_by_one_process_alone(folder: Path) -> None:
    """A network is opened again by each worker."""
    wanted = Arguments(
        str(folder / "set"), [f"Program=command:{sys.executable} answer.py", "mine:honest"], device="cpu"
    )
    request = AttackRequest.read(Edition(folder), wanted, attack_params("none"), folder / "alone")
    opens = {}
    for name in request.specs:
        evaluated = EvaluatedModel(name=name, request=request, settings=settings_for(request.score))
        opens[name] = evaluated.other_searches("none").open is not None
    assert opens == {"Program": False, "mine:honest": True}


@pytest.mark.parametrize(
    ("models", "names", "message"),
    [
        (["mine:honest"], "fgsm", r"unknown --attacks 'fgsm'; expected one of none, "),
        (["mine:honest"], "guess", "unknown --attacks 'guess'; expected one of none, "),
        (["mine:honest"], "pgd,pgd", "--attacks pgd: given twice"),
        (
            ["mine:honest"],
            "transfer",
            "transfer: no source model for mine:honest; expected",
        ),
        (
            ["Ours=mine:honest"],
            "transfer",
            "transfer: no source model for Ours; expected",
        ),
        (["mine:nothing"], "pgd", "--model mine:nothing: mine has no nothing; expected a callable"),
        (
            ["command:true"],
            "pgd",
            "pgd: asks for gradients; a command gives only classes: expected",
        ),
        (["command:true"], "square", "square: asks for logits; a command gives only classes"),
        (["command:no-such-program x"], "none", "no program 'no-such-program' here or on the PATH"),
        (["command:true"], "none", r"command:true: no answer to \d+ of \d+ images, 00000.png among them"),
        (["command:false"], "none", "command:false: ends with exit code 1"),
        (["command:echo a,b"], "none", "line 1 of its output: 'a,b .*; expected a file that it was given"),
        (["command:'"], "none", "No closing quotation; expected a command as a shell reads it"),
    ],
)
def test_what_is_refused(folder: Path, models: list[str], names: str, message: str) -> None:
    with pytest.raises(CleansetError, match=message) as error:
        evaluated(folder, "refused", models, names)
    assert "\n" not in str(error.value)


def test_a_guess_by_another_name_is_refused(folder: Path) -> None:
    """No predictions are stored; the images themselves would look like an attack that always fails."""
    path = folder / "guess.yaml"
    path.write_text("attacks: {mine: {kind: guess}}\n")
    with pytest.raises(CleansetError, match="guess: reads the stored predictions of a study; expected another attack"):
        attack_params(str(path))


def test_the_params_of_a_request(tmp_path: Path) -> None:
    """Without a file all that have an Linf ball share one around the image; a file is as a study's."""
    found = attack_params("pgd, spsa,boundary", EPS, 5)
    attacks = found.attacks
    assert isinstance(attacks["pgd"], PgdAttack)
    assert isinstance(attacks["spsa"], SpsaAttack)
    assert (attacks["pgd"].eps, attacks["spsa"].eps, attacks["spsa"].after) == (8 / 255, 8 / 255, None)
    assert (attacks["boundary"].ball.eps, found.images, found.probe.eps) == (10, 5, 8 / 255)  # type: ignore[union-attr]
    assert attack_params("pgd").attacks["pgd"].ball == Ball("Linf", 4 / 255)
    path = tmp_path / "wanted.yaml"
    path.write_text("attacks: {far: {kind: pgd, norm: L2, eps: 0.5}, pgd: {}}\n")
    assert list(attack_params(str(path)).attacks) == ["far", "pgd"]
    with pytest.raises(CleansetError, match="--eps 8/255: goes with names of attacks"):
        attack_params(str(path), EPS)
    path.write_text("wrapped: {mine: {model: standard, wrapper: uninteresting}}\n")
    with pytest.raises(CleansetError, match=r"wanted\.yaml: wrapped: expected the models as --model"):
        attack_params(str(path))


def test_one_ball_for_all_attacks_that_take_one() -> None:
    found = attack_params("pgd,square,transfer,boundary,spatial_grid", "0.5", norm="L2")
    assert [each.name for each in found.threats] == ["L2 0.5", "boundary", "spatial_grid"]
    assert [each.name for each in attack_params("pgd,autoattack,spsa").threats] == ["Linf 4/255"]
    with pytest.raises(CleansetError, match="--norm L2: spsa searches in Linf only; expected --norm Linf"):
        attack_params("pgd,spsa", "0.5", norm="L2")
    with pytest.raises(CleansetError, match="--norm L2: no radius; expected --eps, too"):
        attack_params("pgd", norm="L2")
    with pytest.raises(CleansetError, match="--eps: no other image of 8 bits is in this L2 ball"):
        attack_params("pgd", "0.001", norm="L2")


@pytest.mark.parametrize(("eps", "levels"), [("8/255", 8), ("0.0314", 8), ("0.0157", 4), ("1/255", 1), ("1", 255)])
def test_radii_are_fractions_or_decimals(eps: str, levels: int) -> None:
    found = attack_params("pgd,spsa,square", eps)
    assert {each.eps for each in found.attacks.values()} == {levels / 255}  # type: ignore[attr-defined]
    assert found.probe.eps == levels / 255


@pytest.mark.parametrize(
    ("eps", "message"),
    [
        ("0.5/255", "--eps: 0.5 levels of 8 bits; expected whole levels, 1/255 to 255/255"),
        ("1.5/255", "--eps: 1.5 levels of 8 bits; expected whole levels"),
        ("0.03", "--eps: 7.65 levels of 8 bits; expected whole levels"),
        ("300/255", "--eps: 300 levels of 8 bits; expected whole levels"),
        ("4", r"--eps: 1020 levels of 8 bits; .* such as 8/255 \(pixels are 0 to 1\); found '4'"),
        ("large", "--eps: expected a number, or a fraction such as 4/255; found 'large'"),
        ("nan", "--eps: expected"),
        ("", "--eps: expected a number, or a fraction such as 4/255; found ''"),
    ],
)
def test_radii_that_hold_no_image_or_every_one(eps: str, message: str) -> None:
    with pytest.raises(CleansetError, match=message):
        attack_params("pgd", eps)


@pytest.mark.parametrize(
    ("attacks", "message"),
    [
        (
            "{pgd: {eps: 8}}",
            r"wanted\.yaml: attacks\.pgd\.eps: 2040 levels of 8 bits; .* \(pixels are 0 to 1\); found 8",
        ),
        ("{pgd: {norm: L2, eps: 0.5/255}}", "eps: no other image of 8 bits is in this L2 ball; expected at least 1/"),
        ("{boundary: {eps: 0.001}}", "eps: no other image of 8 bits is in this L2 ball"),
        ("{spsa: {eps: 1.5/255}}", "eps: 1.5 levels"),
    ],
)
def test_radii_in_a_file(tmp_path: Path, attacks: str, message: str) -> None:
    (tmp_path / "wanted.yaml").write_text(f"attacks: {attacks}\n")
    with pytest.raises(CleansetError, match=message):
        attack_params(str(tmp_path / "wanted.yaml"))
