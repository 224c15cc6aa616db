// @ts-check
/** The service, who may sign in, and one's own sessions. */

import { act, read } from "./api.js";
import { bdi, factList, level, nameOf, section, show, when } from "./console.js";
import { h, score, tell } from "./page.js";

/** @param {string} path @param {string} text */
const end = async (path, text) => {
  await act("DELETE", path);
  tell(text);
  await again();
};

const again = show(async () => {
  const parts = ["/service", "/service/findings", "/service/settings", "/service/migrations", "/admins", "/me"];
  const [service, { findings }, { settings }, { migrations }, { admins }, me] = await Promise.all(parts.map(read));
  return [
    factList([["Version", service.version], ["Schema", service.schema], ["Analytics events, about", score(service.rows.analytics_events)], ["Verdicts, about", score(service.rows.verdicts)], ["Avatars, about", score(service.rows.avatars)]]),
    section("Findings", ["Check", "Level", "What", "Advice"], findings.map((/** @type {any} */ each) => [each.subject, level(each.level), bdi(each.text), bdi(each.advice)]), ""),
    section("Admins", ["Name", "Added", "Sessions", "Last use"], admins.map((/** @type {any} */ each) => [nameOf(each.name), when(each.added_at), each.sessions, when(each.used_at)]), ""),
    section(`Your sessions, ${me.name}`, ["Browser", "From", "Begun", "Used", "End"], me.sessions.map((/** @type {any} */ each) => [bdi(each.user_agent), each.client, when(each.begun_at), when(each.used_at), each.id === me.current ? h("button", { type: "button", click: () => end("/session", "You have signed out.") }, "Sign out") : h("button", { type: "button", click: () => end(`/me/sessions/${each.id}`, "The session has ended.") }, "End")]), ""),
    section("Settings of this process", ["Setting", "Value"], settings.map((/** @type {any} */ each) => [h("code", {}, each.variable), bdi(each.value ?? (each.set ? "set, not shown" : "not set"))]), ""),
    section("Migrations", ["Name", "Applied"], migrations.map((/** @type {any} */ each) => [each.name, when(each.applied_at)]), ""),
    h("p", { class: "quiet" }, "Commands add and remove admins, and make codes."),
  ];
});
