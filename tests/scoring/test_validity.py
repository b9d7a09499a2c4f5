"""Whether a result may be used again: what it was made from, compared fact by fact."""

import json
import os
import re
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from cleanset.classes import imagenet
from cleanset.edition.params import Score
from cleanset.plumbing.files import sha256
from cleanset.plumbing.json_files import with_digest
from cleanset.scoring.validity import MadeFrom, code_of, library_versions, made_from_images, read_finished

FACTS = {"precision": "float64", "versions": {"numpy": "2.4", "torch": "2.11.0"}, "sizes": (224, 256)}


FOUND = {
    "model": "one",
    "code": "scoring 1",
    "rows_sha256": "ab",
    "classes_sha256": imagenet().keys_sha256,
    "weights_sha256": "cd",
    "model_code": "ef",
    "batch_size": 4,
    "computed_on": "cpu",
    "seed": 3,
}


def stored(**changes: object) -> dict[str, object]:
    return {**FACTS, "sizes": [224, 256], "accuracy": 0.5, **changes}


def test_a_result_made_from_the_same_may_be_used_again() -> None:
    assert MadeFrom(FACTS).differences(stored()) == []


@pytest.mark.parametrize(
    ("record", "difference"),
    [
        (stored(precision="float32"), ["precision 'float32', now 'float64'"]),
        (stored(versions={"numpy": "2.4", "torch": "2.10.0"}), ["versions.torch '2.10.0', now '2.11.0'"]),
        (stored(versions={"numpy": "2.4"}), ["versions.torch None, now '2.11.0'"]),
        (stored(versions={**FACTS["versions"], "lpips": "0.1.4"}), ["versions.lpips '0.1.4', now None"]),  # type: ignore[dict-item]
        (stored(sizes=[224, 224]), ["sizes [224, 224], now [224, 256]"]),
        ([], ["no record of its inputs"]),
        (None, ["no record of its inputs"]),
        ({}, ["precision None, now 'float64'", "versions None, now {'numpy': '2.4', 'torch': '2.11.0'}",
              "sizes None, now [224, 256]"]),
    ],
)  # fmt: skip
def test_each_difference_is_reported(record: object, difference: list[str]) -> None:
    assert MadeFrom(FACTS).differences(record) == difference


def test_a_finished_result_is_read_until_it_or_its_origin_changes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record, result = tmp_path / "a.json", tmp_path / "a.parquet"
    assert read_finished(record, MadeFrom(FACTS), result) is None  # neither is there
    result.write_bytes(b"answers")
    content = with_digest(stored(), result)
    assert content["predictions_sha256"] == sha256(b"answers")
    record.write_text(json.dumps(content))
    os.utime(record, (1_700_000_000, 1_700_000_000))
    assert read_finished(record, MadeFrom(FACTS), result) == content
    assert read_finished(record, MadeFrom(FACTS)) == content
    again = "reusing the answers of 14 November 2023; --fresh computes them again"
    assert capsys.readouterr() == ("", f"{result}: {again}\n{record}: {again}\n")
    assert read_finished(record, MadeFrom(FACTS | {"precision": "float32"}), result) is None
    assert f"{result}: computed again: precision 'float64', now 'float32'" in capsys.readouterr().err
    record.write_text(json.dumps(content | {"accuracy": 0.75}))
    assert read_finished(record, MadeFrom(FACTS), result) is None
    record.write_text(json.dumps(content))
    result.write_bytes(b"edited")
    assert read_finished(record, MadeFrom(FACTS), result) is None
    assert f"{result}: computed again: not the bytes that {record} names" in capsys.readouterr().err


def test_a_record_without_a_digest_is_like_none(tmp_path: Path) -> None:
    record, result = tmp_path / "a.json", tmp_path / "a.parquet"
    result.write_bytes(b"answers")
    record.write_text(json.dumps(stored(predictions_sha256=sha256(b"answers"))))
    assert read_finished(record, MadeFrom(FACTS), result) is None


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"a": 1, "a": 1}', "[" * 10_000, json.dumps(stored())])
def test_a_damaged_record_is_like_none(tmp_path: Path, content: str) -> None:
    record, result = tmp_path / "a.json", tmp_path / "a.parquet"
    result.write_bytes(b"answers")
    record.write_text(content)
    assert read_finished(record, MadeFrom(FACTS), result) is None


