"""The log: whatever is changed in it is found, who may enter and sign what, weeks, mistakes taken back, attacks."""

import base64
import errno
import json
import random
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from cleanset.errors import CleansetError
from cleanset.plumbing.files import replace_file
from cleanset.sets.archive import SignatureError
from cleanset.studies.contest.entering import check, enter, sign_entries
from cleanset.studies.contest.log import parse, read
from cleanset.studies.contest.log_lines import LOG
from cleanset.studies.contest.objects import Objects
from cleanset.studies.contest.rules import parse_instant
from cleanset.studies.contest.signatures import NAMESPACE, armoured, check_signature, signature_of
from cleanset.studies.contest.standing import standing
from tests.studies.contest.made import BIRD, JUDGES, UNSURE, day
from tests.studies.contest.on_disk import (
    OnDisk,
    digest,
    forget_all,
    key,
    last_line,
    named,
    png,
    public,
    rules,
    signature,
    signed_by,
    text_of,
    write_log,
)

LATER = day("2026-12-31")
PINK = {"name": "pink", "key": public("pink")}


def refused(made: OnDisk, message: str) -> None:
    with pytest.raises(CleansetError, match=message) as caught:
        standing(made.state(), LATER)
    assert "\n" not in str(caught.value)


def status(made: OnDisk, on: str = "2026-12-31") -> str:
    return standing(made.state(on), day(on)).defences[0].status


def mutated(data: bytes, pick: random.Random) -> bytes:
    """A byte changed, added, removed or moved, or a piece cut off, written twice, or left out."""
    at, length = pick.randrange(len(data)), pick.randint(1, 40)
    ways = [
        data[:at] + bytes([data[at] ^ 1 << pick.randrange(8)]) + data[at + 1 :],
        data[:at] + bytes([pick.randrange(256)]) + data[at:],
        data[:at] + data[at + length :],
        data[:at] + data[at : at + length] + data[at:],
        data[:at],
        data + pick.choice([b"\n", b" ", b"{}\n"]),
    ]
    found = pick.choice(ways)
    return found if found != data else data + b"\n"


def test_mutations_of_log_signature_and_objects(made: OnDisk) -> None:
    """Each is found in one line, by whoever reads that file."""
    made.enter(made.yaml("team.yaml", {"team": PINK}))
    paths = [made.path(LOG), made.image()]
    assert check(made.folder)
    for seed in range(100):
        pick = random.Random(seed)
        path = pick.choice(paths)
        whole = path.read_bytes()
        path.write_bytes(mutated(whole, pick))
        with pytest.raises(CleansetError) as caught:
            check(made.folder)
        assert "\n" not in str(caught.value), seed
        path.write_bytes(whole)
    assert check(made.folder)


def test_the_chain(made: OnDisk) -> None:
    """A line that was changed is named, also by whoever signs the log anew; and so is one left out or put elsewhere."""
    lines = made.entries().splitlines()
    for changed, message in (
        ([*lines[:4], lines[4].replace("first", "other"), *lines[5:]], "line 4: the signature of ada is not valid"),
        ([*lines[:3], lines[3].replace("100.0", "10.0"), *lines[4:]], r"line 4: number 4 after [0-9a-f]{12}…; expect"),
        ([*lines[:7], *lines[8:]], "line 7: number 8 after"),
        ([*lines[:7], lines[8], lines[7], *lines[9:]], "line 7: number 8 after"),
        ([*lines, lines[-1]], "line 11: number 10 after"),
        ([lines[0].replace('"n": 0', '"n": 1'), *lines[1:]], "line 0: number 1 after 0{12}…; expected 0"),
        ([], "does not end with a whole line|missing"),
    ):
        write_log(made.folder, "".join(f"{line}\n" for line in changed))
        refused(made, message)


@pytest.mark.parametrize(
    ("at", "kind", "data", "message"),
    [
        (
            "2026-11-01T00:00:00Z",
            "team",
            PINK,
            r"line 11: at 2026-11-01T00:00:00Z; expected no instant",
        ),
        ("2026-11-09", "team", PINK, "line 11: at: expected an instant in UTC"),
        ("2026-11-09T12:00:00Z", "opinion", {}, "unknown kind of entry 'opinion'; expected one of contest, team, key"),
        (
            "2026-11-09T12:00:00Z",
            "contest",
            {},
            "line 11: contest; expected contest in the first line, and",
        ),
        ("2026-11-09T12:00:00Z", "team", {"name": 1}, r"line 11 \(team\): name: expected a string"),
        ("2026-11-09T12:00:00Z", "team", [], "line 11: data: expected a dictionary"),
        (
            "2026-11-09T12:00:00Z",
            "answers",
            {"judge": JUDGES[3], "week": "2026-11-06", "answers": {"0" * 64: 1}},
            "line",
        ),
    ],
)
def test_a_line_by_itself(at: str, kind: str, data: Any, message: str, made: OnDisk) -> None:
    text = made.entries()
    content = {"n": 11, "at": at, "kind": kind, "prev": digest(text.splitlines()[-1].encode()), "data": data}
    write_log(made.folder, f"{text}{json.dumps(content)}\n")
    refused(made, message)


