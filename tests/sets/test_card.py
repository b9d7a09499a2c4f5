"""The data card of an export."""

import hashlib
import inspect
import json
import math
import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from huggingface_hub import DatasetCard, DatasetCardData
from markdown_it import MarkdownIt
from pydantic import ValidationError

import cleanset
from cleanset.classes import class_table, imagenet
from cleanset.edition.params import Params
from cleanset.edition.paths import Edition
from cleanset.edition.readings import readings
from cleanset.errors import CleansetError
from cleanset.review.audit import AuditResult
from cleanset.scoring.record import ScoreRecord
from cleanset.sets import verify
from cleanset.sets.card import card, front_matter
from cleanset.sets.description import InputDigest, Provenance, Release, limits
from cleanset.sets.folder import read_entries, write_descriptions
from cleanset.sets.manifest import ManifestForm
from cleanset.sets.texts import citation
from cleanset.stages import export
from cleanset.tables import CROP_SCORES, SELECTION, read_table, write_table
from tests.sets.conftest import edit, make_edition
from tests.ten_images import SCORED, TAR

EMPTY = pd.DataFrame(columns=["image_id", "class_index", "tier", "crop", "box_unknown", "reason", "open"]).astype(
    {"box_unknown": bool, "open": bool}
)

NO_VOTES = pd.DataFrame(columns=["image_id", "reviewer", "verdict", "reason", "crop"])
RELEASE = Release(
    "1.2.3", "2026-01-31", "images.tar", "a" * 32, "One reviewer is enough.", ("ann",), classes=imagenet()
)


def section(text: str, name: str) -> str:
    """What is under a heading."""
    return text.split(f"\n## {name}\n\n")[1].split("\n\n## ")[0].rstrip("\n")


def provenance(**changes: Any) -> Provenance:
    return Provenance(
        model="standard",
        release=RELEASE,
        classes=[0, 278],
        images_per_class=3,
        images=10,
        notices=[],
        readings=["Protocol as written."],
        scored=ScoreRecord.model_validate(SCORED | changes),
        params={"select": {"candidates": 5}},
        inputs=[InputDigest("data/index.parquet", "1" * 64, "2" * 32)],
        manifest_sha256="3" * 64,
    )


def test_what_is_counted(export_folder: Path) -> None:
    text = (export_folder / "README.md").read_text()
    assert "\n# cleanset-standard\n\n**Made from 10 images, not from the 50,000 of ImageNet's validation set: a" in text
    assert "**\n\n6 images of 3 classes, up to 3 of each, out of 10 images: those that" in text
    assert section(text, "Images").startswith(
        "| what | number |\n"
        "|---|--:|\n"
        "| images | 6 |\n"
        "| tier `top5` | 3 |\n"
        "| tier `reserve` | 1 |\n"
        "| tier `relaxed` | 2 |\n"
        "| cropped | 2 |\n"
        "| classes that are full | 1 |\n"
        "| classes that are short | 3 |\n"
        "| classes with an image not reviewed yet | 1 |\n"
        "\n"
    )
    assert section(text, "Candidates that are not in it, by reason") == (
        "| reason | number |\n|---|--:|\n| blur | 1 |\n| unreviewed | 1 |\n| not_needed | 1 |"
    )
    assert section(text, "Short classes") == (
        "| class | images | candidates | not taken |\n"
        "|---|--:|--:|---|\n"
        "| n01440764 tench | 2 | 4 | blur 1, not_needed 1 |\n"
        "| n02123045 tabby | 1 | 2 | unreviewed 1 |\n"
        "| n02606052 rock beauty | 0 | 0 | none |"
    )


def test_a_class_that_is_called_by_its_key() -> None:
    own = class_table([("owl", "eagle owl"), ("plums", "plums")], "here")
    text = card(replace(provenance(), classes=[0, 1], release=Release(classes=own)), EMPTY, EMPTY, NO_VOTES)
    assert section(text, "Short classes") == (
        "| class | images | candidates | not taken |\n"
        "|---|--:|--:|---|\n"
        "| owl eagle owl | 0 | 0 | none |\n"
        "| plums | 0 | 0 | none |"
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
        "images": 1000,
        "top1_agreement": 0.999,
        "largest_difference": 0.0031,
        "classes": 20,
        "classes_reordered": 7,
        "classes_changed": 2,
    }
    facts = {"precision": "tf32", "against_float64": distance, "threat_model": "Linf"}
    text = section(card(provenance(**facts), EMPTY, EMPTY, NO_VOTES), "Scores")
    assert "- model: test_efficientnet of timm, threat model Linf\n" in text
    assert (
        "- precision: tf32\n"
        "- against float64: top-1 agreement 99.90% of 1,000 images, largest difference in probability 0.0031, "
        "of 20 classes 7 with another order of the five easiest, 2 with other three\n"
    ) in text


