"""A small contest on the disk, in the edition that it belongs to: birds or bicycles, drawn in a few pixels."""

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import yaml
from PIL import Image

from cleanset.images.codec import pixels_sha256
from cleanset.sets.manifest import file_name, manifest_csv
from cleanset.studies.contest.reading import defence_digest, read_defence
from tests.studies.contest.made import BIRD, JUDGES, RULES
from tests.studies.robustness.entries import entry

FIRST = "submissions/red/2026-11-02-1"
CLEAN = (9, 9, 9)
"""The color of the image in the edition's finished set."""


def png(color: tuple[int, int, int], size: tuple[int, int] = (100, 100), kind: str = "PNG", **options: Any) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, color).save(out, kind, **options)
    return out.getvalue()


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def named(name: str, data: bytes) -> dict[str, Any]:
    """The entry of a manifest."""
    with Image.open(io.BytesIO(data)) as image:
        size = {"width": image.width, "height": image.height}
        pixels = pixels_sha256(image)
    return {"file": name, "sha256": digest(data), "pixels_sha256": pixels, **size}


class OnDisk:
    """The folder of a contest with a defence, a submission that breaks it and its judges' answers."""

    def __init__(self, edition: Path) -> None:
        self.edition, self.folder = edition, edition / "studies" / "contest"
        clean = entry(1).model_copy(update={"pixels_sha256": pixels_sha256(Image.new("RGB", (30, 30), CLEAN))})
        export = edition / "data" / "export" / "standard"
        self.text(export / "manifest.csv", manifest_csv([clean]))
        self.clean = export / file_name(clean.wnid, clean.image_id, None)
        self.clean.parent.mkdir()
        self.clean.write_bytes(png(CLEAN, (30, 30), "JPEG"))
        model = {"role": "standard", "confidence": "softmax", "threshold": 0.5}
        self.yaml("contest.yaml", RULES)
        self.yaml("defences/gold/wall/defence.yaml", {"submitted": "2026-11-01", "open": True, "model": model})
        self.stake()
        self.yaml("judges/roster.yaml", {"judges": {judge: {"joined": "2026-11-01"} for judge in JUDGES}})
        self.sha256 = self.submit(FIRST, {"x.png": png((200, 0, 0))})["x.png"]
        for judge in JUDGES[:3]:
            self.judge(judge, "2026-11-06", {self.sha256: BIRD | {"date": "2026-11-07"}})
        self.run("2026-11-01", {})
        self.run("2026-11-07", {self.sha256: "bicycle"})

    def path(self, name: str) -> Path:
        return self.folder / name

    def text(self, path: Path, content: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)

    def yaml(self, name: str, content: object) -> None:
        self.text(self.path(name), yaml.safe_dump(content, sort_keys=False))

    def changed(self, name: str, **values: object) -> None:
        """Change values at the top of a YAML file."""
        self.yaml(name, yaml.safe_load(self.path(name).read_text()) | values)
        if name == "defences/gold/wall/defence.yaml":
            self.renew()

    def submit(self, name: str, images: dict[str, bytes], **changed: object) -> dict[str, str]:
        """Write a submission, of noon of its day; its images' SHA-256 by name."""
        day = "-".join(name.split("/")[-1].split("-")[:3])
        entries = [named(file, data) for file, data in images.items()]
        content = {"submitted": f"{day}T12:00:00Z", "target": "gold/wall", "images": entries}
        self.yaml(f"{name}/manifest.yaml", content | changed)
        for file, data in images.items():
            self.path(f"{name}/images").mkdir(exist_ok=True)
            self.path(f"{name}/images/{file}").write_bytes(data)
        return {each["file"]: each["sha256"] for each in entries}

    def judge(self, judge: str, week: str, answers: dict[str, Any]) -> None:
        self.yaml(f"answers/{judge}/{week}.yaml", {"answers": answers})

    def digest(self, defence: str = "gold/wall") -> str:
        """The digest of a defence as it lies there."""
        folder = self.path(f"defences/{defence}")
        return defence_digest(folder, read_defence(folder))

    def stake(self, **changed: object) -> None:
        """Write the stake of gold/wall as it lies there."""
        self.yaml("board/stakes.yaml", [stake_entry(digests={"gold/wall": self.digest()}, **changed)])

    def renew(self) -> None:
        """Let the stake and all runs of gold/wall be of the defence as it lies there now."""
        if self.path("board/stakes.yaml").exists():
            self.stake()
        for path in self.path("results/runs/gold/wall").glob("*.json"):
            path.write_text(json.dumps(json.loads(path.read_text()) | {"digest": self.digest()}))

    def run(self, date: str, answers: dict[str, str], defence: str = "gold/wall") -> None:
        figures = {"images": 10, "correct": 9, "mistakes": 0, "mistakes_at_80": 0}
        content = {"defence": defence, "date": date, "images_per_minute": 100.0, "eligibility": figures}
        content["digest"] = self.digest(defence)
        path = self.path(f"results/runs/{defence}/{date}.json")
        self.text(path, json.dumps(content | {"answers": answers}))


def control_image(made: OnDisk, answered: str, color: tuple[int, int, int] = (0, 90, 90)) -> str:
    """A control image of a bird, with a mask, that a judge has answered on a day; its SHA-256."""
    data = png(color)
    for name, content in (("images/control.png", data), (f"masks/{digest(data)}.png", png((255, 255, 255)))):
        made.path(f"judges/{name}").parent.mkdir(parents=True, exist_ok=True)
        made.path(f"judges/{name}").write_bytes(content)
    made.yaml("judges/controls.yaml", {"controls": {digest(data): {"contains": {"bird": True, "bicycle": False}}}})
    made.judge(JUDGES[3], "2026-11-06", {digest(data): BIRD | {"date": answered}})
    return digest(data)


def stake_entry(**changed: object) -> dict[str, object]:
    return {"batch": "first", "date": "2026-11-02", "by": "board", "defences": ["gold/wall"]} | changed
