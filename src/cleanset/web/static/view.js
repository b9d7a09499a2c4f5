// What the pages share: the server draws #view again after each key, and counts there the keys that it answered.
import "./seen.js";
import "./loader.js";
import "./pixels.js";

const RESEND_MILLISECONDS = 3000;
const TICK_MILLISECONDS = 100;
const SLOW_MILLISECONDS = 2000;
const REACH_MILLISECONDS = 3000;
const LOADING_MILLISECONDS = 1000;
const IN_PART = "Shown in part, at full detail: scroll inside the image to see the rest.";
const LOST = "No connection to the server. The page is trying again; what you press now is not saved yet.";

export const view = () => document.querySelector("#view");

// Seconds for which something has to be in sight, unchanged, until it is answered.
export const needed = () => Number(view().dataset.needed ?? 0);

const shownImages = () => [...document.querySelectorAll("#view img[data-image]")];

// Seconds for which the person has had the view with all its images; each class or question begins again.
export const secondsShown = () => secondsInSight("subject");

// What else of a page is in sight, as values by name.
let others = () => ({});
export const alsoInSight = (values) => (others = values);

// Note images, buttons with their places, and the rest. An image that was there stays, though it is drawn again.
function look() {
  if (!view()) return;
  const subject = view().dataset.subject ?? "";
  const isSubject = shownImages().every(({ complete }) => complete) || settledInSight("subject", 0) === subject;
  const values = { subject: isSubject ? subject : null };
  for (const image of shownImages()) {
    const name = `image ${image.dataset.image}`;
    const isThere = (image.complete && image.naturalWidth > 0) || settledInSight(name, 0) === image.src;
    if (isThere && isInSight(image)) values[name] = image.src;
  }
  for (const button of document.querySelectorAll("button[data-key]")) {
    const { left, top } = button.getBoundingClientRect();
    values[`button ${button.dataset.key}`] = `${view().dataset.mode} ${Math.round(left)} ${Math.round(top)}`;
  }
  noteInSight({ ...values, ...others() }, needed());
}
setInterval(look, TICK_MILLISECONDS);
document.addEventListener("load", ({ target }) => target instanceof HTMLImageElement && look(), true); // never reaches the window
addEventListener("scroll", look, true);

// What is in sight, as a key is sent with it: the subject of the page, for how long with all its images, and for how long
// each image, and each of `more`. `button`: the one that is clicked; where it has only just come, nothing was seen.
export function sight(more = [], button = null) {
  look();
  const isNew = button !== null && secondsInSight(`button ${button.dataset.key}`) < needed();
  const images = shownImages().map(({ dataset }) => [dataset.image, `image ${dataset.image}`]);
  const seconds = [...images, ...more.map((name) => [name, name])].map(([sent, name]) => [sent, secondsInSight(name)]);
  const seen = seconds.map(([name, each]) => [name, isNew ? 0 : each]);
  return { subject: view().dataset.subject ?? "", shown: isNew ? 0 : secondsShown(), seen: Object.fromEntries(seen) };
}

// The value that had been in sight for long enough, of what has this name.
export function settled(name) {
  look();
  return settledInSight(name, needed());
}

let unanswered = null;
let emittedAt = 0;
let sentAt = 0;

export const isUnanswered = () => unanswered !== null;

// Send a key; the next only once isUnanswered() is false.
export function emitKey(key) {
  unanswered = { ...key, number: Number(view().dataset.pressed) + 1 };
  emittedAt = performance.now();
  resend();
}

function resend() {
  sentAt = performance.now();
  emitEvent("key", unanswered);
}

// Keys in their order: each is handled when the one before is answered, so that it means what the page shows then, and
// none is dropped without a word.
const waiting = [];
export const isBusy = () => isUnanswered() || waiting.length > 0;
export const keysLeft = () => waiting.length + (isUnanswered() ? 1 : 0);
export const queueKey = (key) => waiting.push(key);
// Continue with the next keys, if the last is answered, as long as the page `isReady`. `handle`: what becomes of a key.
export function handleKeys(handle, isReady = () => true) {
  while (waiting.length > 0 && view() && !isUnanswered() && isReady()) handle(waiting.shift());
}

// A button, or what `selector` names, that is clicked does not take the keyboard's focus: Enter after it is the page's, and
// a click counts once.
export function keepFocusAtClicks(selector) {
  addEventListener("mousedown", (event) => {
    if (!event.target.closest(`button[data-key], ${selector}`)) return;
    event.preventDefault();
    document.activeElement.blur();
  });
}

