// @ts-check
/** /reset#<token>: a new password for whoever has a reset link. What follows # is sent in no address. */

import { exchange } from "./api.js";
import { submits } from "./forms.js";
import { byId } from "./page.js";

const form = byId("reset-form");

function show() {
  form.hidden = location.hash.length < 2;
  byId("incomplete").hidden = !form.hidden;
}

submits(form, async () => {
  await exchange("POST", "/api/session/reset", { token: location.hash.slice(1), new_password: form.new_password.value });
  location.replace("/account"); // so that no way back leads to the link
}, "This link has been used, has expired, or was replaced by a newer one.");
addEventListener("hashchange", show);
show();
