"""The study's server: who gets which list, what is saved and when, and what is refused."""

import json
import os
import threading
import time
from collections import Counter
from hashlib import sha256
from http.client import HTTPConnection
from pathlib import Path
from socket import create_connection
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.testclient import TestClient

from cleanset.errors import CleansetError
from cleanset.studies.realness import study_server
from cleanset.studies.realness.ratings import View
from cleanset.studies.realness.serving import application
from cleanset.studies.realness.study_server import GivenAnswer, PageVisit, ServeSettings, StudyServer
from tests.browser_tab import Server
from tests.other_user import answer_to_other_user, by_root, check_refused_to_others
from tests.remotes.servers import free_port
from tests.studies.realness.conftest import command, rows

SEEN: dict[str, Any] = {
    "shown_width": 448,
    "shown_height": 448,
    "pixel_ratio": 1.0,
    "window_width": 1280,
    "window_height": 800,
    "pixels_per_mm": 0,
    "darkened": False,
}
"""How a trial is on a screen."""


def key_of(person: str) -> str:
    """The key that this person's browser has drawn; the server draws one for a browser without any."""
    return sha256(person.encode()).hexdigest()[:32] if person else ""


def opened(server: StudyServer, person: str = "") -> dict[str, Any]:
    """What somebody who begins, or comes back, is given."""
    return server.visit(PageVisit(id=person, key=key_of(person), event="begins"))


def answer_of(trials: list[dict[str, str]], position: int, choice: int = 1) -> str | int:
    return ("left", "right")[choice % 2] if trials[position - 1]["kind"] == "pair" else choice


def give(server: StudyServer, page: dict[str, Any], position: int, choice: int = 1) -> dict[str, object] | None:
    trial = page["trials"][position - 1]
    given = answer_of(page["trials"], position, choice)
    return server.save(GivenAnswer(key=page["key"], position=position, stimulus=trial["stimulus"], answer=given,
                                   milliseconds=900, view=View(**SEEN)))  # fmt: skip


def complete(server: StudyServer, person: str) -> None:
    page = opened(server, person)
    for position in range(page["answered"] + 1, 13):
        give(server, page, position)


def lists(plan: Path) -> dict[str, str]:
    return {row["id"]: row["list"] for row in rows(plan / "people.csv")}


def restarted(server: StudyServer, settings: ServeSettings | None = None) -> StudyServer:
    server.close()
    return StudyServer(server.plan, settings or server.settings)


def test_each_answer_is_on_the_disk_and_the_same_person_comes_back_to_the_next(plan: Path) -> None:
    server = StudyServer(plan)
    page = opened(server, "ada")
    for position in (1, 2, 3):
        give(server, page, position)
        (file,) = (plan / "answers").iterdir()
        assert [row["position"] for row in rows(file)] == [str(each) for each in range(1, position + 1)]
    server = restarted(server)
    again = opened(server, "ada")
    assert (again["answered"], again["key"], again["trials"]) == (3, page["key"], page["trials"])
    assert server.visit(PageVisit(key=page["key"]))["answered"] == 3  # without an id: the key in the address
    complete(server, "ada")
    assert server.visit(PageVisit(id="ada", key=key_of("ada"))) == {
        "state": "complete",
        "text": "done",
        "address": None,
    }
    assert (len(rows(file)), server.complete) == (12, 1)


def test_the_recruiters_id_is_apart_from_the_answers(plan: Path) -> None:
    server = StudyServer(plan)
    page = opened(server, "ada")
    give(server, page, 1)
    (row,) = rows(plan / "people.csv")
    (file,) = (plan / "answers").iterdir()
    assert (row["id"], row["key"], file.name) == ("ada", page["key"], f"answers-1-{row['person']}.csv")
    assert "ada" not in file.read_text()
    assert page["key"] not in file.read_text()
    assert ((plan / "people.csv").stat().st_mode & 0o777) == 0o600
    assert server.visit(PageVisit(key=row["person"]))["state"] == "looking"  # the pseudonym opens nothing


