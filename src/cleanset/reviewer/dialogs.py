"""The two dialogs with a field to type in: finding a class, writing a note.

Each opening makes the field anew: a text that is set in one that is there reaches it after the dialog
is shown, over what was typed meanwhile.
"""

from collections.abc import Awaitable, Callable, Sequence

from nicegui import ui

from cleanset.class_names import ClassName, found


class Search:
    """Find a class by name or wnid; `go` is called with its class index, or None if it is left."""

    _typed: ui.input
    _hits: ui.list

    def __init__(self, names: Sequence[ClassName], go: Callable[[int | None], Awaitable[None]]) -> None:
        self._names, self._go, self._place = names, go, 0
        self._dialog = ui.dialog().props("position=top transition-duration=0")
        self._dialog.on("hide", lambda: go(None))

    def show(self, wanted: bool) -> None:
        """Open or close it."""
        if wanted == self._dialog.value:
            return
        if wanted:
            self._fill()
            self._typed_on()
        self._dialog.value = wanted

    def _fill(self) -> None:
        self._dialog.clear()
        with self._dialog, ui.card().classes("search"):
            self._typed = ui.input(placeholder="name or wnid of a class", on_change=self._typed_on)
            self._typed.props("autofocus outlined dense").classes("w-full")
            self._hits = ui.list().props("dense").classes("hits")
        self._typed.on("keydown.enter", self._choose)
        self._typed.on("keydown.down.prevent", lambda: self._move(1))
        self._typed.on("keydown.up.prevent", lambda: self._move(-1))

    def _typed_on(self) -> None:
        self._place = 0
        self._list()

    def _found(self) -> list[ClassName]:
        return found(self._names, self._typed.value or "")

    def _list(self) -> None:
        self._hits.clear()
        with self._hits:
            for place, name in enumerate(self._found()):
                with ui.item(on_click=lambda index=name.class_index: self._go(index)) as item, ui.item_section():
                    ui.item_label(name.name + (f", {name.others}" if name.others else ""))
                    ui.item_label(f"{name.wnid} · {name.gloss}").props("caption lines=1")
                if place == self._place:
                    item.props("active")

    def _move(self, by: int) -> None:
        self._place = max(0, min(len(self._found()) - 1, self._place + by))
        self._list()

    async def _choose(self) -> None:
        hits = self._found()
        if hits:
            await self._go(hits[self._place].class_index)


class Note:
    """Write a note; `done` is called with the text, or None if it is left."""

    _text: ui.textarea

    def __init__(self, done: Callable[[str | None], Awaitable[None]]) -> None:
        self._done = done
        self._dialog = ui.dialog().props("transition-duration=0")
        self._dialog.on("hide", lambda: done(None))

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
            self._text = ui.textarea(value=text).props("autofocus outlined autogrow").classes("w-full")
            ui.label("Enter saves, Shift+Enter begins a line, Esc leaves it.").classes("hint")
        self._text.on("keydown.enter.exact.prevent", self._save)

    async def _save(self) -> None:
        await self._done(self._text.value or "")
