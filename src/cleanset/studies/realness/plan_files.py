"""The files of a plan's folder and its texts, pinned by plan.json: a changed key would silently change the results."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt

from cleanset.errors import CleansetError
from cleanset.plumbing.files import read_text, sha256, sha256_of
from cleanset.plumbing.json_files import check_digest, parse_json
from cleanset.plumbing.validation import AtLeastOne, join_names, shown, validate
from cleanset.plumbing.yaml_files import read_yaml
from cleanset.studies.realness.layout import ImageLayout
from cleanset.studies.realness.protocol import Protocol

PAGE_FOLDER = "page"
"""The folder of the page, for the people who rate."""

KEY = "key.csv"
"""The key to the stimuli, for the organiser alone."""

TRIALS = "trials.csv"
"""The table of all lists."""

PLAN = "plan.json"
"""The record of the plan, for the organiser alone."""

TEXTS = "texts.yaml"
"""The texts of the page, which may be translated."""

USUAL_TEXTS = Path(__file__).parent / "static" / TEXTS
"""Those in English."""
_USUAL: Any = read_yaml(USUAL_TEXTS, "install cleanset again")
PAGE_IMAGES = f"{PAGE_FOLDER}/images"
_EXPECTED = "expected the folder that cleanset study plan wrote"


class _Images(BaseModel):
    """The images of a plan: the width and height that all have, in pixels, and how wide they are on a screen."""

    model_config = ConfigDict(frozen=True)

    pixels: tuple[AtLeastOne, AtLeastOne]
    width_mm: Annotated[float, Field(gt=0)] | None


class PlanFiles(BaseModel):
    """The pins in plan.json, and the texts of key.csv and trials.csv next to it."""

    model_config = ConfigDict(frozen=True)

    images: _Images
    protocol: Protocol
    examples: tuple[str, ...]
    """The files of the explanation's examples: the image itself, then each edit; none without examples."""

    sha256: dict[str, str]
    shown_milliseconds: NonNegativeInt
    """The time for which all images of a trial are visible before it can be answered."""

    key: str = ""
    trials: str = ""

    @property
    def layout(self) -> ImageLayout:
        """How the page shows images."""
        return ImageLayout(size=self.images.pixels, width_mm=self.images.width_mm)


def read_texts(path: Path) -> dict[str, Any]:
    """The texts of the page in a file. Raises CleansetError unless they have the form of USUAL_TEXTS."""
    found = read_yaml(path, f"expected a translation of a plan's {TEXTS}")
    texts = found if isinstance(found, dict) else {}
    if wrong := sorted(map(str, _USUAL.keys() ^ texts.keys())):
        raise CleansetError(f"{path}: missing or unknown: {join_names(wrong)}; expected the keys of a plan's {TEXTS}")
    for key, each in _USUAL.items():
        if _form(texts[key]) != _form(each) or (key == "direction" and texts[key] not in ("ltr", "rtl")):
            raise CleansetError(f"{path}: {key}: {shown(texts[key])}; expected a translation of {shown(each)}")
    return texts


def _form(text: object) -> object:
    """The parts that are the same in all languages: kind, number of texts, and the names in braces."""
    if isinstance(text, list):
        return [_form(each) for each in text]
    return sorted(re.findall(r"\{\w+\}", text)) if isinstance(text, str) and text.strip() else type(text)


def digests(plan: Path, names: Iterable[str] = (KEY, TRIALS, PAGE_IMAGES)) -> dict[str, str]:
    """The SHA-256 of these files; for the folder of images, of the output of sha256sum."""
    return {name: _digest(plan / name) for name in names}


def _digest(path: Path) -> str:
    if not path.is_dir():
        return sha256_of(path)
    return sha256("".join(f"{sha256_of(each)}  {each.name}\n" for each in sorted(path.iterdir())).encode())


def read_plan(plan: Path, *, images: bool = False) -> PlanFiles:
    """A plan's files. Raises CleansetError unless they match plan.json, with `images` those of the page, too."""
    content = parse_json(read_text(plan / PLAN, _EXPECTED), str(plan / PLAN), "a plan")
    record = validate(PlanFiles, content, plan / PLAN, "; expected a plan: cleanset study plan makes it again")
    texts = {"key": read_text(plan / KEY, _EXPECTED), "trials": read_text(plan / TRIALS, _EXPECTED)}
    if images and not (plan / PAGE_IMAGES).is_dir():
        raise CleansetError(f"{plan / PAGE_IMAGES}: missing; {_EXPECTED}")
    check_digest(content, plan / PLAN, "put it back, or cleanset study plan makes it again")
    names = (KEY, TRIALS, PAGE_IMAGES)[: 3 if images else 2]
    for name, digest in digests(plan, names).items():
        if record.sha256.get(name) != digest:
            raise CleansetError(
                f"{plan / name}: changed since the plan was made; expected the SHA-256 in {PLAN}: put back what "
                "cleanset study plan wrote, or plan again with the same set, images, settings and seed"
            )
    return record.model_copy(update=texts)
