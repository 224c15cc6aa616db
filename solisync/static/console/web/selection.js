// @ts-check
/** Rows that an admin chooses, and a bar with what can be done with all of them. */

import { actButton } from "./console.js";
import { counted, h } from "./page.js";

/**
 * `box` makes the checkbox of a row. `bar` has a button that chooses all rows of the page or none, and the buttons for
 * the chosen ones. @template T @param {(chosen: T[]) => (Node | false | null)[]} buttons
 */
export function selection(buttons) {
  /** @type {Map<HTMLInputElement, T>} */
  const rows = new Map();
  const bar = h("p", { class: "acts stuck", hidden: true });
  const change = () => {
    const chosen = [...rows].filter(([box]) => box.checked).map(([, value]) => value);
    const every = chosen.length === rows.size;
    const choose = () => {
      for (const box of rows.keys()) box.checked = !every;
      change();
      /** @type {HTMLElement} */ (bar.firstElementChild).focus();
    };
    bar.replaceChildren(
      h("button", { type: "button", click: choose }, every ? "Select none" : "Select all on this page"),
      ...buttons(chosen).flatMap((each) => each || []),
    );
    bar.hidden = false;
  };
  /** @param {T} value @param {string} label */
  const box = (value, label) => {
    const made = h("input", { type: "checkbox", "aria-label": `Select ${label}`, change });
    rows.set(made, value);
    if (rows.size === 1) queueMicrotask(change);
    return made;
  };
  return { box, bar };
}

/** The button that suspends the chosen players. @param {string[]} ids @param {() => unknown} again */
export function suspendButton(ids, again) {
  const title = `Suspend ${counted(ids.length, "player")}`;
  return actButton(
    {
      title,
      text: "They can’t sign in, guests without a key never again. Other players no longer see their entries and replays.",
      verb: "Suspend",
      method: "POST",
      path: "/suspensions",
      body: { ids },
      danger: true,
    },
    again,
    `${title} …`,
  );
}
