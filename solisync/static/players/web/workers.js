// @ts-check
/** The service worker, which keeps /play for playing without a network, and the policy for the addresses of workers. */

const FOLDER = new URL("./", import.meta.url).pathname; // `/web/<build>/`
/** The address of the search for wins. */
export const SEARCH = new URL("./search.js", import.meta.url).pathname;
/** The addresses of scripts that may run in workers. @type {readonly string[]} */
const ADDRESSES = ["/sw.js", SEARCH];

/** @type {any} browsers without trusted types take addresses as text */
const types = Reflect.get(globalThis, "trustedTypes");
const policy = types?.createPolicy("solisync", {
  /** @param {string} address */
  createScriptURL(address) {
    if (ADDRESSES.includes(address)) return address;
    throw new TypeError(`${address} is not a worker of this page`);
  },
});

/** The address of a worker in the form that the page's Content-Security-Policy demands. @param {string} address @returns {any} */
export const allowed = (address) => policy?.createScriptURL(address) ?? address;

/** Wait until a new worker has stored the page, or throw if it can't. @param {ServiceWorker} worker @returns {Promise<void>} */
const activated = (worker) =>
  new Promise((resolve, reject) => {
    const look = () => {
      if (worker.state === "activated") resolve();
      if (worker.state === "redundant") reject(new Error("the page could not be stored"));
    };
    worker.addEventListener("statechange", look);
    look();
  });

/** Keep this page in the browser, and say in `place` whether that works. @param {HTMLElement} place */
export async function keepPage(place) {
  const { locks, serviceWorker } = navigator;
  if (!isSecureContext) return void (place.textContent = "To play without a connection, open this site over HTTPS.");
  if (!serviceWorker) return void (place.textContent = "This browser opens the game only with a connection.");
  locks?.request(`solisync${FOLDER}`, { mode: "shared" }, () => new Promise(() => {})); // the worker keeps our files until we leave
  try {
    const { active, installing, waiting } = await serviceWorker.register(allowed("/sw.js"));
    const first = installing ?? waiting;
    if (!active && first) await activated(first);
    place.textContent = "This game also works without a connection.";
  } catch {
    place.textContent =
      "This browser couldn’t keep the game for playing without a connection. Its storage may be full or blocked for this site. Reload the page to try again.";
  }
}