def test_one_label_only_where_all_have_one(export_folder: Path) -> None:
    """Two of the images have several labels; without them none is mentioned."""
    text = (export_folder / "README.md").read_text()
    several = " (or, where the tier is `relaxed`, carry several labels, the class among them)"
    assert f"that show exactly one thing{several}, and that carry no watermark" in text
    assert "that show exactly one thing, and that carry no watermark" in card(provenance(), EMPTY, EMPTY, NO_VOTES)
    croissant = json.loads((export_folder / "croissant.json").read_text())
    assert "each with one label, or several where its tier is relaxed, without" in croissant["description"]


def test_both_confidences(export_folder: Path) -> None:
    """The crops, checked by hand: image 8 is surer of its class as cropped, image 10 less sure and taken for
    another."""
    lines = (export_folder / "manifest.csv").read_text().splitlines()[1:]
    found = [line.split(",")[5:12] for line in lines]
    assert [[line[0][-2:], *line[2:4]] for line in found] == [
        ["01", "0.75", "0.75"], ["08", "0.875", "0.5"], ["04", "0.5", "0.5"], ["09", "0.25", "0.25"],
        ["10", "0.375", "0.125"], ["06", "0.99999994", "0.99999994"],
    ]  # fmt: skip
    text = (export_folder / "README.md").read_text()
    assert "`source_confidence` that on the whole image" in text
    assert "Cropped images, whose two confidences differ: 2.\n" in text


def test_labels_and_reviewers(export_folder: Path) -> None:
    """The board does not count as a reviewer; nor do votes on other images."""
    lines = (export_folder / "manifest.csv").read_text().splitlines()[1:]
    assert [line.split(",")[9:12] for line in lines] == [
        ["0", "0", "1"], ["970", "0", "2"], ["278", "278", "0"], ["998", "278 281", "0"], ["999", "278 999", "0"],
        ["281", "281", "0"],
    ]  # fmt: skip


@pytest.mark.slow
def test_a_class_that_a_crop_lacks(edition: Edition, tmp_path: Path) -> None:
    """The model no longer has it among its five: nothing is known of its probability."""
    other = make_edition(tmp_path)
    scores = read_table(other.crop_scores("standard"), CROP_SCORES, imagenet())
    scores["top5_class"] = [[500, 501, 502, 503, 504]] * 3
    write_table(other.crop_scores("standard"), scores, CROP_SCORES, imagenet())
    export.run(other, "standard")
    lines = (other.export("standard") / "manifest.csv").read_text().splitlines()[1:]
    assert [line.split(",")[7:9] for line in lines][1] == ["", "0.5"]
    images = cleanset.load("standard", other.export("standard"))
    assert math.isnan(images[1][2]["confidence"])
    assert verify.run(other.export("standard"), decode=True).problems == []


def test_a_crop_without_scores(tmp_path: Path) -> None:
    other = make_edition(tmp_path)
    scores = read_table(other.crop_scores("standard"), CROP_SCORES, imagenet())
    write_table(other.crop_scores("standard"), scores.head(1), CROP_SCORES, imagenet())
    with pytest.raises(CleansetError, match=r"crop_scores/standard.parquet: no scores of ILSVRC2012_val_00000008 crop"):
        export.run(other, "standard")


def test_rules(export_folder: Path) -> None:
    assert section((export_folder / "README.md").read_text(), "Rules") == (
        "- Protocol as written: the rules in the paper of SCOOTER.\n"
        "- The label of an image is its one reassessed label.\n"
        "- Tier top5 is taken from the images that all models classify correctly.\n"
        "- Images are ordered by the log-odds of the top-1 class.\n"
        "- Within a tier, cropped images come after the clean ones.\n"
        "- Classes are filled from these tiers, in this order: top5, reserve; an image with several labels is in no "
        "class."
    )


