// @ts-check
/** Work that only one tab of this browser does at a time. */

import { sleep } from "./transport.js";

const LEASE_MS = 32_000; // twice the time that an answer may take

/** localStorage, or null if the browser refuses it. */
function storage() {
  try {
    localStorage.setItem("solisync.probe", "");
    localStorage.removeItem("solisync.probe");
    return localStorage;
  } catch {
    return null;
  }
}

/** Run `work` in one tab at a time. @template T @param {string} name @param {() => Promise<T>} work @returns {Promise<T>} */
export async function exclusively(name, work) {
  if (navigator.locks) return navigator.locks.request(name, work);
  // There are no locks on plain HTTP. A lease in localStorage counts if it is still this tab's a moment later.
  const local = storage();
  const key = `${name}.lease`;
  const me = String(Math.random());
  const lease = () => (local?.getItem(key) ?? "").split(" ");
  while (local && lease()[0] !== me) {
    const left = Number(lease()[1]) - Date.now(); // more than LEASE_MS if the clock was set back
    if (!(left > 0) || left > LEASE_MS) local.setItem(key, `${me} ${Date.now() + LEASE_MS}`);
    await sleep(60 + Math.random() * 60);
  }
  try {
    return await work();
  } finally {
    if (lease()[0] === me) local?.removeItem(key);
  }
}
