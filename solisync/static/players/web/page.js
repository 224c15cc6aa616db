// @ts-check
/** What all pages share: building elements, words, errors with a way to go on, and the header. */

import { Refusal, username } from "./http.js";

/** Loaded for what players see who are signed in. */
const api = () => import("./api.js");

/** Narrow screens show rows as blocks, which are no rows to those who listen unless told so. */
const ROLES = /** @type {Record<string, string>} */ ({ table: "table", thead: "rowgroup", tbody: "rowgroup", tr: "row", td: "cell", th: "rowheader" });

/**
 * An element. Of its properties functions become listeners, and the rest attributes unless null or false.
 * @template {keyof HTMLElementTagNameMap} T @param {T} tag @param {Record<string, any>} [properties]
 * @param {(Node | string | number | null | false | undefined)[]} children @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(/** @type {Record<string, any>} */ ({ role: ROLES[tag], ...properties }))) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value || value === 0 || value === "") element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flatMap((child) => (child || child === 0 ? [typeof child === "number" ? String(child) : child] : [])));
  return element;
}

/** The element of an id, which the page has. @param {string} id @returns {any} */
export const byId = (id) => document.getElementById(id);

// What the browser has for languages takes a slow phone 30 ms or more when it is used for the first time.

/** @param {unknown} points */
export const score = (points) => (Math.abs(Number(points)) < 1000 ? String(Number(points)) : Number(points).toLocaleString("en"));

/** @param {number} count @param {string} one @param {string} [many] */
export const counted = (count, one, many = `${one}s`) => `${score(count)} ${count === 1 ? one : many}`;

/** Seconds as 4:11 or 1:02:03. @param {number} seconds */
export function clock(seconds) {
  const whole = Math.round(seconds);
  const two = (/** @type {number} */ part) => String(part % 60).padStart(2, "0");
  const minutes = Math.floor(whole / 60);
  return whole < 3600 ? `${minutes}:${two(whole)}` : `${score(Math.floor(minutes / 60))}:${two(minutes)}:${two(whole)}`;
}

