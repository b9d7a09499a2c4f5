"""Check a release: whether exactly its sets follow from its scores and its verdicts.

    python from_verdicts.py RELEASE

prints a line for each problem and ends with exit code 1 on any. It needs Python 3.11 and pyarrow, no image, no
network and nothing of the project: the rules of selection are written down here a second time, from their description
(docs/formats.md, docs/review.md), so that a mistake or a change in one program shows in the other.

1. Label: the reassessed label of an image, if it has exactly one (dataset.label both: and it is the original one).
2. Tiers of a class, for one model. top5: of the images with this label that all models classify correctly
   (select.pool model: that this one does), the first select.candidates. reserve: the others that this model classifies
   correctly. relaxed: images with several labels, the model's top-1 class among them. Each by descending log-odds, then
   confidence, then image id (select.order float32: without the log-odds).
3. Decision on an image: its reviewers' consensus (review.policy); the board overrules them. Answers to gold items
   do not count. A crop that the model misclassifies is rejected (review.wrong_after_crop).
4. A class is filled from top5, reserve, relaxed; in each the clean images come before the cropped ones (review.crops
   in_rank: they do not). For a set without a model (source random), the candidates are all images with one label, by
   descending number, and have no tier. It takes export.images_per_class of them, or all.

No program can find these changes from a release alone:
- one that is made in every place that records it: a score in scores, candidates and sets, a verdict in reviews,
  verdicts.csv and sets. Compare these files with the git repository, or check the signature of checksums.sha256;
- another score that decides nothing and fits the other numbers of its row: of an image that the model does not get
  right, of a crop that is not delivered, of a class beyond the first;
- anything not recomputed: notes, gold.json, the bound of an audit, the cards and descriptions of the sets, the columns
  source_check, encoder and group of their manifests;
- other pixels in a cropped PNG whose digests were rewritten: cleanset rebuild makes it from the original image.
"""

import csv
import hashlib
import json
import math
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet

TIERS = ("none", "top5", "reserve", "relaxed")
OF_A_MODEL = ("tier", "confidence", "source_confidence")
"""Columns that a set without a model lacks."""
CHECKSUMS = "checksums.sha256"
REJECTED = ("class_index", "image_id", "tier", "rank", "reason")
COLUMNS = {"wnid": "class", "original_class": "ilsvrc_class", "classes": "real_classes"}
"""Columns that are called otherwise where the images are ImageNet's, or where they are not."""
UNREADABLE = OSError, ValueError, LookupError, TypeError, AttributeError, RuntimeError, ArithmeticError, csv.Error
"""The errors that changed files lead to."""
BOX = ("left", "top", "right", "bottom")
ESCAPED = re.compile("^'(?='*[=+\\-@\t\r])")
"""The apostrophe before a text in a CSV file that a spreadsheet would run as a formula."""
FIELDS = {"verdict", "reason", "correct_class", "crop", "object_fully_visible", "basis", "seen", "sha256", "note"}

Box = tuple[int, ...]
Row = dict[str, Any]


class ReleaseError(ValueError):
    """A file that is not as in any release."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One reviewer's verdict. A crop may have no box yet: somebody saw that it is needed, but did not draw it."""

    verdict: str
    reason: str | None
    box: Box | None
    basis: str
    sha256: str


class Decision(NamedTuple):
    """The decision on an image for one model; `verdict` undecided means that no decision counts yet."""

    verdict: str
    reason: str | None = None
    box: Box | None = None


Votes = dict[tuple[int, str], dict[str, Verdict]]
"""By class index and image id: the verdict of each reviewer."""
CONFLICT = Decision("undecided", "conflict")


# Reading files, and the part of YAML that reviews are written in


