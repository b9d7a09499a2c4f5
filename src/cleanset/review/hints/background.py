"""Hints computed in the background, for the images on the screen and the next ones."""

import os
import signal
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context, parent_process
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from PIL.Image import Image

from cleanset.classes import ClassTable
from cleanset.errors import CleansetError
from cleanset.images.codec import Read, decode
from cleanset.plumbing.files import sha256
from cleanset.plumbing.kept_files import NOTHING_KEPT, KeptFiles
from cleanset.plumbing.progress import print_notice
from cleanset.review.hints.text import KEPT_LINES, TextLine, can_read_text, lines_of_text

if TYPE_CHECKING:
    from cleanset.dataset.near_duplicates import NearDuplicates
    from cleanset.images.fingerprints import Fingerprint
    from cleanset.review.hints.crop_proposal import CropProposal
    from cleanset.review.hints.hints import Hint, ImageMeasures, KeptMeasures, Measuring
    from cleanset.review.hints.kinds import HintKind


_Result = TypeVar("_Result")

NO_TEXT = "CLEANSET_NO_TEXT"
"""Environment variable: if it is set, no text is read, which spares a slow machine 0.65 s an image."""
# images whose measures are kept, the last ones shown, some 0.1 MB each
MAX_MEASURED = 300
MAX_ELSEWHERE = 10
"""Near-duplicates in other classes that are listed with an image."""
MAX_COMPARED = 200
"""Images of a class that are measured and compared at a time, to keep the kinds of their hints."""


@dataclass(frozen=True, slots=True)
class KeptHints:
    """What is kept of the hints at an image that is measured in advance: little, for there may be many thousands."""

    kinds: "frozenset[HintKind]"
    """The kinds of its hints, without text."""

    size: tuple[int, int]
    """Width and height in stored pixels."""


