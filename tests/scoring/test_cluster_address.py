"""RAY_ADDRESS, before Ray is asked, which waits for ever for a cluster that is not there; and until it answers."""

import re
import socket
import time
from collections.abc import Callable
from multiprocessing.connection import Connection

import pytest

from cleanset.errors import CleansetError
from cleanset.scoring import cluster
from cleanset.scoring.cluster import RayJob, check_address
from cleanset.scoring.computation import Elsewhere
from cleanset.scoring.validity import MadeFrom


def test_a_port_at_which_nothing_listens_is_refused_with_the_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        check_address(address)
        check_address(f"ray://{address}")
    with pytest.raises(CleansetError, match=rf"^RAY_ADDRESS {re.escape(address)}: nothing answers there \(.*refused"):
        check_address(address)


def test_a_name_that_nobody_knows_is_refused() -> None:
    with pytest.raises(CleansetError, match=r"^RAY_ADDRESS no-host.invalid:6379: nothing answers there \(.*; expected"):
        check_address("no-host.invalid:6379")


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "127.0.0.1:", ":6379", "127.0.0.1:port", "[::1:6379", "127.0.0.1:99999"]
)
def test_an_address_without_host_and_port_is_refused(address: str) -> None:
    with pytest.raises(
        CleansetError, match=rf"^RAY_ADDRESS {re.escape(address)}: no host and port; expected the running"
    ):
        check_address(address)


@pytest.mark.parametrize("address", ["", "auto", "local"])
def test_what_names_no_place_is_left_to_ray(address: str) -> None:
    check_address(address)


def never_answer(pipe: Connection, *_: object) -> None:
    """The process of a job whose cluster accepts connections and does not answer."""
    time.sleep(60)
    pipe.close()


def answer(pipe: Connection, *_: object) -> None:
    """The process of a job whose cluster answers after a while, with a result."""
    time.sleep(0.5)
    pipe.send((2, None))
    pipe.send((7, "found"))
    pipe.send(None)


def results(monkeypatch: pytest.MonkeyPatch, job: Callable[..., None]) -> list[tuple[int, object]]:
    """The results of a cluster whose job is a function of this module."""
    monkeypatch.setenv("RAY_ADDRESS", "head:6379")
    monkeypatch.setattr(cluster, "_run_job", job)
    monkeypatch.setattr(cluster, "LINE_SECONDS", 0.1)
    elsewhere: Elsewhere[object] = Elsewhere(name="score", open=answer, made_from=MadeFrom({}))  # type: ignore[arg-type]
    return list(cluster._finished(RayJob(elsewhere=elsewhere, on_gpus=False), []))


def test_a_cluster_that_does_not_answer_is_named_until_the_run_ends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cluster, "ANSWER_SECONDS", 1.0)
    begin = time.monotonic()
    with pytest.raises(CleansetError, match=r"^engine ray: the cluster at head:6379 accepts connections, but has not "):
        results(monkeypatch, never_answer)
    assert time.monotonic() - begin < 50
    assert "waiting for the cluster at head:6379 …" in capsys.readouterr().err


def test_a_cluster_that_answers_is_announced(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert results(monkeypatch, answer) == [(7, "found")]
    waiting, *_, last = capsys.readouterr().err.splitlines()
    assert waiting == "waiting for the cluster at head:6379 …"
    assert last == "the cluster at head:6379 answers: 2 nodes; its workers start"
