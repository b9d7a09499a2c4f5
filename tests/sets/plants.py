"""Changes of a release, one at a time, with its checksums rewritten to fit."""

import csv
import hashlib
import math
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

Rows = list[dict[str, Any]]
Plant = Callable[[Path, Random], None]

ROLES = ("standard", "norm_robust", "corruption_robust")
REASONS = ("watermark", "text", "border", "blur", "drawing")
BOX = ("left", "top", "right", "bottom")


def read(path: Path) -> Rows:
    if path.suffix == ".parquet":
        return list(pq.read_table(path).to_pylist())
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, rows: Rows) -> None:
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows, schema=pq.read_schema(path)), path)
        return
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_checksums(folder: Path) -> None:
    """The current ones of the files of a release, or of a set."""
    names = sorted(line.split("  ")[1] for line in (folder / "checksums.sha256").read_text().splitlines())
    digests = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}
    (folder / "checksums.sha256").write_text("".join(f"{digest}  {name}\n" for name, digest in digests.items()))


def planted(release: Path, plant: Plant, random: Random) -> None:
    """Change a release, and rewrite the checksums of sets and release."""
    plant(release, random)
    for role in ROLES:
        write_checksums(release / "sets" / role)
    write_checksums(release)


def another(row: dict[str, Any], image: dict[str, Any], score: dict[str, Any]) -> dict[str, Any]:
    """A line of the manifest for another whole image in the place of this one."""
    confidence = f"{score['top5_probability'][0]:.9g}"
    return row | {
        "image_id": image["image_id"], "confidence": confidence, "source_confidence": confidence,
        "ilsvrc_class": str(image["ilsvrc_class"]), "real_classes": " ".join(map(str, image["real_classes"])),
        "source_sha256": image["sha256"], "file_sha256": image["sha256"], "pixels_sha256": image["pixels_sha256"],
        "file": f"{row['wnid']}/{image['image_id']}.JPEG", "encoder": "", **dict.fromkeys(BOX, ""),
    }  # fmt: skip


def by_id(path: Path) -> dict[str, dict[str, Any]]:
    return {row["image_id"]: row for row in read(path)}


def swap_image(release: Path, random: Random) -> None:
    """Another image of the index in a place, a rejected candidate for a kept one, or two images exchanged."""
    role = random.choice(ROLES)
    folder = release / "sets" / role
    rows, images = read(folder / "manifest.csv"), by_id(release / "index.parquet")
    scores = by_id(release / "scores" / f"{role}.parquet")
    place = random.randrange(len(rows))
    row, kind = rows[place], random.choice(["any", "rejected", "places"])
    others = [each for each in rows if each["wnid"] == row["wnid"] and each is not row]
    rejected = read(folder / "rejected.csv")
    of_class = [each for each in rejected if each["wnid"] == row["wnid"]]
    if kind == "places" and others:
        other = random.choice(others)
        row["rank"], other["rank"] = other["rank"], row["rank"]
        rows.sort(key=lambda each: (int(each["class_index"]), int(each["rank"])))
    elif kind == "rejected" and of_class:
        other = random.choice(of_class)
        rows[place] = another(row, images[other["image_id"]], scores[other["image_id"]])
        other["image_id"] = row["image_id"]
        write(folder / "rejected.csv", rejected)
    else:
        kept = {each["image_id"] for each in rows}
        other_id = random.choice(sorted(set(images) - kept))
        rows[place] = another(row, images[other_id], scores[other_id])
    write(folder / "manifest.csv", rows)


def change_verdict(release: Path, random: Random) -> None:
    """A valid other verdict or reason of somebody, or none any more."""
    path = random.choice(sorted((release / "reviews").glob("*/*.yaml")))
    content = yaml.safe_load(path.read_text())
    entries = content[path.stem]
    image_id = random.choice(sorted(entries))
    entry = entries[image_id]
    kept = {name: entry[name] for name in ("sha256", "note") if name in entry}
    reason = random.choice([each for each in REASONS if each != entry.get("reason")])
    choices: list[dict[str, Any] | None] = [None, kept | {"verdict": "reject", "reason": reason}]
    choices += [kept | {"verdict": verdict} for verdict in ("clean", "unsure") if verdict != entry["verdict"]]
    changed = random.choice(choices)
    if changed is None:
        del entries[image_id]
    else:
        entries[image_id] = changed
    path.write_text(yaml.safe_dump(content, sort_keys=False))


