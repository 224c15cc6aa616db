// @ts-check
/** The form on /account to replace a forgotten password with a recovery code. */

import { exchange } from "./api.js";
import { composed, field, reveal, stack, submits } from "./forms.js";
import { Refusal } from "./http.js";
import { byId, h, tell } from "./page.js";

const form = stack(
  "recover-form",
  [
    h(
      "p",
      {},
      "One of your recovery codes lets you set a new password. If you have none, ask the operator of this site for a link.",
    ),
    ...field("recover-name", "Username", { name: "username", autocomplete: "username", autocapitalize: "none" }),
    ...field("recover-code", "Recovery code", {
      name: "code",
      autocomplete: "off",
      autocapitalize: "characters",
      spellcheck: "false",
    }),
    ...field("recover-password", "New password", {
      name: "new_password",
      type: "password",
      autocomplete: "new-password",
      "aria-describedby": "recover-hint",
    }),
    h("p", { class: "quiet", id: "recover-hint" }, "At least 8 characters. This signs out all your devices."),
    reveal(),
  ],
  [h("button", { class: "main" }, "Set the new password")],
);

submits(form, async () => {
  const { username, code, new_password } = Object.fromEntries(new FormData(form));
  try {
    await composed({ username, code, new_password }, (body) => exchange("POST", "/api/session/recover", body));
  } catch (error) {
    throw error.code === "invalid_credentials" ? new Refusal(error.status, "code_refused", "") : error;
  }
  form.reset();
  byId("forgot").open = false;
  byId("title").focus();
  tell("Your password has changed, and you are signed in.");
});
byId("forgot").append(form);
