"""`standing` of a large random contest: its log written and signed, and read again by the command."""

import datetime
import hashlib
import json
import random
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from cleanset.sets.archive import sign
from cleanset.studies.contest.log import LOG, LOG_SIGNATURE, NAMESPACE, START, read_state, signed_text
from cleanset.studies.contest.standing import standing
from measuring import BIN, print_machine, print_measures, run

DEFENCES, IMAGES, JUDGES, TEAMS = 100, 10_000, 5, 25
FIRST = datetime.date(2026, 11, 2)
DAYS = 80
ROUNDS = 3
MAX_SECONDS = 5
Entry = tuple[datetime.date, str, Mapping[str, Any]]


def main() -> None:
    on = FIRST + datetime.timedelta(100)
    with tempfile.TemporaryDirectory() as folder:
        contest, keys = Path(folder, "contest"), {}
        contest.mkdir()
        for name in ("staff", "ada"):
            keys[name] = Path(folder, name)
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(keys[name])], check=True)
        people = {name: public(key) for name, key in keys.items()}
        entries = sorted(drawn(random.Random(0), people), key=lambda entry: entry[0])
        before = perf_counter()
        size = write(contest, entries, keys)
        written = perf_counter() - before
        used = process_time()
        files = read_state(contest)
        read = process_time() - used
        seconds = []
        for _ in range(ROUNDS):
            used = process_time()
            found = standing(files, on)
            seconds.append(process_time() - used)
        median = sorted(seconds)[ROUNDS // 2]
        command = run(BIN / "cleanset", "contest", "standing", "--contest", str(contest), "--on", str(on), cwd=contest)
    statuses = [each.status for each in found.defences]
    print_machine()
    print_measures(
        f"{DEFENCES} defences, {IMAGES:,} images, {JUDGES} judges each, median of {ROUNDS} rounds",
        [
            (f"the command, which reads {size / 1e6:.0f} MB, s", command.seconds, ".2f", None),
            ("the command, processor s", command.processor_seconds, ".2f", None),
            ("from the log to the standing, processor s", read + median, ".2f", MAX_SECONDS),
            ("of it reading the log and its state", read, ".2f", None),
            ("of it the standing", median, ".2f", None),
            (f"writing {len(entries):,} lines with their signatures, s", written, ".2f", None),
            ("valid images", sum(each.valid_group is not None for each in found.images.values()), ",", None),
            *((f"{status} defences", statuses.count(status), "d", None) for status in sorted(set(statuses))),
        ],
    )


def public(key: Path) -> str:
    return key.with_suffix(".pub").read_text().strip()


def write(contest: Path, entries: list[Entry], keys: Mapping[str, Path]) -> int:
    """Write and sign a log; its size in bytes. What the board signs is by ada."""
    lines, prev, first = [], START, ""
    for n, (day, kind, data) in enumerate(entries):
        content: dict[str, Any] = {"n": n, "at": f"{day}T12:00:00Z", "kind": kind, "prev": prev, "data": data}
        if kind == "decision" or data.get("by") == "board":
            content["signatures"] = {"ada": sign(signed_text(first, kind, data), keys["ada"], NAMESPACE).decode()}
        lines.append(json.dumps(content, separators=(",", ":")))
        prev = hashlib.sha256(lines[-1].encode()).hexdigest()
        first = first or prev
    data_of_log = "".join(f"{line}\n" for line in lines).encode()
    (contest / LOG).write_bytes(data_of_log)
    (contest / LOG_SIGNATURE).write_bytes(sign(data_of_log, keys["staff"], NAMESPACE))
    return len(data_of_log)


def sha(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def drawn(pick: random.Random, keys: Mapping[str, str]) -> Iterator[Entry]:
    """Teams submit ten images a day; a fifth of the images has an unsure judge; half of the defences are ever wrong."""
    teams = [f"team{number}" for number in range(TEAMS)]
    names = [f"{teams[number % TEAMS]}/defence{number}" for number in range(DEFENCES)]
    judges = [f"{judge:08x}" for judge in range(JUDGES)]
    yield FIRST, "contest", {
        "classes": {"bicycle": ["n02835271"], "bird": ["n01514668"]}, "teams": teams, "made_up": True,
        "signers": {"staff": keys["staff"]}, "board": {"ada": {"key": keys["ada"]}},
    }  # fmt: skip
    yield FIRST, "roster", {"roster": dict.fromkeys(judges)}
    for name in names:
        model = {"role": "standard", "confidence": "softmax", "threshold": 0.5}
        weights = {"source": "a file", "sha256": sha("weights")}
        yield FIRST, "defence", {"name": name, "open": True, "public": weights, "model": model}
        yield FIRST, "run", run_of(name, {})
    yield FIRST, "stake", {"batch": "first", "by": "board", "defences": names}
    by_day: dict[datetime.date, list[dict[str, Any]]] = {}
    for number in range(IMAGES // 10):
        day = FIRST + datetime.timedelta(number // TEAMS % DAYS)
        by_day.setdefault(day, []).append(submission(number, day, teams[number % TEAMS], names[number % len(names)]))
    images: list[str] = []
    week: list[str] = []
    for day in (FIRST + datetime.timedelta(count) for count in range(max(DAYS, len(by_day)) + 7)):
        for each in by_day.get(day, ()):
            yield day, "submission", each
            week += [image["sha256"] for image in each["images"]]
        if day.weekday() == 4 and week:
            yield day, "publish", {}
            yield from judged(pick, judges, week, day)
            images, week = images + week, []
    last = FIRST + datetime.timedelta(91)
    for number, name in enumerate(names):
        wrong = frozenset(pick.sample(images, min(5, len(images)))) if number % 2 else frozenset()
        yield last, "run", run_of(name, {each: "bicycle" if each in wrong else "bird" for each in images})


def submission(number: int, day: datetime.date, team: str, target: str) -> dict[str, Any]:
    images = [
        {"file": f"{n}.png", "sha256": sha(f"{number} {n}"), "pixels_sha256": sha(f"pixels {number} {n}")}
        | {"width": 224, "height": 224}
        for n in range(10)
    ]
    return {"team": team, "received": f"{day}T10:00:00Z", "target": target, "images": images}


def judged(pick: random.Random, judges: list[str], week: list[str], published: datetime.date) -> Iterator[Entry]:
    """The answers of all judges on the Saturday, and a decision of the board on one of a hundred images."""
    sure = {
        "contains": {"bird": "definitely_yes", "bicycle": "definitely_no"},
        "outline": "10,10 120,4 210,20 215,110 200,210 110,220 12,205 5,110",
        "complete": True, "not_occluded": True, "real": True,
    }  # fmt: skip
    unsure = {"contains": {"bird": "rather_yes", "bicycle": "rather_no"}}
    doubtful = {each for each in week if pick.random() < 0.2}
    for place, judge in enumerate(judges):
        answers = {each: unsure if place == 0 and each in doubtful else sure for each in week}
        data = {"judge": judge, "week": str(published), "answers": answers}
        yield published + datetime.timedelta(1), "answers", data
    for each in week[::100]:
        yield published + datetime.timedelta(2), "decision", {"image": each, "reason": "looked", "verdict": "invalid"}


def run_of(name: str, answers: Mapping[str, str]) -> dict[str, Any]:
    figures = {"images": 1000, "correct": 950, "mistakes": 10, "mistakes_at_80": 0}
    return {"defence": name, "images_per_minute": 60.0, "eligibility": figures, "answers": dict(answers)}


if __name__ == "__main__":
    main()