class BackgroundHints:
    """Hints by image id, for the images measured so far. They help people to look, and decide nothing.

    Images are measured in another process, so that the page never waits, and their text is read there, which takes
    twenty times as long, where the extra `text` is installed and NO_TEXT is not set. Lines of text are small, and kept
    for all images, and on disk with a folder; so are the kinds of other hints.
    """

    def __init__(
        self,
        read: Read,
        classes: ClassTable,
        class_names: Mapping[str, str] = MappingProxyType({}),
        *,
        kept_text: KeptFiles = NOTHING_KEPT,
        kept_measures: KeptFiles = NOTHING_KEPT,
        hints: "Measuring | None" = None,
    ) -> None:
        """`class_names`: by image id, of the images that are compared with those of other classes, too.

        `hints`: those from pixels that are asked for; None for those of this package.
        """
        self._read = read
        self._classes = classes
        self._kept_text = kept_text
        self._kept_measures = kept_measures
        self._hints = hints
        self._told: set[str] = set()
        self._class_names = class_names
        self._compared: NearDuplicates[str] | None = None
        self._elsewhere: dict[str, list[str]] = {}
        self._measured: OrderedDict[str, tuple[ImageMeasures, Fingerprint]] = OrderedDict()
        self._lines: dict[str, tuple[TextLine, ...]] = {}
        self._failed: set[str] = set()
        self._measuring = _Queue(self._measure)
        self._reading = _Queue(self._read_text) if can_read_text() and not os.environ.get(NO_TEXT) else None
        self._process: Executor | None = None
        self._starting = threading.Lock()
        self._comparing = _Queue(self._compare)
        self._comparing.put(self._class_names)
        self._kept: dict[str, KeptHints] = {}
        self._in_advance: dict[str, Sequence[str]] = {}
        self._advancing = _Queue(self._keep_kinds)
        self._is_closed = False

    @property
    def reads_text(self) -> bool:
        """Whether text is looked for in images."""
        return self._reading is not None

    def measure_all(self, classes: Iterable[Sequence[str]]) -> None:
        """Measure the images of all classes in the background, after those requested, and keep the kinds of hints."""
        for image_ids in classes:
            for start in range(0, len(image_ids), MAX_COMPARED):
                some = image_ids[start : start + MAX_COMPARED]
                self._in_advance[some[0]] = some
        self._advancing.put(self._in_advance)
        if self._reading is not None:
            self._reading.put_behind(each for some in self._in_advance.values() for each in some)

    def kinds(self, image_ids: Iterable[str]) -> "dict[str, set[HintKind]]":
        """The kinds of hints by image id, at the images that are measured."""
        image_ids = list(image_ids)
        found = {image_id: {hint.kind for hint in hints} for image_id, hints in self.of(image_ids).items()}
        for image_id in image_ids:
            kept = self._kept.get(image_id)
            if kept is not None:  # also of one that is measured now: near-duplicates of it may not be
                found.setdefault(image_id, set()).update(self._with_text(kept, self._lines.get(image_id, ())))
                if self._elsewhere.get(image_id):
                    found[image_id].add("duplicate")
        return found

    def unmeasured(self, image_ids: Iterable[str], kind: str) -> set[str]:
        """The images not yet searched for a hint of a kind; text is read much later."""
        needs_text = kind == "text" and self.reads_text
        return {
            each
            for each in image_ids
            if not (each in self._measured or each in self._kept or each in self._failed)
            or (needs_text and each not in self._lines)
        }

    def _with_text(self, kept: KeptHints, lines: Sequence[TextLine]) -> "set[HintKind]":
        from cleanset.review.hints.kinds import AddedText

        text = AddedText(tuple(lines), kept.size)
        has_text = kept.kinds.isdisjoint(text.hidden_by) and any(text.signs(self._classes))
        return {*kept.kinds, *([text.kind] if has_text else [])}

    def _keep_kinds(self, first: str) -> None:
        """Measure some images of a class, starting with `first`, and keep the kinds of hints at them."""
        from cleanset.review.hints.duplicates import hints_between_images

        measured = {}
        for image_id in self._in_advance[first]:
            if self._is_closed:
                return
            found = self._kept_measures_of(image_id)
            if found is None:
                self._failed.add(image_id)
            else:
                measured[image_id] = found
        others = hints_between_images({image_id: each.fingerprint for image_id, each in measured.items()})
        for image_id, each in measured.items():
            self._kept[image_id] = KeptHints(each.kinds | {hint.kind for hint in others[image_id]}, each.size)

    def _kept_measures_of(self, image_id: str) -> "KeptMeasures | None":
        """What is kept of an image, from the disk or measured now; None for one that cannot be read."""
        from cleanset.review.hints.hints import KEPT_MEASURES, KeptMeasures, hints_of_image

        data = self._bytes_of(image_id)
        if data is None:
            return None
        digest = sha256(data)
        kept = self._kept_measures.read_value(digest, KEPT_MEASURES)
        if kept is not None:
            return kept
        found = self._measured.get(image_id) or self._measures_in(data)
        if found is None:
            return None
        measures, fingerprint = found
        kinds = {hint.kind for hint in hints_of_image(measures, self._classes)}
        made = KeptMeasures.of(kinds, measures.size, fingerprint)
        self._kept_measures.keep_value(digest, KEPT_MEASURES, made)
        return made

    def request(self, image_ids: Iterable[str]) -> None:
        """Measure these images, in this order, before those requested earlier; known ones are not measured again."""
        image_ids = list(image_ids)
        for image_id in image_ids:
            with suppress(KeyError):  # unknown, or dropped by the thread that measures
                self._measured.move_to_end(image_id)
        self._measuring.put(image_id for image_id in image_ids if image_id not in self._measured)
        if self._reading is not None:
            self._reading.put(image_id for image_id in image_ids if image_id not in self._lines)

    def of(self, image_ids: Iterable[str]) -> "Mapping[str, list[Hint]]":
        """The hints on each of these images, and between them."""
        found = {image_id: self._measured.get(image_id) for image_id in image_ids}
        measured = {image_id: each for image_id, each in found.items() if each is not None}
        if not measured:
            return {}
        from cleanset.review.hints.duplicates import hints_between_images
        from cleanset.review.hints.hints import Hint, hints_of_image

        others = hints_between_images({image_id: fingerprint for image_id, (_, fingerprint) in measured.items()})
        return {
            image_id: [
                *hints_of_image(measures, self._classes, self._lines.get(image_id, ())),
                *others[image_id],
                *(
                    Hint("duplicate", f"nearly the same as {other} of class {self._class_names[other]}", (other,))
                    for other in sorted(self._elsewhere.get(image_id, ()))
                ),
            ]
            for image_id, (measures, _) in measured.items()
        }

    def complete(self, image_ids: Iterable[str]) -> set[str]:
        """The images that will get no further hint: empty while any of them is still to be measured."""
        image_ids = list(image_ids)
        if not all(each in self._measured or each in self._failed for each in image_ids):
            return set()
        return set(image_ids) if self._reading is None else self._lines.keys() & set(image_ids)

    def crop_proposal(self, image_id: str, min_side: int) -> "CropProposal | None":
        """A box to crop this image to; None without a proposal, or before it is known."""
        measured = self._measured.get(image_id)
        if measured is None or self.is_measuring(image_id):
            return None
        from cleanset.review.hints.crop_proposal import crop_proposal

        return crop_proposal(measured[0], self._lines.get(image_id, ()), min_side)

    def is_measuring(self, image_id: str) -> bool:
        """Whether this image was requested, and not all of its hints are known yet."""
        return image_id in self._measuring or (self._reading is not None and image_id in self._reading)

    def close(self) -> None:
        """Stop measuring, and wait for what is being measured."""
        self._is_closed = True
        self._measuring.close()
        self._advancing.close()
        self._comparing.close()
        if self._reading is not None:
            self._reading.close()
        with self._starting:
            process = self._process
        if process is not None:
            # waits: at the interpreter's end, which would wait too, the pool may write to a pipe that it is closing
            process.shutdown(cancel_futures=True)

    def _measures_in(self, data: bytes) -> "tuple[ImageMeasures, Fingerprint] | None":
        from cleanset.review.hints.hints import measure

        return self._in_process(measure if self._hints is None else partial(measure, hints=self._hints), data)

    def _measure(self, image_id: str) -> None:
        data = self._bytes_of(image_id)
        measured = None if data is None else self._measures_in(data)
        if measured is None:
            self._failed.add(image_id)
        else:
            self._measured[image_id] = measured
        while len(self._measured) > MAX_MEASURED:
            # the first is the one that was asked for longest ago
            self._measured.popitem(last=False)

    def _compare(self, image_id: str) -> None:
        from cleanset.dataset.near_duplicates import NearDuplicates
        from cleanset.images.fingerprints import packed_hashes

        data = self._bytes_of(image_id)
        hashes = None if data is None else self._in_process(packed_hashes, data)
        if hashes is None:
            return
        self._compared = self._compared or NearDuplicates(len(self._class_names))
        for other in self._compared.add(image_id, hashes):
            for one, another in ((image_id, other), (other, image_id)):
                found = self._elsewhere.setdefault(one, [])
                if self._class_names[one] != self._class_names[another] and len(found) < MAX_ELSEWHERE:
                    found.append(another)

    def _read_text(self, image_id: str) -> None:
        data = self._bytes_of(image_id)
        # an image that fails is not tried again
        self._lines[image_id] = () if data is None else self._lines_in(data)

    def _lines_in(self, data: bytes) -> tuple[TextLine, ...]:
        digest = sha256(data)
        lines = self._kept_text.read_value(digest, KEPT_LINES)
        if lines is None:
            lines = self._in_process(lines_of_text, data)
            if lines is not None:
                self._kept_text.keep_value(digest, KEPT_LINES, lines)
        return lines or ()

    def _bytes_of(self, image_id: str) -> bytes | None:
        # an image that cannot be read is reported where it is shown
        with suppress(CleansetError, OSError, ValueError):
            return self._read(image_id)
        return None

    def _in_process(self, function: Callable[[Image], _Result], data: bytes) -> _Result | None:
        """Call a function with the image in these bytes in the other process; None if it fails."""
        with self._starting:
            process = self._process = self._process or _start_process()
        with suppress(OSError, ValueError):
            try:
                return process.submit(_decode_and_call, function, data).result()
            except CleansetError as error:  # of a hint of yours, whose code raises
                if (problem := str(error)) not in self._told:
                    self._told.add(problem)
                    print_notice(problem)
            except BrokenProcessPool:  # killed from outside: the next image gets a new process
                with self._starting:
                    if self._process is process:
                        self._process = None
        return None