def test_lists_are_balanced_and_the_number_wanted_is_a_bound(plan: Path) -> None:
    server = StudyServer(plan, ServeSettings(people=19))
    for number in range(10):
        complete(server, f"early{number}")
    server = restarted(server)
    for number in range(9):
        assert opened(server, f"late{number}")["state"] == "begun"
    assert sorted(Counter(lists(plan).values()).values()) == [2, 2, 2, 2, 2, 3, 3, 3]
    assert opened(server, "one too many")["text"] == "taken"
    for number in range(9):
        complete(server, f"late{number}")
    assert opened(server, "one too many")["text"] == "full"
    assert len(list((plan / "answers").iterdir())) == 19


def test_an_abandoned_list_goes_to_somebody_else(plan: Path) -> None:
    server = StudyServer(plan, ServeSettings(people=2, minutes=0.005))  # 0.3 s
    page = opened(server, "ada")
    give(server, page, 1)
    complete(server, "ben")
    assert opened(server, "cy")["text"] == "taken"
    time.sleep(0.4)
    assert opened(server, "ada")["answered"] == 1  # nobody else needed it
    time.sleep(0.4)
    assert opened(server, "cy")["answered"] == 0
    assert lists(plan)["cy"] == lists(plan)["ada"]
    assert opened(server, "ada")["state"] == "expired"
    assert give(server, page, 2) == {"state": "expired", "text": "expired", "address": None}
    assert sorted(len(rows(file)) for file in (plan / "answers").iterdir()) == [1, 12]
    complete(server, "cy")
    assert opened(server, "dan")["text"] == "full"


def test_a_list_that_was_abandoned_before_a_restart(plan: Path) -> None:
    server = StudyServer(plan, ServeSettings(people=1))
    give(server, opened(server, "ada"), 1)
    (file,) = (plan / "answers").iterdir()
    os.utime(file, (0, 0))
    (row,) = rows(plan / "people.csv")
    (plan / "people.csv").write_text((plan / "people.csv").read_text().replace(row["began"], "0"))
    assert opened(restarted(server), "ben")["state"] == "begun"
    assert lists(plan) == {"ada": "1", "ben": "1"}


def test_an_id_is_not_enough_to_continue_with_a_list(plan: Path) -> None:
    """Whoever knows it gets neither list nor key; in the browser that began, both."""
    server = StudyServer(plan)
    page = opened(server, "ada")
    for key in ("", key_of("ben"), "0" * 32):
        for event in ("opens", "begins"):
            assert server.visit(PageVisit(id="ada", key=key, event=event))["text"] == "elsewhere"
    assert opened(server, "ada") == page
    assert lists(plan) == {"ada": "1"}


def test_the_links_id_counts_more_than_another_persons_key(plan: Path) -> None:
    server = StudyServer(plan)
    page = opened(server, "ada")
    give(server, page, 1)
    other = server.visit(PageVisit(id="ben", key=page["key"], event="begins"))
    assert (other["answered"], other["key"] != page["key"]) == (0, True)
    give(server, other, 1)
    assert lists(plan) == {"ada": "1", "ben": "2"}
    assert opened(server, "ada")["answered"] == 1


def test_only_those_invited_may_begin(plan: Path, tmp_path: Path) -> None:
    (tmp_path / "ids.txt").write_text("ada\nben\n\n")
    server = StudyServer(plan, ServeSettings(ids=tmp_path / "ids.txt"))
    for number in range(20):
        assert opened(server, f"made-up-{number}")["text"] == "not_invited"
    assert server.visit(PageVisit(event="begins"))["text"] == "no_id"
    assert [opened(server, name)["state"] for name in ("ada", "ben")] == ["begun", "begun"]
    assert list(lists(plan)) == ["ada", "ben"]
    server.close()
    for text, message in (
        ("ada\na/b\n", "'a/b'; expected an id a line"),
        ("\n", "''; expected an id a line"),
    ):
        (tmp_path / "ids.txt").write_text(text)
        with pytest.raises(CleansetError, match=message):
            StudyServer(plan, ServeSettings(ids=tmp_path / "ids.txt"))


