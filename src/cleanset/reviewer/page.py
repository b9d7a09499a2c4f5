"""The page itself: NiceGUI's elements around the HTML of `view`, and what goes between browser and desk."""

import asyncio
from collections.abc import Callable

from fastapi import Request
from nicegui import events, ui

from cleanset.ilsvrc import class_indices
from cleanset.reviewer.desk import Desk
from cleanset.reviewer.dialogs import Note, Search
from cleanset.reviewer.room import Room
from cleanset.reviewer.view import render

REFRESH = 1.0
"""Seconds. How often a tab looks whether somebody changed a file of its class."""

_HEAD = """
<link rel="stylesheet" href="/static/cropper.min.css">
<link rel="stylesheet" href="/static/reviewer.css">
<script src="/static/cropper.min.js"></script>
<script src="/static/reviewer.js"></script>
"""


class Tab:
    """One tab in a browser: its desk, and the elements that show it."""

    def __init__(self, room: Room, lock: asyncio.Lock, class_index: int | None) -> None:
        self._room, self._lock = room, lock
        self._desk = Desk(room)
        self._desk.start(class_index)
        self._parts = {name: ui.html(sanitize=False).classes(name) for name in ("desk", "overlay", "panel")}
        self._search = Search(list(room.library.names.values()), self._go)
        self._note = Note(self._write_note)
        self._show(render(self._desk))
        ui.on("key", self._key)
        ui.timer(REFRESH, self._refresh)

    async def _key(self, event: events.GenericEventArguments) -> None:
        """A key was pressed. Keys of a class that is no longer shown mean nothing any more."""
        asked = event.args if isinstance(event.args, dict) else {}
        key, wnid, seen, box, card = (asked.get(name) for name in ("key", "wnid", "seen", "box", "card"))
        if not isinstance(key, str) or not isinstance(seen, list):
            return

        def press() -> None:
            if wnid == self._desk.wnid:
                self._desk.press(key, [str(each) for each in seen], _box(box), str(card))

        await self._do(press)

    async def _go(self, class_index: int | None) -> None:
        await self._do(lambda: self._desk.leave_search(class_index))

    async def _write_note(self, text: str | None) -> None:
        await self._do(lambda: self._desk.leave_note(text))

    async def _refresh(self) -> None:
        if self._desk.mode in ("class", "end"):
            await self._do(lambda: None)

    async def _do(self, what: Callable[[], None]) -> None:
        """One after the other, away from the loop that serves the pictures: writing waits for the disk."""

        def done() -> dict[str, str]:
            what()
            return render(self._desk)

        async with self._lock:
            parts = await asyncio.to_thread(done)
            self._show(parts)

    def _show(self, parts: dict[str, str]) -> None:
        for name, html in parts.items():
            self._parts[name].set_content(html)
        self._search.show(self._desk.mode == "search")
        self._note.show(self._desk.note() if self._desk.mode == "note" else None)


def _box(box: object) -> list[int] | None:
    """A crop box as the browser sends it; None for anything else."""
    if isinstance(box, list) and len(box) == 4 and all(type(edge) is int for edge in box):
        return box
    return None


def build(room: Room, lock: asyncio.Lock) -> None:
    """Make the page that each tab opens; `lock` is held while the room is used."""

    @ui.page("/", title=f"cleanset review: {room.reviewer}")
    async def page(request: Request) -> None:
        ui.add_head_html(_HEAD)
        class_index = class_indices().get(request.query_params.get("class", ""))
        async with lock:
            Tab(room, lock, class_index)
