"""A small contest on the disk, in the edition that it belongs to: birds or bicycles, drawn in a few pixels."""

import hashlib
import io
import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_ssh_private_key
from PIL import Image

from cleanset.classes import imagenet
from cleanset.edition.paths import Edition
from cleanset.images.codec import pixels_sha256
from cleanset.sets.manifest import file_name, manifest_csv
from cleanset.studies.contest.drafts import draft_of
from cleanset.studies.contest.entering import enter, sign_entries
from cleanset.studies.contest.entries import team_of
from cleanset.studies.contest.files import ContestFiles
from cleanset.studies.contest.log import START, read_state
from cleanset.studies.contest.log_lines import LOG, statement
from cleanset.studies.contest.memory import seen_file
from cleanset.studies.contest.rules import parse_instant
from cleanset.studies.contest.signatures import armoured, signed_text
from tests.studies.contest.made import BIRD, JUDGES, RULES, day
from tests.studies.contest.notes import checkpoint_of
from tests.studies.robustness.entries import entry

ROOT = Path(__file__).parents[3]
CLEAN = (9, 9, 9)
"""The color of the image in the edition's finished set."""
WEIGHTS = "005427ace323adf18f777a6e83ebfa6476b80ab37cd47b571a877a7540207e02"
"""Of the model `standard` in the sample's params.yaml."""
MODEL = {"role": "standard", "confidence": "softmax", "threshold": 0.5}
OPEN = {"open": True, "public": {"source": "sample/weights/standard.safetensors", "sha256": WEIGHTS}}
SIGNERS = {"key": "ada", "accept": "ada", "stake": "ada", "decision": "ada", "void": "ada"}


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


@cache
def key(name: str) -> Path:
    """The private key of a person, made anew; staff enters, ada, eve and bob are on the board."""
    folder = TemporaryDirectory(prefix="keys")
    _FOLDERS.append(folder)
    path = Path(folder.name, name)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)], check=True)
    return path


_FOLDERS: list[Any] = []


def public(name: str) -> str:
    return key(name).with_suffix(".pub").read_text().strip()


@cache
def private(name: str) -> Ed25519PrivateKey:
    found = load_ssh_private_key(key(name).read_bytes(), None)
    assert isinstance(found, Ed25519PrivateKey)
    return found


@cache
def signature(text: bytes, name: str) -> str:
    """As ssh-keygen makes it, without starting a program."""
    owner = private(name)
    return armoured(owner.public_key().public_bytes_raw(), owner.sign(signed_text(text)))


def rules(**changed: Any) -> dict[str, Any]:
    """contest.yaml: made up, so that instants can be chosen."""
    board = {name: {**member, "key": public(name)} for name, member in RULES["board"].items()}
    teams = {name: public(name) for name in RULES["teams"]}
    return {**RULES, "teams": teams, "made_up": True, "signers": {"staff": public("staff")}, "board": board, **changed}