@pytest.mark.parametrize(
    ("sections", "first", "last"),
    [
        ({"protocol": "as_published"}, "Protocol as published: how the set of SCOOTER was made.", "top5, reserve; "),
        (
            {"protocol": "as_published", "select": {"order": "log_odds", "tiers": ["top5"]}},
            "Protocol as published: how the set of SCOOTER was made, except for select.order, select.tiers.",
            "top5; an image",
        ),
        (
            {"select": {"tiers": ["top5", "reserve", "relaxed"]}, "review": {"crops": "last"}},
            "Protocol as written: the rules in the paper of SCOOTER, except for select.tiers.",
            "top5, reserve, relaxed.",
        ),
    ],
)
def test_readings(sections: dict[str, object], first: str, last: str) -> None:
    content = {"root": ".", "dataset": {"images": "x"}, "models": {"one": {"source": "timm", "name": "a"}}}
    found = readings(Params.model_validate(content | sections))
    assert found[0] == first
    assert last in found[-1]


def test_origin(edition: Edition) -> None:
    """By the digests and parameters that it names, computed here."""
    text = section((edition.export("standard") / "README.md").read_text(), "Origin")
    names = [
        "index.parquet", "scores/standard.json", "crop_scores/standard.parquet", "votes/standard.parquet",
        "selection/standard.parquet", "rejected/standard.parquet",
    ]  # fmt: skip
    for name in names:
        data = (edition.folder / "data" / name).read_bytes()
        assert f"| `data/{name}` | {hashlib.sha256(data).hexdigest()} | {hashlib.md5(data).hexdigest()} |\n" in text
    assert text.count("| `data/") == len(names)
    params = yaml.safe_load(text.split("```yaml\n")[1].split("```")[0])
    assert params == {
        "dataset": {"classes": ["n01440764", "n02119789", "n02123045", "n02606052"]},
        "models": {"standard": {"source": "timm", "name": "resnet18"}},
        "review": {"crops": "last"},
        "select": {"order": "log_odds", "pool": "ensemble", "tiers": ["top5", "reserve"]},
    }
    as_json = json.dumps(params, sort_keys=True, separators=(",", ":"))
    assert f"Parameters, with SHA-256 {hashlib.sha256(as_json.encode()).hexdigest()} as JSON with" in text


def test_tables_that_do_not_go_together(tmp_path: Path) -> None:
    """A selection with another class than the labels of the index."""
    other = make_edition(tmp_path)
    selection = read_table(other.selection("standard"), SELECTION, imagenet())
    selection["class_index"] = 5
    write_table(other.selection("standard"), selection, SELECTION, imagenet())
    message = (
        r"export standard, ILSVRC2012_val_0000000\d: real_classes .*; expected the class 5 among them: run dvc repro"
    )
    with pytest.raises(CleansetError, match=message):
        export.run(other, "standard")


def test_what_is_no_set_for_a_study_is_reported() -> None:
    whole = replace(provenance(), images=50_000)
    text = card(whole, EMPTY, EMPTY, NO_VOTES)
    assert "out of 50,000 validation images of ImageNet (ILSVRC2012): those" in text
    assert "not for a study" not in text
    text = card(replace(whole, notices=limits(imagenet(), unreviewed=True)), EMPTY, EMPTY, NO_VOTES)
    assert "\n# cleanset-standard\n\n**Images that nobody has reviewed were taken for clean: a first look, not" in text


def test_from_lists_it_names_no_network() -> None:
    text = card(replace(provenance(), scored=None), EMPTY, EMPTY, NO_VOTES)
    assert section(text, "Scores").startswith("No network was run. The confidences are those of the published lists")
    assert section(text, "Origin").startswith("Made from these published files and parameters")
    assert section(text, "Maintenance").startswith("Version 1.2.3, made from published lists. ")


def test_without_a_model_no_image_is_called_correct_or_easy() -> None:
    """Sentence by sentence, compared with a set that a model chose."""
    chosen = provenance()
    assert isinstance(chosen.scored, ScoreRecord)
    text = card(replace(chosen, scored=chosen.scored.model_copy(update={"source": "random"})), EMPTY, EMPTY, NO_VOTES)
    assert "The candidates of a class are in a random order, with the seed" in section(text, "Images")
    assert "top5" not in text
    assert "`top5`: among the easiest of its class; `reserve`: this model classifies it correctly" in section(
        card(chosen, EMPTY, EMPTY, NO_VOTES), "Images"
    )