def test_in_a_local_network_the_printed_address_is_needed(plan: Path) -> None:
    served = Server(plan, "study", "serve", "--plan", ".", "--port", "0", "--host", "0.0.0.0")
    connection = HTTPConnection("127.0.0.1", served.port, timeout=60)
    assert "/study/?token=" in served.address
    found = []
    token = served.address.partition("=")[2]
    for path in ("/", "/visit", "/study/", f"/study/?token={token}", f"/study/?person=p%2017&token={token}&key="):
        connection.request("GET", path)
        reply = connection.getresponse()
        reply.read()
        found.append((reply.status, reply.getheader("location")))
    served.kill()
    assert found == [(403, None)] * 3 + [(303, "/study/"), (303, "/study/?person=p+17&key=")]


@pytest.mark.long
@by_root
def test_a_trial_is_its_organizers_alone_and_a_study_everybodys(plan: Path) -> None:
    """On the same machine; with a public address people come without a token, as the recruiting service sends them."""
    served = Server(plan, "study", "serve", "--plan", ".", "--port", "0")
    (image, *_) = (each.name for each in (plan / "page" / "images").iterdir())
    check_refused_to_others(served, "lists.js", "study.js", f"images/{image}", socket=False)
    served.kill()
    again = Server(plan, "study", "serve", "--plan", ".")
    address = again.address
    again.kill()
    again = Server(plan, "study", "serve", "--plan", ".")
    assert again.address == address  # with the port of the plan, and the token
    again.kill()
    port = free_port()
    public = Server(plan, "study", "serve", "--plan", ".", "--port", str(port), "--public-url", "https://a.example")
    assert public.address == "https://a.example/"
    assert answer_to_other_user(port, f"/images/{image}") == 200
    public.kill()


def test_a_telephone_out_of_reach_is_no_error(plan: Path) -> None:
    """Between the header of an answer and the answer."""
    served = Server(plan, "study", "serve", "--plan", ".", "--port", "0")
    known = f"Host: 127.0.0.1:{served.port}\r\nCookie: {served.cookie['Cookie']}"
    head = f"POST /study/visit HTTP/1.1\r\n{known}\r\nContent-Length: 100\r\n\r\n{{"
    with create_connection(("127.0.0.1", served.port), timeout=60) as line:
        line.sendall(head.encode())
        time.sleep(0.2)
    connection = HTTPConnection("127.0.0.1", served.port, timeout=60)
    connection.request("GET", "/study/", headers=served.cookie)
    assert connection.getresponse().status == 200
    served.kill()
    assert (plan.parent / f"{plan.name}.stderr").read_text() == ""


