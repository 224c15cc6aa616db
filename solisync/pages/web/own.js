// @ts-check
/** /account for who is signed in: avatar, games, devices, password, data. */

import { ask, exchange, local, readOwn, Refusal, username } from "./api.js";
import {
  ago, avatar, byId, clock, counted, fill, h, initial, refuse, say, score, submits, table, words,
} from "./page.js";

/** @typedef {{id: string, deal: string | null, draw_mode: string, mode: string, time_seconds: number, final_score: number,
 *   received_at: string, listed: boolean, size: number, verdict: string}} Game */

const signOut = () => exchange("DELETE", "/api/session");

/** Do something at once; what fails is told in `place`. @param {HTMLElement} place @param {() => Promise<unknown>} action */
async function attempt(place, action) {
  place.replaceChildren();
  try {
    await action();
  } catch (error) {
    refuse(place, error, () => attempt(place, action));
  }
}

// The avatar

/** @type {ImageBitmap | null} */
let picture = null;
const canvas = h("canvas", { width: 512, height: 512, role: "img", "aria-label": "Preview" });

/** A form with its fields, the place for what is refused, and its buttons. @param {string} id @param {Node[]} fields @param {Node[]} buttons */
const stack = (id, fields, buttons) =>
  h("form", { id, class: "stack" }, ...fields, h("div", { class: "refusal" }), h("p", { class: "row" }, ...buttons));

/** @param {string} id @param {string} label @param {Record<string, any>} properties */
const field = (id, label, properties) => [h("label", { for: id }, label), h("input", { id, required: true, ...properties })];

async function showAvatar() {
  const { username: name, avatar_url: path } = await readOwn("/api/me");
  if (path) local?.setItem("solisync.avatar", path); // for the header of all pages
  else local?.removeItem("solisync.avatar");
  byId("avatar-remove").hidden = !path;
  dispatchEvent(new Event("session"));
  byId("avatar").replaceChildren(path ? await avatar(path, "Your avatar") : initial(name));
}

function crop() {
  if (!picture) return;
  const side = Math.min(picture.width, picture.height) / Number(byId("zoom").value);
  const left = (picture.width - side) * Number(byId("x").value);
  const top = (picture.height - side) * Number(byId("y").value);
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.drawImage(picture, left, top, side, side, 0, 0, canvas.width, canvas.height);
}

function bindAvatar() {
  const range = { type: "range", min: 0, max: 1, step: 0.01, input: crop };
  const form = stack("crop", [canvas, ...field("zoom", "Size", { ...range, min: 1, max: 4 }), ...field("x", "Left and right", range),
    ...field("y", "Up and down", range)], [h("button", { class: "main" }, "Use this picture")]);
  form.hidden = true;
  byId("crop-place").append(form);
  byId("file").onchange = async () => {
    const [file] = byId("file").files;
    if (!file) return;
    byId("file-refused").replaceChildren();
    try {
      picture = await createImageBitmap(file);
    } catch {
      byId("file-refused").append(h("p", { class: "refused", role: "alert" }, "This file is not a picture that your browser can read."));
      return;
    }
    for (const [id, value] of Object.entries({ zoom: 1, x: 0.5, y: 0.5 })) byId(id).value = value;
    form.hidden = false;
    crop();
    byId("zoom").focus();
  };
  submits(form, async () => {
    /** @type {Blob | null} */
    const drawn = await new Promise((resolve) => canvas.toBlob(resolve, "image/webp", 0.9));
    if (!drawn) return;
    await ask("PUT", "/api/me/avatar", { body: drawn });
    form.hidden = true;
    byId("file").value = "";
    await showAvatar();
    byId("file").focus();
    say("Your avatar has changed.");
  });
  byId("avatar-remove").onclick = () => attempt(byId("file-refused"), async () => {
    await ask("DELETE", "/api/me/avatar");
    await showAvatar();
    byId("file").focus();
    say("Your avatar is removed.");
  });
}

// Games

/** @type {string | null} */
let next = null;

/** Ask before a game is deleted. @param {string} question @param {string} path @param {() => void} done */
function askAndDelete(question, path, done) {
  const refused = h("div", { id: "game-refused" });
  const go = () => attempt(refused, async () => {
    await ask("DELETE", path);
    dialog.close();
    done();
  });
  const dialog = h("dialog", { "aria-label": question, close: () => dialog.remove() },
    h("h2", {}, question), h("p", {}, "Its link stops working, and it leaves the boards. This can’t be undone."), refused,
    h("form", { method: "dialog", class: "row" }, h("button", {}, "Keep it"),
      h("button", { type: "button", class: "danger", id: "game-delete", click: go }, "Delete")));
  document.body.append(dialog);
  dialog.showModal();
}