def test_the_bytes_of_a_folder_are_not_verified(tmp_path: Path) -> None:
    """A tar has a line in raw.md5, which preprocess compares; a folder has none."""
    edition = make_edition(tmp_path)
    export_folder = edition.export("standard")
    assert {entry.source_check for entry in read_entries(export_folder)} == {"archive_md5"}
    assert "Not verified" not in (export_folder / "README.md").read_text()
    images = edition.folder / "data" / "raw" / "val"
    images.mkdir()
    subprocess.run(["tar", "-xf", images.with_name(TAR), "-C", images], check=True)
    edit(edition.params_yaml, f"data/raw/{TAR}", "data/raw/val")
    edition.locations.unlink()
    export.run(edition, "standard")
    assert {entry.source_check for entry in read_entries(export_folder)} == {"none"}
    assert "**Not verified: no digest of single images is known.**" in (export_folder / "README.md").read_text()


def test_terms_and_citation(export_folder: Path) -> None:
    text = (export_folder / "README.md").read_text()
    terms = section(text, "Licences and terms")
    assert "which allow research and education, nothing commercial" in terms
    assert "https://www.image-net.org/download.php" in terms
    assert "reviews behind it: CC BY 4.0. The code that made the set: MIT. See https://creativecommons.org/" in terms
    assert "@misc{cleanset,\n" in section(text, "Citation")
    assert "10.1007/s11263-015-0816-y" in section(text, "Citation")


FEATURES = [
    {"name": "image", "dtype": "image"},
    {"name": "model", "dtype": "string"},
    {"name": "wnid", "dtype": "string"},
    {"name": "label", "dtype": {"class_label": {"names": {str(i): name for i, name in enumerate(imagenet().labels)}}}},
    {"name": "class_name", "dtype": "string"},
    {"name": "rank", "dtype": "int64"},
]


def test_front_matter_as_the_hub_reads_it(export_folder: Path) -> None:
    """By the hub's own library, which knows all keys but those that only the hub documents."""
    found = DatasetCard.load(export_folder / "README.md").data.to_dict()
    (config,), info = found.pop("configs"), found.pop("dataset_info")
    assert found == {
        "pretty_name": "cleanset-standard",
        "license": "other",
        "license_name": "imagenet",
        "license_link": "https://www.image-net.org/download.php",
        "annotations_creators": ["expert-generated"],
        "language_creators": ["found"],
        "language": ["en"],
        "source_datasets": ["extended|imagenet-1k"],
        "task_categories": ["image-classification"],
        "task_ids": ["multi-class-image-classification"],
        "size_categories": ["n<1K"],
        "tags": ["imagenet", "ilsvrc2012", "robustness", "adversarial-examples", "human-verified"],
    }
    assert info == {"config_name": "default", "features": config["features"]}
    assert config["data_files"] == [{"split": "validation", "path": "**"}]
    assert config["features"][:6] == FEATURES
    metadata = (export_folder / "metadata.csv").read_text()
    assert [feature["name"] for feature in config["features"]] == [
        "image",
        *(name for name in metadata.split("\n")[0].split(",") if name != "file_name"),
    ]
    known = set(inspect.signature(DatasetCardData.__init__).parameters)
    assert found.keys() - known == {"license_name", "license_link", "tags"}


@pytest.mark.parametrize(
    ("images", "size"),
    [
        (0, "n<1K"), (999, "n<1K"), (1000, "1K<n<10K"), (9_999, "1K<n<10K"), (10_000, "10K<n<100K"),
        (100_000, "100K<n<1M"), (1_000_000, "1M<n<10M"),
    ],
)  # fmt: skip
def test_size(images: int, size: str) -> None:
    found = yaml.safe_load(
        front_matter(
            "a",
            images,
            Release(classes=imagenet()),
            manifest_sha256="3" * 64,
            reviewed=False,
            with_images=True,
            form=ManifestForm(),
        ).strip("-")
    )
    assert found["size_categories"] == [size]
    assert found["annotations_creators"] == ["machine-generated"]