def test_a_clock_that_goes_back_keeps_no_place(plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the one place wanted, also after a restart; 60 minutes by default."""
    now = SimpleNamespace(wall=1_800_000_000.0, passed=0.0)
    clocks = SimpleNamespace(time=lambda: now.wall, monotonic=lambda: now.passed)
    monkeypatch.setattr(study_server, "time", clocks)
    server = StudyServer(plan, ServeSettings(people=1))
    opened(server, "ada")
    now.wall -= 86_400
    assert opened(server, "ben")["text"] == "taken"
    now.passed = 3_601
    assert opened(server, "ben")["state"] == "begun"
    server = restarted(server)
    now.wall -= 86_400
    assert opened(server, "cy")["text"] == "taken"
    now.passed += 3_601
    assert opened(server, "cy")["state"] == "begun"
    assert list(lists(plan)) == ["ada", "ben", "cy"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answer": 99}, "answer '99'; expected one of left, right"),
        ({"answer": 1}, "answer '1'; expected one of left, right"),
        ({"position": 2}, "Number 2 was answered, but number 1 is next"),
        ({"stimulus": "x"}, "Number 1 was answered, but number 1 is next"),
        ({"key": "x"}, "does not know this browser"),
        ({"key": ""}, "does not know this browser"),
    ],
)
def test_an_answer_is_checked_when_it_arrives(plan: Path, change: dict[str, Any], message: str) -> None:
    server = StudyServer(plan)
    page = opened(server)
    first = {"key": page["key"], "position": 1, "stimulus": page["trials"][0]["stimulus"], "answer": "left"}
    with pytest.raises(ValueError, match=message):
        server.save(GivenAnswer(**(first | {"milliseconds": 500, "view": View(**SEEN)} | change)))
    assert list((plan / "answers").iterdir()) == []


def test_an_answer_is_never_replaced(plan: Path) -> None:
    server = StudyServer(plan)
    page = opened(server)
    for position in (1, 2, 3):
        give(server, page, position)
    give(server, page, 3)  # sent twice, as when a reply was lost
    with pytest.raises(ValueError, match="Number 3 has already been answered, perhaps elsewhere"):
        give(server, page, 3, 2)
    (file,) = (plan / "answers").iterdir()
    assert [row["answer"] for row in rows(file)] == ["right", "right", "1"]
    for position in range(4, 13):
        give(server, page, position)
    before = file.read_bytes()
    late = {"key": page["key"], "stimulus": "x", "answer": 1, "milliseconds": 500, "view": View(**SEEN)}
    end = {"state": "complete", "text": "done", "address": None}
    assert [server.save(GivenAnswer(position=position, **late)) for position in (3, 13)] == [end, end]
    assert file.read_bytes() == before


def test_a_line_torn_by_a_power_cut(plan: Path) -> None:
    server = StudyServer(plan)
    page = opened(server, "ada")
    give(server, page, 1)
    (file,) = (plan / "answers").iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole + whole.splitlines()[1][:9])
    (plan / "people.csv").open("a").write("17643")
    server = restarted(server)
    assert file.read_bytes() == whole
    assert opened(server, "ada")["answered"] == 1
    assert len(rows(plan / "people.csv")) == 1


def test_a_recruiters_id_is_needed_if_the_parameter_is_given(plan: Path) -> None:
    server = StudyServer(plan, ServeSettings(id_parameter="PROLIFIC_PID"))
    for event in ("opens", "begins"):
        assert server.visit(PageVisit(key="unknown", event=event))["text"] == "no_id"
    assert opened(server, "5f3c")["state"] == "begun"


def test_what_the_server_gives(plan: Path, tmp_path: Path) -> None:
    (tmp_path / "consent.html").write_text("<p>I take part.</p>")
    server = StudyServer(plan, ServeSettings(consent=tmp_path / "consent.html", id_parameter="PROLIFIC_PID"))
    with TestClient(application(server)) as client:
        assert client.get("/").status_code == client.get("/study.js").status_code == 200
        assert '"parameter": "PROLIFIC_PID"' in client.get("/lists.js").text
        assert client.post("/visit", json={"id": "a"}).json() == {
            "state": "looking",
            "consent": "<p>I take part.</p>",
            "instructions": None,
            "kinds": ["attention", "image", "pair"],
        }
        assert not (plan / "people.csv").read_text()  # who only looks takes no list
        page = client.post("/visit", json={"id": "a", "event": "begins"}).json()
        image = next(each["file"] for each in page["trials"] if "file" in each)
        assert client.get(f"/images/{image}").headers["content-type"] == "image/png"
        given = {"key": page["key"], "position": 1, "stimulus": page["trials"][0]["stimulus"], "milliseconds": 500,
                 "view": SEEN}  # fmt: skip
        assert client.post("/answer", json=given | {"answer": 99}).status_code == 409
        assert client.post("/answer", json=given | {"answer": "left", "milliseconds": -1}).status_code == 422
        for wrong in ({"pixel_ratio": 0}, {"shown_width": "448"}, {"window_height": -1}):
            answer = {"answer": "left", "view": SEEN | wrong}
            assert client.post("/answer", json=given | answer).status_code == 422
        assert client.post("/answer", content=b"\xff").status_code == 422
        assert client.post("/answer", content="x" * 4_001).status_code == 413
        assert client.post("/answer", json=given | {"answer": "left"}).status_code == 200


def test_nothing_else_is_served(plan: Path) -> None:
    with TestClient(application(StudyServer(plan))) as client:
        for path in (
            "/key.csv", "/plan.json", "/people.csv", "/trials.csv", "/answers", "/answers/", "/images/", "/images",
            "/images/../../key.csv", "/images/%2e%2e/%2e%2e/key.csv", "/docs", "/openapi.json", "/VENDORED.txt",
            "/page/lists.js", "/..%2fserving.py",
        ):  # fmt: skip
            assert client.get(path).status_code == 404, path
        assert client.put("/answer").status_code == 405


def test_a_full_disk_is_reported_and_the_answer_may_be_sent_again(plan: Path) -> None:
    server = StudyServer(plan)
    page = opened(server)
    (plan / "answers").rmdir()
    trial = page["trials"][0]["stimulus"]
    given = {"key": page["key"], "position": 1, "stimulus": trial, "answer": "left", "milliseconds": 500,
                 "view": SEEN}  # fmt: skip
    with TestClient(application(server)) as client:
        assert client.post("/answer", json=given).status_code == 503
        (plan / "answers").mkdir()
        assert client.post("/answer", json=given).status_code == 200


@pytest.mark.parametrize("row", ["5,ada,k,../../x,1", "5,ada,k,0123456789abcdef,9", "x,ada,k,0123456789abcdef,1"])
def test_a_row_of_somebody_else(plan: Path, row: str) -> None:
    (plan / "people.csv").write_text(f"began,id,key,person,list\n{row}\n")
    with pytest.raises(CleansetError, match=r"people.csv, line 2: not a person of this plan"):
        StudyServer(plan)


def test_two_servers_of_one_plan(plan: Path) -> None:
    server = StudyServer(plan)
    with pytest.raises(CleansetError, match="served by another process"):
        StudyServer(plan)
    assert restarted(server).complete == 0


def test_a_folder_that_is_not_a_plan(tmp_path: Path) -> None:
    with pytest.raises(CleansetError, match="expected the folder that cleanset study plan wrote"):
        StudyServer(tmp_path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("people=0", "people: .*greater than or equal to 1"),
        ("completion=javascript:alert(1)", "completion"),
        ("id=x", "unknown key of --settings 'id'; expected one of completion, expired, refused, declined, full,"),
        ("consent=missing.html", r"missing.html: missing; expected a piece of HTML"),
    ],
)
def test_settings_that_are_refused(plan: Path, settings: str, message: str) -> None:
    with pytest.raises(CleansetError, match=message):
        command("serve", "--plan", plan, "--settings", settings)


PEOPLE = 200


@pytest.mark.long
@pytest.mark.slow
def test_200_people_at_once(plan: Path) -> None:
    """Each over a connection of their own, with no pause between answers; no answer is lost, and lists are balanced."""
    served = Server(plan, "study", "serve", "--plan", ".", "--port", "0", "--settings", f"people={PEOPLE}")
    seconds: list[float] = []
    failed: list[object] = []

    def post(connection: HTTPConnection, path: str, body: dict[str, Any]) -> Any:
        start = time.monotonic()
        headers = {"Origin": served.page.removesuffix("/study/")} | served.cookie
        connection.request("POST", f"/study{path}", json.dumps(body), headers)
        reply = connection.getresponse()
        text = reply.read()
        seconds.append(time.monotonic() - start)
        assert reply.status == 200, text
        return json.loads(text)

    def one(number: int) -> None:
        try:
            connection = HTTPConnection("127.0.0.1", served.port, timeout=60)
            page = post(connection, "/visit", {"id": f"p{number}", "event": "begins"})
            for position, trial in enumerate(page["trials"], start=1):
                given = answer_of(page["trials"], position)
                post(connection, "/answer", {"key": page["key"], "position": position, "stimulus": trial["stimulus"],
                                             "answer": given, "milliseconds": 500, "view": SEEN})  # fmt: skip
            assert post(connection, "/visit", {"id": f"p{number}", "key": page["key"]})["state"] == "complete"
            connection.close()
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(PEOPLE)]
    start = time.monotonic()
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    elapsed = time.monotonic() - start
    served.kill()
    assert failed == []
    assert set(Counter(lists(plan).values()).values()) == {PEOPLE // 8}
    files = list((plan / "answers").iterdir())
    assert [len(rows(file)) for file in files] == [12] * PEOPLE
    seconds.sort()
    print(f"{len(seconds):,} requests in {elapsed:.1f} s, median {seconds[len(seconds) // 2]:.3f} s, "
          f"99 % {seconds[len(seconds) * 99 // 100]:.3f} s, longest {seconds[-1]:.3f} s")  # fmt: skip
