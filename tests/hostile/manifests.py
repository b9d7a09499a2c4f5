"""Damaged manifests of finished sets, and a check of accepted ones that shares nothing with the code."""

import csv
import io
import random
import re
from functools import cache
from pathlib import Path

from cleanset.classes import imagenet
from cleanset.sets import verify
from cleanset.sets.folder import manifest_text
from cleanset.sets.manifest import manifest_csv
from cleanset.sets.manifest_checks import read_manifest
from tests.hostile.mutators import TOKENS, edited
from tests.sets.entries import CROPPED, WHOLE, checked

_ODD = (
    *(token for token in TOKENS if len(token) < 200), "nan", "inf", "-0", "1e-3", "0.5000", "+1", "50001",
    "ILSVRC2012_val_00050001", "n01443537", "../x.JPEG", "/etc/passwd", "f" * 64, "F" * 64, "0 1", "1 0", "relaxed",
    "Pillow 1 with zlib 1; x", "Pillow 12.1.0 with zlib-ng 2.3.3", "65536", "480", "Standard", "n01440764/",
)  # fmt: skip
_TEMPTING = {
    "wnid": ["n01443537", "n00000001"], "class_index": ["1", "2", "999"],
    "class_name": ["tench", "goldfish", "Goldfish"], "rank": ["1", "2", "3"],
    "tier": ["top5", "reserve", "relaxed"], "confidence": ["0.5", "0.25", "1", "-0", ""],
    "source_confidence": ["0.5", "0.75", "0"], "ilsvrc_class": ["0", "999", "1000"],
    "real_classes": ["0", "1", "391", "0 1", "391 392", "0 391 999", "0 391 1000"], "reviewers": ["0", "7", "-1"],
    "left": ["", "0", "479", "480", "65536"], "top": ["", "0", "329", "330"], "right": ["", "0", "1", "65535", "65536"],
    "bottom": ["", "0", "1", "2"], "encoder": ["", "Pillow 12.1.0 with zlib 1.3.1"],
}  # fmt: skip
"""Values that are valid in some line, or nearly so."""
_IDS = ("00000000", "00000007", "00000293", "00050000", "00050001", "99999999", "0000029٣")
_SHA256 = "([0-9a-f]{64})"
_PROBABILITY = r"(?:0|1|0\.\d{1,9}|[1-9](?:\.\d+)?e-\d\d)"
_LINE = re.compile(
    r"(?P<model>[a-z][a-z0-9_]*),(?P<wnid>n\d{8}),(?P<index>0|[1-9]\d*),(?P<name>[^,]+),"
    r"(?P<rank>[1-9]\d*),"
    r"(?P<image>ILSVRC2012_val_\d{8}),(?P<tier>top5|reserve|relaxed),"
    rf"(?P<confidence>{_PROBABILITY})?,(?P<source>{_PROBABILITY})?,(?:0|[1-9]\d?\d?),"
    r"(?P<real>\d{1,3}(?: \d{1,3})*),(?:0|[1-9]\d*),"
    r"(?:,,,|(?P<left>\d+),(?P<top>\d+),(?P<right>\d+),(?P<bottom>\d+)),"
    rf"(?P<file>[^,]+),{_SHA256},(?:archive_md5|image_sha256|none),{_SHA256},{_SHA256},"
    r"(?P<encoder>Pillow [\w.+-]+ with zlib(?:-ng)? [\w.+-]+)?",
    re.ASCII,
)


@cache
def _text() -> str:
    another = {"wnid": "n01443537", "class_index": 1, "class_name": "goldfish", "ilsvrc_class": 1, "real_classes": [1]}
    name = "ILSVRC2012_val_00000007"
    digests = dict.fromkeys(("source_sha256", "file_sha256"), "1" * 64) | {"pixels_sha256": "2" * 64}
    third = checked(WHOLE, image_id=name, file=f"n01443537/{name}.JPEG", **another, **digests)
    return manifest_csv([WHOLE, CROPPED, third], imagenet())