QUOTED = r'"(?:[^"\\]|\\.)*"|\'(?:[^\']|\'\')*\''
PLAIN_KEY = r"(?:[^\s\"'#&*!|>%@`?\[\]{},-]|-(?=\S))(?:(?! #|:(?:\s|$)).)*"
KEY = re.compile(rf"({QUOTED}|{PLAIN_KEY})\s*:(?:\s+(.*))?")
QUOTED_OR_NUMBERS = re.compile(rf"({QUOTED}|\[[0-9,\s]*\])[ \t]*(?:#[^\n]*)?(?:\n|\Z)", re.DOTALL)


class Yaml:
    """Mappings and lists by indentation, lists of numbers in brackets, texts; any other YAML is refused."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = path.read_text("utf-8").split("\n")
        self.at = 0

    def content(self) -> Any:
        """The mapping that the file holds; empty for an empty file."""
        return {} if self.indent() < 0 else self.mapping(self.indent())

    def check(self, is_read: bool) -> None:
        """Raise ReleaseError for the current line unless it can be read."""
        if not is_read:
            raise ReleaseError(f"{self.path}, line {self.at + 1}: YAML in a form that this program does not read")

    def indent(self) -> int:
        """The indent of the next line with more than a comment; -1 at the end."""
        while self.at < len(self.lines):
            text = self.lines[self.at].lstrip(" ")
            if text.strip() and not text.startswith("#"):
                return len(self.lines[self.at]) - len(text)
            self.at += 1
        return -1

    def mapping(self, indent: int) -> Row:
        """The mapping whose keys have this indent."""
        found: Row = {}
        while self.indent() == indent:
            match = KEY.fullmatch(self.lines[self.at].strip())
            self.check(match is not None and scalar(match[1]) not in found)
            self.at += 1
            found[str(scalar(match[1]))] = self.value(match[2] or "", indent)  # type: ignore[index]
        self.check(self.indent() < indent)
        return found

    def value(self, rest: str, indent: int) -> Any:
        """The value that begins with `rest`, behind a key at this indent."""
        if not rest or rest.startswith("#"):
            rest = ""
            inner = self.indent()
            if inner >= indent and self.lines[self.at].startswith("- ", inner):
                return list(self.items(inner))
            if inner > indent and KEY.fullmatch(self.lines[self.at].strip()):
                return self.mapping(inner)
        if rest[:1] in ('"', "'", "["):
            match = QUOTED_OR_NUMBERS.match("\n".join([rest, *self.lines[self.at :]]))
            self.check(match is not None)
            text = match[1] if match else ""
            self.at += text.count("\n")
            return re.findall("[0-9]+", text) if text[0] == "[" else scalar(text)
        self.check(rest == "{}" or not rest.startswith(tuple("{&*!%@`")))
        # "#" after | or > does not begin a comment, but only notes are such texts, and they decide nothing
        while self.indent() > indent:
            rest += f" {self.lines[self.at].strip()}"
            self.at += 1
        return scalar(re.split(r"\s#", rest)[0].strip())

    def items(self, indent: int) -> Iterator[Any]:
        """The items of the list whose dashes have this indent."""
        while self.indent() == indent and self.lines[self.at].startswith("- ", indent):
            self.at += 1
            yield scalar(self.lines[self.at - 1][indent + 2 :].split(" #")[0].strip())


def scalar(text: str) -> str | None:
    """The text of a scalar, quoted or plain."""
    if text.startswith("'"):
        return text[1:-1].replace("''", "'")
    if text.startswith('"'):
        try:
            # JSON has no \x41
            return str(json.loads(re.sub(r"(?<!\\)((?:\\\\)*)\\x(..)", r"\1\\u00\2", text), strict=False))
        except ValueError:  # another escape that JSON lacks: keys do not need those
            return text
    return None if text in ("", "~", "null", "Null", "NULL", "{}") else text.strip()


def rows_of(path: Path) -> list[Row]:
    """The rows of a Parquet file or a CSV, with the same names of columns for any images."""
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as file:
            rows = [{name: ESCAPED.sub("", row[name]) for name in row} for row in csv.DictReader(file, strict=True)]
    else:
        with pyarrow.parquet.ParquetFile(path, page_checksum_verification=True) as table:
            rows = table.read().to_pylist()
    return [{COLUMNS.get(name, name): value for name, value in row.items()} for row in rows]


def by(path: Path, *names: str) -> dict[tuple[str, ...], Row]:
    """The rows of a table by their values in these columns, each once."""
    rows = rows_of(path)
    found = {tuple(str(row[name]) for name in names): row for row in rows}
    if len(found) < len(rows):
        raise ReleaseError(f"{path}: {len(rows)} rows; expected {len(found)}, each {' and '.join(names)} once")
    return found


def by_id(path: Path) -> dict[str, Row]:
    """The rows of a table by image id."""
    return {key[0]: row for key, row in by(path, "image_id").items()}


def sha256(path: Path) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def checksum_problems(release: Path) -> Iterator[str]:
    """Files that are missing, surplus or changed."""
    listed = dict(line.partition("  ")[::-2] for line in (release / CHECKSUMS).read_text("utf-8").splitlines())
    there = {path.relative_to(release).as_posix() for path in release.rglob("*") if not path.is_dir()}
    for name in sorted((there | set(listed)) - {CHECKSUMS, f"{CHECKSUMS}.sig"}):
        if name not in there or name not in listed:
            yield f"{name}: {'surplus' if name in there else 'missing'}, as {CHECKSUMS} says"
        elif sha256(release / name) != listed[name]:
            yield f"{name}: not the file that {CHECKSUMS} lists"


def differences(path: Path, names: Sequence[str], expected: Iterable[Row]) -> Iterator[str]:
    """A line for each row of a table that is not as expected; rows are found by the columns `names`."""
    found = by(path, *names)
    wanted = {tuple(str(row[name]) for name in names): row for row in expected}
    for key in sorted({*wanted, *found}):
        where = f"{path}, {' '.join(key)}"
        if key not in wanted or key not in found:
            row, what = (found[key], "does not follow") if key in found else (wanted[key], "is missing")
            yield f"{where}: {row['image_id']} {what}"
            continue
        for name, value in wanted[key].items():
            if str(found[key][name]) != str(value):
                yield f"{where}: {name} {found[key][name]}; expected {value}"


# Verdicts, and the decision that they lead to


def verdict_of(fields: Row, where: str) -> Verdict:
    """A verdict from its fields in a review file."""
    verdict, reason, crop = (fields.get(name) for name in ("verdict", "reason", "crop"))
    box = tuple(map(int, crop)) if isinstance(crop, list) else None
    is_box = crop == "unknown" or (box is not None and len(box) == 4)
    has_box = is_box and fields.get("object_fully_visible") == "true"
    fits = {
        "clean": reason is None and crop is None, "crop": reason is not None and has_box,
        "reject": reason is not None and crop is None, "unsure": crop is None,
    }  # fmt: skip
    if not set(fields) <= FIELDS or not fits.get(verdict or ""):
        raise ReleaseError(f"{where}: not a valid verdict: {fields}")
    return Verdict(
        verdict=str(verdict),
        reason=reason,
        box=box,
        basis=fields.get("basis") or "explicit",
        sha256=str(fields.get("sha256")),
    )


def read_verdicts(reviews: Path) -> dict[tuple[str, str], Verdict]:
    """Every verdict below the folder `reviews`, by file and image id."""
    found = {}
    # next to the folders of auditors is the plan of an audit
    for path in sorted(path for path in reviews.rglob("*.yaml") if path.parent != reviews / "audit"):
        content = Yaml(path).content()
        file = path.relative_to(reviews).as_posix()
        if not set(content) <= {path.stem}:
            raise ReleaseError(f"{path}: of {', '.join(content)}; expected the class that the file is named after")
        for image_id, fields in (content.get(path.stem) or {}).items():
            found[file, image_id] = verdict_of(fields or {}, f"{path}, {image_id}")
            if path.parent.name == "board" and not (fields.get("note") or "").strip():
                raise ReleaseError(f"{path}, {image_id}: a verdict of the board without a note")
    return found


def kept(box: Box | None) -> tuple[int, ...]:
    """A sort key of boxes: smaller boxes come first."""
    return () if box is None else ((box[2] - box[0]) * (box[3] - box[1]), *box)


def agrees(vote: Verdict, one: Verdict, tolerance: float) -> bool:
    """Whether a vote has the verdict of `one`; if both have a box, about its box, but keeping no less."""
    if vote.box is None or one.box is None or vote.verdict != one.verdict:
        return vote.verdict == one.verdict
    limit = tolerance * min(one.box[2] - one.box[0], one.box[3] - one.box[1])
    return kept(vote.box) >= kept(one.box) and all(abs(a - b) <= limit for a, b in zip(vote.box, one.box, strict=True))


def lacks_box(vote: Verdict | Decision) -> bool:
    """Whether it is a crop whose box nobody knows."""
    return vote.verdict == "crop" and vote.box is None


def decided(votes: Sequence[Verdict], box: Box | None) -> Decision:
    """The decision from votes that agree, with their most frequent reason, in a tie the first by name."""
    verdict = votes[0].verdict
    counts = Counter(vote.reason for vote in votes)
    reason = min(counts, key=lambda each: (-counts[each], each or ""))
    return Decision("reject", "unsure") if verdict == "unsure" else Decision(verdict, reason, box)


def consensus(votes: Sequence[Verdict], policy: str, least: int, tolerance: float) -> Decision:
    """The decision of the reviewers, without the board."""
    if len(votes) < max(least, 1):
        return Decision("undecided", "too_few_reviewers" if votes else "unreviewed")
    if policy == "unanimous" and any(vote.verdict == "unsure" for vote in votes):
        return Decision("reject", "unsure")
    # a crop without a box agrees with any box that somebody has drawn
    choices = [one for one in votes if not lacks_box(one)] if any(one.box for one in votes) else votes
    groups = [([vote for vote in votes if agrees(vote, one, tolerance)], one) for one in choices]
    best, one = min(groups, key=lambda group: (-len(group[0]), kept(group[1].box), group[1].verdict))
    needed = len(votes) // 2 + 1 if policy == "majority" else len(votes)
    # where votes without a box would make a majority for either of two boxes, neither is taken
    either = any(len(group) >= needed and vote.box and vote not in best for group, vote in groups)
    if len(best) < needed or (either and any(map(lacks_box, votes))):
        return CONFLICT
    return decided(best, one.box)


def decision_of(by_reviewer: Mapping[str, Verdict], rules: Row) -> Decision:
    """The decision on an image, the same for every model."""
    others = [vote for reviewer, vote in sorted(by_reviewer.items()) if reviewer != "board"]
    board = by_reviewer.get("board")
    tolerance = rules["box_tolerance"]
    if board is None:
        found = consensus(others, rules["policy"], rules["min_reviewers"], tolerance)
    else:
        found = decided([board], board.box)
        drawn = [vote for vote in others if vote.box]
        if lacks_box(board) and drawn:
            by_others = consensus(drawn, "single", 1, tolerance)
            found = CONFLICT if by_others == CONFLICT else decided([board], by_others.box)
    return Decision("undecided", "box_unknown") if lacks_box(found) and rules["unknown_boxes"] == "open" else found


# The check of a release


def scores_fit(row: Row, classes: int, tolerance: float) -> bool:
    """Whether classes, probabilities and log-odds of an image can come from one softmax."""
    top = {each for each in row["top5_class"] if each >= 0}
    chances = row["top5_probability"]
    log_odds = row["log_odds"]
    if len(top) != min(5, classes) or max(top) >= classes or sorted(chances, reverse=True) != chances:
        return False
    if not abs(1 / (1 + math.exp(min(-log_odds, 700))) - chances[0]) < tolerance or sum(chances) > 1 + 2 * tolerance:
        return False
    # also if the first one rounds to 1: those beyond the top five are no larger than the last of these
    least = sum(chances[1:])
    most = sum(chances[1:]) + max(0, classes - 5) * chances[-1]
    fits = least < 1e-36 or math.log(chances[0] / most) - 1e-4 <= log_odds <= math.log(chances[0] / least) + 1e-4
    return bool(fits)


def filled(rows: list[Row], found: dict[str, Decision], count: float, in_rank: bool) -> tuple[list[Row], list[Row]]:
    """The candidates of a class that are kept, in their places, at most `count`, and the others with their reasons."""

    def order(row: Row) -> tuple[int, bool, int]:
        decision = found[row["image_id"]]
        is_crop = decision.verdict == "crop" or decision.reason == "box_unknown"
        return TIERS.index(row["tier"]), is_crop and not in_rank, row["rank"]

    keep = list[Row]()
    others = list[Row]()
    for row in sorted(rows, key=order):
        verdict, reason, _ = found[row["image_id"]]
        is_accepted = verdict in ("clean", "crop")
        is_full = len(keep) >= count
        if is_accepted and not is_full:
            keep.append(row)
            continue
        is_needless = is_accepted or (verdict == "undecided" and is_full)
        others.append(row | {"reason": "not_needed" if is_needless else reason})
    return keep, others


class Release:
    """A release: its parameters, classes, images, scores and verdicts, from which its sets must follow."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.params = json.loads((folder / "params.json").read_text("utf-8"))
        self.rules = self.params["review"]
        table = [line.split("\t") for line in (folder / "classes.tsv").read_text("utf-8").splitlines()[1:]]
        # ImageNet's classes have synonyms; sets of other images have this file
        end = "\t" if any(folder.glob("sets/*/croissant.jsonl")) else ", "
        self.keys = [line[0] for line in table]
        self.names = [line[1].partition(end)[0] for line in table]
        self.indices = {key: index for index, key in enumerate(self.keys)}
        # sets without a model, whose candidates are in a random order
        self.random = {role for role, model in self.params["models"].items() if model["source"] == "random"}
        self.images = by_id(folder / "index.parquet")
        self.scores = {role: by_id(folder / f"scores/{role}.parquet") for role in self.params["models"]}
        golds = rows_of(folder / "reviews/gold.csv") if (folder / "reviews/gold.csv").is_file() else []
        self.golds = {(self.indices[row["class"]], row["image_id"], row["sha256"]) for row in golds}
        self.verdicts = read_verdicts(folder / "reviews")
        self.votes = self.votes_in("")

    def votes_in(self, folder: str) -> Votes:
        """The verdicts of the reviewers in a folder below `reviews`, without their answers to gold items."""
        votes: Votes = defaultdict(dict)
        for (file, image_id), vote in self.verdicts.items():
            where, reviewer, key = ("/" + file.removesuffix(".yaml")).rsplit("/", 2)
            if where == folder and (self.indices[key], image_id, vote.sha256) not in self.golds:
                votes[self.indices[key], image_id][reviewer] = vote
        return votes

    def accepted(self, index: int, image_id: str) -> dict[str, Verdict]:
        """The votes on an image that count."""
        by_name = self.votes.get((index, image_id), {})
        return {name: vote for name, vote in by_name.items() if vote.basis in self.rules["accept"]}

    def problems(self) -> Iterator[str]:
        """Votes on other images, scores whose numbers contradict each other, and all that does not follow."""
        listed = [
            {"file": file, "image_id": image_id, "box": " ".join(map(str, vote.box or ()))}
            | {name: getattr(vote, name) or "" for name in ("verdict", "reason", "basis", "sha256")}
            for (file, image_id), vote in self.verdicts.items()
        ]
        if (found := {path.name for path in (self.folder / "sets").iterdir()}) != set(self.scores):
            yield f"sets: {', '.join(sorted(found))}; expected {', '.join(sorted(self.scores))}"
        yield from differences(self.folder / "verdicts.csv", ("file", "image_id"), listed)
        for (index, image_id), by_name in self.votes.items():
            for name, vote in by_name.items():
                if not self.is_on(self.images.get(image_id), index, vote):
                    yield f"reviews/{name}/{self.keys[index]}.yaml, {image_id}: not of an image and a box in the index"
        for role, scores in self.scores.items():
            is_rounded = self.params["models"][role]["source"] == "scores"
            if scores.keys() != self.images.keys():
                raise ReleaseError(f"scores/{role}.parquet: of other images than index.parquet")
            for image_id, row in scores.items():
                if not scores_fit(row, len(self.keys), 0.011 if is_rounded else 1e-6):
                    yield f"scores/{role}.parquet, {image_id}: numbers that no softmax gives together"
            yield from ModelSet(self, role).problems()

    def is_on(self, image: Row | None, index: int, vote: Verdict) -> bool:
        """Whether a vote is on the bytes of this image as one of this class, with a box that it may be cropped to."""
        if image is None or index not in image["real_classes"]:
            return False
        size = image["width"], image["height"]
        left, top, right, bottom = vote.box or (0, 0, *size)
        sides = (right - left, bottom - top)
        least = self.rules["min_crop_pixels"]
        is_inside = min(left, top) >= 0 and right <= size[0] and bottom <= size[1]
        is_part = is_inside and sides != size and min(sides) >= least
        is_official = vote.sha256 == "official" and self.params["official_images"]
        return (is_official or vote.sha256 == image["sha256"]) and (is_part or vote.box is None)

    def candidates(self, role: str) -> Iterator[tuple[int, list[Row]]]:
        """Each class with the images that may be in it for a model, by rank."""
        select = self.params["select"]
        if is_random := role in self.random:  # all images with one label, as if of one tier
            select = select | {"pool": "model", "candidates": len(self.images), "tiers": ["top5"]}
        label = self.params["dataset"]["label"]
        pools: dict[tuple[int, str], list[Row]] = defaultdict(list)
        for image_id, row in self.scores[role].items():
            image = self.images[image_id]
            top1 = row["top5_class"][0]
            labels = image["real_classes"]
            if top1 in labels and (label == "real" or top1 == image["ilsvrc_class"]):
                answers = {scores[image_id]["top5_class"][0] for scores in self.scores.values()}
                is_shared = select["pool"] == "model" or answers == {top1}
                tier = "relaxed" if len(labels) > 1 else "top5" if is_shared else "reserve"
                known = {"class_index": top1, "image_id": image_id, "log_odds": row["log_odds"]}
                pools[top1, tier].append(known | {"confidence": row["top5_probability"][0]})

        def order(row: Row) -> tuple[float, float, str]:
            log_odds = row["log_odds"] if select["order"] == "log_odds" else 0.0
            return -log_odds, -row["confidence"], row["image_id"]

        for index in (self.indices[key] for key in self.params["dataset"]["classes"]):
            pool = sorted(pools[index, "top5"], key=order)
            first = pool[: select["candidates"]]
            rest = pool[select["candidates"] :] + pools[index, "reserve"]
            by_tier = first, sorted(rest, key=order), sorted(pools[index, "relaxed"], key=order)
            listed = ((tier, row) for tier, rows in zip(TIERS[1:], by_tier, strict=True) for row in rows)
            placed = enumerate(listed, start=1)
            taken = ((n, "none" if is_random else tier, row) for n, (tier, row) in placed if tier in select["tiers"])
            yield index, [row | {"tier": tier, "rank": n} for n, tier, row in taken]


