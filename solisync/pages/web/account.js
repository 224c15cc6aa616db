// @ts-check
/** /account: signing in and registering; what is there for who is signed in comes from own.js. */

import { exchange, local, username } from "./api.js";
import { byId, say, submits } from "./page.js";

/** The URL on this site that `next` asks for, absolute so that nothing resolves it again; "" for any other. */
function back() {
  const next = new URLSearchParams(location.search).get("next");
  if (!next || !URL.canParse(next, location.href)) return "";
  const { href } = new URL(next, location.href);
  return href.startsWith(`${location.origin}/`) ? href : "";
}

/** @param {HTMLFormElement} form @param {boolean} register */
function enters(form, register) {
  submits(form, async () => {
    const [username, password] = [form.username.value, form.password.value];
    await exchange("POST", "/api/session", { username, password, ...(register && { register }) });
    if (back()) location.assign(back());
    for (const field of [form.username, form.password]) field.value = "";
    byId("title").focus();
    say(`Signed in as ${username}`);
  });
}

let shown = "";

async function show() {
  const name = username() ?? "";
  byId("out").hidden = Boolean(name);
  byId("in").hidden = byId("sign-out").hidden = !name;
  byId("title").textContent = name || "Account";
  byId("insecure").hidden = Boolean(local);
  if (name && name !== shown) (await import("./own.js")).start();
  shown = name;
}

enters(byId("in-form"), false);
enters(byId("new-form"), true);
addEventListener("session", show);
show();
