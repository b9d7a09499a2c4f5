"""`cleanset models`: what it shows, and what it writes into params.yaml."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from cleanset.cli import main
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.plumbing.files import sha256
from cleanset.scoring.ensemble import EnsembleModel, members
from cleanset.scoring.models import load_model
from tests.scoring.conftest import Serving
from tests.scoring.servers import Plan
from tests.ten_images import SCORED

pytestmark = pytest.mark.slow

A, B, C = "a" * 64, "b" * 64, "c" * 64
PARAMS = f"""\
# an edition of mine
root: .
dataset: {{images: none.tar}}   # never read here
models:                         # three of them
  standard: {{source: timm, name: resnet50.a1_in1k}}    # downloaded
  robust:
    source: timm                # mine
    name: resnet18
    weights: w.pt
    sha256: {C}

  third: {{source: robustbench, name: Salman2020Do_R50, threat_model: Linf}}
review: {{policy: single}}
"""
PIPELINE = """\
stages:
  intersect:
    cmd: cleanset intersect
    deps:
      - data/scores/standard.parquet
      - data/scores/robust.parquet
      - data/scores/third.parquet
"""


@dataclass
class Done:
    stdout: str
    stderr: str


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """`cleanset models` as typed in a folder; ends well."""

    def typed(folder: Path, *arguments: str) -> Done:
        monkeypatch.chdir(folder)
        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.setattr(sys, "argv", ["cleanset", "models", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code == 0
        return Done(*capfd.readouterr())

    return typed


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "params.yaml").write_text(PARAMS)
    return tmp_path


def test_every_state(folder: Path) -> None:
    hub = folder / "data/weights/timm/resnet50.a1_in1k/model.safetensors"
    hub.parent.mkdir(parents=True)
    hub.write_bytes(b"one")
    (folder / "w.pt").write_bytes(b"two")
    scores = folder / "data" / "scores"
    scores.mkdir()
    (scores / "standard.json").write_text(json.dumps(SCORED | {"weights_sha256": A}))
    standard, robust, third = members(Edition(folder))
    assert standard == EnsembleModel(
        role="standard", source="timm", name="resnet50.a1_in1k", threat_model=None,
        preprocessing="timm-bicubic-235-224", weights="data/weights/timm/resnet50.a1_in1k/model.safetensors",
        found=sha256(b"one"), pinned=None, scored=A, state="there",
    )  # fmt: skip
    assert (robust.found, robust.pinned, robust.scored, robust.state) == (sha256(b"two"), C, None, "other bytes")
    assert (third.threat_model, third.preprocessing, third.state) == ("Linf", "Res256Crop224", "missing")
    assert (third.weights, third.found) == ("data/weights/imagenet/Linf/Salman2020Do_R50.pt", None)
    hub.write_text("<!DOCTYPE html>")
    assert members(Edition(folder))[0].state == "not weights"
    (scores / "standard.json").write_text("{")
    with pytest.raises(
        CleansetError, match=r"standard\.json, line 1: not JSON .*; expected the output of stage score of this version"
    ):
        members(Edition(folder))


def test_the_table_fits_eighty_columns_and_json_says_the_same(folder: Path, run: Callable[..., Done]) -> None:
    (folder / "w.pt").write_bytes(b"two")
    lines = [line.rstrip() for line in run(folder).stdout.splitlines()]
    assert max(map(len, lines)) <= 80
    assert lines[7:15] == [
        "",
        "role           robust",
        "model          timm resnet18",
        "preprocessing  timm-bicubic-235-224",
        "weights        w.pt",
        f"SHA-256        {sha256(b'two')}",
        f"pinned         {C}",
        "state          other bytes",
    ]
    listed = json.loads(run(folder, "--json").stdout)
    assert [entry["role"] for entry in listed] == ["standard", "robust", "third"]
    assert (listed[1]["found"], listed[1]["pinned"], listed[1]["state"]) == (sha256(b"two"), C, "other bytes")


def test_a_path_that_looks_like_markup(folder: Path, run: Callable[..., Done]) -> None:
    (folder / "params.yaml").write_text(PARAMS.replace("weights: w.pt", "weights: '[/bold] w[red].pt'"))
    lines = [line.rstrip() for line in run(folder).stdout.splitlines()]
    assert lines[11] == "weights        [/bold] w[red].pt"


@pytest.mark.long
def test_pinning_downloads_and_then_other_bytes_are_refused(
    tmp_path: Path, serving: Serving, run: Callable[..., Done]
) -> None:
    (tmp_path / "params.yaml").write_text(
        "root: .\ndataset: {images: none.tar}\nmodels:\n  standard: {source: timm, name: test_byobnet.r160_in1k} # x\n"
    )
    plan = serving(Plan(b"PK and so on"))
    shown = run(tmp_path, "--pin")
    assert shown.stderr == ""
    assert [line.rstrip() for line in shown.stdout.splitlines()[-3:]] == [
        f"SHA-256        {plan.sha256()}",
        "pinned         the same",
        "state          there",
    ]
    assert (tmp_path / "params.yaml").read_text().splitlines()[3] == (
        f"  standard: {{source: timm, name: test_byobnet.r160_in1k, sha256: {plan.sha256()}}} # x"
    )
    asked = len(plan.asked)
    run(tmp_path, "--pin")
    assert len(plan.asked) == asked
    (tmp_path / "data/weights/timm/test_byobnet.r160_in1k/model.safetensors").write_bytes(b"PK other")
    assert json.loads(run(tmp_path, "--json", "--pin").stdout)[0]["state"] == "other bytes"
    with pytest.raises(CleansetError, match=f"SHA-256 {sha256(b'PK other')}, expected {plan.sha256()} as in params"):
        load_model(read_params(tmp_path).model("standard"), tmp_path)


def test_local_weights_are_pinned(folder: Path, run: Callable[..., Done]) -> None:
    """A first run on own weights: named in params.yaml, their SHA-256 written by the command."""
    (folder / "w.pt").write_bytes(b"PK of mine")
    params = folder / "params.yaml"
    params.write_text(params.read_text().replace(f"\n    sha256: {C}", ""))
    expected = r"weights w\.pt of resnet18 without sha256, .*: run cleanset models --pin"
    with pytest.raises(CleansetError, match=expected):
        load_model(read_params(folder).model("robust"), folder)
    for name in ("imagenet/Linf/Salman2020Do_R50.pt", "timm/resnet50.a1_in1k/model.safetensors"):
        (folder / "data/weights" / name).parent.mkdir(parents=True)
        (folder / "data/weights" / name).write_bytes(b"PK of " + name.encode())
    run(folder, "--pin")
    assert read_params(folder).model("robust").sha256 == sha256(b"PK of mine")


def test_adding_and_removing(folder: Path, run: Callable[..., Done]) -> None:
    (folder / "mine.pt").write_bytes(b"PK of mine")
    (folder / "dvc.yaml").write_text(PIPELINE)
    done = run(folder, "--add", "mine=timm:resnet18", "--weights", "mine.pt", "--remove", "robust")
    assert done.stderr == "removed robust; its files in data/ stay until you delete them\nadded mine; next: dvc repro\n"
    assert [line.split()[1] for line in done.stdout.splitlines() if line.startswith("role")] == [
        "standard", "third", "mine",
    ]  # fmt: skip
    mine = read_params(folder).model("mine")
    assert (mine.weights, mine.sha256) == ("mine.pt", sha256(b"PK of mine"))
    assert "data/scores/mine.parquet\n" in (folder / "dvc.yaml").read_text()
    done = run(folder, "--add", "other=robustbench:Linf/Engstrom2019Robustness", "--json")
    assert done.stderr == "added other; next: cleanset models --pin\n"
    assert json.loads(done.stdout)[3]["weights"] == "data/weights/imagenet/Linf/Engstrom2019Robustness.pt"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--add", "mine=timm:resnet18", "--weights", "none.pt"), "none.pt: missing; expected weights of resnet18"),
        (("--add", "mine=timm:resnet18", "--weights", "page.pt"), "page.pt: .*; expected weights of resnet18"),
        (("--weights", "w.pt"), "--weights w.pt: goes with one --add; found none"),
        (
            ("--add", "drawn=random:0", "--weights", "mine.pt"),
            "--weights mine.pt: 0 is a random order of source random; expected a network of timm, torchvision, robustb",
        ),
        (("--add", "mine=timm:no_such_net"), "params.yaml: 'no_such_net': .*expected a model name of timm"),
        (("--add", "third=timm:resnet18"), "params.yaml: the model third exists already; choose another role"),
        (("--add", "A=timm:resnet18"), "params.yaml: models.A.*: "),
        (("--remove", "fourth"), "params.yaml: no model 'fourth'; expected one of standard, robust, third"),
        (("--remove", "standard", "--remove", "robust", "--remove", "third"), "params.yaml: no model would be left"),
    ],
)  # fmt: skip
def test_what_cannot_be_added_or_removed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    (folder / "dvc.yaml").write_text(PIPELINE)
    (folder / "page.pt").write_text("<!DOCTYPE html>")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["cleanset", "models", *arguments])
    with pytest.raises(SystemExit, match=f"^error: {message}"):
        main()
    assert (folder / "params.yaml").read_text() == PARAMS
    assert (folder / "dvc.yaml").read_text() == PIPELINE
