// Looking closely at an image, and drawing a crop on it. The box lives here, in pixels of the image;
// Cropper.js only shows it and is dragged: its own box is on the screen, and would change with the zoom.

import { keepBox, keptBox } from "./drafts.js";

const PREVIEW_MILLISECONDS = 120;
const PAN_PIXELS = 60;
const ZOOM_STEP = 0.2;
const OPTIONS = { autoCrop: false, background: false, checkOrientation: false, toggleDragModeOnDblclick: false };

let image = null; // the element
let cropper = null;
let edges = null; // of the box: left, top, right, bottom; null if none is drawn
let drag = null; // the action, the box and what was shown of it when the mouse went down
let kept = null; // the zoom that the next image is shown with: ratio, and the middle as shares of the image

let keys = null; // what presses a key, and what continues with those that wait

// Say who handles keys, before the first image is shown. Not imported: the keys import this module.
export const sendKeysTo = (handlers) => (keys = handlers);

// Show another image, or none.
export function showViewer(next) {
  if (next === image) {
    takeProposal();
    showProposal();
    return;
  }
  if (cropper !== null && image.dataset.ready && image.dataset.look === "zoom") rememberZoom();
  if (next?.dataset.look !== "zoom") kept = null;
  cropper?.destroy();
  [image, cropper, edges, drag] = [next, null, null, null];
  if (next === null) return;
  next.addEventListener("error", () => done(next));
  (next.dataset.look === "crop" ? startCropping : startZooming)(next);
}

// Whether keys can be answered: the image is there, or never will be.
export const isReady = () => image === null || "ready" in image.dataset;

function done(element) {
  element.dataset.ready = "1";
  keys.work();
}

// --- the crop box -------------------------------------------------------------------------------

export const box = () => (image?.dataset.look === "crop" && edges ? [...edges] : null);

// The box that the server proposes.
function proposal() {
  const proposed = document.querySelector("#panel")?.dataset.proposal;
  return proposed ? proposed.split(",").map(Number) : null;
}

// Draw it, once, unless a box is drawn or being drawn: it may come while somebody draws.
function takeProposal() {
  if (!cropper?.ready || image.dataset.look !== "crop" || image.dataset.proposed || edges || drag || !proposal()) return;
  image.dataset.proposed = "1";
  setBox(proposal());
}

function startCropping(element) {
  cropper = new Cropper(element, {
    ...OPTIONS,
    viewMode: 1,
    dragMode: "crop",
    rotatable: false,
    scalable: false,
    guides: false,
    center: false,
    minCropBoxWidth: 2,
    minCropBoxHeight: 2,
    ready() {
      setBox(keptBox() ?? (element.dataset.box ? element.dataset.box.split(",").map(Number) : null));
      takeProposal();
      done(element);
    },
    cropstart({ detail: { action, originalEvent } }) {
      const start = action === "crop" ? place(originalEvent) : null; // until the box is begun there
      drag = { action, edges, from: cropper.cropped ? drawn() : null, start, isDrawn: false };
    },
    crop() {
      if (!drag) return;
      drag.isDrawn = true;
      follow();
    },
    cropmove: ({ detail: { originalEvent } }) => queueMicrotask(() => (beginBox(originalEvent), showBox())),
    cropend() {
      drag = null;
      showBox();
    },
    zoom: () => queueMicrotask(showBox),
  });
}

// Where the mouse is, in pixels of the screen from the corner of Cropper.js.
function place({ clientX, clientY }) {
  const { left, top } = document.querySelector("#overlay .cropper-container").getBoundingClientRect();
  return [clientX - left, clientY - top];
}

// Let a new box reach from where the mouse went down to where it is: Cropper.js begins it, as small as can be, with the
// first move along both axes, and loses what came before.
function beginBox(event) {
  if (!drag?.start || !drag.isDrawn) return;
  const [from, to] = [drag.start, place(event)];
  drag.start = null;
  const canvas = cropper.getCanvasData();
  const [lows, highs] = [[canvas.left, canvas.top], [canvas.left + canvas.width, canvas.top + canvas.height]];
  const [near, far] = [Math.min, Math.max].map((choose) =>
    [0, 1].map((axis) => Math.min(highs[axis], Math.max(lows[axis], choose(from[axis], to[axis])))),
  );
  cropper.setCropBoxData({ left: near[0], top: near[1], width: far[0] - near[0], height: far[1] - near[1] });
}

