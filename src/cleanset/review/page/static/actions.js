// What keys mean in each mode: the table of actions of the server, which comes with the page.
const BINDINGS = JSON.parse(document.querySelector("#actions").textContent);

const byKey = new Map();
for (const binding of BINDINGS) {
  for (const mode of binding.modes) for (const key of binding.keys) byKey.set(`${mode} ${key}`, binding);
}

const bare = (key) => key.replace(/^(Shift|Ctrl)[+](?=.)/, "");
const barekeys = (bindings) => new Set(bindings.flatMap(({ keys }) => keys).map(bare));

// Keys that count again and again while they are held down.
export const REPEATED = barekeys(BINDINGS.filter(({ repeats }) => repeats));

// Keys with a name that are the page's, or edit text; others are the browser's.
export const NAMED = new Set([...barekeys(BINDINGS)].filter((key) => /^[A-Z][A-Za-z]+$/.test(key)).concat("Delete"));

// The binding of a key in a mode, with what is held with it if that makes a difference; undefined if it has none.
export function actionOf(mode, { name, shift = false, ctrl = false }) {
  const held = (shift && byKey.get(`${mode} Shift+${name}`)) || (ctrl && byKey.get(`${mode} Ctrl+${name}`));
  return held || (ctrl ? undefined : byKey.get(`${mode} ${name}`));
}

// The first key of an action.
export const keyOf = (action) => BINDINGS.find((binding) => binding.action === action).keys[0];

// Each action that the browser has a part in has a handler, and no other.
export function checkHandlers(handlers) {
  const wanted = new Set(BINDINGS.filter(({ inBrowser }) => inBrowser).map(({ action }) => action));
  const odd = [...wanted].filter((action) => !(action in handlers)).concat(Object.keys(handlers).filter((action) => !wanted.has(action)));
  if (odd.length > 0) throw new Error(`actions without a handler, or handlers without an action: ${odd.join(", ")}`);
}
