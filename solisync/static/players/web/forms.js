// @ts-check
/** Forms and buttons that show errors beside them, with a way to try again. */

import { Refusal } from "./http.js";
import { countDown, h, refuse, sentence } from "./page.js";

/** For each error code of a form, the field that it concerns and the text to show. */
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

/** Send passwords with their letters composed (NFC), as most keyboards do. If the service refuses the current password, try it as it was typed: an older one may be stored so. @param {Record<string, any>} body @param {(body: Record<string, any>) => Promise<any>} send */
export async function composed(body, send) {
  const given = Object.entries(body);
  const [sent, typed] = [/password$/, /^new_password$/].map((names) =>
    Object.fromEntries(given.map(([name, value]) => [name, names.test(name) ? value.normalize() : value])),
  );
  return send(sent).catch((error) => {
    if (error.code !== "invalid_credentials" || given.every(([name]) => sent[name] === typed[name])) throw error;
    return send(typed);
  });
}

/** The text for a wrong password of a signed-in player. */
export const WRONG_PASSWORD = "That isn’t your current password.";

/**
 * Run `action` whenever a form is submitted. The form shows errors and keeps its values. A box "Show password" works
 * if the form has one.
 * @param {HTMLFormElement} form @param {() => Promise<unknown>} action
 * @param {string} [wrong] the text for a wrong password
 */
export function submits(form, action, wrong) {
  const place = /** @type {HTMLElement} */ (form.querySelector(".refusal"));
  const button = /** @type {HTMLButtonElement} */ (form.querySelector("button:not([type])"));
  place.id ||= `${form.id}-refusal`;
  const box = /** @type {HTMLInputElement | null} */ (form.querySelector(".reveal"));
  if (box) {
    const field = /** @type {HTMLInputElement} */ (form.querySelector("[autocomplete$=password]"));
    box.onchange = () => {
      field.type = box.checked ? "text" : "password";
    };
    form.onreset = () => {
      field.type = "password";
    };
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
      place.append(
        h("p", { class: "refused", role: "alert" }, (error.code === "invalid_credentials" && wrong) || text),
      );
      if (field instanceof HTMLInputElement) {
        field.setAttribute("aria-invalid", "true");
        field.setAttribute("aria-describedby", `${field.getAttribute("aria-describedby") ?? ""} ${place.id}`.trim());
        field.focus();
      }
      wait = error.retryAfter;
    } finally {
      button.disabled = false;
      if (wait) countDown(wait, place, button);
    }
  };
}

/** Run `action` immediately, and show an error in `place`. @param {HTMLElement} place @param {() => Promise<unknown>} action */
export async function attempt(place, action) {
  place.replaceChildren();
  try {
    await action();
  } catch (error) {
    refuse(place, error, () => attempt(place, action));
  }
}

/** The box "Show password" of a form; `submits` makes it work. */
export const reveal = () =>
  h("label", { class: "check" }, h("input", { type: "checkbox", class: "reveal" }), " Show password");

/** A form with its fields, a place for errors, and its buttons. @param {string} id @param {Node[]} fields @param {Node[]} buttons */
export const stack = (id, fields, buttons) =>
  h("form", { id, class: "stack" }, ...fields, h("div", { class: "refusal" }), h("p", { class: "row" }, ...buttons));

/** @param {string} id @param {string} label @param {Record<string, any>} properties */
export const field = (id, label, properties) => [
  h("label", { for: id }, label),
  h("input", { id, required: true, ...properties }),
];
