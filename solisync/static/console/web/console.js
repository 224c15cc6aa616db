// @ts-check
/** What the pages of the console share: tables, facts, links, and the dialog in which somebody acts. */

import { act } from "./api.js";
import { Refusal } from "./http.js";
import { ago, byId, countDown, counted, fill, h, sentence, table, tell } from "./page.js";

const REASONS = {
  "": "Choose a reason",
  name: "Name",
  avatar: "Avatar",
  cheating: "Cheating",
  spam: "Spam",
  takeover: "Account taken over",
  request: "The player’s request",
  legal: "Legal",
  other: "Other (with a note)",
};

/** @typedef {{label: string, name: string, value?: string, kind?: "text" | "check" | "time", hint?: string}} Field */
/** @typedef {{title: string, text: string, verb: string, method: string, path: string, body?: object, fields?: Field[], reason?: keyof typeof REASONS, danger?: boolean, undo?: object | false}} Plan `undo`: the body that takes it back */

/** Text of a player, which can't change the direction of what is around it. @param {string | null | undefined} text */
export const bdi = (text) => h("bdi", {}, text ?? "–");

/** A name; in a table it ends in an ellipsis if it is long, and its title has all of it. @param {string | null | undefined} text */
export const nameOf = (text) => h("bdi", { class: "name", title: text }, text ?? "–");

/** A player by name. @param {string} id @param {string} name */
export const playerLink = (id, name) => h("a", { href: `/players/${id}` }, nameOf(name));

/** @param {string} id @param {string} [text] */
export const replayLink = (id, text = id.slice(0, 8)) => h("a", { href: `/replays/${id}` }, text);

/** Whether a replay is in lists. @param {{held: boolean, listed: boolean}} replay @returns {string} */
export const listing = ({ held, listed }) => (held ? "held" : listed ? "listed" : "hidden");

/** A moment, or a dash. @param {string | null | undefined} time */
export const when = (time) => (time ? ago(time) : "–");

/** Facts by their names. @param {[string, Node | string | number | null | undefined][]} facts */
export const factList = (facts) =>
  h("dl", { class: "facts" }, ...facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value ?? "–"))));

/**
 * A section with a table, or with the words for none.
 * @param {string} title @param {string[]} heads @param {(Node | string | number | null)[][]} rows @param {string} none
 */
export function section(title, heads, rows, none) {
  const cells = rows.map((row) => h("tr", {}, ...row.map((cell, index) => h(index ? "td" : "th", index ? {} : { scope: "row" }, cell ?? "–"))));
  return h("section", {}, h("h2", {}, title), cells.length ? table(title, heads, cells) : h("p", { class: "quiet" }, none));
}

/** A button that opens a dialog. @param {Plan} plan @param {() => unknown} then @param {string} [text] */
export const actButton = (plan, then, text = `${plan.verb} …`) =>
  h("button", { type: "button", class: plan.danger && "danger", click: () => confirm(plan, then) }, text);

/** Ask for the reason, act, and tell what has happened. @param {Plan} plan @param {(answer: any) => unknown} then */
export function confirm(plan, then) {
  const reason = h("select", { id: "act-reason", name: "reason", required: true }, ...Object.entries(REASONS).map(([value, text]) => h("option", { value, selected: value === (plan.reason ?? "") }, text)));
  const note = h("textarea", { id: "act-note", name: "note", maxlength: 500, rows: 2 });
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
    h("label", { for: "act-note" }, "Note, which the player gets with an export"),
    note,
    refused,
    h("p", { class: "row" }, button, h("button", { type: "button", class: "plain", click: close }, "Cancel")),
  );
  const dialog = h("dialog", { "aria-labelledby": "act-title", close: () => dialog.remove() }, form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    refused.replaceChildren();
    const body = { ...plan.body, ...Object.fromEntries(fields.flatMap(({ value }) => value())), reason: reason.value, ...(note.value.trim() ? { note: note.value } : {}) };
    try {
      const answer = await act(plan.method, plan.path, body);
      dialog.close();
      if (answer.left?.length) tell(`There was no time for ${counted(answer.left.length, "player")}: choose them again.`);
      else tell(answer.changed === false ? "It was so already." : `${plan.title}: done.`);
      await then(answer);
      if (answer.changed) offerUndo(plan, reason.value, then);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      refused.append(h("p", { class: "refused", role: "alert" }, sentence(error)));
      button.disabled = false;
      if (error.wait) countDown(error.wait, refused, button);
    }
  });
  document.body.append(dialog);
  dialog.showModal();
  (fields.find(({ input }) => input.required)?.input ?? reason).focus();
}

