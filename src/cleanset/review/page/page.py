"""The two dialogs with a field to type in: finding a class, writing a note.

The field is created each time a dialog opens: NiceGUI would set the text of an existing field after the dialog is
shown, and overwrite what was typed meanwhile. Enter and Escape arrive as keys do, with the text.

The page: NiceGUI's elements around the HTML of `view`, and the messages between browser and tab.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from fastapi import Request
from nicegui import events, ui

from cleanset.dataset.ilsvrc import ClassName, class_indices, search_classes
from cleanset.images.boxes import Box, parse_box
from cleanset.review.page.keys import REASON_KEYS, Screen
from cleanset.review.page.session import Session
from cleanset.review.page.tab import Tab
from cleanset.review.page.view import render
from cleanset.review.store import MAX_NOTE


class Search:
    """Find a class by name or wnid. `leave` gets the class index that is clicked, or None for a click outside.

    `state`: the state of a class in words, by class index.
    """

    _text: ui.input
    _hits: ui.list

    def __init__(
        self,
        names: Sequence[ClassName],
        leave: Callable[[int | None], Awaitable[None]],
        state: Callable[[int], str],
    ) -> None:
        self._names, self._leave, self._state, self._row = names, leave, state, 0
        self._dialog = ui.dialog().props('position=top transition-duration=0 aria-label="Search a class"')
        self._dialog.on("hide", lambda: leave(None))

    def show(self, wanted: bool) -> None:
        """Open or close it."""
        if wanted == self._dialog.value:
            return
        if wanted:
            self._fill()
            self._list_first()
        self._dialog.value = wanted

    def chosen(self, text: str) -> int | None:
        """The class index of the selected row among the hits of `text`; None without a hit."""
        hits = search_classes(self._names, text)
        return hits[min(self._row, len(hits) - 1)].class_index if hits else None

    def _fill(self) -> None:
        self._dialog.clear()
        with self._dialog, ui.card().classes("search"):
            self._text = ui.input(placeholder="name or wnid of a class", on_change=self._list_first)
            self._text.props('autofocus outlined dense aria-label="Name or wnid of a class"').classes("w-full")
            self._hits = ui.list().props("dense").classes("hits")
        self._text.on("keydown.down.prevent", lambda: self._move(1))
        self._text.on("keydown.up.prevent", lambda: self._move(-1))

    def _list_first(self) -> None:
        self._row = 0
        self._list()

    def _found(self) -> list[ClassName]:
        return search_classes(self._names, self._text.value or "")

    def _list(self) -> None:
        self._hits.clear()
        with self._hits:
            for row, name in enumerate(self._found()):
                # bound by a default: the loop has moved on when somebody clicks
                with ui.item(on_click=lambda index=name.class_index: self._leave(index)) as item:
                    with ui.item_section():
                        ui.item_label(name.name + (f", {name.others}" if name.others else ""))
                        ui.item_label(f"{name.wnid} · {name.gloss}").props("caption lines=1")
                    with ui.item_section().props("side"):
                        ui.item_label(self._state(name.class_index)).props("caption")
                if row == self._row:
                    item.props("active")

    def _move(self, by: int) -> None:
        self._row = max(0, min(len(self._found()) - 1, self._row + by))
        self._list()


class Note:
    """Write a note. `leave` gets None for a click outside."""

    def __init__(self, leave: Callable[[str | None], Awaitable[None]]) -> None:
        self._dialog = ui.dialog().props('transition-duration=0 aria-label="Note"')
        self._dialog.on("hide", lambda: leave(None))

    def show(self, wanted: tuple[str, str] | None) -> None:
        """Open it with a title and a text, or close it."""
        if (wanted is not None) == self._dialog.value:
            return
        if wanted is not None:
            self._fill(*wanted)
        self._dialog.value = wanted is not None

    def _fill(self, title: str, text: str) -> None:
        self._dialog.clear()
        with self._dialog, ui.card().classes("note"):
            ui.label(title).classes("title")
            field = ui.textarea(value=text).props('autofocus outlined autogrow aria-label="Note"').classes("w-full")
            field.props(f"maxlength={MAX_NOTE}")
            ui.label(
                f"Enter saves, Shift+Enter begins a line, Esc leaves it. At most {MAX_NOTE:,} characters."
            ).classes("hint")


_NARROW = """
<p id="narrow" role="alert">This window is too narrow to judge images.
Make it at least 640 pixels wide, or zoom out.</p>
"""

REFRESH_SECONDS = 1.0
"""Interval at which a tab checks the files of its class for changes."""

_HEAD = """
<link rel="stylesheet" href="/static/cropper.min.css">
<link rel="stylesheet" href="/static/page.css">
<script src="/static/cropper.min.js"></script>
<script type="module" src="/static/page.js"></script>
"""


class TabElements:
    """The elements in a browser that show one tab, and the keys that come from there."""

    def __init__(self, session: Session, lock: asyncio.Lock, class_index: int | None) -> None:
        self._lock, self._tab = lock, Tab(session)
        self._tab.start(class_index)
        # not sanitized here, because the templates escape everything
        self._parts = {name: ui.html(sanitize=False).classes(name) for name in ("view", "overlay", "panel")}
        ui.html(_NARROW, sanitize=False)
        self._search = Search(list(session.library.names.values()), self._leave_search, session.state_in_words)
        self._note = Note(self._leave_note)
        self._show(render(self._tab))
        ui.on("key", self._press)
        ui.timer(REFRESH_SECONDS, self._refresh)

    async def _press(self, event: events.GenericEventArguments) -> None:
        """Answer a key once, however often it arrives: the browser sends it again until it is answered."""
        sent = event.args if isinstance(event.args, dict) else {}
        key, number, seen = sent.get("key"), sent.get("number"), sent.get("seen")
        if not isinstance(key, str) or not isinstance(number, int) or not isinstance(seen, list):
            return

        def press() -> None:
            if number > self._tab.pressed:
                if self._tab.mode in ("search", "note"):
                    self._leave_dialog(key, str(sent.get("text", "")))
                else:
                    shown = [str(each) for each in seen]
                    self._tab.press(key, shown, _box(sent.get("box")), str(sent.get("card")), _screen(sent))
                self._tab.pressed = number

        await self._do(press)

    def _leave_dialog(self, key: str, text: str) -> None:
        """Accept the text typed in a dialog on Enter, discard it on Escape."""
        if self._tab.mode == "note" and key in ("Enter", "Escape"):
            self._tab.leave_note(text if key == "Enter" else None)
        elif self._tab.mode == "search" and key == "Escape":
            self._tab.leave_search(None)
        elif self._tab.mode == "search" and key == "Enter":
            # by the text that came with the key: the field may have changed since
            chosen = self._search.chosen(text)
            if chosen is not None:
                self._tab.leave_search(chosen)

    async def _leave_search(self, class_index: int | None) -> None:
        await self._do(lambda: self._tab.leave_search(class_index))

    async def _leave_note(self, text: str | None) -> None:
        await self._do(lambda: self._tab.leave_note(text))

    async def _refresh(self) -> None:
        if self._tab.mode in ("class", "end", "zoom") or self._tab.is_proposal_awaited:
            await self._do(self._tab.propose_box)

    async def _do(self, what: Callable[[], None]) -> None:
        """Run one action after another, outside of the event loop: writing waits for the disk, images must not."""

        def done() -> dict[str, str]:
            what()
            return render(self._tab)

        async with self._lock:
            parts = await asyncio.to_thread(done)
            self._show(parts)

    def _show(self, parts: dict[str, str]) -> None:
        for name, html in parts.items():
            self._parts[name].set_content(html)
        self._search.show(self._tab.mode == "search")
        self._note.show(self._tab.note() if self._tab.mode == "note" else None)


def _box(box: object) -> Box | None:
    """A crop box as the browser sends it; None for anything else."""
    try:
        return parse_box(box)
    except ValueError:
        return None


def _screen(sent: Mapping[str, Any]) -> Screen:
    """The screen as the browser describes it; anything else in its place counts as not known."""
    wnid, answered, reason, shown = (sent.get(name) for name in ("wnid", "answered", "reason", "shown"))
    given = sent.get("seconds")
    seconds = given.items() if isinstance(given, dict) else ()
    return Screen(
        wnid if isinstance(wnid, str) else None,
        {str(image_id): float(each) for image_id, each in seconds if isinstance(each, int | float)},
        answered if isinstance(answered, int) else None,
        reason if isinstance(reason, str) and reason in (*REASON_KEYS, *REASON_KEYS.values()) else None,
        float(shown) if isinstance(shown, int | float) else None,
    )


def build(session: Session, lock: asyncio.Lock) -> None:
    """Register the page that each tab opens; `lock` is held while the session is used."""

    @ui.page("/", title=f"cleanset review: {session.reviewer}")
    async def page(request: Request) -> None:
        ui.add_head_html(_HEAD)
        class_index = class_indices().get(request.query_params.get("class", ""))
        async with lock:
            TabElements(session, lock, class_index)