// A key that the connection lost is sent again; the server answers each number once.
setInterval(() => {
  if (isUnanswered() && window.socket?.connected && performance.now() - sentAt >= RESEND_MILLISECONDS) resend();
}, 1000);

// A lost connection is reported as soon as a key waits for long, or nothing answers: the socket notices it much later.
let isReached = true;
async function reach() {
  const options = { method: "HEAD", cache: "no-store", signal: AbortSignal.timeout(SLOW_MILLISECONDS) };
  isReached = await fetch("web/seen.js", options).then(({ status }) => status < 500, () => false);
  tellConnection();
}
// Whether the page reports a lost connection, in a line over what it shows.
export const isLost = () => document.querySelector("#lost") !== null;
function tellConnection() {
  const isSlow = isUnanswered() && performance.now() - emittedAt >= SLOW_MILLISECONDS;
  tellOver("lost", isReached && !isSlow ? null : LOST);
}
setInterval(reach, REACH_MILLISECONDS);
setInterval(tellConnection, TICK_MILLISECONDS);
addEventListener("online", reach);
addEventListener("offline", () => {
  isReached = false;
  tellConnection();
});

// Tell those who listen. The element stays: what is drawn again is not read out.
const told = document.body.appendChild(document.createElement("p"));
told.setAttribute("role", "status");
told.style.cssText = "position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%)";
export function announce(text) {
  if (told.textContent !== text) told.textContent = text;
}

// An image that failed at first is shown when it comes.
async function loadShown(file) {
  const address = await loadElement(file);
  const isBroken = (image) => image.src === address && image.complete && image.naturalWidth === 0;
  for (const image of shownImages().filter(isBroken)) image.src = address;
  return address;
}
const loader = frameLoader(loadShown, (percent) => `${percent} % loaded`);
const absolute = (url) => new URL(url, document.baseURI).href;
// The images in sight, behind them those that are scrolled out of it, and those that come next: decoded and held.
export function loadAhead(urls = "") {
  const [first, later] = [true, false].map((is) => shownImages().filter((image) => isInSight(image) === is).map(({ src }) => src));
  const examples = frames().map((frame) => frame.querySelector("img").dataset.file);
  loader.want([...first, ...examples], [...later, ...urls.split(" ").filter(Boolean).map(absolute)]);
}

export const { fill } = loader;

// Examples, in a room of `data-room` CSS pixels, or as wide as what they are in, and as high as that which has `data-high`.
const frames = () => [...document.querySelectorAll(".frame:has([data-file])")].filter((frame) => !frame.closest("#magnifier"));
function layOut(frame) {
  const { naturalWidth, naturalHeight } = frame.querySelector("img");
  const [width, height] = frame.dataset.room?.split(" ").map(Number) ?? [frame.parentElement.clientWidth, frame.closest("[data-high]")?.clientHeight ?? innerHeight];
  const size = [naturalWidth, naturalHeight];
  showExample(frame, size, Math.max(1, pixelFactor(size, 1, { width, height }, width)), { width, height }, IN_PART);
}
async function fillFrame(frame) {
  if (!(await loader.fill(frame))) return;
  layOut(frame);
  reveal(frame);
}
addEventListener("resize", () => frames().filter((frame) => !frame.querySelector(".loading")).forEach(layOut));

// How many images of the view are there, if they take long.
let loadingSince = null;
function tellLoading() {
  const images = shownImages();
  const there = images.filter(({ complete }) => complete).length;
  if (there === images.length) loadingSince = null;
  else loadingSince ??= performance.now();
  const isLong = loadingSince !== null && performance.now() - loadingSince >= LOADING_MILLISECONDS;
  const css = "inset: auto 0 0 auto; background: #1c1c1c";
  tellOver("loading", isLong ? `Loading images: ${there} of ${images.length}.` : null, { css, role: "status" });
}
setInterval(tellLoading, TICK_MILLISECONDS);

// Call `changed` now and after each drawing of the view.
export function whenDrawn(changed) {
  let due = false;
  function drawn() {
    due = false;
    if (!view()) return;
    if (isUnanswered() && Number(view().dataset.pressed) >= unanswered.number) unanswered = null;
    changed();
    frames().filter((frame) => !frame.querySelector("[src], .loading")).forEach(fillFrame);
    look();
  }
  new MutationObserver(() => {
    if (due) return;
    due = true;
    queueMicrotask(drawn);
  }).observe(document.body, { childList: true, subtree: true });
  drawn();
}