def test_a_line_that_is_a_list(made: OnDisk) -> None:
    for text, message in (("[]", "line 11: expected keys and values|line 11: the file"), ("{", "line 11.*: not JSON")):
        write_log(made.folder, f"{made.entries()}{text}\n")
        refused(made, message)
        made.write()


def test_who_signs_the_log(made: OnDisk) -> None:
    """Nobody but those whom its first line names; neither for another purpose."""
    text = made.entries()
    for by in ("staff", "ada"):
        write_log(made.folder, text, "ada", by)
        refused(
            made, r"log\.jsonl: the signature in its last line is not by .*; expected one of its entries by one of its"
        )
    made.path(LOG).write_text(text)
    refused(made, r"log\.jsonl, last line: ")
    write_log(made.folder, text)
    made.path(f"{LOG}.sig").write_text("")
    refused(
        made, r"log\.jsonl\.sig: a signature beside the log, as of earlier versions; expected it in the log's last line"
    )
    made.path(f"{LOG}.sig").unlink()
    with pytest.raises(CleansetError, match="ada: not the key of a signer; expected the key of staff"):
        enter(made.folder, [made.yaml("t.yaml", {"team": PINK})], key=key("ada"))


def test_the_clock(made: OnDisk) -> None:
    """An instant may be chosen in a contest that is made up alone; the clock does not go back."""
    team = made.yaml("t.yaml", {"team": PINK})
    with pytest.raises(CleansetError, match=r"at 2026-11-07T12:59:59Z; expected no instant before the previous line's"):
        made.enter(team, at="2026-11-07T12:59:59Z")
    made.changed("contest", made_up=False)
    with pytest.raises(CleansetError, match="--at: for a contest that is made up; expected the instant of the clock"):
        made.enter(team)
    assert not any("made up" in note for note in standing(made.state(), LATER).notes)
    made.changed("contest", made_up=True)
    assert standing(made.state(), LATER).notes[-1].startswith("This contest is made up")
    assert standing(made.state(), LATER).head == read(made.folder)[-1].digest


@pytest.mark.parametrize("name", ["board", "submissions", "defences", "answers"])
def test_a_contest_in_folders_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(
        CleansetError, match=r"a contest in folders; expected log\.jsonl: since version 0\.1\.0"
    ) as caught:
        read(tmp_path)
    assert "\n" not in str(caught.value)


def decision(made: OnDisk, **changed: object) -> dict[str, Any]:
    return {"image": made.sha256, "verdict": "invalid", "reason": "looked at it", **changed}


def test_a_quorum_signs(made: OnDisk) -> None:
    """Two signatures where two are asked for, of two people; each over the entry itself, in this contest."""
    made.changed("contest", quorum=2)
    refused(made, r"line 4 \(stake\): signed by ada; expected 2 of ada, bob, eve")
    made.signers = dict.fromkeys(made.signers, ("ada", "bob"))
    made.add("2026-11-09T12:00:00Z", "decision", decision(made))
    assert made.state().decisions[0].members == ["ada", "bob"]
    made.signers["decision"] = ("ada", "mallory")
    made.write()
    refused(made, r"line 11 \(decision\): signed by mallory; expected ada, bob, eve")
    made.signers["decision"] = ("ada", "bob")
    twice = rules(quorum=2)
    twice["board"]["bob"] = {**twice["board"]["bob"], "key": public("ada")}
    made.changed("contest", board=twice["board"])
    refused(made, "bob: the key of ada, too|the signature of bob is not by a signer")


def line_of(made: OnDisk, kind: str, data: Mapping[str, Any], signature: Mapping[str, Any], name: str = "ada") -> str:
    """The log with another line, whatever its signature is of."""
    content = {
        "n": 11, "at": "2026-11-09T12:00:00Z", "kind": kind, "prev": read(made.folder)[-1].digest, "data": data,
        "signatures": {name: signature},
    }  # fmt: skip
    return f"{made.entries()}{json.dumps(content)}\n"


def test_a_signature_counts_in_its_contest_alone(made: OnDisk) -> None:
    """Nobody enters a decision of another contest, or another decision with the same signature."""
    data = decision(made)
    first, head = read(made.folder)[0].digest, read(made.folder)[-1].digest
    for contest, signed in (("0" * 64, data), (first, decision(made, verdict="bird"))):
        write_log(made.folder, line_of(made, "decision", data, signed_by("ada", contest, head, 1, "decision", signed)))
        refused(made, "line 11: the signature of ada is not valid")
        made.write()