class _Queue:
    """Calls a function with image ids in a thread of its own, in the order of the last request."""

    def __init__(self, function: Callable[[str], None]) -> None:
        self._function = function
        self._wanted: dict[str, None] = {}
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, "hints")

    def put(self, image_ids: Iterable[str]) -> None:
        """Add these in front; each is done once, however often it is added."""
        first = dict.fromkeys(image_ids)
        with self._lock:
            is_idle = not self._wanted
            self._wanted = first | {each: None for each in self._wanted if each not in first}
        if is_idle and first:
            self._thread.submit(self._do_next)

    def put_behind(self, image_ids: Iterable[str]) -> None:
        """Add these after all others."""
        last = dict.fromkeys(image_ids)
        with self._lock:
            is_idle = not self._wanted
            self._wanted |= last
        if is_idle and last:
            self._thread.submit(self._do_next)

    def __contains__(self, image_id: str) -> bool:
        """Whether an image waits, or is being worked on."""
        with self._lock:
            return image_id in self._wanted

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _do_next(self) -> None:
        with self._lock:
            image_id = next(iter(self._wanted))
        try:
            self._function(image_id)
        finally:
            with self._lock:  # only now, so that it is not added again meanwhile
                del self._wanted[image_id]
                is_idle = not self._wanted
            if not is_idle:
                self._thread.submit(self._do_next)


def _start_process() -> Executor:
    """A process that ignores Ctrl+C, which a terminal sends to it, too, maybe while it is still importing."""
    # spawn: a fork of a process with threads may inherit a lock that nobody releases
    executor = ProcessPoolExecutor(1, get_context("spawn"), initializer=_begin_in_process)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # a new process inherits it
    # the pool starts its process at the first task, here while the signal is blocked
    executor.submit(os.getpid)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return executor


def _decode_and_call(function: Callable[[Image], _Result], data: bytes) -> _Result:
    return function(decode(data))


def _begin_in_process() -> None:
    """Give the page priority, and end with the parent process, even if that is killed."""
    os.nice(10)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    # sys.exit would end this thread only
    os._exit(0)