def test_reviews(export_folder: Path) -> None:
    """The votes, counted by hand: ann 3 and bob 1 on four images; the two of image 8 agree; nobody saw 4, 9 and 6."""
    text = section((export_folder / "README.md").read_text(), "Reviews")
    assert text == (
        "One reviewer is enough, and all who reviewed an image must agree; the board overrules; an image that nobody "
        "has reviewed is left out.\n\n"
        "Verdicts on these images and on the candidates that were rejected:\n\n"
        "| reviewer | clean | crop | reject | unsure |\n"
        "|---|--:|--:|--:|--:|\n"
        "| `ann` | 1 | 1 | 1 | 0 |\n"
        "| `bob` | 0 | 1 | 0 | 0 |\n\n"
        "Images judged by two or more: 1. Of two verdicts on one of them 100.0 % are the same. "
        "Images of this set that nobody has judged: 3."
    )


def test_agreement_that_is_not_known() -> None:
    one = pd.DataFrame([("ILSVRC2012_val_00000001", "ann", "clean", None, None)], columns=NO_VOTES.columns)
    assert "No image was judged by more than one reviewer, so that their agreement is not known." in section(
        card(provenance(), EMPTY, EMPTY, one), "Reviews"
    )
    assert section(card(provenance(), EMPTY, EMPTY, NO_VOTES), "Reviews").endswith("Nobody has reviewed these images.")


def test_the_questions_of_a_datasheet(export_folder: Path) -> None:
    text = (export_folder / "README.md").read_text()
    assert re.findall(r"^## (.+)", text, re.MULTILINE) == [
        "Loading", "Motivation", "Images", "Files", "Rules", "Reviews", "Candidates that are not in it, by reason",
        "Short classes", "Known flaws", "Uses", "Licences and terms", "Maintenance", "Scores", "Origin", "Citation",
    ]  # fmt: skip
    assert "20.8 % of 17,300 ratings by strangers were negative" in section(text, "Known flaws")
    assert section(text, "Known flaws").count("\n- ") == 4
    assert "Cropped images differ" not in section(card(provenance(), EMPTY, EMPTY, NO_VOTES), "Known flaws")
    assert section(text, "Maintenance").startswith("Version 1.2.3 of 2026-01-31. A version is never changed")
    unpublished = replace(provenance(), release=Release(classes=imagenet()))
    assert section(card(unpublished, EMPTY, EMPTY, NO_VOTES), "Maintenance").startswith(
        "Version 0.0.0, not published yet. "
    )


def test_it_is_markdown_that_reads(export_folder: Path) -> None:
    """As a parser of Markdown sees it: the headings, and every table as a table."""
    text = (export_folder / "README.md").read_text().split("---\n", 2)[2]
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    assert sum(token.type == "heading_open" for token in tokens) == 16
    assert sum(token.type == "table_open" for token in tokens) == 5
    assert not any("|--" in token.content for token in tokens if token.type == "inline")


def test_who_uses_the_reviews_of_scooter_cites_it(tmp_path: Path) -> None:
    assert "SCOOTER" not in card(provenance(), EMPTY, EMPTY, NO_VOTES).split("## Licences")[1]
    of_scooter = replace(provenance(), release=replace(RELEASE, reviewers=("ann", "scooter")))
    text = card(of_scooter, EMPTY, EMPTY, NO_VOTES)
    assert "title  = {SCOOTER: A Human Evaluation Framework for Unrestricted Adversarial Examples}" in section(
        text, "Citation"
    )
    assert "eprint = {2507.07776}" in section(text, "Citation")
    assert "The reviews of `scooter` are the work of the authors of SCOOTER, and under their licence, MIT." in section(
        text, "Licences and terms"
    )
    write_descriptions(tmp_path, [], of_scooter.release)
    croissant = json.loads((tmp_path / "croissant.json").read_text())
    assert "2507.07776" in croissant["citeAs"]
    assert "authors of SCOOTER" in croissant["conditionsOfAccess"]


@pytest.mark.long
def test_its_own_lines_load_it(copy: Path, tmp_path: Path) -> None:
    text = (copy / "README.md").read_text()
    first, second = (block.split("```")[0] for block in text.split("```python\n")[1:])
    shown = "print(len(images), image.size, class_index, record['wnid'], len(folders), len(table))"
    environment = {"HF_DATASETS_OFFLINE": "1", "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf")}
    program = f"import os; os.environ |= {environment}\n{first}{second}{shown}"
    done = subprocess.run([sys.executable, "-c", program], cwd=copy, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "6 (43, 31) 0 n01440764 6 6\n"), done.stderr


