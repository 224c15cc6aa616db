// @ts-check
/** The settings and the keys of /play, and the board as text. It loads after the first cards. */

import { keepSettings } from "./game.js";
import { byId, h } from "./page.js";

const KEYS = /** @type {Record<string, string>} */ ({
  u: "undo",
  "ctrl+z": "undo",
  "ctrl+y": "redo",
  "ctrl+shift+z": "redo",
  h: "hint",
  n: "new",
  "?": "help-open",
});
const REPEATED = ["undo", "redo"]; // while the key is held

/** Show the settings, and apply their changes. @param {import("./game.js").Settings} chosen @param {() => void} apply */
function bindSettings(chosen, apply) {
  const form = /** @type {HTMLFormElement} */ (byId("settings"));
  for (const [name, value] of Object.entries(chosen)) {
    const field = form.elements.namedItem(name);
    if (field instanceof HTMLInputElement) field.checked = Boolean(value);
    else if (field instanceof RadioNodeList) field.value = String(value);
  }
  form.onchange = () => {
    const given = new FormData(form);
    for (const [name, value] of Object.entries(chosen))
      if (typeof value === "boolean") Object.assign(chosen, { [name]: given.has(name) });
    chosen.draw = given.get("draw") === "3" ? 3 : 1;
    keepSettings(chosen);
    apply();
  };
  form.onsubmit = (event) => event.preventDefault();
}

/** @param {import("./game.js").Settings} chosen @param {() => void} apply called after a change of the settings @param {Record<string, () => void>} actions by name */
export function start(chosen, apply, actions) {
  bindSettings(chosen, apply);
  addEventListener("keydown", (event) => {
    const { key, ctrlKey, metaKey, shiftKey, target } = event;
    const field = target instanceof Element && target.matches("input:not([type=checkbox], [type=radio])");
    if (field || event.altKey || document.querySelector("dialog[open]")) return;
    const ctrl = ctrlKey || metaKey; // Macs have Cmd instead
    if (!ctrl && !chosen.keys) return; // speech input presses letters by accident (WCAG 2.1.4)
    const name = KEYS[`${ctrl ? "ctrl+" : ""}${ctrl && shiftKey ? "shift+" : ""}${key.toLowerCase()}`];
    if (!name) return;
    event.preventDefault();
    if (!event.repeat || REPEATED.includes(name)) actions[name]();
  });
}

/** Show the whole board as text. @param {Record<string, HTMLElement>} lists by pile */
export function readBoard(lists) {
  const place = byId("read-out");
  const lines = Object.values(lists).map((list) => h("p", {}, list.getAttribute("aria-label")));
  place.replaceChildren(...lines, h("p", {}, byId("points").textContent));
  place.hidden = false;
  place.focus();
}
