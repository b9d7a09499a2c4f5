"""Running many cases of one kind in a process of its own, which may crash or hang without ending the run."""

import multiprocessing
import random
import resource
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from cleanset.errors import CleansetError
from tests.hostile.kinds import KINDS

SECONDS_LIMIT = 20.0
"""For one case; usual ones take a few milliseconds."""

MEMORY_LIMIT = 6 * 2**30
"""Bytes of address space; more is a MemoryError, which counts as a traceback."""

MAX_MESSAGE = 300
"""Characters, without the folder in which the case is."""

_CONTEXT = multiprocessing.get_context("fork")


@dataclass
class Outcomes:
    """How many cases of a kind ended how; for each defect the number of the case, by which it is made again."""

    cases: int = 0
    refused: int = 0
    accepted: int = 0
    tracebacks: dict[int, str] = field(default_factory=dict)
    crashes: dict[int, str] = field(default_factory=dict)
    long_messages: dict[int, str] = field(default_factory=dict)

    @property
    def defects(self) -> dict[int, str]:
        """What went wrong, by the number of the case."""
        return self.tracebacks | self.crashes | self.long_messages


def case(kind: str, number: int) -> bytes:
    """The bytes of a case, always the same."""
    return KINDS[kind].make(random.Random(f"{kind} {number}"))


def run_cases(kind: str, numbers: range) -> Outcomes:
    """Run the cases of a kind, one after the other."""
    outcomes = Outcomes()
    at = numbers.start
    while at < numbers.stop:
        for number, end, detail in _outcomes(kind, range(at, numbers.stop)):
            at = number + 1
            outcomes.cases += 1
            if end == "accepted":
                outcomes.accepted += 1
            elif end == "refused":
                outcomes.refused += 1
                if len(detail) > MAX_MESSAGE or not detail.isprintable():
                    outcomes.long_messages[number] = detail
            else:
                (outcomes.tracebacks if end == "traceback" else outcomes.crashes)[number] = detail
    return outcomes


def _outcomes(kind: str, numbers: range) -> Iterator[tuple[int, str, str]]:
    """Number, end and message of each case, up to the first one that ends the process that runs them."""
    receiver, sender = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(target=_child, args=(kind, numbers, sender))
    process.start()
    sender.close()
    for number in numbers:
        detail = f"no end after {SECONDS_LIMIT:g} s"
        try:
            if receiver.poll(SECONDS_LIMIT):
                yield number, *receiver.recv()
                continue
        except EOFError:
            process.join()
            detail = f"exit code {process.exitcode}"
        process.kill()
        yield number, "crash", detail
        break
    process.join()


def _child(kind: str, numbers: range, sender: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    warnings.simplefilter("error")  # a warning is a line of its own on standard error
    with tempfile.TemporaryDirectory() as folder:
        for number in numbers:
            sender.send(_end(kind, number, Path(folder) / kind))


def _end(kind: str, number: int, path: Path) -> tuple[str, str]:
    path.write_bytes(case(kind, number))
    try:
        KINDS[kind].read(path)
    except CleansetError as error:
        return "refused", str(error).replace(f"{path.parent}/", "")
    except OSError as error:
        return ("refused", error.strerror) if error.strerror else ("traceback", traceback.format_exc())
    except BaseException:
        return "traceback", traceback.format_exc()
    return "accepted", ""
