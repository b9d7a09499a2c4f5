"""What people do with the core alone, in any environment that has it: the published set, made, verified, loaded, shown.

Run from a checkout: python tests/project/core_use.py
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import cleanset
from cleanset.sets.published.image_set import select_images
from cleanset.sets.published.lists import PublishedChoice

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.sets.published.drawn_archive import draw_archive

IMAGES = 2_857
"""Whole images of the published set: of the others, the boxes of the crops are not known."""


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
    images = cleanset.load(here / "set")
    assert (len(images), len(cleanset.table(here / "set"))) == (IMAGES, IMAGES)
    assert images[0][0].mode == "RGB"
    command("look", here / "set", "--out", here / "page")
    assert (here / "page" / "index.html").is_file()
print(f"cleanset {cleanset.__version__} under Python {sys.version.split()[0]}: {IMAGES:,} images")