def authors(kind: str, data: Mapping[str, Any], board: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """Those who sign an entry: teams and judges by the entry, members of the board by its kind."""
    if kind in board and data.get("by", "board") == "board":
        return board[kind]
    if kind == "defence":
        return (team_of(data["name"]),)
    found = {"answers": "judge", "submission": "team", "appeal": "team", "cosignature": "team", "stake": "by"}
    return (data[found[kind]],) if kind in found else ()


def text_of(story: Sequence[tuple[str, str, Mapping[str, Any]]], signers: Mapping[str, Sequence[str]]) -> str:
    """The lines of a log, each signed by its authors, whatever is wrong with them."""
    lines, prev, first = "", START, ""
    signed = Counter[str]()
    for n, (at, kind, data) in enumerate(story):
        if kind == "publish" and not data:
            data = {"checkpoint": checkpoint_of(lines.splitlines(), private("staff"))}
        content: dict[str, Any] = {"n": n, "at": at, "kind": kind, "prev": prev, "data": data}
        names = authors(kind, data, signers)
        if names:
            content["signatures"] = {name: signed_by(name, first, prev, signed[name], kind, data) for name in names}
            signed.update(names)
        text = json.dumps(content)
        prev = digest(text.encode())
        first = first or prev
        lines += f"{text}\n"
    return lines


def signed_by(name: str, first: str, seen: str, mine: int, kind: str, data: Mapping[str, Any]) -> dict[str, str | int]:
    text = statement(first, seen, mine, kind, data)
    return {"seen": seen, "mine": mine, "signature": signature(text, name)}


def write_log(contest: Path, text: str, name: str = "staff", by: str = "staff") -> None:
    """Write a log, signed, which nobody has seen before."""
    forget_all()
    contest.mkdir(parents=True, exist_ok=True)
    (contest / LOG).write_text(text + last_line(text, name, by))


def forget_all() -> None:
    """Forget what was seen of all contests."""
    path = seen_file(START)
    assert path is not None
    shutil.rmtree(path.parent, ignore_errors=True)


def last_line(text: str, name: str = "staff", by: str = "staff") -> str:
    """The signature in the last line of a log with these entries."""
    digests = [digest(each.encode()) for each in text.splitlines()] or [START]
    signed = json.dumps({"contest": digests[0], "head": digests[-1], "lines": len(digests)}).encode()
    return json.dumps({"by": by, "signature": signature(signed, name)}) + "\n"


class OnDisk:
    """A contest with a defence, a submission that breaks it and its judges' answers; `story`: what is in its log.

    The log is written, with one signature on it, whenever the story changes.
    """

    def __init__(self, edition: Path) -> None:
        self.edition, self.folder = edition, edition / "studies" / "contest"
        self.signers: dict[str, Sequence[str]] = {kind: (name,) for kind, name in SIGNERS.items()}
        clean = entry(1).model_copy(update={"pixels_sha256": pixels_sha256(Image.new("RGB", (30, 30), CLEAN))})
        export = edition / "data" / "export" / "standard"
        self.text(export / "manifest.csv", manifest_csv([clean], imagenet()))
        shutil.copyfile(ROOT / "params.yaml", edition / "params.yaml")
        self.clean = export / file_name(clean.wnid, clean.image_id, None, imagenet())
        self.clean.parent.mkdir()
        self.clean.write_bytes(png(CLEAN, (30, 30), "JPEG"))
        red = png((200, 0, 0))
        self.sha256 = self.put(red)
        submission = {
            "team": "red", "target": "gold/wall", "images": [named("x.png", red)],
        }  # fmt: skip
        self.story: list[tuple[str, str, Mapping[str, Any]]] = [
            ("2026-11-01T08:00:00Z", "contest", rules()),
            ("2026-11-01T09:00:00Z", "roster", {"roster": {judge: public(judge) for judge in JUDGES}}),
            ("2026-11-01T10:00:00Z", "defence", {"name": "gold/wall", **OPEN, "model": MODEL}),
            ("2026-11-01T11:00:00Z", "run", self.run_of({})),
            ("2026-11-02T08:00:00Z", "stake", {"batch": "first", "by": "board", "defences": ["gold/wall"]}),
            ("2026-11-02T12:00:00Z", "submission", submission),
            ("2026-11-06T23:59:59Z", "publish", {}),
            *(("2026-11-07T12:00:00Z", "answers", self.answers_of(judge, {self.sha256: BIRD})) for judge in JUDGES[:3]),
            ("2026-11-07T13:00:00Z", "run", self.run_of({self.sha256: "bicycle"})),
        ]
        self.write()

    def put(self, data: bytes) -> str:
        """Add an object; its SHA-256."""
        path = self.folder / "objects" / digest(data)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path.name

    def path(self, name: str) -> Path:
        return self.folder / name

    def image(self) -> Path:
        """The object of the submitted image."""
        return self.path(f"objects/{self.sha256}")

    def text(self, path: Path, content: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)

    def yaml(self, name: str, content: object) -> Path:
        self.text(self.edition / "mail" / name, yaml.safe_dump(content, sort_keys=False))
        return self.edition / "mail" / name

    def write(self) -> None:
        write_log(self.folder, text_of(self.story, self.signers))

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

    def removed(self, kind: str) -> None:
        """Leave the entries of a kind out, and write the log."""
        self.story = [each for each in self.story if each[1] != kind]
        self.write()

    def run_of(self, answers: Mapping[str, str], defence: str = "gold/wall") -> dict[str, Any]:
        figures = {"images": 10, "correct": 9, "mistakes": 0, "mistakes_at_80": 0}
        return {"defence": defence, "images_per_minute": 100.0, "eligibility": figures, "answers": dict(answers)}

    def answers_of(self, judge: str, answers: Mapping[str, Any], week: str = "2026-11-06") -> dict[str, Any]:
        return {"judge": judge, "week": week, "answers": dict(answers)}

    def mail(self, name: str, images: Mapping[str, bytes], team: str = "blue", **changed: object) -> Path:
        """The folder of a submission as it comes by mail."""
        folder = self.edition / "mail" / name
        content = {"team": team, "target": "gold/wall"}
        self.yaml(f"{name}/manifest.yaml", content | changed)
        for file, data in images.items():
            (folder / file).write_bytes(data)
        return folder

    def entries(self) -> str:
        """The lines of the log without the signature at its end."""
        return "".join(self.path(LOG).read_text().splitlines(keepends=True)[:-1])

    def sign(self, *paths: Path) -> None:
        """Sign entries as those who have to, in this order."""
        by_author: dict[str, list[Path]] = {}
        for path in paths:
            for old in path.parent.glob(f"{path.name}.*.sig"):
                old.unlink()
            draft = draft_of(path, Edition(self.edition))
            for name in authors(draft.kind, draft.data, self.signers):
                by_author.setdefault(name, []).append(path)
        for name, theirs in by_author.items():
            sign_entries(self.folder, theirs, name, key(name))

    def enter(self, *paths: Path, at: str = "2026-11-09T12:00:00Z", publish: bool = False) -> list[str]:
        """Enter what has come, signed by its authors, as staff."""
        self.sign(*paths)
        return enter(self.folder, paths, publish=publish, key=key("staff"), at=parse_instant(at))

    def check(self, *paths: Path, at: str = "2026-11-09T12:00:00Z") -> list[str]:
        """Check what has come, signed by its authors, and write nothing."""
        self.sign(*paths)
        return enter(self.folder, paths, at=parse_instant(at))

    def state(self, on: str | None = None) -> ContestFiles:
        return read_state(self.folder, None if on is None else day(on))
