"""How long the check of a contest's log takes, by its lines: reading with all signatures, its standing and history.

The log is made here, with keys of its own: a week has 200 submissions of one image by 25 teams, aimed at one defence,
and the answers of three judges to each image in lines of their own. Objects are not read.
"""

import datetime
import hashlib
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from time import process_time
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from nacl.signing import SigningKey

from measuring import print_machine, print_table, share

LINES = (1_000, 10_000, 100_000)
LIMIT_SECONDS = 20.0
"""Of a log of 100,000 lines, on one core."""
TEAMS = [f"team{number}" for number in range(25)]
JUDGES = [f"0000000{letter}" for letter in "abc"]
IMAGES_A_WEEK = 200
BEGIN = datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC)
Entry = tuple[datetime.datetime, str, dict[str, Any], str | None]


def entries(keys: dict[str, str]) -> Iterator[Entry]:
    """Instant, kind, data and author of each entry."""
    rules = {
        "classes": {"bicycle": ["n02835271"], "bird": ["n01514668"]}, "teams": {name: keys[name] for name in TEAMS},
        "signers": {"staff": keys["staff"]}, "board": {"ada": {"key": keys["ada"]}}, "made_up": True,
        "judges": {"controls": 0.0}, "limits": {"unbroken_days": 3650},
    }  # fmt: skip
    yield BEGIN, "contest", rules, None
    yield BEGIN, "roster", {"roster": {judge: keys[judge] for judge in JUDGES}}, None
    model = {"role": "standard", "confidence": "softmax", "threshold": 0.5}
    public = {"source": "a file", "sha256": "0" * 64}
    defence = f"{TEAMS[0]}/wall"
    yield BEGIN, "defence", {"name": defence, "open": True, "public": public, "model": model}, TEAMS[0]
    yield BEGIN, "stake", {"batch": "first", "by": "board", "defences": [defence]}, "ada"
    week = 0
    while True:
        monday = BEGIN + datetime.timedelta(1 + 7 * week)
        names = [hashlib.sha256(f"{week} {number}".encode()).hexdigest() for number in range(IMAGES_A_WEEK)]
        for number, name in enumerate(names):
            size = {"width": 224, "height": 224}
            image = {"file": "x.png", "sha256": name, "pixels_sha256": name[::-1], **size}
            team = TEAMS[number % len(TEAMS)]
            yield monday, "submission", {"team": team, "target": defence, "images": [image]}, team
        friday = monday + datetime.timedelta(4)
        yield friday, "publish", {}, None
        for name in names:
            for judge in JUDGES:
                contains = {"bird": "definitely_yes", "bicycle": "definitely_no"}
                statements = {"complete": True, "not_occluded": True, "real": True}
                answer = {"contains": contains, "outline": "5,5 219,5 219,219 5,219", **statements}
                yield friday, "answers", {"judge": judge, "week": str(friday.date()), "answers": {name: answer}}, judge
        week += 1


def write_log(folder: Path, count: int) -> None:
    """Write a log of some lines."""
    from cleanset.studies.contest.checkpoints import (
        SIGNED_NOTE,
        MerkleTree,
        checkpoint_text,
        note,
        origin_of,
        signature_line,
    )
    from cleanset.studies.contest.log import START
    from cleanset.studies.contest.log_lines import LOG, statement
    from cleanset.studies.contest.signatures import armoured, signed_text

    private = {name: Ed25519PrivateKey.generate() for name in ("staff", "ada", *TEAMS, *JUDGES)}
    public = {
        name: key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
        for name, key in private.items()
    }

    def signature(name: str, text: bytes) -> str:
        key = private[name]
        return armoured(key.public_key().public_bytes_raw(), key.sign(signed_text(text)))

    signed = Counter[str]()
    texts: list[str] = []
    first = prev = START
    tree = MerkleTree()
    for n, (at, kind, data, author) in zip(range(count), entries(public), strict=False):
        if kind == "publish":
            body = checkpoint_text(first, tree)
            staff = private["staff"]
            signed_body = staff.sign(body.encode())
            own = staff.public_key().public_bytes_raw()
            data = {"checkpoint": note(body, [signature_line(origin_of(first), SIGNED_NOTE, own, signed_body)])}
        line: dict[str, Any] = {"n": n, "at": f"{at:%FT%TZ}", "kind": kind, "prev": prev, "data": data}
        if author is not None:
            text = statement(first, prev, signed[author], kind, data)
            given = {"seen": prev, "mine": signed[author], "signature": signature(author, text)}
            line["signatures"] = {author: given}
            signed[author] += 1
        texts.append(json.dumps(line, separators=(",", ":")))
        tree.add(texts[-1])
        prev = hashlib.sha256(texts[-1].encode()).hexdigest()
        first = prev if n == 0 else first
    last = {"contest": first, "head": prev, "lines": count}
    texts.append(json.dumps({"by": "staff", "signature": signature("staff", json.dumps(last).encode())}))
    (folder / LOG).write_text("".join(f"{text}\n" for text in texts))


def seconds(folder: Path) -> tuple[float, ...]:
    """Processor seconds of reading a log twice, of its standing, and of the history on its page."""
    from cleanset.studies.contest.log import read
    from cleanset.studies.contest.log_state import state
    from cleanset.studies.contest.page import past_standings
    from cleanset.studies.contest.standing import standing

    times = [process_time()]
    for _ in range(2):
        lines = read(folder)
        times.append(process_time())
    standing(state(lines), lines[-1].day)
    times.append(process_time())
    past_standings(lines, lines[-1].day)
    times.append(process_time())
    return tuple(after - before for before, after in pairwise(times))


def signature_seconds(count: int) -> float:
    """Processor seconds of verifying some signatures and nothing else, which no check of a log can save."""
    key = SigningKey.generate()
    signature = key.sign(b"a line").signature
    begun = process_time()
    for _ in range(count):
        key.verify_key.verify(b"a line", signature)
    return process_time() - begun


def main(arguments: list[str]) -> None:
    """Print a row for each number of lines."""
    print_machine("pynacl")
    rows = []
    for count in [int(each) for each in arguments] or LINES:
        with tempfile.TemporaryDirectory() as name:
            os.environ["XDG_STATE_HOME"] = name
            folder = Path(name)
            write_log(folder, count)
            size = (folder / "log.jsonl").stat().st_size / 1e6
            times = seconds(folder)
            limit = LIMIT_SECONDS * count / LINES[-1]
            shown = [f"{each:.2f}" for each in (signature_seconds(count), *times)]
            rows.append((f"{count:,}", f"{size:.1f}", *shown, share(times[0] + times[2], limit)))
    title = "Processor seconds of the check of a log; the limit is of reading it once and its standing"
    heads = ("lines", "MB", "signatures alone", "reading", "reading again", "standing", "history", "of the limit")
    print_table(title, heads, rows)


if __name__ == "__main__":
    main(sys.argv[1:])