/** @param {string} name as in the API: "DrawOne", "TimeAttack" */
export const words = (name) => name.replace(/(?<=.)[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

/** @type {Intl.RelativeTimeFormat | undefined} */
let relative;
/** @param {number} value @param {Intl.RelativeTimeFormatUnit} unit */
const fromNow = (value, unit) => (relative ??= new Intl.RelativeTimeFormat("en", { numeric: "auto" })).format(value, unit);
const UNITS = /** @type {[Intl.RelativeTimeFormatUnit, number][]} */ ([
  ["year", 31557600], ["month", 2629800], ["week", 604800], ["day", 86400], ["hour", 3600], ["minute", 60],
]);

/** A moment as "3 hours ago", with the date as its title. @param {string} time */
export function ago(time) {
  const moment = new Date(time);
  const seconds = (moment.getTime() - Date.now()) / 1000;
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? ["second", 1];
  const told = unit === "second" ? "just now" : fromNow(Math.round(seconds / size), unit);
  const title = moment.toLocaleString("en-GB", { dateStyle: "long", timeStyle: "short" });
  return h("time", { datetime: time, title }, told);
}

/** When a game was played, as its player recorded it: a time, or a date without one. @param {string} recorded */
export function played(recorded) {
  if (recorded.length > 10) return ago(recorded);
  const day = Date.parse(recorded);
  const days = Math.round((day - Date.parse(new Date().toLocaleDateString("sv"))) / 86_400_000);
  const title = new Date(day).toLocaleDateString("en-GB", { dateStyle: "long", timeZone: "UTC" });
  const [unit, size] = UNITS.slice(0, 3).find(([, size]) => Math.abs(days * 86_400) >= size) ?? ["day", 86_400];
  return h("time", { datetime: recorded, title }, fromNow(Math.round((days * 86_400) / size), unit));
}

/** Say in an element how much is left of a day, in UTC. @param {HTMLElement} place @param {string} date */
export function timeLeft(place, date) {
  const tell = () => {
    const minutes = Math.ceil((Date.parse(date) + 86_400_000 - Date.now()) / 60_000);
    const hours = Math.floor(minutes / 60);
    const parts = [hours && counted(hours, "hour"), minutes % 60 && counted(minutes % 60, "minute")].filter(Boolean);
    place.textContent = minutes > 0 ? `${parts.join(" ")} left` : "This day has ended (UTC).";
  };
  tell();
  setInterval(tell, 30_000);
}

/** A player's initial on a colour made of the name. @param {string} name */
export function initial(name) {
  const disc = h("span", { class: "initial", "aria-hidden": "true" }, [...name][0]?.toUpperCase() ?? "");
  const hue = [...name].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 360, 7);
  disc.style.setProperty("--hue", String(hue));
  return disc;
}

/** A line for those who do not see the page change. @param {string} text */
export function say(text) {
  const region = byId("said");
  region.classList.remove("toast");
  region.textContent = region.textContent === text ? `${text}\u00a0` : text; // the same words are not said twice
}

let toast = 0;

/** Tell everybody what has been done: a line that is said, and seen for some seconds. @param {string} text */
export function tell(text) {
  say(text);
  clearTimeout(toast);
  byId("said").classList.add("toast");
  toast = setTimeout(() => byId("said").classList.remove("toast"), 6000);
}

/**
 * Tell in `place` what went wrong, with a button to try again as soon as that makes sense.
 * @param {HTMLElement} place @param {unknown} error @param {() => void} again
 */
export function refuse(place, error, again) {
  if (!(error instanceof Refusal)) throw error;
  const button = h("button", { type: "button", click: again }, "Try again");
  const told = h("p", { class: "refused", role: "alert" }, sentence(error), " ");
  place.replaceChildren(told);
  if (error.status === 401) told.append(h("a", { href: signInPath(), class: "button" }, "Sign in"));
  else if (error.status === 429) countDown(error.wait, told, button);
  else told.append(button);
}

/** What errors say to players, by code. */
const ERRORS = /** @type {Record<string, string>} */ ({
  rate_limited: "Too many attempts. Please wait a moment.",
  unavailable: "The service is busy or restarting. Please try again.",
  internal: "Something went wrong on the server. Please try again.",
  unauthorized: "Your session has ended. Please sign in again.",
  forbidden: "The server refused this. Reload the page and try again.",
  user_not_found: "This account no longer exists.",
  replay_not_found: "This replay has been deleted.",
});

/** What an error says, as a sentence: by its code, or else in the server's words. @param {Refusal} error */
export const sentence = ({ code, message }) =>
  ERRORS[code] ?? message[0].toUpperCase() + message.slice(1).replace(/[^.!?]$/, "$&.");

/** @param {number} seconds @param {HTMLElement} told @param {HTMLButtonElement} button */
export function countDown(seconds, told, button) {
  const text = button.textContent;
  const end = Date.now() + seconds * 1000;
  const tick = () => {
    const left = Math.ceil((end - Date.now()) / 1000);
    button.disabled = left > 0;
    button.textContent = left > 0 ? `${text} in ${left} s` : text;
    if (left > 0 && button.isConnected) setTimeout(tick, 250);
  };
  if (!button.isConnected) told.append(button);
  tick();
}

/** Where to sign in, and come back from. */
export const signInPath = () => `/account?next=${encodeURIComponent(location.pathname + location.search)}`;

/**
 * Fill `place` with what `load` makes; what fails says so there and can be tried again.
 * @param {HTMLElement} place @param {() => Promise<(Node | string)[]>} load
 */
export async function fill(place, load) {
  place.setAttribute("aria-busy", "true");
  try {
    place.replaceChildren(...(await load()));
  } catch (error) {
    refuse(place, error, () => fill(place, load));
  } finally {
    place.removeAttribute("aria-busy");
  }
}

/** A table; of `links`, the link in a row is that of the whole row. @param {string} caption @param {string[]} heads @param {HTMLElement[]} rows */
export function table(caption, heads, rows, links = false) {
  const head = heads.map((text, index) => h("th", { role: "columnheader", class: rows[0].children[index].className }, text));
  return h("table", { class: links && "rows" }, h("caption", { class: "unseen" }, caption), h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows));
}

/** An avatar as an element; needs the player's token unless avatars are public here. @param {string} path @param {string} alt */
export async function avatar(path, alt) {
  if (document.body.dataset.avatars) return h("img", { src: path, alt, class: "avatar" });
  const { ask } = await api();
  const bytes = await (await ask("GET", path)).blob(); // the route wants a token, which an img can't send
  return h("img", { src: URL.createObjectURL(bytes), alt, class: "avatar" });
}

/** A player's avatar, where it may be seen, and until then the initial. @param {string} name @param {Promise<string | null>} path */
export function face(name, path) {
  const place = h("span", { class: "face" }, initial(name));
  path.then(async (path) => {
    if (path && (username() || document.body.dataset.avatars)) place.replaceChildren(await avatar(path, ""));
  }).catch(() => {});
  return place;
}

/** Show in the header if somebody is signed in. */
function header() {
  const name = username();
  byId("me").replaceChildren(...(name ? [face(name, api().then(({ me }) => me()).then(({ avatar_url: path }) => path)), name] : ["Sign in"]));
}

for (const link of document.querySelectorAll("nav a")) {
  if (link.getAttribute("href") === location.pathname) link.setAttribute("aria-current", "page");
}

addEventListener("session", header);
header();
