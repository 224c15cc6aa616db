// @ts-check
/** Parts that all pages share: elements, texts, errors with a way to try again, and the header. */

import { local, Refusal, username, waits } from "./http.js";

/** Loaded only for signed-in players. */
const api = () => import("./api.js");

/** Narrow screens show rows as blocks. Without these roles, screen readers wouldn't treat them as rows. */
const ROLES = /** @type {Record<string, string>} */ ({
  table: "table",
  thead: "rowgroup",
  tbody: "rowgroup",
  tr: "row",
  td: "cell",
  th: "rowheader",
});

/**
 * Create an element. Properties that are functions become listeners, the others attributes unless null or false.
 * @template {keyof HTMLElementTagNameMap} T @param {T} tag @param {Record<string, any>} [properties]
 * @param {(Node | string | number | null | false | undefined)[]} children @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(
    /** @type {Record<string, any>} */ ({ role: ROLES[tag], ...properties }),
  )) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value || value === 0 || value === "") element.setAttribute(name, value === true ? "" : value);
  }
  element.append(
    ...children.flatMap((child) => (child || child === 0 ? [typeof child === "number" ? String(child) : child] : [])),
  );
  return element;
}

/** The element with an id that the page has. @param {string} id @returns {any} */
export const byId = (id) => document.getElementById(id);

// The first use of Intl takes 30 ms or more on a slow phone, so short numbers do without it.

/** @param {unknown} points */
export const score = (points) =>
  Math.abs(Number(points)) < 1000 ? String(Number(points)) : Number(points).toLocaleString("en");

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
const fromNow = (value, unit) =>
  (relative ??= new Intl.RelativeTimeFormat("en", { numeric: "auto" })).format(value, unit);
const DAY_MS = 86_400_000;
const STREAK_MS = 60 * 3_600_000; // a day, and the hours in which a win counts for the next one
const UNITS = /** @type {[Intl.RelativeTimeFormatUnit, number][]} */ ([
  ["year", 31557600],
  ["month", 2629800],
  ["week", 604800],
  ["day", 86400],
  ["hour", 3600],
  ["minute", 60],
]);

/** A time as "3 hours ago", with the date as its title. @param {string} time */
export function ago(time) {
  const moment = new Date(time);
  const seconds = (moment.getTime() - Date.now()) / 1000;
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? ["second", 1];
  const told = unit === "second" ? "just now" : fromNow(Math.round(seconds / size), unit);
  const title = moment.toLocaleString("en-GB", { dateStyle: "long", timeStyle: "short" });
  return h("time", { datetime: moment.toISOString(), title }, told);
}

/** The time of a game as its player recorded it. A date alone, in UTC, means the instant of the upload, or the end of that day if the upload came later. Days are those of this device. @param {{recorded_at: string, received_at: string}} game */
export function played({ recorded_at: recorded, received_at: received }) {
  if (recorded.length > 10) return ago(recorded);
  const day = Date.parse(recorded);
  const midnight = (/** @type {number} */ time) => new Date(time).setHours(0, 0, 0, 0);
  const since = midnight(Date.now()) - midnight(Math.min(Date.parse(received), day + DAY_MS - 1));
  const days = Math.min(-Math.round(since / DAY_MS), 0); // the clock of this device may be late
  const title = new Date(day).toLocaleDateString("en-GB", { dateStyle: "long", timeZone: "UTC" });
  const [unit, size] = UNITS.slice(0, 3).find(([, size]) => Math.abs(days * 86_400) >= size) ?? ["day", 86_400];
  return h("time", { datetime: recorded, title }, fromNow(Math.round((days * 86_400) / size), unit));
}

/** The time until a day ends, in UTC, as "11 hours 9 minutes"; "" after its end. @param {string} date */
export function leftOf(date) {
  const minutes = Math.ceil((Date.parse(date) + 86_400_000 - Date.now()) / 60_000);
  const hours = Math.floor(minutes / 60);
  return [hours > 0 && counted(hours, "hour"), minutes % 60 > 0 && counted(minutes % 60, "minute")]
    .filter(Boolean)
    .join(" ");
}

/** Show in an element the remaining time of a day, and after its end a link to the new day. @param {HTMLElement} place @param {string} date */
export function timeLeft(place, date) {
  const tell = () => {
    const left = leftOf(date);
    if (left) return void (place.textContent = `${left} left`);
    clearInterval(timer);
    if (place.textContent) say("This day is over.");
    place.replaceChildren("This day is over. ", h("a", { href: "/daily" }, "Go to today’s deal"));
  };
  const timer = setInterval(tell, 30_000);
  tell();
}

/** A player's initial on a colour derived from the name. @param {string} name */
export function initial(name) {
  const disc = h("span", { class: "initial", "aria-hidden": "true" }, [...name][0]?.toUpperCase() ?? "");
  const hue = [...name].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 360, 7);
  disc.style.setProperty("--hue", String(hue));
  return disc;
}

/** Announce a line to screen readers. @param {string} text */
export function say(text) {
  const region = byId("said");
  region.classList.remove("toast");
  region.textContent = region.textContent === text ? `${text}\u00a0` : text; // screen readers skip a text that doesn't change
}

let toast = 0;

