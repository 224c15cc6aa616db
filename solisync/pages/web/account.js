// @ts-check
/** /account: signing in and registering; what is there for who is signed in comes from own.js. */

import { exchange, local, username } from "./api.js";
import { byId, say, submits } from "./page.js";

/** Where the player came from, if from here. */
function back() {
  const next = new URLSearchParams(location.search).get("next") ?? "";
  const { origin, pathname, search } = new URL(next || "/account", location.href);
  return origin === location.origin ? pathname + search : "/account";
}

/** @param {HTMLFormElement} form @param {boolean} register */
function enters(form, register) {
  submits(form, async () => {
    const [username, password] = [form.username.value, form.password.value];
    await exchange("POST", "/api/session", { username, password, ...(register && { register }) });
    if (back() !== "/account") location.assign(back());
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
