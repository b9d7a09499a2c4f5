// What the pages share: the server draws #view anew after each key, and counts there the keys that it answered.
import "./seen.js";

const RESEND_MILLISECONDS = 3000;
const TICK_MILLISECONDS = 100;

export const view = () => document.querySelector("#view");

// Seconds for which the person has had all images of the view in sight; each class or image begins anew.
export const secondsShown = () => secondsSeen(view().dataset.subject, [...document.querySelectorAll("#view img[data-image]")]);
setInterval(() => view() && secondsShown(), TICK_MILLISECONDS);

let unanswered = null;
let sentAt = 0;

export const isUnanswered = () => unanswered !== null;

// Send a key; the next only once isUnanswered() is false.
export function emitKey(key) {
  unanswered = { ...key, number: Number(view().dataset.pressed) + 1 };
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

// Tell those who listen. The element stays: what is drawn anew is not read out.
const told = document.body.appendChild(document.createElement("p"));
told.setAttribute("role", "status");
told.style.cssText = "position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%)";
export function announce(text) {
  if (told.textContent !== text) told.textContent = text;
}

// Images that come next, decoded and held.
const ahead = new Map();
export function loadAhead(urls = "") {
  const wanted = urls.split(" ").filter(Boolean);
  for (const url of ahead.keys()) if (!wanted.includes(url)) ahead.delete(url);
  for (const url of wanted) {
    if (ahead.has(url)) continue;
    const image = new Image();
    image.src = url;
    ahead.set(url, image);
    image.decode().catch(() => ahead.delete(url));
  }
}

// Call `changed` now and after each drawing of the view.
export function whenDrawn(changed) {
  let due = false;
  function drawn() {
    due = false;
    if (!view()) return;
    if (isUnanswered() && Number(view().dataset.pressed) >= unanswered.number) unanswered = null;
    changed();
  }
  new MutationObserver(() => {
    if (due) return;
    due = true;
    queueMicrotask(drawn);
  }).observe(document.body, { childList: true, subtree: true });
  drawn();
}
