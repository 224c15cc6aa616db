// @ts-check
/** Parts that the console's pages share: tables, facts, links, and the dialog for an act. */

import { act, inRoot } from "./api.js";
import { NOTE_MAX } from "./console_facts.js";
import { Refusal } from "./http.js";
import { ago, byId, countDown, counted, fill, h, sentence, table, tell } from "./page.js";

/** @type {Record<"" | typeof import("./console_facts.js").REASONS[number], string>} */
export const REASONS = {
  "": "Choose a reason",
  name: "Name",
  avatar: "Avatar",
  cheating: "Cheating",
  spam: "Spam",
  takeover: "Account taken over",
  request: "Player’s request",
  legal: "Legal",
  other: "Other (needs a note)",
};

/** @typedef {{label: string, name: string, value?: string, kind?: "text" | "check" | "time" | "progress", hint?: string}} Field */
/** @typedef {{title: string, text: string, verb: string, method: string, path: string, body?: object, fields?: Field[], reason?: keyof typeof REASONS, danger?: boolean}} Plan an act to confirm */

/** A player's text, isolated so that it can't change the direction of the text around it. @param {string | null | undefined} text */
export const bdi = (text) => h("bdi", {}, text ?? "–");

/** A name. Tables cut long names with an ellipsis; the title has the whole name. @param {string | null | undefined} text */
export const nameOf = (text) => h("bdi", { class: "name", title: text }, text ?? "–");

/** A link to a player, by name. @param {string} id @param {string} name */
export const playerLink = (id, name) => h("a", { href: `/players/${id}` }, nameOf(name));

/** @param {string} id @param {string} [text] */
export const replayLink = (id, text = id.slice(0, 8)) => h("a", { href: `/replays/${id}` }, text);

/** The visibility of a replay: held by an operator, listed, or hidden by its player. @param {{held: boolean, listed: boolean}} replay */
export const listing = ({ held, listed }) => chip(held ? "held" : listed ? "listed" : "hidden");

/** A time as "3 hours ago", or a dash if there is none. @param {string | null | undefined} time */
export const when = (time) => (time ? ago(time) : "–");

/** A time in full, in the time zone of the browser. @param {string} time */
export const at = (time) =>
  h(
    "time",
    { datetime: new Date(time).toISOString() },
    new Date(time).toLocaleString("sv", { dateStyle: "short", timeStyle: "short" }),
  );

/** A link to a page for players, or its path if the address of these pages isn't set. @param {string | null} page */
export const publicPage = (page) =>
  page && (page.startsWith("/") ? h("code", {}, page) : h("a", { href: page }, "Open"));

/** A list of facts with their names. @param {[string, Node | string | number | null | undefined][]} facts */
export const factList = (facts) =>
  h(
    "dl",
    { class: "facts" },
    ...facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value ?? "–"))),
  );

/**
 * A section with a table, or with the sentence `none` if there are no rows.
 * @param {string} title @param {string[]} heads @param {(Node | string | number | null)[][]} rows @param {string} none
 */
export function section(title, heads, rows, none) {
  const cells = rows.map((row) =>
    h("tr", {}, ...row.map((cell, index) => h(index ? "td" : "th", index ? {} : { scope: "row" }, cell ?? "–"))),
  );
  return h(
    "section",
    {},
    h("h2", {}, title),
    cells.length ? table(title, heads, cells) : h("p", { class: "quiet" }, none),
  );
}

/** A button that opens the dialog for an act. @param {Plan} plan @param {() => unknown} then @param {string} [text] */
export const actButton = (plan, then, text = `${plan.verb} …`) =>
  h("button", { type: "button", class: plan.danger && "danger", click: () => confirm(plan, then) }, text);

