"""`cleanset study serve`: a plan's page as a server on this machine, which saves the answers in the plan's folder."""

import json
import re
from pathlib import Path

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles

from cleanset.errors import CleansetError
from cleanset.files import read_text, write_text
from cleanset.parsing import parse_csv
from cleanset.studies.realness.plan import TRIAL_COLUMNS
from cleanset.studies.realness.planning import PAGE, PLAN, TRIALS
from cleanset.studies.realness.ratings import ANSWER_COLUMNS
from cleanset.validation import shown
from cleanset.web.pages import FRESH, new_application, run_page, usual_port

ANSWERS = "answers"
MAX_ANSWER_BYTES = 2_000_000
REMEDY = "expected the file that cleanset wrote"
_FILE = re.compile(r"answers-([1-9][0-9]{0,5})-([A-Za-z0-9._-]{1,64})\.csv")


class StudyServer:
    """The lists of a plan, with those given out, and the answers so far."""

    def __init__(self, plan: Path) -> None:
        """Raises CleansetError unless `plan` is the folder of a plan."""
        self.plan = plan
        if not all((plan / name).is_file() for name in (PLAN, TRIALS)) or not (plan / PAGE).is_dir():
            raise CleansetError(f"{plan}: not a plan; expected the folder that cleanset study plan wrote")
        self._stimuli: dict[int, list[str]] = {}
        for _, row in parse_csv(read_text(plan / TRIALS, REMEDY), TRIAL_COLUMNS, str(plan / TRIALS)):
            self._stimuli.setdefault(int(row["list"]), []).append(row["stimulus"])
        self._given: set[int] = set()

    @property
    def lists(self) -> int:
        """Number of lists."""
        return len(self._stimuli)

    def answered(self) -> set[int]:
        """The lists that have answers."""
        names = (_FILE.fullmatch(path.name) for path in (self.plan / ANSWERS).glob("answers-*.csv"))
        return {int(name[1]) for name in names if name}

    def next_list(self) -> int | None:
        """The first list without answers, preferably one not given out yet; None if all are answered."""
        left = sorted(set(self._stimuli) - self.answered())
        # a list that was given out but never answered is given again when no other is left
        given = next((number for number in left if number not in self._given), left[0] if left else None)
        if given is not None:
            self._given.add(given)
        return given

    def save(self, name: str, text: str) -> Path:
        """Save the answers of one person to one list.

        Raises ValueError, with a message for that person, for answers that are not of that whole list, and for answers
        that differ from saved ones.
        """
        match = _FILE.fullmatch(name)
        if match is None or int(match[1]) not in self._stimuli:
            raise ValueError(f"{shown(name)}; expected answers-LIST-PERSON.csv of a list of the plan")
        self._check(match[1], match[2], text)
        path = self.plan / ANSWERS / name
        if path.exists() and read_text(path, REMEDY) != text:
            raise ValueError(f"{name} exists with other answers; nothing was changed")
        write_text(path, text)
        return path

    def _check(self, number: str, person: str, text: str) -> None:
        try:
            rows = [row for _, row in parse_csv(text, ANSWER_COLUMNS, "the answers")]
        except CleansetError as error:
            raise ValueError(str(error)) from None
        stimuli = self._stimuli[int(number)]
        expected = [(person, number, str(place), stimulus) for place, stimulus in enumerate(stimuli, start=1)]
        if [tuple(row[column] for column in ANSWER_COLUMNS[:4]) for row in rows] != expected:
            raise ValueError(
                f"answers of {shown(person)} to another list; expected all {len(stimuli)} of list {number}"
            )


def run(plan: Path, host: str, port: int | None, browser: bool) -> None:
    """Serve a plan's page until Ctrl+C; `port` None is the usual one, 0 any free one."""
    server = StudyServer(plan)
    announcement = f"Study of {server.lists} lists: {{}}  (Ctrl+C ends it; answers are saved in {plan / ANSWERS})"
    run_page(
        lambda: application(server), announcement, host, port, usual_port(plan, "study"), browser, "cleanset study"
    )


def application(server: StudyServer) -> FastAPI:
    """The plan's page, which gives each visitor without a list the next one, and saves answers."""
    app = new_application()
    page = server.plan / PAGE

    @app.get("/")
    def opened(request: Request) -> Response:
        if "list" in request.query_params:
            return Response((page / "index.html").read_bytes(), media_type="text/html")
        number = server.next_list()
        if number is None:
            return PlainTextResponse("All lists are answered. Thank you.\n")
        # a browser that kept the redirect would give the next person the same list
        return RedirectResponse(f"/?list={number}", status_code=303, headers=FRESH)

    @app.get("/lists.js")
    def lists() -> Response:
        told = (page / "lists.js").read_text(encoding="utf-8") + f"STUDY.saved_at = {json.dumps(ANSWERS)};\n"
        return Response(told, media_type="text/javascript")

    @app.put(f"/{ANSWERS}/{{name}}")
    async def saved(name: str, request: Request) -> Response:
        data = b""
        # in parts: request.body() would take an answer of any size into memory
        async for part in request.stream():
            data += part
            if len(data) > MAX_ANSWER_BYTES:
                return PlainTextResponse(f"over {MAX_ANSWER_BYTES:,} bytes\n", 413)
        try:
            await run_in_threadpool(server.save, name, data.decode("utf-8"))
        except ValueError as error:
            return PlainTextResponse(f"{error}\n", 409)
        return Response(status_code=204)

    # last, because it answers every address that is left
    app.mount("/", StaticFiles(directory=page))
    return app
