"""What people do with the core alone, in any environment that has it: the published set, made, verified, loaded, shown.

Predictions made elsewhere are measured and compared, and hints found; what needs an extra says so in one line.

Run from a checkout: python tests/project/core_use.py
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import cleanset
from cleanset.sets.published.image_set import select_images
from cleanset.sets.published.lists import PublishedChoice

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.sets.published.drawn_archive import draw_archive

IMAGES = 2_857
"""Whole images of the published set: the crop boxes of the others are not known."""


def command(*words: str | Path) -> str:
    """What a command prints."""
    done = subprocess.run([sys.executable, "-m", "cleanset", *words], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


with tempfile.TemporaryDirectory() as folder:
    here = Path(folder)
    archive = draw_archive(here / "val.tar", select_images(PublishedChoice()).candidates["image_id"])
    command("digests", "--images", archive, "--out", here / "digests.csv")
    command("published", "--images", archive, "--out", here / "set", "--digests", here / "digests.csv")
    assert f"{IMAGES:,} of {IMAGES:,} images are good" in command("verify", here / "set")
    command("rebuild", "--manifest", here / "set" / "manifest.csv", "--images", archive, "--out", here / "rebuilt")
    assert (here / "rebuilt" / "manifest.csv").read_bytes() == (here / "set" / "manifest.csv").read_bytes()
    command("pack", here / "rebuilt", "--out", here / "shards")
    assert "@misc{cleanset" in command("cite")
    images = cleanset.load(here / "set")
    assert (len(images), len(cleanset.table(here / "set"))) == (IMAGES, IMAGES)
    assert images[0][0].mode == "RGB"
    command("look", here / "set", "--out", here / "page")
    assert (here / "page" / "index.html").is_file()
    for name, confidence in (("one", 0.9), ("other", 0.8)):
        rows = (f"{record['file']},{label},{confidence}" for _, label, record in images)
        (here / f"{name}.csv").write_text("\n".join(["image,class_index,probability", *rows]) + "\n")
        command("evaluate", here / "set", "--predictions", f"{name}={here / name}.csv", "--out", here / name)
    assert "other" in command("compare", here / "one", here / "other")
    found = cleanset.evaluate(np.array(images.targets), images, name="labels")
    assert found.accuracy == 1
    assert "labels" in cleanset.compare(found, here / "one").table()
    assert cleanset.verify(here / "set").problems == []
    assert "image" in command("hints", (here / "set" / images[0][2]["file"]).parent, "--no-text")
    for call in (
        lambda: cleanset.corrupt(np.zeros((64, 64, 3), np.uint8), "fog"),
        lambda: cleanset.watermark(np.zeros((224, 224, 3), np.uint8)),
        lambda: cleanset.robustness("module:net", images),
        lambda: cleanset.evaluate("timm:resnet18", images),
    ):
        said = ""
        try:
            call()
        except cleanset.CleansetError as error:
            said = str(error)
        assert "pip install" in said, said or "a library that the core lacks is there; expected the core alone"
print(f"cleanset {cleanset.__version__} under Python {sys.version.split()[0]}: {IMAGES:,} images")