def test_the_same_bytes_in_another_place(edition: Edition, tmp_path: Path) -> None:
    other = make_edition(tmp_path / "other")
    for name in ("README.md", "croissant.json", "metadata.csv", "manifest.csv", "checksums.sha256"):
        assert (other.export("standard") / name).read_bytes() == (edition.export("standard") / name).read_bytes()


def test_scores_of_an_older_version_or_none(tmp_path: Path) -> None:
    edition = make_edition(tmp_path)
    path = edition.scored_with("standard")
    edit(path, '"versions"', '"others"')
    for content, message in (
        (
            path.read_text(),
            r"standard.json: versions: Field required; expected the output of stage score of this version: run dvc",
        ),
        ("{", r"standard.json, line 1: not JSON .*; expected the output of stage score of this version: run dvc repro"),
        (None, r"standard.json: missing; run dvc repro, or dvc pull to fetch it"),
    ):
        path.unlink() if content is None else path.write_text(content)
        with pytest.raises(CleansetError, match=message):
            export.run(edition, "standard")


def test_the_manifest_is_its_source_for_datasets(export_folder: Path) -> None:
    header, *lines = (export_folder / "metadata.csv").read_text().splitlines()
    assert header == (
        "model,wnid,label,class_name,rank,image_id,tier,confidence,source_confidence,ilsvrc_class,real_classes,reviewers,"
        "left,top,right,bottom,file_name,"
        "source_sha256,source_check,file_sha256,pixels_sha256,encoder"
    )
    assert lines == (export_folder / "manifest.csv").read_text().splitlines()[1:]
    assert json.loads((export_folder / "croissant.json").read_text())["conformsTo"] == [
        "http://mlcommons.org/croissant/1.1",
        "http://mlcommons.org/croissant/RAI/1.0",
    ]


def test_the_citation_file(repository: Path) -> None:
    """What the Citation File Format 1.2.0 demands; its whole schema was checked with cffconvert 2.0.0."""
    content = yaml.safe_load((repository / "CITATION.cff").read_text())
    assert set(content) == {
        "cff-version", "message", "type", "title", "version", "license", "license-url", "authors", "references",
        "abstract", "keywords",
    }  # fmt: skip
    assert content["keywords"] == tomllib.loads((repository / "pyproject.toml").read_text())["project"]["keywords"]
    assert all(work["doi"] for work in content["references"])
    assert content["cff-version"] == "1.2.0"
    assert f'version = "{content["version"]}"' in (repository / "pyproject.toml").read_text()
    for work in (content, *content["references"]):
        assert {"title", "type", "authors"} <= set(work)
    for work in (content, *content["references"][:2]):  # the third concerns sets with the published reviews
        assert f"{{{work['title']}}}" in citation([])
    assert f"{{{content['references'][0]['doi']}}}" in citation([])


def test_a_record_of_no_precision_of_this_project() -> None:
    with pytest.raises(ValidationError, match="precision"):
        ScoreRecord.model_validate(SCORED | {"precision": "float63"})


def test_an_audit_has_a_section_of_its_own_and_changes_nothing_else() -> None:
    found = AuditResult(
        model="standard",
        kind="fixed",
        images=2966,
        drawn=281,
        seen=281,
        flawed=0,
        auditors=("cy",),
        at_most=29,
        corrected=44,
        sensitivity=0.83,
        now=2966,
        left=0,
        came=0,
        unmeasured=(),
    )
    text = card(provenance(), EMPTY, EMPTY, NO_VOTES, found)
    assert section(text, "Audit") == (
        "At most 1.49 % flawed (44 of 2,966 images), with 95 % confidence.\n\n"
        "Drawn at random from 2,966: 281 (a number fixed beforehand); looked at again by people who had not reviewed "
        "them (cy): 281, of which flawed: 0.\n\n"
        "Corrected for what the auditors miss: by their gold items they find at least 83 % of the flaws. If they "
        "missed nothing, it would be 0.98 %."
    )
    before, after = text.split("## Audit\n")
    without = card(provenance(), EMPTY, EMPTY, NO_VOTES)
    assert without == before + after[after.index("## ") :]
