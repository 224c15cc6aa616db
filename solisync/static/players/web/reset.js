// @ts-check
/** /reset#<token>: a new password for the holder of a reset link. Browsers don't send the part after #. */

import { exchange } from "./api.js";
import { composed, submits } from "./forms.js";
import { byId } from "./page.js";

const form = byId("reset-form");

function show() {
  form.hidden = location.hash.length < 2;
  byId("incomplete").hidden = !form.hidden;
}

submits(
  form,
  async () => {
    const body = { token: location.hash.slice(1), new_password: form.new_password.value };
    await composed(body, (body) => exchange("POST", "/api/session/reset", body));
    location.replace("/account"); // replace, so that Back doesn't lead to the link
  },
  "This link has been used, has expired, or was replaced by a newer one.",
);
addEventListener("hashchange", show);
show();