/** Offer to take back what was done last; the record has both. @param {Plan} plan @param {string} reason @param {(answer: any) => unknown} then */
function offerUndo({ title, method, path, undo }, reason, then) {
  document.getElementById("undo")?.remove();
  if (!undo || document.querySelector("dialog[open]")) return;
  const place = h("p", { id: "undo", class: "row" }, `${title}: done.`);
  const button = h("button", {
    type: "button",
    click: async () => {
      button.disabled = true;
      try {
        await act(method, path, { ...undo, reason, note: "Taken back." });
        place.remove();
        tell(`${title}: taken back.`);
        await then({});
        byId("main").focus({ preventScroll: true });
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        place.replaceChildren(h("span", { class: "refused", role: "alert" }, sentence(error)), button);
        button.disabled = false;
        if (error.wait) countDown(error.wait, place, button);
      }
    },
  }, "Undo");
  place.append(button);
  byId("place").before(place);
  button.focus({ preventScroll: true }); // the button that opened the dialog is gone
}

/** @param {Field} field */
function fieldOf({ label, name, value = "", kind = "text", hint }) {
  const id = `act-${name}`;
  if (kind === "check") {
    const input = h("input", { id, name, type: "checkbox", checked: value === "true" });
    return { input, nodes: [h("label", { class: "check" }, input, label)], value: () => /** @type {[string, any][]} */ ([[name, input.checked]]) };
  }
  const input = h("input", { id, name, value, type: kind === "time" ? "datetime-local" : "text", autocomplete: "off", required: kind === "text" && !hint });
  const read = () => /** @type {[string, any][]} */ (input.value.trim() ? [[name, kind === "time" ? new Date(input.value).toISOString() : input.value]] : []);
  return { input, nodes: [h("label", { for: id }, hint ? `${label} (${hint})` : label), input], value: read };
}

/** Fill the page, and again after an act. @param {() => Promise<(Node | string)[]>} load */
export function show(load) {
  const again = () => fill(byId("place"), load);
  again();
  return again;
}

/**
 * A list that is shown page by page. Which page that is stays with the entry in the history of the browser, so that one
 * comes back to it. `load` gets the end of a query, and gives what is shown and where the next page begins.
 * @param {string} name @param {(query: string) => Promise<[Node[], string | null]>} load @param {"before" | "after"} [parameter]
 */
export function pages(name, load, parameter = "before") {
  const place = h("div", { class: "pages" });
  /** @param {string[]} cursors of the pages up to this one, but the first @param {boolean} [turned] */
  const turn = async (cursors, turned) => {
    history.replaceState({ ...history.state, [name]: cursors }, "");
    const last = cursors.at(-1);
    await fill(place, async () => {
      const [shown, next] = await load(last ? `&${parameter}=${encodeURIComponent(last)}` : "");
      const [back, on] = parameter === "before" ? ["Newer", "Older"] : ["Back", "More"];
      const buttons = [last && turner(back, cursors.slice(0, -1)), next && turner(on, [...cursors, next])].filter(Boolean);
      return buttons.length ? [...shown, h("nav", { class: "acts", "aria-label": `Pages: ${name}` }, ...buttons, h("span", { class: "quiet" }, `Page ${cursors.length + 1}`))] : shown;
    });
    if (turned) place.querySelector("nav")?.scrollIntoView({ block: "nearest" });
    if (turned) /** @type {HTMLElement | null} */ (place.querySelector("nav button"))?.focus({ preventScroll: true });
  };
  const turner = (/** @type {string} */ text, /** @type {string[]} */ cursors) => h("button", { type: "button", click: () => turn(cursors, true) }, text);
  turn(history.state?.[name] ?? []);
  return place;
}

/** Fill a place that is filled again and again: where that fails, what it has stays, marked as old. @param {HTMLElement} place @param {() => Promise<(Node | string)[]>} load */
export async function keep(place, load) {
  try {
    place.replaceChildren(...(await load()));
    place.dataset.since = new Date().toLocaleTimeString("en-GB");
  } catch (error) {
    if (!place.dataset.since) return fill(place, () => Promise.reject(error));
    place.querySelector(".old")?.remove();
    place.prepend(h("p", { class: "refused old" }, `Of ${place.dataset.since}, because nothing newer can be had. `, sentence(error)));
  }
}

/** How bad a finding is. @param {"ok" | "note" | "wrong"} text */
export const level = (text) => h("span", { class: text === "wrong" ? "state" : "quiet" }, text);

addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey || event.key !== "k" || document.querySelector("dialog[open]")) return;
  event.preventDefault();
  const field = byId("q") ?? byId("find");
  field.focus();
  field.select();
});

/** What stands last in the path of the page. */
export const ownId = () => location.pathname.split("/")[2];
