// The key for all the rest of the class is clean. It waits until the reviewer has had each image before them for long enough,
// and shows for how long. What is pressed meanwhile goes first: that is how an exception is made.
import { needed, view } from "../web/view.js";
import { neededOfEach, secondsOf, whole } from "./looks.js";

const CHECK_MILLISECONDS = 50;

let waiting = null; // the key
let send = null;

export const onScreen = whole;
export const isWaiting = () => waiting !== null;

// Seconds until all images that were on the screen with the key, and still are, have been there for long enough.
function secondsLeft({ onScreen: ids }) {
  const here = whole().filter((id) => ids.includes(id));
  return here.reduce((left, id) => left + Math.max(0, neededOfEach() - (secondsOf(id) ?? 0)), 0);
}

// An image that has only just come has none yet.
const withSeconds = ({ onScreen: ids }) => ({ seconds: Object.fromEntries(ids.map((id) => [id, secondsOf(id) ?? 0])) });

// Carry the key out by `emit`, now or when its time has come; a second one meanwhile is the same.
export function takeAll(key, emit) {
  if (isWaiting()) return;
  if (key.at.shown < needed()) {
    emit(key); // the server says that it did not count
    return;
  }
  [waiting, send] = [key, emit];
  carryOut();
}

export function stopWaiting() {
  waiting = null;
  show();
}

// `isHeld`: whether something else goes first, such as another key.
export function carryOut(isHeld = false) {
  if (waiting === null || !view()) return;
  const hasLeft = view().dataset.subject !== waiting.at.subject; // the server says that it did not count
  const isDue = hasLeft || (view().dataset.mode === "class" && secondsLeft(waiting) <= 0);
  if (isDue && !isHeld) {
    const key = waiting;
    waiting = null;
    send(key, withSeconds(key));
  }
  show();
}

function show() {
  let line = document.querySelector("#wait");
  if (waiting === null) {
    line?.remove();
    return;
  }
  if (line === null) {
    line = Object.assign(document.createElement("p"), { id: "wait" });
    line.setAttribute("role", "status");
    document.body.append(line);
  }
  const text = `All clean in ${Math.max(0.1, secondsLeft(waiting)).toFixed(1)} s. Esc stops it.`;
  if (line.textContent !== text) line.textContent = text;
}

export const startChecking = (isHeld) => setInterval(() => carryOut(isHeld()), CHECK_MILLISECONDS);
