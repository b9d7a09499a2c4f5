// The image on its stage, each of its pixels as a whole number of device pixels, and the outline with a cursor for the
// keyboard. All places are in pixels of the image; the server keeps the corners.
import "../web/pixels.js";

const MAX_ZOOM = 8; // times what fits
const MARGIN = 16;
const SCROLL_PIXELS = 80;
const DIRECTIONS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

let image = ""; // the one that cursor and steps are of
let cursor = null;
let cell = null; // the part of the image that digits have chosen: left, top, width, height
let steps = 0; // of device pixels for each pixel, above what fits
let scroll = [0, 0];
let restored = null; // the element, which every new rendering replaces

const drawing = () => document.querySelector("#outline.drawing");
export const isDrawing = () => drawing() !== null;
const stage = () => document.querySelector(".stage");
const size = () => drawing().viewBox.baseVal;

export function position(event) {
  const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(drawing().getScreenCTM().inverse());
  return [Math.round(point.x), Math.round(point.y)];
}

// Keys of the outline; what to send, or null if nothing has to be. Undefined for a key of somebody else's. `name`: what
// the key is called on any layout.
export function outlineKey(event, name) {
  if (!stage()) return undefined;
  if (name === "+" || name === "=") return magnify(steps + 1);
  if (name === "-") return magnify(steps - 1);
  if (name === "0") return magnify(0);
  const by = DIRECTIONS[name];
  if (!drawing()) {
    if (!by || steps === 0) return undefined;
    stage().scrollBy({ left: by[0] * SCROLL_PIXELS, top: by[1] * SCROLL_PIXELS });
    return null;
  }
  const { width, height } = size();
  cursor ??= [Math.round(width / 2), Math.round(height / 2)];
  if (/^[1-9]$/.test(name)) {
    const digit = Number(name);
    // a ninth of the image, then of that: three digits are within two hundredths of its sides
    const [left, top, wide, high] = cell ?? [0, 0, width, height];
    cell = [left + (((digit - 1) % 3) * wide) / 3, top + (Math.floor((digit - 1) / 3) * high) / 3, wide / 3, high / 3];
    cursor = [Math.round(cell[0] + cell[2] / 2), Math.round(cell[1] + cell[3] / 2)];
    showCursor();
    return null;
  }
  const step = event.shiftKey ? 10 : event.repeat ? 4 : 1;
  if (by) {
    cell = null;
    cursor = [
      Math.max(0, Math.min(width, cursor[0] + by[0] * step)),
      Math.max(0, Math.min(height, cursor[1] + by[1] * step)),
    ];
    showCursor();
    document.querySelector("#cursor")?.scrollIntoView({ block: "nearest", inline: "nearest" });
    return null;
  }
  if (name !== " ") return undefined;
  cell = null;
  return { key: "corner", point: cursor };
}

// --- how large the image is ------------------------------------------------------------------------

const photo = () => stage()?.querySelector(".frame");
const pixels = () => [photo().dataset.width, photo().dataset.height].map(Number);

// Device pixels for each pixel of an image that is wholly in sight: a whole number, unless it is larger than the stage.
function fitting() {
  const area = stage();
  const room = { width: area.clientWidth - 2 * MARGIN, height: area.clientHeight - 2 * MARGIN };
  const [width, height] = pixels();
  const whole = pixelFactor([width, height], 1, room, Infinity);
  return whole || devicePixelRatio * Math.min(room.width / width, room.height / height);
}
const factor = () => (steps === 0 ? fitting() : Math.floor(fitting()) + steps);

// Gives the image its size, and its place in the middle of the stage.
function layOut() {
  if (!photo()) return;
  const area = stage();
  const scale = factor() / devicePixelRatio;
  const [left, top] = [area.clientWidth, area.clientHeight].map((room, axis) => Math.max(MARGIN, (room - scale * pixels()[axis]) / 2));
  photo().style.margin = `${top}px 0 0 ${left}px`;
  showAtPixels(photo(), pixels(), factor());
}
addEventListener("resize", layOut);

function magnify(to) {
  if (!photo()) return null;
  const area = stage();
  const before = [area.scrollLeft + area.clientWidth / 2, area.scrollTop + area.clientHeight / 2];
  const last = factor();
  const most = Math.max(1, Math.floor(MAX_ZOOM * fitting())) - Math.floor(fitting());
  steps = Math.max(0, Math.min(most, to));
  layOut();
  const by = factor() / last;
  area.scrollTo(before[0] * by - area.clientWidth / 2, before[1] * by - area.clientHeight / 2);
  const at = document.querySelector("#cursor");
  at?.scrollIntoView({ block: "center", inline: "center" });
  return null;
}

addEventListener(
  "wheel",
  (event) => {
    if (!event.target.closest(".stage") || event.deltaY === 0) return; // one to the side scrolls
    event.preventDefault();
    magnify(steps + (event.deltaY < 0 ? 1 : -1));
  },
  { passive: false },
);
addEventListener("scroll", ({ target }) => {
  if (target === stage()) scroll = [target.scrollLeft, target.scrollTop];
}, true);

// --- what every new rendering of the page loses ----------------------------------------------------

function showCursor() {
  document.querySelector("#cursor")?.remove();
  if (!drawing() || cursor === null) return;
  const cross = document.createElementNS("http://www.w3.org/2000/svg", "path");
  const arm = 9 / drawing().getScreenCTM().a;
  const [x, y] = cursor;
  cross.id = "cursor";
  const [left, top, wide, high] = cell ?? [];
  const grid = cell ? [0, 1, 2, 3].map((n) => `M${left + (n * wide) / 3} ${top}v${high}M${left} ${top + (n * high) / 3}h${wide}`) : [];
  cross.setAttribute("d", `M${x - arm} ${y}h${2 * arm}M${x} ${y - arm}v${2 * arm}${grid.join("")}`);
  drawing().append(cross);
}

export function restoreOutline() {
  const shown = document.querySelector(".stage img[data-image]")?.dataset.image ?? "";
  if (shown !== image) [image, cursor, cell, steps, scroll] = [shown, null, null, 0, [0, 0]];
  const area = stage();
  if (area && area !== restored) {
    layOut();
    area.scrollTo(...scroll);
  }
  restored = area;
  if (!document.querySelector("#cursor")) showCursor();
}
