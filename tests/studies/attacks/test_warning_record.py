"""The record of the signs that a model only looks strong."""

from pathlib import Path

import pytest

from cleanset.errors import CleansetError
from cleanset.studies.attacks.warnings import Seen, WarningRecord, read_warnings, write_warnings

TEXT = """{
  "role": "mine",
  "images": 4,
  "parameters": {
    "eps": 0.5
  },
  "warnings": [
    {
      "sign": "no_gradient",
      "text": "4 of 4 images have no gradient"
    }
  ],
  "not_told": [
    {
      "sign": "black_box_better",
      "text": "4 images"
    }
  ]
}
"""


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    seen = Seen(sign="no_gradient", text="4 of 4 images have no gradient")
    few = Seen(sign="black_box_better", text="4 images")
    record = WarningRecord(role="mine", images=4, parameters={"eps": 0.5}, warnings=(seen,), not_told=(few,))
    write_warnings(tmp_path / "mine.json", record)
    assert (tmp_path / "mine.json").read_text() == TEXT
    assert read_warnings(tmp_path / "mine.json") == record


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "Invalid JSON"),
        (TEXT.replace('"images": 4,', ""), "images: field required"),
        (TEXT.replace('"images": 4,', '"images": -1,'), "images: expected greater than or equal to 0; found -1"),
        (TEXT.replace('"sign"', '"signs"'), r"warnings\.0"),
    ],
)
def test_another_file_is_refused_in_one_line(text: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text(text)
    with pytest.raises(CleansetError, match=f"(?i)^.*mine.json: {problem}.*expected what stage attack_warnings writes"):
        read_warnings(tmp_path / "mine.json")


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(CleansetError, match=r"mine\.json.*run dvc repro in studies/attacks"):
        read_warnings(tmp_path / "mine.json")
