"""Damaged CSV files of measures: one clear line for each, and never a traceback."""

from pathlib import Path

import pandas as pd
import pytest

from cleanset.errors import CleansetError
from cleanset.studies.robustness.corruptions.family import CORRUPTION_FAMILY
from cleanset.studies.robustness.measuring import MEASURE_FILES, MEASURE_REMEDY, TEXT_COLUMNS, read_measures

MODELS = ["standard", "robust"]
STEMS = (
    "models", "notes", "notices", "corruptions", "corruption_differences", "corruption_errors", "errors_by_severity",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for stem in STEMS:
        columns = MEASURE_FILES[f"measures/{stem}.csv"]
        row = {name: "standard" if name == "model" else "a" if name in TEXT_COLUMNS else 1 for name in columns}
        pd.DataFrame([row]).to_csv(tmp_path / f"{stem}.csv", index=False)
    return tmp_path


def test_whole_tables_are_read(folder: Path) -> None:
    assert set(read_measures(folder, [CORRUPTION_FAMILY], MODELS)) == set(STEMS)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "missing; expected the output of stage measure"),
        (b"", "no CSV table (No columns to parse from file); run dvc checkout measure"),
        (b"\xff\xfe", "no CSV table ("),
        (b"a,b\n1,2,3\n1\n", "columns a, b; expected model, change, severity, error, official"),
        (b'"model', "no CSV table ("),
        (
            b"model,change,severity,error,official\nstandard,fog,1,.2x,no\n",
            "column error has a value that is not a num",
        ),
        (
            b"model,change,severity,error,official\nvgg,fog,1,.2,no\n",
            "unknown model 'vgg'; expected one of standard, r",
        ),
    ],
)
def test_a_damaged_table_is_reported(folder: Path, data: bytes | None, message: str) -> None:
    path = folder / "errors_by_severity.csv"
    path.unlink() if data is None else path.write_bytes(data)
    with pytest.raises(CleansetError) as error:
        read_measures(folder, [CORRUPTION_FAMILY], MODELS)
    assert str(error.value).startswith(f"{path}: {message}")
    assert str(error.value).endswith(MEASURE_REMEDY)


def test_no_rows(folder: Path) -> None:
    path = folder / "corruptions.csv"
    path.write_text(path.read_text().splitlines()[0] + "\n")
    with pytest.raises(CleansetError, match=r"corruptions\.csv: no rows; expected a row for each measure: run dvc"):
        read_measures(folder, [CORRUPTION_FAMILY], MODELS)