/** Ask for the reason in a dialog, perform the act, and announce the result. @param {Plan} plan @param {(answer: any) => unknown} then */
export function confirm(plan, then) {
  const reason = h(
    "select",
    { id: "act-reason", name: "reason", required: true },
    ...Object.entries(REASONS).map(([value, text]) =>
      h("option", { value, selected: value === (plan.reason ?? "") }, text),
    ),
  );
  const note = h("textarea", { id: "act-note", name: "note", maxlength: NOTE_MAX, rows: 2 });
  const refused = h("div");
  const button = h("button", { class: plan.danger ? "main danger" : "main" }, plan.verb);
  const fields = (plan.fields ?? []).map(fieldOf);
  const close = () => dialog.close();
  const form = h(
    "form",
    { id: "act" },
    h("h2", { id: "act-title" }, plan.title),
    h("p", {}, plan.text),
    ...fields.flatMap(({ nodes }) => nodes),
    h("label", { for: "act-reason" }, "Reason"),
    reason,
    h("label", { for: "act-note" }, "Note (the player’s data export includes it)"),
    note,
    refused,
    h("p", { class: "row" }, button, h("button", { type: "button", class: "plain", click: close }, "Cancel")),
  );
  const dialog = h("dialog", { "aria-labelledby": "act-title", close: () => dialog.remove() }, form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    refused.replaceChildren();
    try {
      const values = await Promise.all(fields.map(({ value }) => value()));
      const body = {
        ...plan.body,
        ...Object.fromEntries(values.flat()),
        reason: reason.value,
        ...(note.value.trim() ? { note: note.value } : {}),
      };
      const answer = await act(plan.method, plan.path, body);
      dialog.close();
      if (answer.left?.length) tell(`${counted(answer.left.length, "player")} not suspended: select them again.`);
      else
        tell(
          answer.changed === false
            ? "No change needed."
            : `${plan.title}: done.${answer.settled === false ? " Lists and boards follow within minutes." : ""}`,
        );
      await then(answer);
      if (answer.undo) offerUndo(plan.title, answer.undo, reason.value, then);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      refused.append(h("p", { class: "refused", role: "alert" }, sentence(error)));
      button.disabled = false;
      if (error.retryAfter) countDown(error.retryAfter, refused, button);
    }
  });
  document.body.append(dialog);
  dialog.showModal();
  (fields.find(({ input }) => input.required)?.input ?? reason).focus();
}

/**
 * Offer to reverse the last act. The record keeps both acts.
 * @param {string} title @param {{method: string, path: string, body: object}} undo @param {string} reason @param {(answer: any) => unknown} then
 */
function offerUndo(title, { method, path, body }, reason, then) {
  document.getElementById("undo")?.remove();
  if (document.querySelector("dialog[open]")) return;
  const place = h("p", { id: "undo", class: "row" }, `${title}: done.`);
  const button = h(
    "button",
    {
      type: "button",
      click: async () => {
        button.disabled = true;
        try {
          await act(method, inRoot(path), { ...body, reason, note: "Undone." });
          place.remove();
          tell(`${title}: undone.`);
          await then({});
          byId("main").focus({ preventScroll: true });
        } catch (error) {
          if (!(error instanceof Refusal)) throw error;
          place.replaceChildren(h("span", { class: "refused", role: "alert" }, sentence(error)), button);
          button.disabled = false;
          if (error.retryAfter) countDown(error.retryAfter, place, button);
        }
      },
    },
    "Undo",
  );
  place.append(button);
  byId("place").before(place);
  button.focus({ preventScroll: true }); // because the button that opened the dialog is gone
}

/** @param {Field} field */
function fieldOf({ label, name, value = "", kind = "text", hint }) {
  const id = `act-${name}`;
  if (kind === "check") {
    const input = h("input", { id, name, type: "checkbox", checked: value === "true" });
    return {
      input,
      nodes: [h("label", { class: "check" }, input, label)],
      value: () => /** @type {[string, any][]} */ ([[name, input.checked]]),
    };
  }
  if (kind === "progress") {
    const input = h("input", { id, name, type: "file", accept: ".json,application/json", required: true });
    const read = async () => restoring(await /** @type {FileList} */ (input.files)[0].text(), value);
    return { input, nodes: [h("label", { for: id }, label), input], value: read };
  }
  const input = h("input", {
    id,
    name,
    value,
    type: kind === "time" ? "datetime-local" : "text",
    autocomplete: "off",
    required: kind === "text" && !hint,
  });
  const read = () =>
    /** @type {[string, any][]} */ (
      input.value.trim() ? [[name, kind === "time" ? new Date(input.value).toISOString() : input.value]] : []
    );
  return { input, nodes: [h("label", { for: id }, hint ? `${label} (${hint})` : label), input], value: read };
}

/**
 * The fields of a restore, from an export of the account with this id. Its numbers keep their spelling, because some are
 * too large for a number of JavaScript. Throw a Refusal if it has no progress.
 * @param {string} text @param {string} id
 */