def shifted(row: dict[str, Any], shift: float) -> dict[str, Any]:
    """The scores of an image whose first logit is higher by `shift`, all others the same."""
    first, *others = row["top5_probability"]
    total = 1 - first + first * math.exp(shift)
    return row | {
        "top5_probability": [first * math.exp(shift) / total, *(each / total for each in others)],
        "log_odds": row["log_odds"] + shift,
    }


def change_score(release: Path, random: Random) -> None:
    """Another score of an image that the model gets right, or another first class of it."""
    role = random.choice(ROLES)
    path = release / "scores" / f"{role}.parquet"
    rows = read(path)
    candidates = {row["image_id"] for row in read(release / "candidates" / f"{role}.parquet")}
    place = random.choice([n for n, row in enumerate(rows) if row["image_id"] in candidates])
    if random.random() < 0.75:
        rows[place] = shifted(rows[place], random.choice([-1, 1]) * random.choice([1e-4, 0.01, 0.5, 3]))
    else:
        first, second, *rest = rows[place]["top5_class"]
        rows[place] |= {"top5_class": [second, first, *rest]}
    write(path, rows)


def move_box(release: Path, random: Random) -> None:
    """A box moved by some pixels: in a manifest, in somebody's verdict, or in the scores of crops."""
    shift = random.choice([-3, -1, 1, 2, 5])

    def moved(box: list[int]) -> list[int]:
        step = shift if box[0] + shift >= 0 else abs(shift)
        return [box[0] + step, box[1], box[2] + step, box[3]]

    role = random.choice(ROLES)
    manifest = release / "sets" / role / "manifest.csv"
    rows = read(manifest)
    cropped = [row for row in rows if row["left"]]
    kind = random.choice(["manifest", "verdict", "scores"])
    if kind == "manifest" and cropped:
        row = random.choice(cropped)
        row |= dict(zip(BOX, moved([int(row[edge]) for edge in BOX]), strict=True))
        write(manifest, rows)
    elif kind == "scores":
        path = release / "crop_scores" / f"{role}.parquet"
        rows = read(path)
        row = random.choice(rows)
        row["crop"] = moved(row["crop"])
        write(path, rows)
    else:
        paths = [path for path in sorted((release / "reviews").glob("*/*.yaml")) if "crop:" in path.read_text()]
        path = random.choice(paths)
        content = yaml.safe_load(path.read_text())
        drawn = [entry for entry in content[path.stem].values() if "crop" in entry]
        entry = random.choice(drawn)
        entry["crop"] = moved(entry["crop"])
        path.write_text(yaml.safe_dump(content, sort_keys=False))


def prefer_reserve(release: Path, random: Random) -> None:
    """An image of tier reserve in the place of one of top5, everywhere in the set, and in half of all in candidates."""
    choices = []
    for role in ROLES:
        kept, rejected = (read(release / "sets" / role / name) for name in ("manifest.csv", "rejected.csv"))
        for row in kept:
            others = [each for each in rejected if each["wnid"] == row["wnid"] and each["tier"] == "reserve"]
            choices += [(role, row["image_id"], each["image_id"]) for each in others if row["tier"] == "top5"]
    role, top, reserve = random.choice(choices)
    folder = release / "sets" / role
    rows, rejected = read(folder / "manifest.csv"), read(folder / "rejected.csv")
    scores = by_id(release / "scores" / f"{role}.parquet")[reserve]
    image = by_id(release / "index.parquet")[reserve]
    says_top5 = random.random() < 0.5
    for number, row in enumerate(rows):
        if row["image_id"] == top:
            rows[number] = another(row, image, scores) | {"tier": "top5" if says_top5 else "reserve"}
    for row in rejected:
        if row["image_id"] == reserve:
            row |= {"image_id": top, "reason": "not_needed"} | ({} if says_top5 else {"tier": "top5"})
    write(folder / "manifest.csv", rows)
    write(folder / "rejected.csv", rejected)
    if says_top5:
        path = release / "candidates" / f"{role}.parquet"
        listed = by_id(path)
        for name in ("tier", "rank"):
            listed[top][name], listed[reserve][name] = listed[reserve][name], listed[top][name]
        write(path, list(listed.values()))


KINDS: dict[str, Plant] = {
    "an image swapped": swap_image,
    "a verdict changed": change_verdict,
    "a score changed": change_score,
    "a box moved": move_box,
    "a reserve before a Top-5": prefer_reserve,
}
