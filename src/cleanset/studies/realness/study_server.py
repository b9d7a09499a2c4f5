"""Who gets which list of a plan, and every answer saved at once: the state behind the page, without the web.

`people.csv` in the plan's folder has a row for each person who began: the id that a recruiting service gave them, the
key of their browser for coming back, their pseudonym and their list. The files in `answers/` have the pseudonym alone.
Nothing of it is ever rewritten: rows are appended, and on the disk before the browser hears of it.
"""

import fcntl
import os
import re
import secrets
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from cleanset.errors import CleansetError
from cleanset.plumbing.csv_files import csv_text, read_rows
from cleanset.plumbing.file_locks import take_lock
from cleanset.plumbing.files import append_line, check_no_links, cut_torn_line, read_text, sha256, write_text
from cleanset.plumbing.validation import AtLeastOne, normal_text, shown
from cleanset.studies.realness.participants import (
    MAX_ID,
    STATES,
    EndAddresses,
    PageEvent,
    Participant,
    Refusal,
    id_refusal,
    is_participant_id,
)
from cleanset.studies.realness.plan import Trial, read_trials
from cleanset.studies.realness.plan_files import KEY, TEXTS, TRIALS, USUAL_TEXTS, read_plan, read_texts
from cleanset.studies.realness.ratings import (
    ANSWER_COLUMNS,
    RESTORE_FILE,
    SCREENING_KINDS,
    VIEW_COLUMNS,
    View,
    choices_of,
    parse_key,
)

ANSWERS_FOLDER = "answers"
"""The folder of a plan with a file of answers for each person."""

PEOPLE = "people.csv"
"""The file of a plan with a row for each person who began."""

STUDY_ID = "study_id"
"""The file of a plan with a random name of the study, under which browsers keep their keys."""

FINISHED = "finished.csv"
"""The file of a plan with the pseudonyms of those who finished a study in which answers can be changed."""