/** Announce a success to screen readers, and show it for some seconds. @param {string} text */
export function tell(text) {
  say(text);
  clearTimeout(toast);
  byId("said").classList.add("toast");
  toast = setTimeout(() => byId("said").classList.remove("toast"), 6000);
}

/**
 * Show an error in `place`, with a button to try again, or after a 401 a link to sign in.
 * @param {HTMLElement} place @param {unknown} error @param {() => void} again
 */
export function refuse(place, error, again) {
  if (!(error instanceof Refusal)) throw error;
  const button = h("button", { type: "button", click: again }, "Try again");
  const told = h("p", { class: "refused", role: "alert" }, sentence(error), " ");
  place.replaceChildren(told);
  if (error.status === 401) told.append(h("a", { href: signInPath(), class: "button" }, "Sign in"));
  else if (error.status === 429) countDown(error.retryAfter, told, button);
  else told.append(button);
}

/** Texts of errors by their codes. */
const ERRORS = /** @type {Record<string, string>} */ ({
  rate_limited: "Too many attempts. Please wait a moment.",
  unavailable: "The service is busy or restarting. Please try again.",
  internal: "Something went wrong on the server. Please try again.",
  unauthorized: "Your session has ended. Please sign in again.",
  forbidden: "The server refused this. Reload the page and try again.",
  user_not_found: "This account no longer exists.",
  replay_not_found: "This replay has been deleted.",
});

/** The text of an error by its code, or else the server's text as a sentence. @param {Refusal} error */
export const sentence = ({ code, message }) =>
  ERRORS[code] ?? message[0].toUpperCase() + message.slice(1).replace(/[^.!?]$/, "$&.");

/** Disable a button for some seconds, and count down on it. @param {number} seconds @param {HTMLElement} told @param {HTMLButtonElement} button */
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

/** The path to sign in and then return to this page. */
export const signInPath = () => `/account?next=${encodeURIComponent(location.pathname + location.search)}`;

/**
 * Fill `place` with the nodes that `load` returns, or show its error there with a way to try again.
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

/** A table. With `links`, the link in a row works on the whole row. @param {string} caption @param {string[]} heads @param {HTMLElement[]} rows */
export function table(caption, heads, rows, links = false) {
  const head = heads.map((text, index) =>
    h("th", { role: "columnheader", class: rows[0].children[index].className }, text),
  );
  return h(
    "table",
    { class: links && "rows" },
    h("caption", { class: "unseen" }, caption),
    h("thead", {}, h("tr", {}, ...head)),
    h("tbody", {}, ...rows),
  );
}

/** Put content into a place unless it has the same key and text, so that a button isn't replaced while it is pressed. @param {string} id @param {string} key @param {(Node | string | false | null | undefined)[]} content */
export function put(id, key, content) {
  const frame = h("div", {}, ...content);
  const place = byId(id);
  const same = place.textContent === frame.textContent && place.dataset.key === key;
  place.dataset.key = key;
  if (!same) place.replaceChildren(...frame.childNodes);
  return !same;
}

/** An avatar as an element, or the initial if no browser can show it. The request needs the player's token unless avatars are public. @param {string} path @param {string} name @param {string} alt */
export async function avatar(path, name, alt) {
  let src = path;
  if (!document.body.dataset.avatars) {
    const { ask } = await api();
    src = URL.createObjectURL(await (await ask("GET", path)).blob()); // an img can't send the token that the route requires
  }
  const error = () => picture.replaceWith(initial(name));
  const picture = h("img", { loading: "lazy", width: "64", height: "64", src, alt, class: "avatar", error }); // lazy works only in front of src
  return picture;
}

/** A player's initial, and then the avatar if there is one that the visitor may see. @param {string} name @param {Promise<string | null>} path */
export function face(name, path) {
  const place = h("span", { class: "face" }, initial(name));
  path
    .then(async (path) => {
      if (path && (username() || document.body.dataset.avatars)) place.replaceChildren(await avatar(path, name, ""));
    })
    .catch(() => {});
  return place;
}

/** Show the signed-in player, or "Sign in", in the header. */
function header() {
  const name = username();
  byId("me").replaceChildren(
    ...(name
      ? [
          face(
            name,
            api()
              .then(({ me }) => me())
              .then(({ avatar_url: path }) => path),
          ),
          name,
        ]
      : ["Sign in"]),
  );
}

/** The storage key of the last known streak, as "<days> <newest day> <player>". */
export const STREAK = "solisync.streak";

/** Show the streak in the header while the next day can still be won. The console has no place for it. */
export function showStreak() {
  const [days, newest, name] = (local?.getItem(STREAK) ?? "").split(" ");
  const runs = Number(days) > 0 && name === (username() ?? "") && Date.now() < Date.parse(newest) + STREAK_MS;
  byId("streak")?.replaceChildren(...(runs ? [score(days), h("span", {}, "-day streak")] : []));
}

for (const link of document.querySelectorAll("nav a")) {
  if (link.getAttribute("href") === location.pathname) link.setAttribute("aria-current", "page");
}

for (const show of [header, showStreak]) {
  addEventListener("session", show);
  show();
}

/** Send what waits to be sent, as soon as there is a connection. /play does this by itself. */
const send = () => waits() && !byId("outbox") && import("./waiting.js").catch(() => {});
for (const event of ["online", "journal"]) addEventListener(event, send); // "journal": it has changed, as by a sign-in
send();
