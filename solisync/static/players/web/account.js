// @ts-check
/** /account: signing in and registering. own.js shows the account of a signed-in player. */

import { exchange } from "./api.js";
import { composed, submits } from "./forms.js";
import { local, unkept, username } from "./http.js";
import { byId, tell } from "./page.js";

/** The absolute URL of the parameter `next`, or "" if it isn't on this site. */
function back() {
  const next = new URLSearchParams(location.search).get("next");
  if (!next || !URL.canParse(next, location.href)) return "";
  const { href } = new URL(next, location.href);
  return href.startsWith(`${location.origin}/`) ? href : "";
}

/** @param {HTMLFormElement} form @param {boolean} register */
function enters(form, register) {
  submits(form, async () => {
    const word = register ? form.new_password : form.password;
    const username = form.username.value;
    await composed({ username, password: word.value, ...(register && { register }) }, (body) =>
      exchange("POST", "/api/session", body),
    );
    if (back() && !register) location.assign(back());
    if (register) (await import("./own_codes.js")).offerCodes(word.value, back());
    for (const field of [form.username, word]) field.value = "";
    byId("title").focus();
    tell(
      `Signed in as ${username.trim()}.${register ? " Create recovery codes, in case you forget the password." : ""}`,
    );
  });
}

byId("forgot").ontoggle = () => import("./recover.js");

let shown = "";

async function show() {
  const name = username() ?? "";
  const own = name && name !== shown && (await import("./own.js")); // before it is shown, so that its buttons work
  if (name !== (username() ?? "")) return; // the session has changed, and its event calls show() again
  byId("out").hidden = Boolean(name);
  byId("in").hidden = byId("sign-out").hidden = !name;
  byId("title").textContent = name || "Account";
  byId("insecure").hidden = local !== null && !unkept.username;
  if (own) own.start();
  shown = name;
}

if (location.hash === "#register") byId("new-form").parentElement.prepend(byId("new-form"));
enters(byId("in-form"), false);
enters(byId("new-form"), true);
addEventListener("session", show);
await show();
if (!username()) byId(location.hash === "#register" ? "new-name" : "in-name").focus();