FINISHED_COLUMNS = ("person",)
PEOPLE_COLUMNS = ("began", "id", "key", "person", "list")
_KEY = re.compile(r"[0-9a-f]{32}")
"""A browser's key, and the name of a study."""
# it becomes part of the name of a file: from a changed people.csv, ../ must not
_PERSON = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings(EndAddresses):
    """The organiser's settings."""

    id_parameter: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")] | None = None
    """Parameter of the address with the recruiter's id; None: `person`, which may be missing."""

    ids: Path | None = None
    """File with the ids of those invited, one a line; None: everybody is."""

    people: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Number of complete lists that are wanted; None: one of each list."""

    minutes: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 60.0
    """Time without an answer after which a list is given to somebody else."""

    consent: Path | None = None
    """File with a piece of HTML, shown before a person begins."""

    instructions: Path | None = None
    """File with a piece of HTML, shown before the first trial."""


class PageVisit(BaseModel):
    """A browser that opens the page: the recruiter's id in its address, and what the person does.

    `key`: a secret that the browser drew when the person began; only with it can the person return.
    """

    model_config = ConfigDict(frozen=True, strict=True)

    id: Annotated[str, Field(max_length=200)] = ""
    key: Annotated[str, Field(max_length=200)] = ""
    event: PageEvent = "opens"


class GivenAnswer(BaseModel):
    """The answer to one trial, as the browser sends it."""

    model_config = ConfigDict(frozen=True, strict=True)

    key: Annotated[str, Field(max_length=200)]
    position: AtLeastOne
    stimulus: str
    answer: str | int
    milliseconds: Annotated[int, Field(ge=0, lt=10**10)]
    view: View
    revises: bool = False
    """Whether the person has gone back to the trial, and may have changed the answer."""


class StudyServer:
    """The lists of a plan, the people who have them, and the answers so far. Thread-safe."""

    def __init__(self, plan: Path, settings: ServeSettings | None = None) -> None:
        """Raises CleansetError unless `plan` is the folder of a plan that nobody else serves."""
        self.plan = plan
        self.settings = settings or ServeSettings()
        self.files = read_plan(plan, images=True)
        self.trials = read_trials(self.files.trials, str(plan / TRIALS))
        key = parse_key(self.files.key, str(plan / KEY)).values()
        self.correct = {
            kind: {each.stimulus: each.expected for each in key if each.kind == kind} for kind in SCREENING_KINDS
        }
        self.wanted = self.settings.people or len(self.trials)
        pieces = {name: getattr(self.settings, name) for name in ("consent", "instructions")}
        self.pieces = {name: path and read_text(path, "expected a piece of HTML") for name, path in pieces.items()}
        texts = plan / TEXTS
        self.texts = read_texts(texts if texts.exists() else USUAL_TEXTS)
        self._invited = None if self.settings.ids is None else _read_ids(self.settings.ids)
        self._lock = Lock()
        self.kinds = sorted({each.kind for trials in self.trials.values() for each in trials})
        # a stranger's plan may have links to files of the user, which would be written to
        for name in (PEOPLE, ANSWERS_FOLDER, STUDY_ID, FINISHED):
            check_no_links(plan, plan / name)
        (plan / ANSWERS_FOLDER).mkdir(exist_ok=True)
        is_new = not (plan / PEOPLE).exists()
        self._file = os.open(plan / PEOPLE, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            # until this process ends: a second server would give out the same lists
            take_lock(self._file, plan, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise CleansetError(f"{plan}: served by another process; expected one at a time: end that one") from None
        self.study_id = _study_id(plan / STUDY_ID, is_new=is_new)
        self._by_key: dict[str, Participant] = {}
        self._read_people()

    def close(self) -> None:
        """Let another server have the plan."""
        os.close(self._file)

    def _read_people(self) -> None:
        self._finished = {row["person"] for _, row in _rows(self.plan / FINISHED, FINISHED_COLUMNS)}
        lists = {str(each): each for each in self.trials}
        for where, row in _rows(self.plan / PEOPLE, PEOPLE_COLUMNS):
            if row["list"] not in lists or not _PERSON.fullmatch(row["person"]) or not row["began"].isdecimal():
                raise CleansetError(f"{where}: not a person of this plan: {RESTORE_FILE}")
            one = Participant(row["id"], row["key"], row["person"], number=lists[row["list"]], active=0.0)
            seen = float(row["began"])
            answered = self.plan / ANSWERS_FOLDER / one.file
            check_no_links(self.plan, answered)
            for at, given in _rows(answered, ANSWER_COLUMNS):
                if (given["person"], given["list"]) != (one.person, row["list"]):
                    raise CleansetError(f"{at}: belongs to another person or list; {RESTORE_FILE}")
                _note_answer(one, given, at)
            if answered.exists():
                seen = max(seen, answered.stat().st_mtime)
            one.active = time.monotonic() - max(0.0, time.time() - seen)
            self._note_screening(one)
            self._note_complete(one)
            self._by_key[one.key] = one

    @property
    def complete(self) -> int:
        """Number of people who answered their whole list."""
        return sum(STATES[each.state].is_complete for each in self._by_key.values())

    def visit(self, visit: PageVisit) -> dict[str, object]:
        """The page for a browser: the reply has the state of the participant; at an end, the text and the address."""
        identity = normal_text(visit.id)
        if (refusal := id_refusal(identity)) is not None:
            return self._refused(refusal, identity)
        with self._lock:
            known = self._by_key.get(visit.key)
            # the link's id counts more than a key, which may be another person's
            if known is None or identity not in ("", known.id):
                return self._newcomer(visit, identity)
            if visit.event == "finishes" and known.state == "answered":
                append_line(self.plan / FINISHED, *_lines(FINISHED_COLUMNS, (known.person,)))
                known.move("finishes")
            self._check_list(known)
            return self._page_of(known)

    def _page_of(self, one: Participant) -> dict[str, object]:
        """The page of somebody who has begun."""
        rule = STATES[one.state]
        if rule.page != "end":
            return self._opened(one)
        if rule.text is None:
            return self._refused(self._failed_screening(one) or "screened_out", one.id)
        return {"state": one.state, "text": rule.text, "address": rule.address and getattr(self.settings, rule.address)}

    def _refused(self, refusal: Refusal, identity: str) -> dict[str, object]:
        return {"state": "refused", "text": refusal, "address": self.settings.of_refusal(refusal), "id": identity}

    def save(self, given: GivenAnswer) -> dict[str, object] | None:
        """Save an answer; on the disk when this returns. The reply is the end of a participant who is at one.

        At an end nothing is saved any more. Raises ValueError, with a message for that person, for an answer that is
        not the next one of their list.
        """
        with self._lock:
            known = self._by_key.get(given.key)
            if known is None:
                raise ValueError("The study does not know this browser. Please open the study's link again.")
            self._check_list(known)
        with known.lock:
            if STATES[known.state].page == "trials":
                self._append(known, given)
            return self._page_of(known) if STATES[known.state].page == "end" else None

    def _append(self, known: Participant, given: GivenAnswer) -> None:
        trials = self.trials[known.number]
        done = len(known.answers)
        answer = str(given.answer)
        if given.position <= done:
            # sent twice, as when a reply of the server was lost
            before = known.answers[given.position - 1]
            if (
                given.revises
                and self.files.protocol.revision
                and trials[given.position - 1].kind not in SCREENING_KINDS
            ):
                self._revise(known, given, before)
            elif before != (given.stimulus, answer):
                raise ValueError(
                    f"Number {given.position} has already been answered, perhaps elsewhere. Please reload the page."
                )
            return
        if given.position != done + 1 or done >= len(trials) or trials[done].stimulus != given.stimulus:
            raise ValueError(
                f"Number {given.position} was answered, but number {done + 1} is next. Please reload the page."
            )
        self._write(known, given, trials[done])
        known.answers.append((given.stimulus, answer))
        self._note_screening(known)
        self._note_complete(known)

    def _revise(self, known: Participant, given: GivenAnswer, before: tuple[str, str]) -> None:
        """Write a changed answer behind the one before: the last one counts."""
        trial = self.trials[known.number][given.position - 1]
        if trial.stimulus != given.stimulus:
            raise ValueError(f"Number {given.position} is another image now. Please reload the page.")
        if before[1] != str(given.answer):
            self._write(known, given, trial)
            known.answers[given.position - 1] = (given.stimulus, str(given.answer))

    def _write(self, known: Participant, given: GivenAnswer, trial: Trial) -> None:
        answer = str(given.answer)
        known_answers = choices_of(trial.kind)
        if answer not in known_answers:
            raise ValueError(f"answer {answer[:20]!r}; expected one of {', '.join(known_answers)}")
        least = self.files.shown_milliseconds
        if given.milliseconds < least:
            raise ValueError(
                f"The answer came after {given.milliseconds} ms; at least {least} ms are needed. Please answer again."
            )
        view = [f"{getattr(given.view, name):g}" for name in VIEW_COLUMNS]
        row = (known.person, known.number, given.position, given.stimulus, answer, given.milliseconds, *view)
        append_line(self.plan / ANSWERS_FOLDER / known.file, *_lines(ANSWER_COLUMNS, row))

    def _note_screening(self, one: Participant) -> None:
        """Refuse a person who has failed a screening: before the main part begins."""
        if self._failed_screening(one) is not None:
            one.move("fails_screening")

    def _failed_screening(self, one: Participant) -> Refusal | None:
        """The screening that a person has gone through to its end, and failed."""
        protocol = self.files.protocol
        if self._failed(one, "plate", protocol.plates) > 0:
            return "colour_vision"
        if protocol.min_correct_pairs and self._failed(one, "pair", protocol.pairs) > protocol.failed_pairs_allowed:
            return "screened_out"
        return None

    def _failed(self, one: Participant, kind: str, asked: int) -> int:
        """Number of failed trials of a kind; 0 until all of them are answered."""
        correct = self.correct[kind]
        given = [each for each in one.answers if each[0] in correct]
        return sum(answer != correct[stimulus] for stimulus, answer in given) if len(given) == asked else 0

    def _note_complete(self, one: Participant) -> None:
        if len(one.answers) < len(self.trials[one.number]):
            return
        one.move("answers_last")
        if not self.files.protocol.revision or one.person in self._finished:
            one.move("finishes")

    def _holds(self, one: Participant) -> bool:
        """Whether the list is theirs: they answered it, or were active in the last minutes."""
        is_active = one.state != "refused" and time.monotonic() - one.active <= 60 * self.settings.minutes
        return STATES[one.state].is_complete or is_active

    def _free_lists(self) -> list[int]:
        """The lists that the fewest people hold; none while as many people as are wanted hold one."""
        held = Counter(each.number for each in self._by_key.values() if self._holds(each))
        fewest = min(held[number] for number in self.trials)
        return sorted(number for number in self.trials if held[number] == fewest and held.total() < self.wanted)

    def _check_list(self, one: Participant) -> None:
        """Let a person continue, also after the set time as long as nobody else needs the list."""
        is_theirs = self._holds(one) or one.number in self._free_lists()
        one.move("list_free" if is_theirs else "list_taken")
        if is_theirs:
            one.active = time.monotonic()

    def _refusal(self, identity: str) -> Refusal | None:
        """Why somebody whom the server does not know cannot begin now; None: they can."""
        # whoever knows an id does not get its key
        if identity and any(each.id == identity for each in self._by_key.values()):
            return "elsewhere"
        if self.settings.id_parameter and not identity:
            return "no_id"
        if self._invited is not None and identity not in self._invited:
            return "not_invited" if identity else "no_id"
        if self.complete >= self.wanted:
            return "full"
        return None if self._free_lists() else "taken"

    def _newcomer(self, visit: PageVisit, identity: str) -> dict[str, object]:
        if (refusal := self._refusal(identity)) is not None:
            return self._refused(refusal, identity)
        if visit.event == "declines":
            return self._refused("declined", identity)
        if visit.event != "begins":
            return {
                "state": "looking",
                "consent": self.pieces["consent"],
                "instructions": self.pieces["instructions"],
                "kinds": self.kinds,
            }
        # the browser's own, so that it may ask again if the reply is lost; another one if that is somebody's
        is_free = _KEY.fullmatch(visit.key) and visit.key not in self._by_key
        key = visit.key if is_free else secrets.token_urlsafe(16)
        # not the key itself: whoever reads published answers must not be able to continue a list. Nor a digest of it
        # alone: a browser that comes with the key of another study would have one name in both
        person = sha256(f"{self.study_id} {key}".encode())[:16]
        one = Participant(identity, key, person, number=self._free_lists()[0], active=time.monotonic())
        row = (f"{time.time():.0f}", one.id, one.key, one.person, one.number)
        append_line(self.plan / PEOPLE, *_lines(PEOPLE_COLUMNS, row))
        self._by_key[one.key] = one
        return self._opened(one)

    def _opened(self, one: Participant) -> dict[str, object]:
        return {
            "state": one.state,
            "key": one.key,
            "trials": [each.data() for each in self.trials[one.number]],
            "answered": len(one.answers),
            # to be shown to those who go back
            "given": [answer for _, answer in one.answers] if self.files.protocol.revision else [],
            "instructions": self.pieces["instructions"],
            "kinds": self.kinds,
        }


def _note_answer(one: Participant, given: Mapping[str, str], at: str) -> None:
    """Note a row of a file of answers: on the next trial, or on one that was answered before."""
    answer = (given["stimulus"], given["answer"])
    place = int(given["position"]) - 1 if given["position"].isdecimal() else -1
    if not 0 <= place <= len(one.answers):
        raise CleansetError(f"{at}: position {shown(given['position'])} after {len(one.answers)}; {RESTORE_FILE}")
    one.answers[place : place + 1] = [answer]


def _study_id(path: Path, *, is_new: bool) -> str:
    """The random name of a study, in a file: drawn for one that is new, in which no browser has a key yet."""
    if is_new or not path.exists():
        write_text(path, secrets.token_hex(16) + "\n")
    found = read_text(path, RESTORE_FILE).strip()
    if not _KEY.fullmatch(found):
        raise CleansetError(f"{path}: {shown(found)}; expected 32 hexadecimal digits: {RESTORE_FILE}")
    return found


def _read_ids(path: Path) -> frozenset[str]:
    lines = read_text(path, "expected an id a line").splitlines()
    ids = [normal_text(each) for each in lines]
    given = [each for each in ids if each]
    if invalid := [each for each in given or [""] if not is_participant_id(each)]:
        raise CleansetError(
            f"{path}: {shown(invalid[0])}; expected an id a line, of letters, digits, spaces and . _ - @ +, at most "
            f"{MAX_ID} characters"
        )
    return frozenset(given)


def _rows(path: Path, columns: Sequence[str]) -> Iterable[tuple[str, dict[str, str]]]:
    """The rows of a file that this server adds to, after a torn line at its end is cut off; none without the file."""
    if not path.exists():
        return ()
    cut_torn_line(path)
    return read_rows(path, columns, dict[str, str], RESTORE_FILE, is_own=True) if path.stat().st_size else ()


def _lines(header: tuple[str, ...], row: tuple[object, ...]) -> tuple[str, str]:
    head, line = csv_text(header, [row]).splitlines(keepends=True)
    return line, head