function restoring(text, id) {
  const { rawJSON } = /** @type {any} */ (JSON);
  if (!rawJSON) throw new Refusal(0, "old", "This browser can’t keep large numbers; a newer one can.");
  /** @param {string} _ @param {any} value @param {{source: string}} [context] */
  const exact = (_, value, context) => (typeof value === "number" ? rawJSON(context?.source) : value);
  let found;
  try {
    found = JSON.parse(text, exact);
  } catch {
    throw new Refusal(0, "file", "This file is not an export.");
  }
  if (found?.account?.id !== id) throw new Refusal(0, "file", "This file is not an export of this account.");
  if (!found.progress) throw new Refusal(0, "file", "This export has no progress: the player had pushed nothing.");
  return /** @type {[string, any][]} */ ([
    ["progress", found.progress],
    ["games", found.games ?? []],
  ]);
}

/** Fill the page, and return a function that fills it again after an act. @param {() => Promise<(Node | string)[]>} load */
export function show(load) {
  const again = () => fill(byId("place"), load);
  again();
  return again;
}

/**
 * A list that is shown page by page. The browser's history keeps the cursors of the pages, so going back returns to the
 * same page. `load` receives the end of a query string. It returns the nodes to show and the cursor of the next page.
 * @param {string} name @param {(query: string) => Promise<[Node[], string | null]>} load @param {"before" | "after"} [parameter]
 */
export function pages(name, load, parameter = "before") {
  const place = h("div", { class: "pages" });
  /** @param {string[]} cursors of the pages up to this one, except the first @param {boolean} [turned] */
  const turn = async (cursors, turned) => {
    history.replaceState({ ...history.state, [name]: cursors }, "");
    const last = cursors.at(-1);
    await fill(place, async () => {
      const [shown, next] = await load(last ? `&${parameter}=${encodeURIComponent(last)}` : "");
      const [back, on] = parameter === "before" ? ["Newer", "Older"] : ["Back", "More"];
      const buttons = [last && turner(back, cursors.slice(0, -1)), next && turner(on, [...cursors, next])].filter(
        Boolean,
      );
      return buttons.length
        ? [
            ...shown,
            h(
              "nav",
              { class: "acts", "aria-label": `Pages: ${name}` },
              ...buttons,
              h("span", { class: "quiet" }, `Page ${cursors.length + 1}`),
            ),
          ]
        : shown;
    });
    if (turned) place.querySelector("nav")?.scrollIntoView({ block: "nearest" });
    if (turned) /** @type {HTMLElement | null} */ (place.querySelector("nav button"))?.focus({ preventScroll: true });
  };
  const turner = (/** @type {string} */ text, /** @type {string[]} */ cursors) =>
    h("button", { type: "button", click: () => turn(cursors, true) }, text);
  turn(history.state?.[name] ?? []);
  return place;
}

/** Fill a place that is refreshed regularly. If a refresh fails, the old content stays, marked as old. @param {HTMLElement} place @param {() => Promise<(Node | string)[]>} load */
export async function keep(place, load) {
  try {
    place.replaceChildren(...(await load()));
    place.dataset.since = new Date().toLocaleTimeString("en-GB");
  } catch (error) {
    if (!place.dataset.since) return fill(place, () => Promise.reject(error));
    place.querySelector(".old")?.remove();
    place.prepend(
      h("p", { class: "refused old" }, `As of ${place.dataset.since}. The last update failed. `, sentence(error)),
    );
  }
}

/** A state in a coloured frame, such as a verdict. @param {string} state */
export const chip = (state) => h("span", { class: `state ${state}` }, state);

/** The severity of a finding. @param {"ok" | "note" | "wrong"} text */
export const level = chip;

addEventListener("keydown", (event) => {
  if (
    !(event.ctrlKey || event.metaKey) ||
    event.altKey ||
    event.shiftKey ||
    event.key !== "k" ||
    document.querySelector("dialog[open]")
  )
    return;
  event.preventDefault();
  const field = byId("q") ?? byId("find");
  field.focus();
  field.select();
});

const search = byId("find");
if (matchMedia("(pointer: fine) and (min-width: 44rem)").matches) search.placeholder += " (Ctrl+K)";
for (const link of document.querySelectorAll("header nav a")) {
  if (location.pathname.startsWith(`${link.getAttribute("href")}/`)) link.setAttribute("aria-current", "true");
}

/** The id in the path of the page. */
export const ownId = () => location.pathname.split("/")[2];
