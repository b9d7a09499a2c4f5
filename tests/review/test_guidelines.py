"""The guidelines of an edition travel with the votes into the finished set."""

from pathlib import Path

import pandas as pd
import pytest

from cleanset.classes import imagenet
from cleanset.errors import CleansetError
from cleanset.review.guidelines import own_guidelines, usual_guidelines, write_guidelines
from cleanset.review.store import reviewer_folders
from cleanset.sets.folder import DESCRIPTIONS, OPTIONAL
from cleanset.tables import VOTES, read_table, text_of_table, write_table
from cleanset.vocabulary import REASONS

ONE = pd.DataFrame(
    [("ILSVRC2012_val_00000001", "ada", "clean", None, None)],
    columns=["image_id", "reviewer", "verdict", "reason", "crop"], dtype=object,
)  # fmt: skip


def test_an_edition_begins_with_the_usual_ones(tmp_path: Path) -> None:
    assert own_guidelines(tmp_path) is None
    path = write_guidelines(tmp_path)
    assert path == tmp_path / "GUIDELINES.md"
    assert own_guidelines(tmp_path) == usual_guidelines()
    assert reviewer_folders(tmp_path) == []
    with pytest.raises(CleansetError, match=r"GUIDELINES\.md: exists already; edit it, or move it away"):
        write_guidelines(tmp_path)
    path.write_text("x" * 200_001)
    with pytest.raises(CleansetError, match=r"200,001 bytes; expected at most 200,000: shorten it"):
        own_guidelines(tmp_path)
    with pytest.raises(CleansetError, match="missing; make the folder"):
        write_guidelines(tmp_path / "none")


def test_the_usual_ones_have_a_rule_for_each_reason() -> None:
    headings = [line[3:].replace(" ", "_") for line in usual_guidelines().splitlines() if line.startswith("## ")]
    assert headings == list(REASONS)


def test_a_table_without_texts_keeps_its_bytes(tmp_path: Path) -> None:
    plain, with_text = tmp_path / "a.parquet", tmp_path / "b.parquet"
    write_table(plain, ONE, VOTES, imagenet())
    write_table(with_text, ONE, VOTES, texts={"GUIDELINES.md": "# Ours – und so\n"}, classes=imagenet())
    assert text_of_table(with_text, "GUIDELINES.md") == "# Ours – und so\n"
    assert text_of_table(plain, "GUIDELINES.md") is None
    assert text_of_table(with_text, "other") is None
    pd.testing.assert_frame_equal(read_table(plain, VOTES, imagenet()), read_table(with_text, VOTES, imagenet()))
    before = plain.read_bytes()
    write_table(plain, ONE, VOTES, imagenet(), texts=None)
    assert plain.read_bytes() == before


def test_a_set_may_lack_them() -> None:
    assert "GUIDELINES.md" in OPTIONAL
    assert list(DESCRIPTIONS) == sorted(DESCRIPTIONS)