def test_a_statement_counts_once(made: OnDisk) -> None:
    """Nobody enters a decision again that was taken back, neither with its signature nor with (R, S + L)."""
    data = decision(made)
    made.add("2026-11-09T12:00:00Z", "decision", data)
    again = json.loads(made.entries().splitlines()[-1])["signatures"]["ada"]
    made.add("2026-11-10T12:00:00Z", "void", {"lines": [11], "reason": "a mistake"})
    for given in (again, again | {"signature": other_form(again["signature"])}):
        line = {"n": 13, "at": "2026-11-11T12:00:00Z", "kind": "decision", "prev": read(made.folder)[-1].digest}
        line |= {"data": data, "signatures": {"ada": given}}
        write_log(made.folder, f"{made.entries()}{json.dumps(line)}\n")
        refused(made, "line 13: statement 1 of ada; expected 3, as many as ada has signed before|had seen")
        made.write()


def other_form(signature: str) -> str:
    """The signature (R, S + L) of the same text, which ssh-keygen takes."""
    body = base64.b64decode("".join(signature.split("\n")[1:-2]))
    order = 2**252 + 27742317777372353535851937790883648493
    value = int.from_bytes(body[-32:], "little") + order
    public_key = body[33:65]
    return armoured(public_key, body[-64:-32] + value.to_bytes(32, "little"))


def test_a_signature_has_one_form(made: OnDisk, tmp_path: Path) -> None:
    """That of ssh-keygen, which takes (R, S + L) of the same text, too."""
    found = signature_of(b"text", key("ada"))
    assert found == signature(b"text", "ada")
    check_signature(b"text", found, public("ada"))
    other = other_form(found)
    (tmp_path / "signature").write_text(other)
    (tmp_path / "signers").write_text(f"ada {public('ada')}\n")
    command = ["ssh-keygen", "-Y", "verify", "-n", NAMESPACE, "-I", "ada", "-f", str(tmp_path / "signers")]
    done = subprocess.run(
        [*command, "-s", str(tmp_path / "signature")], input=b"text", capture_output=True, check=False
    )
    assert done.returncode == 0
    for wrong, text, name in (
        (other, b"text", "ada"),
        (found, b"test", "ada"),
        (found, b"text", "bob"),
        ("", b"", "ada"),
    ):
        with pytest.raises(SignatureError):
            check_signature(text, wrong, public(name))


def test_what_an_author_had_seen(made: OnDisk) -> None:
    """A line of this log, and none before what the author had seen; statements come in their author's order."""
    lines = read(made.folder)
    data, first = decision(made), lines[0].digest
    for seen, mine, message in (
        ("0" * 64, 1, "ada had seen 0{12}…; expected [0-9a-f]{12}… or a later line of this log"),
        (lines[2].digest, 1, "ada had seen [0-9a-f]{12}…; expected [0-9a-f]{12}… or a later line of this log"),
        (lines[-1].digest, 0, "statement 0 of ada; expected 1, as many as ada has signed before: none may be left out"),
        (lines[-1].digest, 2, "statement 2 of ada; expected 1, as many as ada has signed before: none may be left out"),
    ):
        write_log(made.folder, line_of(made, "decision", data, signed_by("ada", first, seen, mine, "decision", data)))
        refused(made, f"line 11: {message}")
        made.write()


def test_mail_in_the_name_of_somebody_else(made: OnDisk) -> None:
    """A stranger's mail, a judge's answers by somebody else, and a team's own stake by the board."""
    mail = made.mail("blue-1", {"x.png": png((1, 0, 0))})
    with pytest.raises(CleansetError, match=r"line 11 \(submission\): signed by nobody; expected 1 of blue: cleanset"):
        enter(made.folder, [mail], at=parse_instant("2026-11-09T12:00:00Z"))
    sign_entries(made.folder, [mail], "blue", key("mallory"))
    with pytest.raises(CleansetError, match="the signature of blue is not by that key"):
        enter(made.folder, [mail], at=parse_instant("2026-11-09T12:00:00Z"))
    sign_entries(made.folder, [mail], "green", key("green"))
    with pytest.raises(CleansetError, match=r"line 11 \(submission\): signed by green; expected blue"):
        enter(made.folder, [mail], at=parse_instant("2026-11-09T12:00:00Z"))


def test_two_statements_signed_at_once(made: OnDisk) -> None:
    """They are entered in the order in which they were signed."""
    first, second = (made.mail(f"blue-{n}", {"x.png": png((n, 0, 0))}) for n in (1, 2))
    sign_entries(made.folder, [first, second], "blue", key("blue"))
    at = parse_instant("2026-11-09T12:00:00Z")
    with pytest.raises(CleansetError, match="statement 1 of blue; expected 0, as many as blue has signed before"):
        enter(made.folder, [second], key=key("staff"), at=at)
    assert len(enter(made.folder, [first, second], key=key("staff"), at=at)) == 2


