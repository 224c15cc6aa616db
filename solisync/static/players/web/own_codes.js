// @ts-check
/** The player's recovery codes on /account: the number of unused codes, and new codes to print or save. */

import { ask, readOwn } from "./api.js";
import { composed, field, stack, submits, WRONG_PASSWORD } from "./forms.js";
import { json, username } from "./http.js";
import { ago, byId, counted, fill, h, tell } from "./page.js";

/** Show the number of unused codes and when they were created. */
export const loadCodes = () =>
  fill(byId("codes-left"), async () => {
    const { left, created_at } = await readOwn("/api/me/recovery-codes");
    const told = left
      ? [`You have ${counted(left, "unused code")}, created `, ago(created_at), "."]
      : ["You have no codes."];
    return [h("p", {}, ...told)];
  });

/** Save text as a file. @param {string} name @param {string} text */
function save(name, text) {
  const link = h("a", { download: name, href: URL.createObjectURL(new Blob([text], { type: "text/plain" })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** Show new codes, which the server returns only once. @param {{codes: string[], created_at: string}} made */
function showCodes({ codes, created_at }) {
  const date = new Date(created_at).toLocaleString("en-GB", { dateStyle: "long", timeStyle: "short" });
  const about = `Recovery codes of ${username()} at ${location.host}, created on ${date}. Each works once.`;
  const text = [about, "", ...codes, ""].join("\r\n");
  byId("codes-new").replaceChildren(
    h("p", {}, about, " ", h("b", {}, "They won’t be shown again.")),
    h("ul", { class: "codes" }, ...codes.map((code) => h("li", {}, code))),
    h(
      "p",
      { class: "row" },
      h("button", { type: "button", class: "main", click: () => print() }, "Print"),
      h("button", { type: "button", click: () => save(`recovery-codes-${username()}.txt`, text) }, "Save as text"),
    ),
  );
}

const asked = h(
  "div",
  { class: "stack" },
  ...field("codes-password", "Current password", {
    name: "password",
    type: "password",
    autocomplete: "current-password",
    "aria-describedby": "codes-hint",
  }),
  h("p", { class: "quiet", id: "codes-hint" }, "New codes replace all earlier ones."),
);
const form = stack("codes-form", [asked], [h("button", {}, "Create new codes")]);
let known = ""; // the password, if the player has just typed it
let owner = /** @type {string | null} */ (null);

/** Ask for the password, unless it is known. @param {string} password */
function know(password) {
  known = password;
  asked.hidden = Boolean(known);
  byId("codes-password").required = !known;
}

/** Offer codes to a player who has just registered, before all else of the account. @param {string} password @param {string} next the address to go on to, or "" */
export function offerCodes(password, next) {
  know(password);
  owner = username();
  byId("in").prepend(byId("codes"));
  if (next) form.lastElementChild?.append(h("a", { id: "codes-next", class: "button main", href: next }, "Continue"));
}

addEventListener("session", () => {
  if (username() === owner) return;
  know("");
  document.getElementById("codes-next")?.remove();
});

submits(
  form,
  async () => {
    const answer = await composed({ current_password: known || byId("codes-password").value }, (json) =>
      ask("POST", "/api/me/recovery-codes", { json }),
    );
    know("");
    form.reset();
    showCodes(await json(answer));
    tell("Your new codes are ready.");
    await loadCodes();
  },
  WRONG_PASSWORD,
);

byId("codes").append(
  h("h2", {}, "Recovery codes"),
  h(
    "p",
    {},
    "If you forget your password, one of these codes lets you set a new one. Print or save them, and keep them in a safe place. Each works once.",
  ),
  h("div", { id: "codes-left" }),
  h("div", { id: "codes-new" }),
  form,
);
