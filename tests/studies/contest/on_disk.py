"""A small contest on the disk, in an edition with a finished set of one image."""

import hashlib
import io
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from PIL import Image

from cleanset.classes import imagenet
from cleanset.images.codec import pixels_sha256
from cleanset.sets.manifest import file_name, manifest_csv
from cleanset.studies.contest.entering import enter
from cleanset.studies.contest.log import LOG, START
from cleanset.studies.contest.rules import parse_instant
from tests.studies.contest.made import BIRD, JUDGES, MODEL, RULES
from tests.studies.robustness.entries import entry

ROOT = Path(__file__).parents[3]
CLEAN = (10, 200, 100)
Color = tuple[int, int, int]


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def png(color: Color, size: tuple[int, int] = (100, 100), form: str = "PNG", **options: Any) -> bytes:
    """An image of one color but for a row, so that no two colors look alike turned."""
    image = Image.new("RGB", size, color)
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def named(file: str, data: bytes) -> dict[str, Any]:
    """An image of a submission as the log has it."""
    with Image.open(io.BytesIO(data)) as image:
        size = {"width": image.width, "height": image.height}
        return {"file": file, "sha256": digest(data), "pixels_sha256": pixels_sha256(image), **size}


class OnDisk:
    """A contest with a defence, a submission that breaks it and its judges' answers; `story`: what is in its log."""

    def __init__(self, edition: Path) -> None:
        self.edition, self.folder = edition, edition / "studies" / "contest"
        clean = entry(1).model_copy(update={"pixels_sha256": pixels_sha256(Image.new("RGB", (30, 30), CLEAN))})
        export = edition / "data" / "export" / "standard"
        self.text(export / "manifest.csv", manifest_csv([clean], imagenet()))
        shutil.copyfile(ROOT / "params.yaml", edition / "params.yaml")
        self.clean = export / file_name(clean.wnid, clean.image_id, None, imagenet())
        self.clean.parent.mkdir()
        self.clean.write_bytes(png(CLEAN, (30, 30), "JPEG"))
        red = png((200, 0, 0))
        self.sha256 = self.put(red)
        submission = {"team": "red", "target": "gold/wall", "images": [named("x.png", red)]}
        limits = {"limits": {"max_side": 182, "seen_share": 0.8}}
        self.story: list[tuple[str, str, Mapping[str, Any]]] = [
            ("2026-11-01T08:00:00Z", "contest", RULES | limits),
            ("2026-11-01T09:00:00Z", "roster", {"judges": list(JUDGES)}),
            ("2026-11-01T10:00:00Z", "defence", {"name": "gold/wall", "open": True, "source": "x", "model": MODEL}),
            ("2026-11-01T11:00:00Z", "run", self.run_of({})),
            ("2026-11-02T08:00:00Z", "stake", {"batch": "first", "defences": ["gold/wall"]}),
            ("2026-11-02T12:00:00Z", "submission", submission),
            ("2026-11-06T23:59:59Z", "publish", {}),
            *(("2026-11-07T12:00:00Z", "answers", self.answers_of(judge)) for judge in JUDGES[:3]),
            ("2026-11-07T13:00:00Z", "run", self.run_of({self.sha256: "bicycle"})),
        ]
        self.write()

    def put(self, data: bytes) -> str:
        """Add an object; its SHA-256."""
        path = self.folder / "objects" / digest(data)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path.name

    @property
    def log(self) -> Path:
        return self.folder / LOG

    def text(self, path: Path, content: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)

    def yaml(self, name: str, content: object) -> Path:
        self.text(self.edition / "mail" / name, yaml.safe_dump(content, sort_keys=False))
        return self.edition / "mail" / name

    def write(self) -> None:
        """Write the story as a log."""
        texts: list[str] = []
        prev = START
        for n, (at, kind, data) in enumerate(self.story):
            texts.append(json.dumps({"n": n, "at": at, "kind": kind, "prev": prev, "data": data}))
            prev = digest(texts[-1].encode())
        self.text(self.log, "".join(f"{text}\n" for text in texts))

    def add(self, at: str, kind: str, data: Mapping[str, Any]) -> None:
        """Add an entry at the end, and write the log."""
        self.story.append((at, kind, data))
        self.write()

    def changed(self, kind: str, **values: object) -> None:
        """Change values of the first entry of a kind, and write the log."""
        place = next(n for n, each in enumerate(self.story) if each[1] == kind)
        at, _, data = self.story[place]
        self.story[place] = (at, kind, {key: one for key, one in {**data, **values}.items() if one is not None})
        self.write()

    def run_of(self, answers: Mapping[str, str], defence: str = "gold/wall") -> dict[str, Any]:
        figures = {"images": 10, "correct": 9, "mistakes": 0}
        content = {"defence": defence, "model": "0" * 64, "images_per_minute": 100.0}
        return {**content, "eligibility": figures, "answers": dict(answers)}

    def answers_of(self, judge: str) -> dict[str, Any]:
        return {"judge": judge, "week": "2026-11-06", "answers": {self.sha256: BIRD}}

    def mail(self, name: str, images: Mapping[str, bytes], team: str = "blue", **changed: object) -> Path:
        """The folder of a submission as it comes by mail."""
        folder = self.edition / "mail" / name
        self.yaml(f"{name}/manifest.yaml", {"team": team, "target": "gold/wall"} | changed)
        for file, data in images.items():
            (folder / file).write_bytes(data)
        return folder

    def enter(
        self, *paths: Path, at: str = "2026-11-09T12:00:00Z", publish: bool = False, write: bool = True
    ) -> list[str]:
        """Enter what has come, or only check it."""
        return enter(self.folder, paths, publish=publish, at=parse_instant(at), write=write)