def new_key(void_from: int | None = None, person: str = "ada", name: str = "ada anew") -> dict[str, Any]:
    found: dict[str, Any] = {"person": person, "key": public(name)}
    return found | ({} if void_from is None else {"void_from": void_from})


def test_a_new_key(made: OnDisk) -> None:
    """By its owner, from a file; the old one counts no more in lines after it."""
    made.enter(made.yaml("key.yaml", {"key": new_key()}))
    mail = made.yaml("decision.yaml", {"decision": decision(made)})
    sign_entries(made.folder, [mail], "ada", key("ada"))
    with pytest.raises(CleansetError, match="the signature of ada is not by that key"):
        enter(made.folder, [mail], key=key("staff"), at=parse_instant("2026-11-10T12:00:00Z"))
    sign_entries(made.folder, [mail], "ada", key("ada anew"))
    assert enter(made.folder, [mail], key=key("staff"), at=parse_instant("2026-11-10T12:00:00Z"))


def test_a_stolen_key(made: OnDisk) -> None:
    """What was signed with it from a line on counts no more, since it was found out; no owner says so alone."""
    made.add("2026-11-09T12:00:00Z", "decision", decision(made, verdict="bicycle"))
    made.signers["key"] = ("ada",)
    made.add("2026-11-20T12:00:00Z", "key", new_key(void_from=11))
    refused(made, r"line 12 \(key\): signed by ada; expected bob, eve")
    made.signers["key"] = ("bob",)
    made.write()
    assert status(made, "2026-11-19") == "staked"
    assert status(made, "2026-11-20") == "broken"
    made.signers["key"] = ()
    made.write()
    refused(made, r"line 12 \(key\): signed by nobody; expected 1 of bob, eve")
    made.signers["key"] = ("bob",)
    made.story[-1] = ("2026-11-20T12:00:00Z", "key", new_key(void_from=12))
    made.write()
    refused(made, r"line 12 \(key\): void_from 12; expected a line before it")


def test_what_a_stolen_key_made_void(made: OnDisk) -> None:
    """Neither a new key of the thief's nor a line that the thief has made void."""
    made.add("2026-11-09T12:00:00Z", "void", {"lines": [4], "reason": "a thief's"})
    refused(made, "line 5, red's submission: gold/wall is not staked")
    made.story.pop()
    made.add("2026-11-09T12:00:00Z", "void", {"lines": [10], "reason": "a thief's"})
    made.add("2026-11-09T13:00:00Z", "key", new_key(name="thief"))
    assert status(made) == "staked"
    path = made.yaml("key.yaml", {"key": new_key(void_from=11)})
    sign_entries(made.folder, [path], "bob", key("bob"))
    enter(made.folder, [path], key=key("staff"), at=parse_instant("2026-11-20T12:00:00Z"))
    assert (status(made, "2026-11-19"), status(made)) == ("staked", "broken")
    mail = made.yaml("decision.yaml", {"decision": decision(made)})
    sign_entries(made.folder, [mail], "ada", key("thief"))
    with pytest.raises(CleansetError, match="the signature of ada is not by that key"):
        enter(made.folder, [mail], at=parse_instant("2026-11-21T12:00:00Z"))


def test_a_typing_error_in_a_roster(made: OnDisk) -> None:
    """Once its line is void, the key can be used under the right id."""
    made.enter(made.yaml("roster.yaml", {"roster": {"0000000d": public("judge")}}))
    right = made.yaml("roster.yaml", {"roster": {"0000000e": public("judge")}})
    with pytest.raises(CleansetError, match="0000000e: the key of 0000000d, too; expected a key of each person's own"):
        made.enter(right)
    made.enter(made.yaml("void.yaml", {"void": {"lines": [11], "reason": "a typing error"}}))
    made.enter(right)
    assert made.state().roster == {*JUDGES, "0000000e"}


def test_a_wrong_clock(made: OnDisk) -> None:
    """Once its line is void, the log goes on; also for the end of a week."""
    team = made.yaml("team.yaml", {"team": PINK})
    made.enter(team, at="2099-01-01T00:00:00Z")
    other = made.yaml("other.yaml", {"team": {"name": "grey", "key": public("grey")}})
    with pytest.raises(CleansetError, match="at 2026-11-11T00:00:00Z; expected no instant before the previous line's"):
        made.enter(other, at="2026-11-11T00:00:00Z")
    made.enter(made.yaml("void.yaml", {"void": {"lines": [11], "reason": "a clock"}}), at="2026-11-11T00:00:00Z")
    made.enter(other, team, at="2026-11-11T01:00:00Z")
    made.enter(made.mail("blue-1", {"x.png": png((1, 0, 0))}), at="2026-11-11T02:00:00Z")
    made.enter(at="2099-01-01T00:00:00Z", publish=True)
    made.enter(made.yaml("void.yaml", {"void": {"lines": [16], "reason": "a clock"}}), at="2026-11-12T00:00:00Z")
    made.enter(at="2026-11-13T12:00:00Z", publish=True)
    assert [str(each.week) for each in made.state().submissions] == ["2026-11-06", "2026-11-13"]
    assert [str(each.week) for each in made.state("2026-11-14").submissions] == ["2026-11-06", "2026-11-13"]


