// Keys in their order. Each is handled when the one before is answered, so that it means what the page
// shows then; none is dropped. A verdict goes with the images that were shown when its key was pressed:
// the server takes none on others.
import { emitKey, isUnanswered, view } from "/web/view.js";
import { scrollText, tileBeside } from "./overlays.js";
import { box, isReady, moveBox, pan, takeBox, zoomByKey } from "./viewer.js";

const REPEATED = new Set(["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "n", "p", "PageUp", "PageDown"]);
const LEFT_ALONE = new Set(["Shift", "Control", "Tab", "F5", "F11", "F12"]);

const waiting = [];

const mode = () => view()?.dataset.mode ?? "";
const isTyping = () => mode() === "search" || mode() === "note";
const field = () => document.querySelector(".q-dialog input, .q-dialog textarea");
// Images that were shown since the class was opened. Every answer and every hint draws the view anew; the
// browser may take a moment for an image that was there before.
const shown = { wnid: "", images: new Set() };
const isThere = (image) => image.complete && image.naturalWidth > 0;
const seen = () =>
  [...document.querySelectorAll("#view img[data-image]")]
    .filter((image) => isThere(image) || (shown.wnid === view().dataset.wnid && shown.images.has(image.dataset.image)))
    .map((image) => image.dataset.image)
    .concat(box() ? ["box"] : []);

export const isBusy = () => isUnanswered() || waiting.length > 0;

// Queue a key, or what a click means. `more`: the card that it is about.
export function press(name, more = {}, modifiers = {}) {
  waiting.push({ name, more, seen: seen(), shift: false, ctrl: false, repeat: false, ...modifiers });
  work();
}

// Go on with the next key, if the last is answered.
export function work() {
  while (waiting.length > 0 && !isUnanswered() && (isTyping() ? field() : isReady())) handle(waiting.shift());
}

function handle(key) {
  if (isTyping()) typeInto(field(), key);
  else if (mode() === "crop" && key.name.startsWith("Arrow")) moveBox(key);
  else if (mode() === "crop" && key.name === "j") takeBox();
  else if (mode() === "guidelines" && scrollText(key.name)) return;
  else if (mode() === "back" && key.name.startsWith("Arrow")) send(key, { key: "focus", card: tileBeside(key.name) });
  else if (["zoom", "crop"].includes(mode()) && zoomByKey(key, mode())) return;
  else if (!key.ctrl) send(key);
}

function send(key, more = {}) {
  emitKey({ key: key.name, seen: key.seen, box: box(), ...key.more, ...more });
}

// What was typed before the field was there.
function typeInto(element, key) {
  if (key.name === "Escape" || (key.name === "Enter" && !key.shift)) {
    send(key, { text: element.value });
    return;
  }
  element.focus();
  const text = key.name === "Enter" ? "\n" : [...key.name].length === 1 && !key.ctrl ? key.name : "";
  if (text) element.setRangeText(text, element.selectionStart, element.selectionEnd, "end");
  else if (key.name === "Backspace" && element.selectionStart > 0) {
    element.setRangeText("", element.selectionStart - 1, element.selectionEnd, "end");
  } else {
    element.dispatchEvent(new KeyboardEvent("keydown", { key: key.name, bubbles: true }));
    return;
  }
  element.dispatchEvent(new Event("input", { bubbles: true }));
}

document.addEventListener( // a load never reaches the window
  "load",
  ({ target }) => {
    if (!(target instanceof HTMLImageElement) || !target.matches("#view img[data-image]")) return;
    if (shown.wnid !== view().dataset.wnid) {
      shown.wnid = view().dataset.wnid;
      shown.images.clear();
    }
    shown.images.add(target.dataset.image);
  },
  true,
);
addEventListener(
  "keydown",
  (event) => {
    if (!event.isTrusted || !view() || event.metaKey || event.altKey || event.isComposing) return;
    if (LEFT_ALONE.has(event.key)) return;
    const pressesButton = event.key === "Enter" || event.key === " ";
    if (pressesButton && event.target.closest("button, .q-item")) return; // the browser makes a click of it
    if (isTyping() && !isBusy() && event.target.closest(".q-dialog")) {
      const leaves = event.key === "Escape" || (event.key === "Enter" && !event.shiftKey);
      if (!leaves) return; // the browser types it
    } else if (event.ctrlKey && !(mode() === "crop" && event.key.startsWith("Arrow"))) return;
    event.preventDefault();
    if (isTyping()) event.stopImmediatePropagation(); // the dialog would close by itself
    if (mode() === "crop" && event.key === " ") {
      pan(true);
      return;
    }
    // a key held down steps as fast as it is answered, and gives one verdict
    if (event.repeat && (isBusy() || !REPEATED.has(event.key))) return;
    press(event.key, {}, { shift: event.shiftKey, ctrl: event.ctrlKey, repeat: event.repeat });
  },
  true,
);
addEventListener("keyup", (event) => {
  if (event.key === " ") pan(false);
});
