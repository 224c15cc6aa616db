// @ts-check
/** /account for a signed-in player: devices, password, export, deletion. Other modules add the other parts. */

import { ask, exchange, me, readOwn } from "./api.js";
import { attempt, composed, field, stack, submits, WRONG_PASSWORD } from "./forms.js";
import { dayKey, gameKey, local, Refusal, username } from "./http.js";
import { showName } from "./display_name.js";
import { follow, replace } from "./live.js";
import { bindAvatar, showAvatar } from "./own_avatar.js";
import { loadCodes } from "./own_codes.js";
import { loadGames } from "./own_games.js";
import { forget } from "./own_journal.js";
import { ago, byId, fill, h, table, tell } from "./page.js";
import { knows } from "./pulled.js";
import { signOut } from "./sign_out.js";
import { standing } from "./standing.js";

/** A short name of a device. @param {string | null} agent its User-Agent */
function device(agent) {
  if (!agent) return "A game or program";
  const browser = /(Edg|OPR|Firefox|Chrome|Safari)\w*\//.exec(agent)?.[1];
  const system = /Android|iPhone|iPad|Windows|Mac OS|Linux/.exec(agent)?.[0];
  const name = { Edg: "Edge", OPR: "Opera" }[browser ?? ""] ?? browser;
  return name ? `${name}${system ? ` on ${system}` : ""}` : agent.slice(0, 60);
}

/** @type {any[]} */
let sessions = [];

/** The table of the sessions. */
async function devices() {
  sessions = await readOwn("/api/sessions");
  byId("sign-out-others").hidden = sessions.length < 2;
  const row = (/** @type {any} */ session) => {
    const refused = h("div");
    const end = () =>
      attempt(refused, async () => {
        if (session.current) return signOut();
        await ask("DELETE", `/api/sessions/${session.id}`);
        await loadDevices();
        byId("devices-heading").focus();
        tell(`Signed out: ${device(session.user_agent)}.`);
      });
    return h(
      "tr",
      {},
      h("th", {}, device(session.user_agent), session.current && h("b", { class: "tag" }, "This browser")),
      h("td", {}, h("span", { class: "narrow" }, "used "), ago(session.used_at)),
      h("td", {}, h("span", { class: "narrow" }, "since "), ago(session.begun_at)),
      h(
        "td",
        {},
        h(
          "button",
          {
            type: "button",
            id: `end-${session.id}`,
            click: end,
            "aria-label": `Sign out: ${device(session.user_agent)}`,
          },
          "Sign out",
        ),
        refused,
      ),
    );
  };
  return [table("Last used first", ["Device", "Used", "Signed in", "End"], sessions.map(row))];
}

const loadDevices = () => fill(byId("devices"), devices);

const signOutOthers = () =>
  attempt(byId("others-refused"), async () => {
    for (const { id, current } of sessions) {
      if (current) continue;
      await ask("DELETE", `/api/sessions/${id}`).catch((error) => {
        if (error.code !== "session_not_found") throw error; // that session has just ended by itself
      });
    }
    await loadDevices();
    byId("devices-heading").focus();
    tell("All other devices are signed out.");
  });

function bindForms() {
  const password = byId("password-form");
  submits(
    password,
    async () => {
      const words = { current_password: password.password.value, new_password: password.new_password.value };
      await composed(words, (body) => exchange("PUT", "/api/session/password", body));
      password.password.value = password.new_password.value = "";
      byId("password").open = false;
      tell("Your password has changed.");
      byId("title").focus();
      await loadDevices();
    },
    WRONG_PASSWORD,
  );
  byId("export").onclick = () =>
    attempt(byId("export-refused"), async () => {
      const link = h("a", {
        download: `solisync-${username()}.json`,
        href: URL.createObjectURL(await (await ask("GET", "/api/me/export")).blob()),
      });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
      tell("Your download has started.");
    });
  byId("sign-out-others").onclick = signOutOthers;
  byId("sign-out").onclick = () => attempt(byId("out-refused"), signOut);
  const form = stack(
    "delete-form",
    [
      h("h2", {}, "Delete the account?"),
      h("p", {}, "This can’t be undone."),
      ...field("delete-name", "Your username", { name: "username", autocomplete: "off", autocapitalize: "none" }),
      ...field("delete-password", "Your password", {
        name: "password",
        type: "password",
        autocomplete: "current-password",
      }),
    ],
    [
      h("button", { class: "danger" }, "Delete my account"),
      h("button", { type: "button", click: () => dialog.close() }, "Keep my account"),
    ],
  );
  const dialog = h("dialog", { "aria-label": "Delete the account?" }, form);
  document.body.append(dialog);
  byId("delete").onclick = () => dialog.showModal();
  submits(
    form,
    async () => {
      const [name, word] = [byId("delete-name").value.trim(), byId("delete-password").value];
      if (name !== (await me(true)).username) throw new Refusal(0, "username_differs", "");
      await composed({ username: name, password: word }, (body) => exchange("POST", "/api/session", body));
      await ask("DELETE", "/api/account");
      await exchange("DELETE", "/api/session").catch(() => {}); // the account is gone; this only removes the cookie
      await forget(name, true);
      for (const key of [gameKey(name), dayKey(name)]) local?.removeItem(key);
      location.assign("/");
    },
    WRONG_PASSWORD,
  );
}

/** The player's progress as elements. */
const facts = () => standing(new Date().toISOString().slice(0, 10));

/** Show the account of the signed-in player. */
export function start() {
  byId("password-user").value = username() ?? "";
  attempt(byId("file-refused"), showAvatar);
  showName(byId("name"));
  fill(byId("standing"), facts);
  loadGames(false);
  loadDevices();
  byId("codes-new").replaceChildren();
  loadCodes();
}

bindAvatar();
bindForms();
follow(
  async () => replace(byId("standing"), await facts()),
  ({ event }) => event === "progress",
  { knows },
);
// No event reports a login elsewhere. A push from another device shows that it is in use.
follow(
  async () => byId("devices").matches(":hover") || replace(byId("devices"), await devices()),
  ({ event, data }) => event === "progress" && !data.own,
  { always: true },
);