def test_a_fingerprint_depends_on_every_fact_and_not_on_their_order() -> None:
    made_from = MadeFrom(FACTS)
    assert made_from.fingerprint == MadeFrom(dict(reversed(FACTS.items()))).fingerprint
    others: list[dict[str, object]] = [
        {**FACTS, "precision": "float32"}, {**FACTS, "sizes": (224, 255)}, {**FACTS, "seed": 0}
    ]  # fmt: skip
    assert len({made_from.fingerprint, *(MadeFrom(each).fingerprint for each in others)}) == 4


def test_code_is_named_by_its_version_files() -> None:
    def number(package: str) -> str:
        return files("cleanset").joinpath(package, "VERSION").read_text().strip()

    assert code_of("scoring") == f"scoring {number('scoring')}"
    attacks = number("studies/attacks")
    assert code_of("scoring", "studies/attacks") == f"scoring {number('scoring')}, studies/attacks {attacks}"


def test_libraries_that_are_not_installed_are_left_out() -> None:
    found = library_versions(["numpy", "no-such-library"])
    assert list(found) == ["numpy"]
    assert "+" not in library_versions()["torch"]


@pytest.mark.slow
def test_what_is_made_of_images_depends_on_all_that_was_given() -> None:
    from torch import nn

    from cleanset.images.preprocessing import RES256CROP224
    from cleanset.scoring.engine import settings_for
    from cleanset.scoring.models import LoadedModel

    version = files("cleanset").joinpath("scoring", "VERSION").read_text().strip()
    given: dict[str, Any] = {
        "record": {"model": "one", "weights_sha256": "cd"},
        "images": {"rows_sha256": "ab"},
        "classes": imagenet(),
        "code": ["scoring"],
        "model": LoadedModel(nn.Identity(), RES256CROP224, "cd", classes=1000, code="ef"),
        "settings": settings_for(Score.model_validate({"device": "cpu", "precision": "float32", "batch_size": 4})),
        "further": {"seed": 3},
    }
    assert made_from_images(**given).facts == {**FOUND, "code": f"scoring {version}"}
    # the order is that of a record's keys
    assert list(made_from_images(**given).facts)[:3] == ["model", "weights_sha256", "code"]
    without = made_from_images(**{**given, "model": None, "settings": None, "record": {}}).facts
    assert sorted(without) == ["classes_sha256", "code", "rows_sha256", "seed"]


def test_one_function_makes_what_results_on_images_depend_on() -> None:
    """Trainings, and the answers of several models together, have facts of another kind."""
    root = files("cleanset")
    makers = sorted(
        path.relative_to(str(root)).as_posix()
        for path in Path(str(root)).rglob("*.py")
        if re.search(r"\bMadeFrom\(", path.read_text())
    )
    assert makers == [
        "scoring/validity.py",
        "studies/robustness/answering.py",
        "studies/training/finished.py",
        "studies/training/spread.py",
        "studies/training/state.py",
    ]


@pytest.mark.slow
def test_below_float64_results_depend_on_batch_and_device() -> None:
    import torch

    from cleanset.scoring.devices import device_of
    from cleanset.scoring.engine import Settings, settings_for
    from cleanset.scoring.validity import below_float64

    def settings(precision: str) -> Settings:
        return settings_for(Score.model_validate({"device": "cpu", "precision": precision, "batch_size": 4}))

    assert below_float64(settings("float64")) == {}
    assert below_float64(settings("float32")) == {"batch_size": 4, "computed_on": "cpu"}
    on_gpu = replace(settings("bfloat16"), devices=[device_of(torch.device("cuda", 1))])
    assert below_float64(on_gpu) == {"batch_size": 4, "computed_on": "cuda"}
