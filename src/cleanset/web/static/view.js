// What the pages share: the server draws #view anew after each key, and counts there the keys that it answered.
import "./seen.js";
import "./loader.js";

const RESEND_MILLISECONDS = 3000;
const TICK_MILLISECONDS = 100;
const SLOW_MILLISECONDS = 2000;
const REACH_MILLISECONDS = 3000;
const LOADING_MILLISECONDS = 1000;
const LOST = "No connection to the server. The page goes on by itself; what you press now is not saved yet.";

export const view = () => document.querySelector("#view");

// Seconds for which something has to be in sight, unchanged, until it is answered.
export const needed = () => Number(view().dataset.needed ?? 0);

const shownImages = () => [...document.querySelectorAll("#view img[data-image]")];

// Seconds for which the person has had all images of the view in sight; each class or question begins anew.
export const secondsShown = () => secondsSeen(view().dataset.subject ?? "", shownImages());

// What else of a page is in sight, as values by name.
let others = () => ({});
export const alsoInSight = (values) => (others = values);

// Whether half of an element is on the screen, and in what scrolls around it; or it fills half of that, magnified.
function isOnScreen(element) {
  const one = element.getBoundingClientRect();
  const around = element.closest("#cards, .stage")?.getBoundingClientRect() ?? document.documentElement.getBoundingClientRect();
  const shown = (low, high) => Math.min(one[high], around[high]) - Math.max(one[low], around[low]);
  const isHalf = (low, high) => 2 * shown(low, high) >= Math.min(one[high] - one[low], around[high] - around[low]);
  return isHalf("left", "right") && isHalf("top", "bottom");
}

// Note images, buttons with their places, and the rest. An image that was there stays, though it is drawn anew.
function look() {
  if (!view()) return;
  secondsShown();
  const values = {};
  for (const image of shownImages()) {
    const name = `image ${image.dataset.image}`;
    const isThere = (image.complete && image.naturalWidth > 0) || settledInSight(name, 0) === image.src;
    if (isThere && isOnScreen(image)) values[name] = image.src;
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

// A key that the connection lost is sent again; the server answers each number once.
setInterval(() => {
  if (isUnanswered() && window.socket?.connected && performance.now() - sentAt >= RESEND_MILLISECONDS) resend();
}, 1000);

// A lost connection is told as soon as a key waits for long, or nothing answers: the socket notices it much later.
let isReached = true;
async function reach() {
  const options = { method: "HEAD", cache: "no-store", signal: AbortSignal.timeout(SLOW_MILLISECONDS) };
  isReached = await fetch("web/seen.js", options).then(({ status }) => status < 500, () => false);
  tellConnection();
}
const lostLine = () => document.querySelector("#lost");
// Whether the page tells that the connection is lost, in a line over what it shows.
export const isLost = () => lostLine() !== null;
function tellConnection() {
  const isSlow = isUnanswered() && performance.now() - emittedAt >= SLOW_MILLISECONDS;
  let line = lostLine();
  if (isReached && !isSlow) line?.remove();
  else if (line === null) {
    line = Object.assign(document.createElement("p"), { id: "lost", textContent: LOST });
    line.setAttribute("role", "alert");
    line.style.cssText = "position: fixed; z-index: 30; inset: 0 0 auto; margin: 0; padding: 8px 12px; background: #a3211a; color: #fff; font-weight: 600; text-align: center";
    document.body.append(line);
  }
}
setInterval(reach, REACH_MILLISECONDS);
setInterval(tellConnection, TICK_MILLISECONDS);
addEventListener("online", reach);
addEventListener("offline", () => {
  isReached = false;
  tellConnection();
});

// Tell those who listen. The element stays: what is drawn anew is not read out.
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
const loader = imageLoader(loadShown);
const absolute = (url) => new URL(url, document.baseURI).href;
// The images of the view, and behind them those that come next, decoded and held.
export function loadAhead(urls = "") {
  loader.want(shownImages().map(({ src }) => src), urls.split(" ").filter(Boolean).map(absolute));
}

// How many images of the view are there, if they take long.
let loadingSince = null;
function tellLoading() {
  const images = shownImages();
  const there = images.filter(({ complete }) => complete).length;
  if (there === images.length) loadingSince = null;
  else loadingSince ??= performance.now();
  const isLong = loadingSince !== null && performance.now() - loadingSince >= LOADING_MILLISECONDS;
  let line = document.querySelector("#loading");
  if (!isLong) return line?.remove();
  if (line === null) {
    line = document.body.appendChild(Object.assign(document.createElement("p"), { id: "loading" }));
    line.style.cssText = "position: fixed; z-index: 25; inset: auto 0 0 auto; margin: 0; padding: 6px 12px; background: #1c1c1c; color: #fff";
  }
  line.textContent = `Loading images: ${there} of ${images.length}.`;
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
    look();
  }
  new MutationObserver(() => {
    if (due) return;
    due = true;
    queueMicrotask(drawn);
  }).observe(document.body, { childList: true, subtree: true });
  drawn();
}