def test_conflicts_of_interest(made: OnDisk) -> None:
    """Over every line that changes an image's state, declared later, or by the member's own key."""
    made.changed("contest", board=rules()["board"] | {"tom": {"key": public("tom"), "teams": ["gold"]}})
    made.signers["void"] = ("tom",)
    made.add("2026-11-15T12:00:00Z", "void", {"lines": [7], "reason": "of a judge"})
    refused(made, r"line 11 \(void\): signed by tom, who has a conflict with gold, red; expected others")
    made.signers["void"] = ("ada",)
    made.write()
    assert status(made) == "staked"
    made.story.pop()
    declared = {"member": "ada", "team": "gold", "reason": "Her sister's."}
    made.signers["conflict"] = ("blue",)
    made.add("2026-11-08T12:00:00Z", "conflict", declared)
    made.add("2026-11-08T12:00:00Z", "decision", decision(made))
    assert made.state()
    made.story.pop()
    made.add("2026-11-09T12:00:00Z", "decision", decision(made))
    refused(made, "decision on .* of 2026-11-09: signed by ada, who has a conflict with gold, red")
    made.story[-1] = ("2026-11-09T12:00:00Z", "conflict", declared | {"member": "bob"})
    made.add("2026-11-09T12:00:00Z", "conflict", declared | {"member": "eve"})
    refused(made, "conflict of .* with gold, declared on .*: 0 members are left; expected a quorum of 1 without")
    made.story[-1] = ("2026-11-09T12:00:00Z", "conflict", declared | {"member": "mallory"})
    made.write()
    refused(made, "conflict of mallory with gold, .*: unknown; expected a member of the board and a team")


def test_a_members_own_team(made: OnDisk) -> None:
    """Known by its key."""
    made.enter(made.yaml("team.yaml", {"team": {"name": "adas", "key": public("ada")}}))
    assert made.state().rules.board["ada"].teams == ["adas"]
    again = made.yaml("team.yaml", {"team": {"name": "others", "key": public("blue")}})
    with pytest.raises(CleansetError, match="others: the key of blue, too; expected a key of each person's own"):
        made.enter(again)
    made.changed("contest", teams=rules()["teams"] | {"adas": public("ada")})
    assert made.state().rules.board["ada"].teams == ["adas"]
    made.changed("contest", teams=rules()["teams"] | {"adas": public("blue")})
    refused(made, "adas: the key of blue, too; expected a key of each person's own")


def test_a_mistake_is_taken_back(made: OnDisk) -> None:
    """A hand-written run breaks a defence until the quorum voids it; days that have passed keep their result."""
    made.story = [each for each in made.story if each[1] != "run"]
    made.story.insert(2, ("2026-11-01T11:00:00Z", "run", made.run_of({})))
    made.story[2], made.story[3] = made.story[3], made.story[2]
    made.add("2026-11-07T13:00:00Z", "run", made.run_of({made.sha256: "bicycle"}))
    assert [status(made, on) for on in ("2026-11-13", "2026-11-14")] == ["staked", "broken"]
    made.signers["void"] = ("bob",)
    made.add("2026-11-20T12:00:00Z", "void", {"lines": [10], "reason": "nobody has run it"})
    assert [status(made, on) for on in ("2026-11-14", "2026-11-19", "2026-11-20")] == ["broken", "broken", "staked"]
    right = made.run_of({made.sha256: "abstain"})
    made.add("2026-11-21T12:00:00Z", "run", right)
    assert status(made) == "staked"


@pytest.mark.parametrize(
    ("lines", "signers", "message"),
    [
        ([10], (), r"line 11 \(void\): signed by nobody; expected 1 of ada, bob, eve"),
        ([8], ("eve",), r"signed by eve, who has a conflict with gold, red; expected others"),
        ([12], ("ada",), "12; expected earlier lines that are not void, key or publish"),
        ([6], ("ada",), "6; expected earlier lines that are not void, key or publish"),
        ([0], ("ada",), "lines.0: expected greater than or equal to 1"),
        ([], ("ada",), "lines: expected at least 1 item"),
        ([10, 10], ("ada",), "10 twice; expected each once"),
        ([2], ("ada",), "unknown defence gold/wall"),
    ],
)
def test_what_cannot_be_taken_back(lines: list[int], signers: tuple[str, ...], message: str, made: OnDisk) -> None:
    made.signers["void"] = signers
    made.add("2026-11-20T12:00:00Z", "void", {"lines": lines, "reason": "a mistake"})
    refused(made, message)


