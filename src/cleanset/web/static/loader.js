// Images of a page, in the order in which they are needed: those on the screen first, those that come next only when all
// of these are there. A fetch continues until it is whole: what has arrived is kept, and only the rest is asked for again.
// A plain script, as seen.js.
"use strict";
{
  const STALLED_MILLISECONDS = 20_000; // for which not one byte comes
  const PAUSE_MILLISECONDS = 1000; // before the second try; longer before each further one
  const MAX_PAUSES = 10;

  const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
  async function decoded(address) {
    const image = new Image();
    image.src = address;
    await image.decode();
    return image;
  }

  // Loads a file as an element does: no progress is known.
  globalThis.loadElement = async (file) => {
    file.image = await decoded(file.url); // held, so that the browser keeps it
    return file.url;
  };

  // Loads a file in parts, by its bytes; `told` is called as they come.
  globalThis.loadBytes = async (file, told) => {
    file.parts ??= [];
    file.loaded ??= 0;
    if (file.loaded === 0 || file.loaded !== file.size) await fetchRest(file, told);
    const address = URL.createObjectURL(new Blob(file.parts, { type: file.type }));
    try {
      await decoded(address);
    } catch (error) {
      URL.revokeObjectURL(address);
      Object.assign(file, { parts: [], loaded: 0 });
      throw error;
    }
    file.parts = [];
    return address;
  };

  async function fetchRest(file, told) {
    const stop = new AbortController();
    let timer;
    const isAlive = () => {
      clearTimeout(timer);
      timer = setTimeout(() => stop.abort(), STALLED_MILLISECONDS);
    };
    isAlive();
    try {
      const headers = file.loaded ? { Range: `bytes=${file.loaded}-` } : {};
      const reply = await fetch(file.url, { headers, signal: stop.signal });
      if (!reply.ok) throw new Error(`${file.url}: ${reply.status}`);
      if (reply.status !== 206) Object.assign(file, { parts: [], loaded: 0 }); // a server that sends whole files alone
      file.type = reply.headers.get("content-type") ?? "";
      file.size = file.loaded + Number(reply.headers.get("content-length"));
      const reader = reply.body.getReader();
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        isAlive();
        file.parts.push(part.value);
        file.loaded += part.value.length;
        told();
      }
    } finally {
      clearTimeout(timer);
    }
  }

  // A loader of a page, which loads each file by `load`. `troubled` is called when one has failed and is asked for again,
  // `progressed` with the address of a file and its share that is there, 0 to 1.
  globalThis.imageLoader = (load, { troubled = () => {}, progressed = () => {} } = {}) => {
    const files = new Map(); // by address: its parts, the promise of the address to show, and that address
    let wanted = new Set();
    let turn = 0;

    async function untilWhole(file) {
      for (let tries = 1; ; tries++) {
        try {
          return await load(file, () => file.size && progressed(file.url, file.loaded / file.size));
        } catch {
          if (!wanted.has(file.url)) {
            files.delete(file.url);
            return null;
          }
          troubled(file.url);
          await pause(PAUSE_MILLISECONDS * Math.min(tries, MAX_PAUSES));
        }
      }
    }
    // Resolves to the address at which an image that has arrived, and can be shown, is; null if nobody wants it
    // any more and it has failed.
    function arrived(url) {
      const file = files.get(url) ?? { url };
      files.set(url, file);
      file.whole ??= untilWhole(file).then((address) => (file.address = address));
      return file.whole;
    }
    function forget() {
      for (const [url, { address }] of files) {
        if (wanted.has(url) || address === undefined) continue; // on its way: it is not thrown away
        if (address?.startsWith("blob:")) URL.revokeObjectURL(address);
        files.delete(url);
      }
    }
    // Load the images on the screen, all at once, and then those that come next, one by one.
    async function want(now, next) {
      const mine = ++turn;
      wanted = new Set([...now, ...next]);
      forget();
      await Promise.all(now.map(arrived));
      for (const url of next) if (mine === turn) await arrived(url);
    }
    return { want, arrived };
  };
}
