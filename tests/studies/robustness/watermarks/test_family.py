"""The family of watermarks: its params, its images in a plan, and its notices."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image
from rich.console import Console

from cleanset.classes import imagenet
from cleanset.errors import CleansetError
from cleanset.evaluation.measures import Measure
from cleanset.plumbing.files import sha256
from cleanset.studies.robustness.evaluation import _table
from cleanset.studies.robustness.families import StudyParams, change_plan, notice
from cleanset.studies.robustness.images import ChangeName, base_pixels
from cleanset.studies.robustness.watermarks.changes import watermarked
from cleanset.studies.robustness.watermarks.family import LIKE_THE_AUTHORS, WATERMARK_FAMILY
from cleanset.studies.robustness.watermarks.params import AUTHORS_FONT_SHA256, Watermarks
from tests.documents import blocks
from tests.studies.robustness.sources import sources_of


def params(**section: object) -> StudyParams:
    return StudyParams.model_validate({"watermarks": section})


def test_the_example_of_the_documentation_has_the_authors_font(repository: Path) -> None:
    (text,) = blocks(repository, "yaml", "docs/robustness.md")
    wanted = StudyParams.model_validate(yaml.safe_load(text))
    assert wanted.section(Watermarks).is_of_authors
    assert wanted.section(Watermarks).changes() == [("watermark", 0)]


def test_images_are_drawn_on_and_never_stored_as_jpeg(tmp_path: Path) -> None:
    sources = sources_of(tmp_path)
    plan = change_plan(WATERMARK_FAMILY, sources, params())
    assert list(map(str, plan.names())) == [
        "1.png unchanged 00", "1.png watermark 00", "2.png unchanged 00", "2.png watermark 00",
    ]  # fmt: skip
    changed = plan.changed_images()
    found = np.asarray(changed(ChangeName("1.png", "watermark", 0)))
    assert np.array_equal(found, watermarked(base_pixels(sources.files["1.png"])))
    assert plan.changing.settings == {"font_sha256": None}


def test_a_missing_font_is_reported_before_a_model_is_loaded(tmp_path: Path) -> None:
    wanted = params(font="missing.otf", font_sha256=AUTHORS_FONT_SHA256)
    with pytest.raises(
        CleansetError, match=r"missing.otf: .*expected the font that watermarks.font names: put it there"
    ):
        change_plan(WATERMARK_FAMILY, sources_of(tmp_path), wanted)


def test_published_images_are_read(tmp_path: Path) -> None:
    sources = sources_of(tmp_path)
    section = params(published="mine")
    place = tmp_path / "mine" / "watermark" / tmp_path.name
    place.mkdir(parents=True)
    Image.new("RGB", (224, 224), (1, 2, 3)).save(place / "1.png")
    with pytest.raises(
        CleansetError, match=r"no image .*/2; expected every measured image exactly once, as watermark/"
    ):
        change_plan(WATERMARK_FAMILY, sources, section)
    Image.new("RGB", (224, 224), (4, 5, 6)).save(place / "2.png")
    plan = change_plan(WATERMARK_FAMILY, sources, section)
    changed = plan.changed_images()
    assert changed(ChangeName("2.png", "watermark", 0)).getpixel((0, 0)) == (4, 5, 6)
    assert "font_sha256" not in plan.changing.settings


def test_notices_tell_whose_watermark_it_is(tmp_path: Path) -> None:
    images = sources_of(tmp_path).images
    texts = {
        None: LIKE_THE_AUTHORS,
        sha256(b"another"): "The text is set in another font than the authors'.",
        AUTHORS_FONT_SHA256: "The watermark is the authors': their font, their text, size, place and opacity.",
    }
    for digest, expected in texts.items():
        section = {} if digest is None else {"font": "some.otf", "font_sha256": digest}
        assert notice(WATERMARK_FAMILY, params(**section), images, imagenet()).endswith(f" {expected}")


def test_the_summary_fits_into_80_columns() -> None:
    """The numbers of a paper's ResNet-50, whose name is long."""
    shares = {"accuracy": 0.5099, "in_w_gap": -0.2540, "carton_gap": 0.30}
    lines = [
        Measure(
            selection="all",
            model="robustbench:Linf/Salman2020Do_R50",
            measure=name,
            change="",
            images=50000,
            value=value,
            low=value - 0.12,
            high=value + 0.12,
        )
        for name, value in shares.items()
    ]
    console = Console(width=80, no_color=True)
    with console.capture() as caught:
        console.print(_table(WATERMARK_FAMILY, lines).in_terminal())
    text = caught.get()
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80
    assert "51.0 (39.0–63.0)" in text
    assert "-25.4 (-37.4 to -13.4)" in text
    assert "30.0 (18.0–42.0)" in text