def test_a_submission_that_is_taken_back(made: OnDisk) -> None:
    """With what was answered and decided about its images; its file may go."""
    made.add("2026-11-20T12:00:00Z", "void", {"lines": [5], "reason": "not theirs to give"})
    made.image().unlink()
    assert status(made) == "staked"
    assert standing(made.state(), LATER).images == {}
    assert check(made.folder)[0] == "1 defence, 0 submissions with 0 images"


def test_a_week_is_what_stands_before_its_publication(made: OnDisk) -> None:
    """Not before the Friday that ends it. Until then the objects may be missing (an embargo); no standing needs any."""
    made.enter(made.mail("blue-1", {"y.png": png((0, 0, 200))}))
    made.path(f"objects/{digest(png((0, 0, 200)))}").unlink()
    assert check(made.folder)[0] == "1 defence, 2 submissions with 2 images"
    with pytest.raises(CleansetError, match=r"line 12 \(publish\): on 2026-11-12; expected a day from 2026-11-13 on"):
        made.enter(at="2026-11-12T12:00:00Z", publish=True)
    made.path(f"objects/{digest(png((0, 0, 200)))}").write_bytes(png((0, 0, 200)))
    made.enter(at="2026-11-13T18:00:00Z", publish=True)
    with pytest.raises(CleansetError, match=r"line 13 \(publish\): on 2026-11-20; expected a submission before it"):
        made.enter(at="2026-11-20T12:00:00Z", publish=True)
    made.enter(made.mail("blue-2", {"z.png": png((0, 200, 200))}), at="2026-11-13T19:00:00Z")
    with pytest.raises(CleansetError, match="on 2026-11-13; expected a day from 2026-11-20 on"):
        made.enter(at="2026-11-13T20:00:00Z", publish=True)
    made.path(f"objects/{digest(png((0, 0, 200)))}").unlink()
    with pytest.raises(CleansetError, match=r"missing; expected every file that log\.jsonl names"):
        check(made.folder)
    shutil.rmtree(made.path("objects"))
    assert status(made) == "broken"


def test_two_organizers(made: OnDisk, tmp_path: Path) -> None:
    """One of them writes. What another has entered in the meantime is entered anew; signatures of the board hold."""
    theirs = tmp_path / "theirs"
    shutil.copytree(made.folder, theirs)
    common = len(read(theirs))
    team = made.yaml("t.yaml", {"team": PINK})
    enter(theirs, [team], key=key("staff"), at=parse_instant("2026-11-10T12:00:00Z"))
    mail = made.yaml("decision.yaml", {"decision": decision(made)})
    forget_all()
    made.enter(mail)
    shutil.copyfile(theirs / LOG, made.path(LOG))
    refused(made, "its last line is 11, .*, in it, which this machine has seen: it is an older or a forked log")
    forget_all()
    enter(made.folder, [mail], key=key("staff"), at=parse_instant("2026-11-11T12:00:00Z"))
    found = read(made.folder)
    assert [(each.kind, str(each.day)) for each in found[common:]] == [
        ("team", "2026-11-10"),
        ("decision", "2026-11-11"),
    ]
    forget_all()
    assert [each.digest for each in found][: common + 1] == [each.digest for each in read(theirs)]


def test_an_older_log(made: OnDisk) -> None:
    """Put back by somebody without a key: who has seen the newer one is told, and enters nothing after the older."""
    older, old = made.path(LOG).read_bytes(), read(made.folder)[-1]
    made.enter(made.yaml("t.yaml", {"team": PINK}))
    new = read(made.folder)[-1]
    made.path(LOG).write_bytes(older)
    message = (
        rf"its last line is 10, {old.digest[:12]}…; expected line 11, {new.digest[:12]}…, in it, which this machine"
    )
    refused(made, message)
    with pytest.raises(CleansetError, match=message):
        check(made.folder)
    with pytest.raises(CleansetError, match=message):
        made.enter(made.yaml("t.yaml", {"team": PINK}))
    forget_all()
    assert check(made.folder)
    with pytest.raises(
        CleansetError, match=rf"--since {new.digest[:12]}…: in no line of log.jsonl, whose last line is"
    ):
        check(made.folder, since=new.digest)
    assert check(made.folder, since=old.digest[:12])
    for given in ("", old.digest[:11], "kept/checkpoint.txt"):
        message = (
            f"^--since '{given}'; expected at least 12 characters of a line's digest, or the file of a checkpoint$"
        )
        with pytest.raises(CleansetError, match=message):
            check(made.folder, since=given)


def test_a_forked_log(made: OnDisk, tmp_path: Path) -> None:
    """Signed by the organizers, after the same lines: the one that was seen first stays."""
    theirs = tmp_path / "theirs"
    shutil.copytree(made.folder, theirs)
    made.enter(made.yaml("t.yaml", {"team": PINK}))
    here = read(made.folder)[-1].digest
    forget_all()
    grey = made.yaml("grey.yaml", {"team": {"name": "grey", "key": public("grey")}})
    enter(theirs, [grey], key=key("staff"), at=parse_instant("2026-11-10T12:00:00Z"))
    there = read(theirs)[-1].digest
    refused(made, f"its last line is 11, {here[:12]}…; expected line 11, {there[:12]}…, in it, which this machine has")


