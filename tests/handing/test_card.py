"""The data card of an export."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from cleanset.edition import Edition
from cleanset.errors import CleansetError
from cleanset.sets.card import Made, card
from cleanset.sets.terms import CITATION
from cleanset.stages import export
from handing.conftest import edit, make_edition
from inputs.made import SCORED

EMPTY = pd.DataFrame(columns=["image_id", "class_index", "tier", "crop", "reason", "open"]).astype({"open": bool})


def section(text: str, name: str) -> str:
    """What stands under a heading."""
    return text.split(f"\n## {name}\n\n")[1].split("\n\n## ")[0].rstrip("\n")


def made(**changes: Any) -> Made:
    return Made("standard", [0, 278], 3, False, SCORED | changes)


def test_what_is_counted(export_folder: Path) -> None:
    text = (export_folder / "README.md").read_text()
    assert "\n# cleanset-standard\n\n6 pictures of 4 classes, up to 3 of each, out of 10 pictures: those that" in text
    assert "\n\n**Made from 10 pictures, not from the 50,000 of ImageNet's validation set: a sample or a trial" in text
    assert section(text, "Pictures").startswith(
        "| what | number |\n"
        "|---|--:|\n"
        "| pictures | 6 |\n"
        "| tier `top5` | 3 |\n"
        "| tier `reserve` | 1 |\n"
        "| tier `relaxed` | 2 |\n"
        "| cropped | 2 |\n"
        "| classes that are full | 1 |\n"
        "| classes that are short | 3 |\n"
        "| classes with a picture still to be reviewed | 1 |\n"
        "\n"
    )
    assert section(text, "Candidates that are not in it, by reason") == (
        "| reason | number |\n|---|--:|\n| blur | 1 |\n| unreviewed | 1 |\n| not_needed | 1 |"
    )
    assert section(text, "Short classes") == (
        "| class | pictures | candidates | not taken |\n"
        "|---|--:|--:|---|\n"
        "| n01440764 | 2 | 4 | blur 1, not_needed 1 |\n"
        "| n02123045 | 1 | 2 | unreviewed 1 |\n"
        "| n02606052 | 0 | 0 | none |"
    )


def test_how_it_was_computed(export_folder: Path) -> None:
    """From what stage score has written, whatever is installed here."""
    assert section((export_folder / "README.md").read_text(), "Scores") == (
        "- model: test_efficientnet of timm\n"
        f"- SHA-256 of its weights: {'5' * 64}\n"
        "- preprocessing timm-bicubic-182-160: short side to 182 pixels (bicubic), central 160 x 160\n"
        "- precision: float64\n"
        "- computed with numpy 2.4.6, pillow 13.0.0, robustbench 1.1.1, timm 1.0.9, torch 2.11.0"
    )


def test_below_float64_it_says_how_far_it_is() -> None:
    distance = {
        "pictures": 1000,
        "top1_agreement": 0.999,
        "largest_difference": 0.0031,
        "classes": 20,
        "classes_reordered": 7,
        "classes_changed": 2,
    }
    facts = {"precision": "tf32", "against_float64": distance, "threat_model": "Linf"}
    text = section(card(made(**facts), EMPTY, EMPTY), "Scores")
    assert "- model: test_efficientnet of timm, threat model Linf\n" in text
    assert (
        "- precision: tf32\n"
        "- against float64: top-1 agreement 99.90% of 1,000 pictures, largest difference in probability 0.0031, "
        "of 20 classes 7 with another order of the five easiest, 2 with other three\n"
    ) in text


def test_what_is_no_set_for_a_study_says_so() -> None:
    whole = made(pictures=50_000)
    text = card(whole, EMPTY, EMPTY)
    assert "out of 50,000 validation pictures of ImageNet (ILSVRC2012): those" in text
    assert "not for a study" not in text
    assert "taken for clean: a first look, not for a study" in card(replace(whole, unreviewed_clean=True), EMPTY, EMPTY)


def test_terms_and_citation(export_folder: Path) -> None:
    text = (export_folder / "README.md").read_text()
    assert "research and education, nothing commercial" in section(text, "Terms")
    assert "https://www.image-net.org/download.php" in section(text, "Terms")
    assert "@misc{cleanset,\n" in section(text, "Citation")
    assert "10.1007/s11263-015-0816-y" in section(text, "Citation")


def test_front_matter(export_folder: Path) -> None:
    _, matter, _ = (export_folder / "README.md").read_text().split("---\n", 2)
    assert yaml.safe_load(matter) == {
        "pretty_name": "cleanset-standard",
        "license": "other",
        "license_name": "imagenet",
        "license_link": "https://www.image-net.org/download.php",
        "task_categories": ["image-classification"],
        "size_categories": ["n<1K"],
        "configs": [{"config_name": "default", "data_files": [{"split": "validation", "path": "**"}]}],
    }


def test_its_own_lines_load_it(copy: Path, tmp_path: Path) -> None:
    text = (copy / "README.md").read_text()
    first, second = (block.split("```")[0] for block in text.split("```python\n")[1:])
    shown = "print(len(pictures), image.size, class_index, record['wnid'], len(folders), len(table))"
    environment = {"HF_DATASETS_OFFLINE": "1", "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf")}
    program = f"import os; os.environ |= {environment}\n{first}{second}{shown}"
    done = subprocess.run([sys.executable, "-c", program], cwd=copy, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "6 (43, 31) 0 n01440764 6 6\n"), done.stderr


def test_the_same_bytes_in_another_place(edition: Edition, tmp_path: Path) -> None:
    other = make_edition(tmp_path / "other")
    for name in ("README.md", "croissant.json", "metadata.csv", "manifest.csv"):
        assert (other.export("standard") / name).read_bytes() == (edition.export("standard") / name).read_bytes()


def test_scores_of_an_older_version_or_none(tmp_path: Path) -> None:
    edition = make_edition(tmp_path)
    path = edition.scored_with("standard")
    edit(path, '"versions"', '"others"')
    for content, message in (
        (
            path.read_text(),
            r"standard.json: no key versions; expected what this version of score writes: run dvc repro",
        ),
        ("{", r"standard.json: not JSON \(.*\); run dvc repro"),
        (None, r"standard.json: missing; run dvc repro, or dvc pull to fetch it"),
    ):
        path.unlink() if content is None else path.write_text(content)
        with pytest.raises(CleansetError, match=message):
            export.run(edition, "standard")


def test_the_manifest_is_its_source_for_datasets(export_folder: Path) -> None:
    header, *lines = (export_folder / "metadata.csv").read_text().splitlines()
    assert header == (
        "model,wnid,class_index,rank,image_id,tier,confidence,left,top,right,bottom,file_name,"
        "source_sha256,file_sha256,pixels_sha256,encoder"
    )
    assert lines == (export_folder / "manifest.csv").read_text().splitlines()[1:]
    assert json.loads((export_folder / "croissant.json").read_text())["conformsTo"].endswith("/croissant/1.0")


def test_the_citation_file(repository: Path) -> None:
    """What the Citation File Format 1.2.0 demands; its whole schema was checked with cffconvert 2.0.0."""
    content = yaml.safe_load((repository / "CITATION.cff").read_text())
    assert set(content) == {"cff-version", "message", "type", "title", "version", "authors", "references"}
    assert content["cff-version"] == "1.2.0"
    assert f'version = "{content["version"]}"' in (repository / "pyproject.toml").read_text()
    for work in (content, *content["references"]):
        assert {"title", "type", "authors"} <= set(work)
        assert f"{{{work['title']}}}" in CITATION
    assert f"{{{content['references'][0]['doi']}}}" in CITATION