/** @param {Game} game */
function gameRow(game) {
  const refused = h("div");
  const path = `/api/replays/${game.id}`;
  const name = `${score(game.final_score)} points`;
  const listed = h("input", { type: "checkbox", "aria-label": `Listed: ${name}`, change: () => {
    const wanted = listed.checked;
    attempt(refused, async () => {
      listed.checked = wanted;
      await ask("PUT", `${path}/listed`, { json: { listed: wanted } }).catch((error) => {
        listed.checked = !wanted;
        throw error;
      });
      say(wanted ? "Listed" : "Not listed any more");
    });
  } });
  listed.checked = game.listed;
  const remove = h("button", { type: "button", class: "danger", "aria-label": `Delete ${name}`, click: () => {
    askAndDelete(`Delete the game with ${name}?`, path, () => {
      row.remove();
      byId("games-heading").focus();
      say("Deleted");
    });
  } }, "Delete");
  const row = h("tr", {},
    h("th", {}, h("a", { href: `/replays/${game.id}` }, name)),
    h("td", { class: "number" }, clock(game.time_seconds)),
    h("td", {}, `${words(game.draw_mode)}, ${words(game.mode)}`),
    h("td", {}, words(game.verdict)),
    h("td", {}, ago(game.received_at)),
    h("td", {}, h("label", { class: "check" }, listed, "Listed"), refused),
    h("td", {}, remove));
  return row;
}

/** @param {boolean} further */
async function loadGames(further) {
  const place = byId("games");
  const before = further ? [...place.querySelectorAll("tbody tr")] : [];
  const query = further && next ? `&before=${encodeURIComponent(next)}` : "";
  await attempt(further ? byId("more-refused") : place, async () => {
    const page = await readOwn(`/api/me/replays?limit=20${query}`);
    next = page.next;
    const rows = [...before, ...page.replays.map(gameRow)];
    const heads = ["Score", "Time", "Game", "Check", "Received", "Listed", "Delete"];
    place.replaceChildren(rows.length ? table("The newest first", heads, rows)
      : h("p", { class: "quiet" }, "No games yet. Your game uploads them when you win and are signed in there."));
    byId("more-place").hidden = !next;
  });
}

// Devices

/** A device in a few words. @param {string | null} agent its User-Agent */
function device(agent) {
  if (!agent) return "A game or program";
  const browser = /(Edg|OPR|Firefox|Chrome|Safari)\w*\//.exec(agent)?.[1];
  const system = /Android|iPhone|iPad|Windows|Mac OS|Linux/.exec(agent)?.[0];
  const name = { Edg: "Edge", OPR: "Opera" }[browser ?? ""] ?? browser;
  return name ? `${name}${system ? ` on ${system}` : ""}` : agent.slice(0, 60);
}

async function loadDevices() {
  await fill(byId("devices"), async () => {
    const row = (/** @type {any} */ session) => {
      const refused = h("div");
      const end = () => attempt(refused, async () => {
        if (session.current) return signOut();
        await ask("DELETE", `/api/sessions/${session.id}`);
        await loadDevices();
        byId("devices-heading").focus();
        say("Signed out there");
      });
      return h("tr", {},
        h("th", {}, device(session.user_agent), session.current && h("b", { class: "tag" }, "This browser")),
        h("td", {}, h("span", { class: "narrow" }, "used "), ago(session.used_at)),
        h("td", {}, h("span", { class: "narrow" }, "since "), ago(session.begun_at)),
        h("td", {}, h("button", { type: "button", click: end, "aria-label": `Sign out: ${device(session.user_agent)}` }, "Sign out"), refused));
    };
    return [table("Last used first", ["Device", "Used", "Signed in", "End"], (await readOwn("/api/sessions")).map(row))];
  });
}

// Password, export, deletion

function bindForms() {
  const password = byId("password-form");
  submits(password, async () => {
    await exchange("PUT", "/api/session/password", {
      current_password: password.password.value, new_password: password.next.value,
    });
    password.password.value = password.next.value = "";
    say("Your password has changed.");
    byId("title").focus();
    await loadDevices();
  });
  byId("export").onclick = () => attempt(byId("export-refused"), async () => {
    const link = h("a", { download: `solisync-${username()}.json`, href: URL.createObjectURL(await (await ask("GET", "/api/me/export")).blob()) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    say("Your data is being saved.");
  });
  byId("sign-out").onclick = () => attempt(byId("out-refused"), signOut);
  const form = stack("delete-form",
    [h("h2", {}, "Delete the account?"), h("p", {}, "This can’t be undone."),
      ...field("delete-name", "Your user name", { name: "username", autocomplete: "off", autocapitalize: "none" }),
      ...field("delete-password", "Your password", { name: "password", type: "password", autocomplete: "current-password" })],
    [h("button", { class: "danger" }, "Delete it all"), h("button", { type: "button", click: () => dialog.close() }, "Keep it")]);
  const dialog = h("dialog", { "aria-label": "Delete the account?" }, form);
  document.body.append(dialog);
  byId("delete").onclick = () => dialog.showModal();
  submits(form, async () => {
    const [name, word] = [byId("delete-name").value.trim(), byId("delete-password").value];
    if (name !== username()) throw new Refusal(0, "user", "that is not your user name");
    await exchange("POST", "/api/session", { username: name, password: word });
    await ask("DELETE", "/api/account");
    await exchange("DELETE", "/api/session").catch(() => {}); // there is nothing left to end but the cookie
    location.assign("/");
  });
}

/** Show all that belongs to the player. */
export function start() {
  byId("password-user").value = username() ?? "";
  attempt(byId("file-refused"), showAvatar);
  loadGames(false);
  loadDevices();
}

byId("more").onclick = () => loadGames(true);
bindAvatar();
bindForms();
