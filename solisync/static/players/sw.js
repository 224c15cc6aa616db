// @ts-check
/**
 * The service worker, which keeps /play and its files for players without a network.
 *
 * Each build has its own cache, and its name is in the addresses of its files, so no page gets files of two builds. A
 * new worker starts immediately. It deletes the cache of an older build unless a page of that build is open: each /play
 * holds a lock with the name of its cache.
 */

const worker = /** @type {ServiceWorkerGlobalScope} */ (/** @type {unknown} */ (self));
const FOLDER = "$folder/";
const FILES = "$files".split(" ").map((name) => FOLDER + name);
const PAGES = "$pages".split(" ");
const PREFIX = "solisync/web/";
const CACHE = `solisync${FOLDER}`;
const SLOW_MS = 3_000;
const OPENING_MS = 10_000; // by then, a page has its lock

/** @param {number} ms */
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function install() {
  const cache = await caches.open(CACHE);
  try {
    await Promise.all(
      [...PAGES, ...FILES].map(async (path) => {
        const answer = await fetch(path);
        // While nodes of two builds run, the answer may be of the other one: a file without a place in caches, or a page.
        const stray =
          answer.headers.get("Cache-Control") === "no-store" ||
          (PAGES.includes(path) && !(await answer.clone().text()).includes(FOLDER));
        if (!answer.ok || stray) throw new Error(path);
        await cache.put(path, answer);
      }),
    );
  } catch (error) {
    await caches.delete(CACHE);
    throw error; // the next page tries again
  }
  await worker.skipWaiting();
}

/** Delete the caches of other builds without an open page, or the caches of all builds. @param {boolean} all */
async function tidy(all) {
  const { held = [] } = await navigator.locks.query();
  const used = all ? [] : [CACHE, ...held.map(({ name }) => name)];
  const names = (await caches.keys()).filter((name) => name.startsWith(PREFIX) && !used.includes(name));
  await Promise.all(names.map((name) => caches.delete(name)));
}

/** Look for another build. If the service has no pages any more, this worker removes itself. */
async function check() {
  const answer = await fetch("/sw.js", { cache: "no-cache" });
  if (answer.status === 404) {
    await tidy(true);
    await worker.registration.unregister();
  } else if (answer.ok && !(await answer.text()).includes(FOLDER)) await worker.registration.update();
  else await tidy(false);
}

/** @param {string} path */
const kept = async (path) => (await caches.open(CACHE)).match(path);

/** Return the page from the network; else /play from the cache, or a page that explains. @param {FetchEvent} event @param {string} path */
async function page(event, path) {
  const network = fetch(event.request);
  if (path !== PAGES[0]) return network.catch(async () => (await kept(PAGES[1])) ?? Response.error());
  const answer = await Promise.race([network, sleep(SLOW_MS)]).catch(() => {});
  if (answer?.status < 500) return answer;
  const own = await kept(path).catch(() => {});
  if (own) event.waitUntil(navigator.locks.request(CACHE, { mode: "shared" }, () => sleep(OPENING_MS)));
  return own ?? network;
}

worker.addEventListener("install", (event) => event.waitUntil(install()));
worker.addEventListener("activate", (event) => event.waitUntil(tidy(false).then(() => worker.clients.claim())));
worker.addEventListener("fetch", (event) => {
  const { request } = event;
  const { pathname } = new URL(request.url);
  if (request.method !== "GET" || /^.(api|avatars|health)\b/.test(pathname)) return;
  if (request.mode === "navigate") {
    event.waitUntil(check().catch(() => {}));
    event.respondWith(page(event, pathname));
  } else if (/^.web.[^/]+.\w/.test(pathname)) {
    event.respondWith(
      caches
        .match(request)
        .catch(() => {})
        .then((kept) => kept ?? fetch(request)),
    );
  }
});
