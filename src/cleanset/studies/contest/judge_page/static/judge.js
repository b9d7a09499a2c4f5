// The judge page in the browser. Keys and clicks go to the server one at a time, each when the one before is
// answered; what is shown is the server's. A click on the image is a corner of the outline, in pixels of the image.
import "../web/seen.js";
import { isTaken, meaningOf } from "../web/keyboard.js";
import { announce, emitKey, handleKeys, keepFocusAtClicks, loadAhead, queueKey, sight, view, whenDrawn } from "../web/view.js";
import { isDrawing, outlineKey, position, restoreOutline } from "./outline.js";

const NAMED = new Set(["Enter", "Escape", "Backspace"]);
const SIGNS = new Set(["?", "+", "=", "-", " "]); // what they mean comes before the digit at their place

const ZOOM = "The page is zoomed in, so the image is not shown exactly. Please undo the zoom with two fingers; + and the wheel magnify the image.";

// `button`: the one that was clicked.
function press(key, more = {}, button = null) {
  if (isZoomed()) return;
  queueKey({ key, ...sight([], button), ...more });
  work();
}

// What a key is called: on some layouts a sign is where others have the digit, which an outline takes.
function nameOf(event) {
  const { name, digit } = meaningOf(event);
  const isOwn = event.shiftKey || /^[a-z]$/.test(name) || (SIGNS.has(name) && !isDrawing());
  return digit === null || isOwn ? name : digit;
}

const work = () => handleKeys(emitKey);

addEventListener(
  "keydown",
  (event) => {
    if (!event.isTrusted || !view() || event.metaKey || event.altKey || event.ctrlKey || event.isComposing) return;
    const name = nameOf(event);
    const sent = event.target.closest("button") && name === " " ? undefined : outlineKey(event, name);
    if (sent !== undefined) {
      event.preventDefault();
      if (sent && !event.repeat) press(sent.key, sent);
      return;
    }
    if (name === " " || !isTaken(event, NAMED)) return; // Space scrolls
    if (name === "Enter" && event.target.closest("button")) return; // the browser makes a click of it
    event.preventDefault();
    if (!event.repeat) press(name);
  },
  true,
);

// --- the outline ---------------------------------------------------------------------------------

addEventListener("click", (event) => {
  const button = event.target.closest("button[data-key]");
  if (button) press(button.dataset.key, {}, button);
  else if (event.target.closest("#outline.drawing")) press("corner", { point: position(event) });
});
keepFocusAtClicks("#outline");
// the edge from the last corner to the mouse
addEventListener("mousemove", (event) => {
  const edge = document.querySelector("#next-edge");
  if (!edge) return;
  const over = event.target.closest("#outline.drawing");
  edge.style.display = over ? "" : "none";
  if (!over) return;
  const [x, y] = position(event);
  edge.setAttribute("x2", x);
  edge.setAttribute("y2", y);
});

// --- what the server shows -----------------------------------------------------------------------

let focused = null; // what has the keyboard's focus, which every new rendering would lose: a selector
addEventListener("focusin", ({ target }) => {
  const key = target.closest("button[data-key]")?.dataset.key;
  focused = key ? `button[data-key="${CSS.escape(key)}"]` : target.matches(".stage") ? ".stage" : "h1";
});

const words = (selector) => document.querySelector(selector)?.textContent.trim().replace(/\s+/g, " ") ?? "";

let mode = "";
let told = { done: Infinity };
whenDrawn(() => {
  askToUndoZoom(view().dataset.mode === "image" ? ZOOM : null); // words may be enlarged
  restoreOutline();
  if (view().dataset.mode !== mode) {
    mode = view().dataset.mode;
    scrollTo(0, 0);
  }
  if (document.activeElement === document.body && focused !== null) {
    const heading = document.querySelector(".asked h1, .words h1");
    heading.tabIndex = -1;
    (document.querySelector(focused) ?? heading).focus({ preventScroll: true });
  }
  const { pressed, done } = view().dataset;
  if (pressed !== told.pressed) {
    announce([Number(done) > told.done ? "Saved." : "", ...[".notice", ".progress", ".asked h1, .words h1"].map(words)].join(" "));
    told = { pressed, done: Number(done) };
  }
  loadAhead(view().dataset.ahead);
  work();
});
