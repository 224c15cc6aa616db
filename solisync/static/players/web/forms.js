// @ts-check
/** Forms and buttons: what they do, what is refused told beside them, and how to try again. */

import { Refusal } from "./http.js";
import { countDown, h, refuse, sentence } from "./page.js";

/** What errors of forms are about: by code the field, and what they say. */
const FIELDS = /** @type {Record<string, [string, string]>} */ ({
  username_length: ["username", "Choose a username of 3 to 32 characters."],
  username_characters: ["username", "A username can contain only unaccented letters, digits and underscores."],
  username_taken: ["username", "That username is taken. Please choose another."],
  username_differs: ["username", "That isn’t your username."],
  password_length: ["new_password", "Choose a password of at least 8 characters."],
  password_too_long: ["new_password", "That password is too long. Please choose a shorter one."],
  invalid_credentials: ["password", "Wrong username or password."],
  code_refused: ["code", "Wrong username or code, or the code has been used."],
  display_name_empty: ["display_name", "Choose a display name."],
  display_name_length: ["display_name", "A display name can have up to 32 characters."],
  display_name_characters: ["display_name", "A display name can’t contain control characters."],
  avatar_too_large: ["file", "This picture is too large."],
});

/** That the password beside a signed-in player's name is wrong. */
export const WRONG_PASSWORD = "That isn’t your current password.";

/**
 * Do something whenever a form is submitted. What fails is told in the form, which keeps all that was typed. Its box
 * "Show password", if it has one, works.
 * @param {HTMLFormElement} form @param {() => Promise<unknown>} action
 * @param {string} [wrong] what to say of a wrong password
 */
export function submits(form, action, wrong) {
  const place = /** @type {HTMLElement} */ (form.querySelector(".refusal"));
  const button = /** @type {HTMLButtonElement} */ (form.querySelector("button:not([type])"));
  place.id ||= `${form.id}-refusal`;
  const box = /** @type {HTMLInputElement | null} */ (form.querySelector(".reveal"));
  if (box) {
    const field = /** @type {HTMLInputElement} */ (form.querySelector("[autocomplete$=password]"));
    box.onchange = () => { field.type = box.checked ? "text" : "password"; };
    form.onreset = () => { field.type = "password"; };
  }
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
      const [name, text] = FIELDS[error.code] ?? ["", sentence(error)];
      const field = form.elements.namedItem(name);
      place.append(h("p", { class: "refused", role: "alert" }, (error.code === "invalid_credentials" && wrong) || text));
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

/** The box that shows the password of a form, see `submits`. */
export const reveal = () => h("label", { class: "check" }, h("input", { type: "checkbox", class: "reveal" }), " Show password");

/** A form with its fields, the place for what is refused, and its buttons. @param {string} id @param {Node[]} fields @param {Node[]} buttons */
export const stack = (id, fields, buttons) =>
  h("form", { id, class: "stack" }, ...fields, h("div", { class: "refusal" }), h("p", { class: "row" }, ...buttons));

/** @param {string} id @param {string} label @param {Record<string, any>} properties */
export const field = (id, label, properties) => [h("label", { for: id }, label), h("input", { id, required: true, ...properties })];
