"""`cleanset models`: what it shows, and what it writes into params.yaml."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from cleanset.cli import main
from cleanset.edition import Edition
from cleanset.errors import CleansetError
from cleanset.files import sha256
from cleanset.params import Params, read_params
from cleanset.scoring.ensemble import Member, members, pinned
from cleanset.scoring.models import load_model
from weights.conftest import Serving
from weights.servers import Plan

A, B = "a" * 64, "b" * 64
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
    sha256: {B}

  third: {{source: robustbench, name: Salman2020Do_R50, threat_model: Linf}}
review: {{policy: single}}
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
    (scores / "standard.json").write_text(json.dumps({"weights_sha256": A}))
    standard, robust, third = members(Edition(folder))
    assert standard == Member(
        role="standard", source="timm", name="resnet50.a1_in1k", threat_model=None,
        preprocessing="timm-bicubic-235-224", weights="data/weights/timm/resnet50.a1_in1k/model.safetensors",
        found=sha256(b"one"), pinned=None, scored=A, state="there",
    )  # fmt: skip
    assert (robust.found, robust.pinned, robust.scored, robust.state) == (sha256(b"two"), B, None, "other bytes")
    assert (third.threat_model, third.preprocessing, third.state) == ("Linf", "Res256Crop224", "missing")
    assert (third.weights, third.found) == ("data/weights/imagenet/Linf/Salman2020Do_R50.pt", None)
    hub.write_text("<!DOCTYPE html>")
    assert members(Edition(folder))[0].state == "not weights"
    (scores / "standard.json").write_text("{")
    with pytest.raises(CleansetError, match=r"standard\.json: not what the score stage writes; run dvc checkout"):
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
        f"pinned         {B}",
        "state          other bytes",
    ]
    listed = json.loads(run(folder, "--json").stdout)
    assert [entry["role"] for entry in listed] == ["standard", "robust", "third"]
    assert (listed[1]["found"], listed[1]["pinned"], listed[1]["state"]) == (sha256(b"two"), B, "other bytes")


def test_pinning_downloads_and_then_other_bytes_are_refused(
    tmp_path: Path, serving: Serving, run: Callable[..., Done]
) -> None:
    (tmp_path / "params.yaml").write_text(
        "root: .\ndataset: {images: none.tar}\nmodels:\n  standard: {source: timm, name: test_byobnet.r160_in1k} # x\n"
    )
    plan = Plan(b"PK and so on")
    serving(plan)
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


class TestPinned:
    def test_all_else_stays(self) -> None:
        before, after = PARAMS.splitlines(), pinned(PARAMS, {"standard": A, "third": B}).splitlines()
        assert len(before) == len(after)
        changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
        assert changed == [
            (
                "  standard: {source: timm, name: resnet50.a1_in1k}    # downloaded",
                f"  standard: {{source: timm, name: resnet50.a1_in1k, sha256: {A}}}    # downloaded",
            ),
            (
                "  third: {source: robustbench, name: Salman2020Do_R50, threat_model: Linf}",
                f"  third: {{source: robustbench, name: Salman2020Do_R50, threat_model: Linf, sha256: {B}}}",
            ),
        ]

    @pytest.mark.parametrize(
        "model",
        [
            "  a:\n    source: timm\n    name: x # y@\nexport: {}\n",
            "  a:\n    source: timm\n    name: x@",
            "  a:\r\n    source: timm\r\n    name: x@\r\n",
            "  a: {source: timm,\n      name: 'x'@, # y\n  }\n",
            "  a: {source: timm, name: x@}\n",
            "  a: {source: timm, sha256: null#, name: x}\n",
            "  a: {source: timm, sha256:#, name: ü}\n",
            "  a:\n    sha256:#\n    source: timm\n    name: x\n",
        ],
        ids=["block", "no end of line", "windows", "several lines", "flow", "null", "nothing", "nothing in a block"],
    )
    def test_styles(self, model: str) -> None:
        """`@` marks where a line or an entry comes in, `#` behind a null or nothing where the sum does."""
        head = "root: .\ndataset: {images: ü.tar}\nmodels:\n"
        newline = "\r\n" if "\r\n" in model else "\n"
        entry = f", sha256: {A}" if "{source" in model else f"{newline}    sha256: {A}"
        bare = model.replace("@", "").replace("null#", "null").replace(":#", ":")
        expected = model.replace("@", entry).replace("null#", A).replace(":#", f": {A}")
        assert pinned(head + bare, {"a": A}) == head + expected

    def test_what_cannot_be_done(self) -> None:
        text = "root: .\ndataset: {images: x}\nmodels:\n  a: &m {source: timm, name: x}\n  b: *m\n"
        with pytest.raises(CleansetError, match=f"^params.yaml: cannot be .* write yourself models.a.sha256: {A}$"):
            pinned(text, {"a": A})


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from(["", "  # note", " "])), min_size=1, max_size=4),
    st.sampled_from(["\n", "\r\n"]),
)
def test_pinned_adds_sums_and_nothing_else(models: list[tuple[bool, str]], newline: str) -> None:
    lines = ["root: .", "dataset: {images: x}  # y", "models:"]
    for number, (flow, note) in enumerate(models):
        lines += (
            [f"  m{number}: {{source: timm, name: x}}{note}"]
            if flow
            else [f"  m{number}:{note}", "      source: timm", f"      name: x{note}", ""]
        )
    text = newline.join([*lines, "select: {candidates: 4}", ""])
    sums = {f"m{number}": f"{number:063x}a" for number in range(len(models))}
    result = pinned(text, sums)
    found = Params.model_validate(yaml.safe_load(result))
    assert {role: model.sha256 for role, model in found.models.items()} == sums
    for found_sum in sums.values():
        result = result.replace(f", sha256: {found_sum}", "").replace(f"{newline}      sha256: {found_sum}", "")
    assert result == text