// The box on the screen, in pixels of the image.
function drawn() {
  const { x, y, width, height } = cropper.getData();
  return [x, y, x + width, y + height];
}

function sizes() {
  const { naturalWidth, naturalHeight } = cropper.getImageData();
  return [naturalWidth, naturalHeight, naturalWidth, naturalHeight];
}

// Take over what the mouse changed; an edge that it left alone stays unchanged, to the pixel.
function follow() {
  const { action, edges: before, from } = drag;
  if (action === "move" || action === "zoom" || !cropper.cropped) return;
  const now = drawn();
  if (action === "all" && before && from) {
    edges = shifted(shifted(before, 0, now[0] - from[0]), 1, now[1] - from[1]);
  } else {
    edges = now.map((edge, place) => {
      const isMoved = action === "crop" || !before || Math.abs(edge - from[place]) > 0.001;
      return isMoved ? Math.min(sizes()[place], Math.max(0, Math.round(edge))) : before[place];
    });
    for (const axis of [0, 1]) {
      if (edges[axis + 2] > edges[axis]) continue;
      edges[axis] = Math.min(edges[axis], sizes()[axis] - 1);
      edges[axis + 2] = edges[axis] + 1;
    }
  }
  boxChanged();
}

// A box moved along an axis, as far as the image reaches.
function shifted(box, axis, by) {
  const step = Math.max(-box[axis], Math.min(sizes()[axis] - box[axis + 2], Math.round(by)));
  return box.map((edge, place) => (place % 2 === axis ? edge + step : edge));
}

function setBox(next) {
  edges = next;
  showBox();
  boxChanged();
}

// Take a box that was drawn before, of those to choose from: the one given, or the one after the box drawn now.
export function takeBox(choice) {
  const choices = [...document.querySelectorAll("#overlay [data-choice]")].map((each) => each.dataset.choice);
  if (cropper === null || choices.length === 0) return false;
  const next = choice ?? choices[(choices.indexOf((edges ?? []).join(",")) + 1) % choices.length];
  setBox(next.split(",").map(Number));
  return true;
}

// Draw the box where the image is now; the part of it that can be seen.
function showBox() {
  if (cropper === null || image.dataset.look !== "crop" || (drag && drag.action !== "move" && drag.action !== "zoom")) return;
  const canvas = cropper.getCanvasData();
  const container = cropper.getContainerData();
  const scale = canvas.width / canvas.naturalWidth;
  const [left, top, right, bottom] = (edges ?? [0, 0, 0, 0]).map((edge, place) =>
    place % 2 === 0
      ? Math.min(container.width, Math.max(0, canvas.left + edge * scale))
      : Math.min(container.height, Math.max(0, canvas.top + edge * scale)),
  );
  if (right - left < 1 || bottom - top < 1) cropper.clear();
  else {
    if (!cropper.cropped) cropper.crop();
    cropper.setCropBoxData({ left, top, width: right - left, height: bottom - top });
  }
}

addEventListener("resize", () => setTimeout(showBox, 100));

// Move the box by an arrow key, or its far (right or bottom) or near (left or top) edge.
export function moveBox({ name, repeat }, edge) {
  if (cropper === null) return;
  const axis = name === "ArrowLeft" || name === "ArrowRight" ? 0 : 1;
  const step = (name === "ArrowLeft" || name === "ArrowUp" ? -1 : 1) * (repeat ? 5 : 1);
  const [low, high] = [axis, axis + 2];
  let next = [...(edges ?? [0, 0, ...sizes().slice(2)])];
  if (edge === "far") next[high] = Math.min(sizes()[high], Math.max(next[low] + 1, next[high] + step));
  else if (edge === "near") next[low] = Math.max(0, Math.min(next[high] - 1, next[low] + step));
  else next = shifted(next, axis, step);
  setBox(next);
}

const keptPercent = () => Math.round((100 * (edges[2] - edges[0]) * (edges[3] - edges[1])) / (sizes()[0] * sizes()[1]));