def test_the_contest_that_is_named_outside_the_log(made: OnDisk) -> None:
    """By its first line, and by one of the last: also where nobody has seen it."""
    params = made.path("params.yaml")
    older = made.path(LOG).read_bytes()
    params.write_text('# kept\nday: "2026-11-14"\ncontest: ""\nhead: ""\n')
    made.enter(made.yaml("t.yaml", {"team": PINK}))
    lines = read(made.folder)
    assert (
        params.read_text() == f'# kept\nday: "2026-11-14"\ncontest: "{lines[0].digest}"\nhead: "{lines[-1].digest}"\n'
    )
    forget_all()
    made.path(LOG).write_bytes(older)
    refused(made, rf"names the line {lines[-1].digest[:12]}…, which is not in log\.jsonl, whose last line is ")
    made.changed("contest", drawings_are_real=True)
    refused(made, rf"names the contest {lines[0].digest[:12]}…, but the first line of log\.jsonl has the digest ")


@pytest.mark.parametrize("written", [0, 1])
def test_a_full_disk_leaves_the_log_as_it_was(written: int, made: OnDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or a kill: objects come first, and the log with its signature is one file."""
    before = made.path(LOG).read_bytes()
    mail = made.mail("blue-1", {"x.png": png((1, 0, 0))})
    made.sign(mail)
    done: list[Path] = []

    def until_full(path: Path, data: bytes) -> None:
        if len(done) == written:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        done.append(path)
        replace_file(path, data)

    monkeypatch.setattr("cleanset.studies.contest.log_writing.replace_file", until_full)
    with pytest.raises(OSError, match="No space left"):
        enter(made.folder, [mail], key=key("staff"), at=parse_instant("2026-11-09T12:00:00Z"))
    monkeypatch.undo()
    assert [path.parent.name for path in done] == ["objects"] * written
    assert made.path(LOG).read_bytes() == before
    assert check(made.folder)
    assert enter(made.folder, [mail], key=key("staff"), at=parse_instant("2026-11-09T12:00:00Z"))


def test_what_is_seen_once_is_verified_once(made: OnDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the lines up to that one; what comes after them is, and so is the chain."""
    read(made.folder)
    asked: list[bytes] = []

    def counted(data: bytes, given: str, of: str) -> None:
        asked.append(data)
        check_signature(data, given, of)

    monkeypatch.setattr("cleanset.studies.contest.log.check_signature", counted)
    read(made.folder)
    assert len(asked) == 1  # the organizers'
    text = made.path(LOG).read_text()
    made.path(LOG).write_text(text.replace('"first"', '"other"'))
    refused(made, "line 5: number 5 after [0-9a-f]{12}…; expected 5 after")
    made.path(LOG).write_text(text)
    made.add("2026-11-09T12:00:00Z", "decision", decision(made))
    asked.clear()
    read(made.folder)
    assert len(asked) == 8


def test_what_is_read_through_no_link(made: OnDisk, tmp_path: Path) -> None:
    """Neither log, objects or the folder of the contest."""
    for name in (LOG, f"objects/{made.sha256}", "objects"):
        made.path(name).rename(tmp_path / "elsewhere")
        made.path(name).symlink_to(tmp_path / "elsewhere")
        with pytest.raises(CleansetError, match="a link; expected a file or folder: put a copy of its target"):
            check(made.folder)
        made.path(name).unlink()
        (tmp_path / "elsewhere").rename(made.path(name))
    (tmp_path / "link").symlink_to(made.folder)
    with pytest.raises(CleansetError, match="link: a link; expected a file or folder"):
        read(tmp_path / "link")


# What has won contests for nothing in earlier forms. Files beside the log have no effect any more.
def attributes(made: OnDisk) -> None:
    made.text(made.path(".gitattributes"), "* working-tree-encoding=UTF-16LE\n")


def ignored(made: OnDisk) -> None:
    made.text(made.path(".gitignore"), "*\n")
    made.text(made.path("results/runs/gold/wall/2026-11-07.json"), "{}")


def linked(made: OnDisk) -> None:
    for name in ("results", "judges"):
        made.text(made.edition / f"other_{name}" / "runs" / "x.json", "{}")
        made.path(name).symlink_to(made.edition / f"other_{name}")


def signers_beside(made: OnDisk) -> None:
    made.text(made.path("allowed_signers"), f"ada {public('mallory')}\n")


def old_entries(made: OnDisk) -> None:
    made.text(made.path("board/decisions.yaml"), f"- {{image: {made.sha256}, verdict: invalid}}\n")
    made.text(made.path("contest.yaml"), "teams: [mallory]\n")
    made.text(made.path("answers/aaaaaaaa/2026-11-06.yaml"), "answers: {}\n")


@pytest.mark.parametrize("attack", [attributes, ignored, linked, signers_beside, old_entries])
def test_what_lies_beside_the_log_has_no_effect(attack: Callable[[OnDisk], None], made: OnDisk) -> None:
    before = repr(standing(made.state(), LATER))
    attack(made)
    assert repr(standing(made.state(), LATER)) == before
    assert check(made.folder)


def test_a_contest_in_a_folder_with_any_name(tmp_path: Path) -> None:
    made = OnDisk(tmp_path / "Vögel" / "weiß")
    made.enter(made.yaml("t.yaml", {"team": PINK}))
    made.path(LOG).write_bytes(made.path(LOG).read_bytes().replace(b"bicycle", b"abstain"))
    refused(made, r"line .*; expected")


def test_a_stranger_enters_nothing(made: OnDisk) -> None:
    """Neither a run that breaks a defence, nor a team as a member of the board, nor answers as a judge."""
    entries: Mapping[str, Mapping[str, Any]] = {
        "run": made.run_of({made.sha256: "bird"}), "team": PINK, "answers": made.answers_of(JUDGES[4], {}),
    }  # fmt: skip
    for kind, data in entries.items():
        text = text_of([*made.story, ("2026-11-09T12:00:00Z", kind, data)], made.signers)
        for name in ("ada", "judge", "mallory"):
            write_log(made.folder, text, name)
            refused(made, "the signature in its last line is not by that key")


def test_an_answer_that_is_dated_back(made: OnDisk) -> None:
    """A fourth judge, who would have been among the first: the instant of the entry counts."""
    dated = {made.sha256: UNSURE | {"date": "2026-11-07"}}
    made.enter(made.yaml("d.yaml", {"judge": JUDGES[3], "week": "2026-11-06", "answers": dated}))
    state = standing(made.state(), LATER).images[made.sha256]
    assert (state.judges, state.valid_group) == (3, "bird")


def test_a_decoy_that_is_replaced(made: OnDisk) -> None:
    """By the victim's image, on Friday: a submission is its line, and an object has one content."""
    decoy, victims = png((0, 9, 9)), png((0, 99, 9))
    made.enter(made.mail("blue-1", {"y.png": decoy}))
    made.enter(made.mail("green-1", {"y.png": victims}, "green"), at="2026-11-10T12:00:00Z")
    made.path(f"objects/{digest(decoy)}").write_bytes(victims)
    made.enter(at="2026-11-13T20:00:00Z", publish=True)
    late = made.mail("blue-2", {"y.png": victims})
    message = f"SHA-256 {digest(victims)}; expected {digest(decoy)}: the file has changed"
    with pytest.raises(CleansetError, match=message):
        check(made.folder)
    assert not any("Left out" in note for note in standing(made.state(), LATER).notes)
    for data in (victims, decoy):
        made.path(f"objects/{digest(decoy)}").write_bytes(data)
        with pytest.raises(CleansetError, match=r"y\.png: a copy of line 12 \(submission\), y\.png"):
            made.enter(late, at="2026-11-14T12:00:00Z")


def test_controls_left_out_of_all_answers(made: OnDisk) -> None:
    """The draw is the log's: answers without the controls that were drawn are refused."""
    control = made.put(png((0, 90, 0)))
    contains = {"contains": {"bird": True, "bicycle": False}}
    made.story.insert(2, ("2026-11-01T09:00:00Z", "controls", {"controls": {control: contains}}))
    made.write()
    refused(made, f"answers of {JUDGES[0]} in the week of 2026-11-06: lacking control image {control[:12]}…; expected")
    made.story = [
        (at, kind, {**data, "answers": {**data["answers"], control: BIRD}} if kind == "answers" else data)
        for at, kind, data in made.story
    ]
    made.write()
    assert status(made) == "broken"


def test_an_open_defence_without_files(made: OnDisk) -> None:
    made.changed("defence", public=None)
    refused(made, r"line 2 \(defence\): open: no weights; expected them among the files, or public with their source")


def test_an_image_of_which_a_model_sees_no_object(made: OnDisk) -> None:
    """896 x 224: judges see all of it, a model the square in its middle."""
    wide = named("y.png", png((0, 0, 200), (400, 100)))
    made.changed("submission", images=[wide])
    refused(made, "400 x 100 pixels; expected a square image: models look at the central square of others")


def test_a_log_reads_as_it_was_written(made: OnDisk) -> None:
    text = made.entries()
    lines = parse(text + last_line(text), "log").lines
    assert [each.digest for each in lines] == [digest(line.encode()) for line in text.splitlines()]
    assert Objects(made.folder).read(made.sha256) == made.image().read_bytes()
