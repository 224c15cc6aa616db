// @ts-check
/** The sign-in dialog. It opens over the page, so that text typed there stays. */

import { Refusal, send } from "./http.js";
import { countDown, h, sentence } from "./page.js";

/** @type {Promise<void> | undefined} */
let waiting;

/** Open the dialog, and resolve after the admin has signed in. Waiting requests share one dialog. */
export function signIn() {
  waiting ??= shown().finally(() => (waiting = undefined));
  return waiting;
}

/** @returns {Promise<void>} */
const shown = () =>
  new Promise((done) => {
    const name = h("input", {
      id: "sign-in-name",
      name: "name",
      required: true,
      autocomplete: "username",
      autocapitalize: "none",
      spellcheck: "false",
    });
    const code = h("input", {
      id: "sign-in-code",
      name: "code",
      required: true,
      autocomplete: "one-time-code",
      autocapitalize: "characters",
      spellcheck: "false",
    });
    const refused = h("div");
    const button = h("button", { class: "main" }, "Sign in");
    const form = h(
      "form",
      { id: "sign-in" },
      h("h2", { id: "sign-in-title" }, "Sign in"),
      h("p", {}, "To get a code that works once, run ", h("code", {}, "solisync admins code NAME"), " on the server."),
      h("label", { for: "sign-in-name" }, "Name"),
      name,
      h("label", { for: "sign-in-code" }, "Code"),
      code,
      refused,
      h("p", { class: "row" }, button),
    );
    const dialog = h(
      "dialog",
      { "aria-labelledby": "sign-in-title", cancel: (/** @type {Event} */ event) => event.preventDefault() },
      form,
    );
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      button.disabled = true;
      refused.replaceChildren();
      try {
        const body = JSON.stringify({ name: name.value.trim(), code: code.value });
        const answer = await send("/api/admin/session", {
          method: "POST",
          headers: { "Content-Type": "application/json" },
          body,
        });
        await answer.json(); // else browsers count the request as unfinished
        dialog.close();
        dialog.remove();
        done();
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        const text = error.code === "invalid_credentials" ? "Wrong name or code." : sentence(error);
        refused.append(h("p", { class: "refused", role: "alert" }, text));
        button.disabled = false;
        if (error.retryAfter) countDown(error.retryAfter, refused, button);
        code.focus();
      }
    });
    const [given, secret] = location.hash.slice(1).split("="); // from the link that make run prints
    if (secret) {
      history.replaceState(null, "", location.pathname + location.search);
      name.value = given;
      code.value = secret;
    }
    document.body.append(dialog);
    dialog.showModal();
    if (secret) button.focus();
  });
