// @ts-check
/** Forms and buttons: what they do, what is refused told beside them, and how to try again. */

import { Refusal } from "./http.js";
import { countDown, h, refuse, sentence } from "./page.js";

/** The field that an error is about, by the error's code. */
const FIELDS = /** @type {Record<string, string>} */ ({
  username_length: "username", username_characters: "username", username_taken: "username", username_differs: "username",
  password_length: "new_password", password_too_long: "new_password", invalid_credentials: "password",
  display_name_empty: "display_name", display_name_length: "display_name", display_name_characters: "display_name",
});

/**
 * Do something whenever a form is submitted. What fails is told in the form, which keeps all that was typed.
 * @param {HTMLFormElement} form @param {() => Promise<unknown>} action
 */
export function submits(form, action) {
  const place = /** @type {HTMLElement} */ (form.querySelector(".refusal"));
  const button = /** @type {HTMLButtonElement} */ (form.querySelector("button:not([type])"));
  place.id ||= `${form.id}-refusal`;
  form.onsubmit = async (event) => {
    event.preventDefault();
    if (button.disabled) return;
    place.replaceChildren();
    form.querySelector("[aria-invalid]")?.removeAttribute("aria-invalid");
    button.disabled = true;
    let wait = 0;
    try {
      await action();
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const field = form.elements.namedItem(FIELDS[error.code] ?? "");
      place.append(h("p", { class: "refused", role: "alert" }, sentence(error)));
      if (field instanceof HTMLInputElement) {
        field.setAttribute("aria-invalid", "true");
        field.setAttribute("aria-describedby", `${field.getAttribute("aria-describedby") ?? ""} ${place.id}`.trim());
        field.focus();
      }
      wait = error.wait;
    } finally {
      button.disabled = false;
      if (wait) countDown(wait, place, button);
    }
  };
}

/** Do something at once; what fails is told in `place`. @param {HTMLElement} place @param {() => Promise<unknown>} action */
export async function attempt(place, action) {
  place.replaceChildren();
  try {
    await action();
  } catch (error) {
    refuse(place, error, () => attempt(place, action));
  }
}

/** A form with its fields, the place for what is refused, and its buttons. @param {string} id @param {Node[]} fields @param {Node[]} buttons */
export const stack = (id, fields, buttons) =>
  h("form", { id, class: "stack" }, ...fields, h("div", { class: "refusal" }), h("p", { class: "row" }, ...buttons));

/** @param {string} id @param {string} label @param {Record<string, any>} properties */
export const field = (id, label, properties) => [h("label", { for: id }, label), h("input", { id, required: true, ...properties })];