// The page says what was proposed only while that is what is drawn; `p` brings it back.
function showProposal() {
  const shown = document.querySelector("#panel .proposal [data-without]");
  if (shown) shown.hidden = (edges ?? []).join(",") !== document.querySelector("#panel").dataset.proposal;
}

let later = 0;
function boxChanged() {
  keepBox(edges);
  showProposal();
  const size = document.querySelector("#crop-size");
  if (size) {
    const [width, height] = sizes();
    size.dataset.box = edges ? edges.join(",") : "";
    size.textContent = edges
      ? `${edges[2] - edges[0]} × ${edges[3] - edges[1]} of ${width} × ${height} pixels; ${keptPercent()} % kept`
      : `no box yet; the image has ${width} × ${height} pixels`;
  }
  clearTimeout(later);
  later = setTimeout(() => {
    const shown = edges ? `?box=${edges.join(",")}` : "";
    for (const preview of document.querySelectorAll("img[data-preview]")) preview.src = preview.dataset.preview + shown;
    const stated = document.querySelector("#panel [aria-checked=true]");
    if (stated && stated.dataset.box !== (edges ?? []).join(",")) keys.press("box");
  }, PREVIEW_MILLISECONDS);
}

// Let the mouse move the image instead of the box.
export function pan(isPanning) {
  if (cropper === null || image.dataset.look !== "crop") return;
  cropper.setDragMode(isPanning ? "move" : "crop");
  document.querySelector("#overlay")?.classList.toggle("panning", isPanning);
}

// --- looking closely ----------------------------------------------------------------------------

function startZooming(element) {
  cropper = new Cropper(element, {
    ...OPTIONS,
    viewMode: 0,
    dragMode: "move",
    zoom: ({ detail }) => showRatio(detail.ratio),
    ready() {
      const { width, naturalWidth } = cropper.getCanvasData();
      showRatio(width / naturalWidth);
      element.dataset.whole = width / naturalWidth;
      if (kept) restoreZoom();
      done(element);
    },
  });
}

function showRatio(ratio) {
  const shown = document.querySelector("#zoom-ratio");
  if (shown) shown.textContent = `${Math.round(ratio * 100)} %`;
}

// Show the ratio again where its place was drawn again, as with every hint that arrives.
export function restoreRatio() {
  const shown = document.querySelector("#zoom-ratio");
  if (!shown || shown.textContent || !isReady() || image?.dataset.look !== "zoom") return;
  const { width, naturalWidth } = cropper.getCanvasData();
  showRatio(width / naturalWidth);
}

function rememberZoom() {
  const canvas = cropper.getCanvasData();
  const container = cropper.getContainerData();
  const ratio = canvas.width / canvas.naturalWidth;
  const middle = [(container.width / 2 - canvas.left) / canvas.width, (container.height / 2 - canvas.top) / canvas.height];
  kept = Math.abs(ratio - Number(image.dataset.whole)) < 0.001 ? null : { ratio, middle };
}

function restoreZoom() {
  const container = cropper.getContainerData();
  cropper.zoomTo(kept.ratio);
  const { width, height } = cropper.getCanvasData();
  cropper.moveTo(container.width / 2 - kept.middle[0] * width, container.height / 2 - kept.middle[1] * height);
}

// Each of these says whether there was an image to do it with.

// Zoom nearer (1) or farther (-1).
export function zoomBy(direction) {
  cropper?.zoom(ZOOM_STEP * direction);
  return cropper !== null;
}

// Zoom to a number of pixels on the screen for one of the image; 0: the whole image.
export function zoomTo(ratio) {
  if (cropper === null) return false;
  if (ratio === 0) resetZoom();
  else cropper.zoomTo(ratio);
  return true;
}

// Move the image that is looked at closely, by an arrow key.
export function moveImage(name) {
  const [right, down] = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[name];
  cropper?.move(PAN_PIXELS * right, PAN_PIXELS * down);
  return cropper !== null;
}

// Draw the proposed box again; false also if none is proposed.
export function drawProposal() {
  if (cropper === null || !proposal()) return false;
  setBox(proposal());
  return true;
}

function resetZoom() {
  const box = edges;
  cropper.reset();
  if (image.dataset.look === "crop") setBox(box);
  else showRatio(cropper.getCanvasData().width / cropper.getCanvasData().naturalWidth);
}