def crop_key(image_id: str, box: Box | None) -> tuple[str, str]:
    """The key of a crop in the table of their scores."""
    return image_id, str(list(box or ()))


class ModelSet:
    """The set of one model: as recomputed from the inputs, and as released."""

    def __init__(self, release: Release, role: str) -> None:
        self.release = release
        self.role = role
        self.folder = release.folder / "sets" / role
        self.record = json.loads((release.folder / f"scores/{role}.json").read_text("utf-8"))
        self.crops = by(release.folder / f"crop_scores/{role}.parquet", "image_id", "crop")

    def decision(self, index: int, image_id: str) -> Decision:
        """The decision on an image for this model."""
        rules = self.release.rules
        votes = self.release.accepted(index, image_id)
        if not votes:
            return Decision("clean") if rules["unreviewed"] == "clean" else Decision("undecided", "unreviewed")
        found = decision_of(votes, rules)
        crop = self.crops.get(crop_key(image_id, found.box))
        is_asked = rules["wrong_after_crop"] == "reject"
        if is_asked and found.verdict == "crop" and crop and crop["top5_class"][0] != index:
            return Decision("reject", "wrong_after_crop")
        return found

    def problems(self) -> Iterator[str]:
        """A line for each row of the release that does not follow from its scores and verdicts."""
        release = self.release
        folder = self.release.folder
        votes_of_all = ((key[1], vote) for key, by_name in release.votes.items() for vote in by_name.values())
        drawn = {crop_key(image_id, vote.box) for image_id, vote in votes_of_all if vote.box}
        is_network = release.params["models"][self.role]["source"] not in ("lists", "scores", "random")
        for image_id, box in sorted(drawn ^ set(self.crops)) if is_network else ():
            yield f"crop_scores/{self.role}.parquet: {image_id} {box}: drawn but not scored, or the reverse"
        candidates = list[Row]()
        manifest = list[Row]()
        rejected = list[Row]()
        for index, ranked in release.candidates(self.role):
            decisions = {row["image_id"]: self.decision(index, row["image_id"]) for row in ranked}
            wanted = release.params["export"]["images_per_class"]
            count = math.inf if wanted == "all" else wanted
            in_rank = release.rules["crops"] == "in_rank"
            keep, others = filled(ranked, decisions, count, in_rank)
            candidates += ranked
            # a crop without a box may count, but is never delivered
            others += [row | {"reason": "box_unknown"} for row in keep if lacks_box(decisions[row["image_id"]])]
            for place, row in enumerate((row for row in keep if not lacks_box(decisions[row["image_id"]])), start=1):
                manifest.append(self.manifest_row(row, place, decisions[row["image_id"]].box))
            rejected += [{name: row[name] for name in REJECTED} for row in others]
        for row in (*manifest, *rejected) if self.role in release.random else ():
            for name in OF_A_MODEL:
                row.pop(name, None)
        yield from differences(folder / f"candidates/{self.role}.parquet", ("class_index", "image_id"), candidates)
        yield from differences(self.folder / "rejected.csv", ("class_index", "image_id"), rejected)
        yield from differences(self.folder / "manifest.csv", ("class", "rank"), manifest)
        digests = {row["file"]: row["file_sha256"] for row in rows_of(self.folder / "manifest.csv")}
        paths = [path for path in self.folder.glob("*/**/*") if path.is_file()]
        images = {path.relative_to(self.folder).as_posix(): sha256(path) for path in paths}
        for name in sorted({*digests, *images}) if images else ():
            if digests.get(name) != images.get(name):
                yield f"{self.folder / name}: {images.get(name)}; expected {digests.get(name)} as in the manifest"
        yield from self.audit_problems(manifest)

    def manifest_row(self, row: Row, place: int, box: Box | None) -> Row:
        """The cells of an image's line in the manifest that follow from scores and verdicts."""
        release = self.release
        index = row["class_index"]
        image_id = row["image_id"]
        image = release.images[image_id]
        name = release.names[index]
        whole = "" if image_id in self.record.get("beyond", ()) else f"{row['confidence']:.9g}"
        key = release.keys[index]
        suffixes = ("", ".crop.png") if "." in image_id else (".JPEG", ".png")
        found = {
            "model": self.role, "class": key, "class_index": index, "rank": place, "image_id": image_id,
            "class_name": name if release.names.count(name) == 1 else f"{name} ({key})",
            "tier": row["tier"], "source_confidence": whole, "ilsvrc_class": image["ilsvrc_class"],
            "real_classes": " ".join(map(str, image["real_classes"])), "source_sha256": image["sha256"],
            "reviewers": len(set(release.accepted(index, image_id)) - {"board"}),
            "file": f"{key}/{image_id.removeprefix(f'{key}/').replace('/', '__')}{suffixes[box is not None]}",
            **dict(zip(BOX, box or ("",) * 4, strict=True)),
        }  # fmt: skip
        if box is None:
            digests = {"file_sha256": image["sha256"], "pixels_sha256": image["pixels_sha256"]}
            return found | digests | {"confidence": whole, "encoder": ""}
        crop = self.crops.get(crop_key(image_id, box), {"top5_class": (), "top5_probability": ()})
        confidence = dict(zip(crop["top5_class"], crop["top5_probability"], strict=True)).get(index)
        return found | {"confidence": "" if confidence is None else f"{confidence:.9g}"}

    def audit_problems(self, manifest: Sequence[Row]) -> Iterator[str]:
        """Numbers in the result of the audit, other than its bounds, that do not follow from its draws and verdicts."""
        release = self.release
        reviews = self.release.folder / "reviews/audit"
        result = json.loads((release.folder / f"audit/{self.role}.json").read_text("utf-8")) or {}
        expected = Row()
        if (reviews / f"{self.role}.yaml").is_file():
            drawn = int(Yaml(reviews / f"{self.role}.yaml").content()["drawn"])
            names = "class", "image_id", *BOX
            images = [tuple(str(row[name]) for name in names) for row in rows_of(reviews / f"{self.role}.csv")]
            now = {tuple(str(row[name]) for name in names) for row in manifest}
            votes = release.votes_in(f"/audit/{self.role}")
            seen = 0
            flawed = set[tuple[str, ...]]()
            auditors = set[str]()
            for image in images[:drawn]:
                key = release.indices[image[0]], image[1]
                people = set(votes.get(key, ())) - set(release.votes.get(key, ()))
                if not people:
                    break
                seen += 1
                auditors |= people
                flawed |= {image for name in people if votes[key][name].verdict != "clean"}
            expected = {
                "images": len(images), "drawn": drawn, "seen": seen, "flawed": len(flawed), "now": len(now),
                "auditors": sorted(auditors), "left": len(flawed - now), "came": len(now - set(images)),
            }  # fmt: skip
        for name, value in expected.items() or (("images", None),):
            if result.get(name) != value:
                yield f"audit/{self.role}.json: {name} {result.get(name)}; expected {value}"


def problems(folder: Path) -> list[str]:
    """A line for each problem of a release; empty if exactly its sets follow from its scores and verdicts."""
    found = list[str]()
    try:
        found += checksum_problems(folder)
        found += Release(folder).problems()
    except UNREADABLE as error:
        found.append(f"cannot be read ({type(error).__name__}): {error}")
    return found


def main(arguments: Sequence[str]) -> int:
    """Print the problems of the release that the only argument names; 1 on any."""
    if len(arguments) != 1:
        raise SystemExit("usage: python from_verdicts.py RELEASE")
    found = problems(Path(arguments[0]))
    print("\n".join([*found, f"{arguments[0]}: problems: {len(found)}"]))
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