def make_manifest(rng: random.Random) -> bytes:
    """A manifest with other values, lines or bytes; a few are valid by chance."""
    if rng.random() < 0.4:
        return edited(rng, _text())
    rows = list(csv.reader(io.StringIO(_text())))
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        row, column = rng.randrange(0 if rng.random() < 0.1 else 1, len(rows)), rng.randrange(len(rows[0]))
        choices = [rng.choice(_ODD), rng.choice(_ODD), "", rows[rng.randrange(1, len(rows))][column]]
        choices += 3 * [rng.choice(_TEMPTING.get(rows[0][column], [""]))]
        choices.append(rows[row][column] + rng.choice(["0", " ", "x", "\n"]))
        rows[row][column] = rng.choice(choices)
    if rng.random() < 0.15:  # another image in both of its columns
        row, name = rng.randrange(1, len(rows)), f"ILSVRC2012_val_{rng.choice(_IDS)}"
        rows[row] = [value.replace(rows[row][5], name) for value in rows[row]]
    if rng.random() < 0.15:
        rows.insert(rng.randrange(1, len(rows)), list(rng.choice(rows)))
    if rng.random() < 0.1:
        rows[1:] = rng.sample(rows[1:], len(rows) - 1)
    if rng.random() < 0.05:
        rows.pop(rng.randrange(len(rows)))
    out = io.StringIO()
    csv.writer(out, lineterminator=rng.choice(["\n"] * 9 + ["\r\n"])).writerows(rows)
    return out.getvalue().encode("utf-8", "surrogatepass")


def read_any_manifest(path: Path) -> None:
    """As load, table, pack and compare read it, and as verify does, whose problems are lines."""
    path.with_name("manifest.csv").write_bytes(path.read_bytes())
    verification = verify.run(path.parent, decode=False)
    assert all(str(problem).isprintable() and len(str(problem)) < 400 for problem in verification.problems)
    invalid = [problem for problem in verification.problems if problem.what == "manifest"]
    try:
        read_manifest(*manifest_text(path))
    except Exception:
        assert invalid, "verify finds nothing wrong with it"
        raise
    assert not invalid
    assert_valid(path.read_text("utf-8"))


def assert_valid(text: str) -> None:
    """Line by line with a regular expression."""
    header, *lines = text.split("\n")
    assert header == _text().split("\n")[0]
    assert lines.pop() == ""
    seen: dict[str, int] = {}
    images = set()
    last = 0
    for line in lines:
        found = _LINE.fullmatch(line)
        assert found, line
        index, left = int(found["index"]), found["left"]
        assert imagenet().keys[index] == found["wnid"]
        assert found["name"] == {0: "tench", 1: "goldfish"}[index]
        assert found["file"] == f"{found['wnid']}/{found['image']}{'.png' if left else '.JPEG'}"
        assert 0 < int(found["image"][-8:]) <= 50_000
        real = list(map(int, found["real"].split()))
        assert real == sorted(set(real))
        assert index in real
        assert (len(real) > 1) == (found["tier"] == "relaxed")
        source, file, _ = re.findall(f"(?<=,){_SHA256}(?=,)", line)
        if left:
            edges = [int(found[name]) for name in ("left", "top", "right", "bottom")]
            assert edges[0] < edges[2] < 65_536
            assert edges[1] < edges[3] < 65_536
            assert found["encoder"]
            assert found["source"] or not found["confidence"]
        else:
            assert source == file
            assert found["confidence"] == found["source"]
            assert not found["encoder"]
        assert index >= last
        last = index
        seen[found["wnid"]] = seen.get(found["wnid"], 0) + 1
        assert int(found["rank"]) == seen[found["wnid"]]
        assert found["image"] not in images
        images.add(found["image"])
        assert found["model"] == lines[0].split(",")[0]
