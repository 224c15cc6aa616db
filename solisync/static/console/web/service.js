// @ts-check
/** The service page: findings, admins, the admin's own sessions, settings and migrations. */

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
    factList([
      ["Version", service.version],
      ["Schema", service.schema],
      ["Analytics events (approx.)", score(service.rows.analytics_events)],
      ["Verdicts (approx.)", score(service.rows.verdicts)],
      ["Avatars (approx.)", score(service.rows.avatars)],
    ]),
    section(
      "Findings",
      ["Check", "Level", "Finding", "Advice"],
      findings.map((/** @type {any} */ each) => [each.subject, level(each.level), bdi(each.text), bdi(each.advice)]),
      "",
    ),
    section(
      "Admins",
      ["Name", "Added", "Sessions", "Last used"],
      admins.map((/** @type {any} */ each) => [
        nameOf(each.name),
        when(each.added_at),
        each.sessions,
        when(each.used_at),
      ]),
      "",
    ),
    section(
      `Your sessions (${me.name})`,
      ["Browser", "Address", "Started", "Last used", "End"],
      me.sessions.map((/** @type {any} */ each) => [
        bdi(each.user_agent),
        each.client,
        when(each.begun_at),
        when(each.used_at),
        each.id === me.current
          ? h("button", { type: "button", click: () => end("/session", "You are signed out.") }, "Sign out")
          : h(
              "button",
              { type: "button", click: () => end(`/me/sessions/${each.id}`, "The session was ended.") },
              "End",
            ),
      ]),
      "",
    ),
    section(
      "Settings of this process",
      ["Setting", "Value"],
      settings.map((/** @type {any} */ each) => [
        h("code", {}, each.variable),
        bdi(each.value ?? (each.set ? "set, not shown" : "not set")),
      ]),
      "",
    ),
    section(
      "Housekeeping",
      ["Job", "Last run"],
      service.jobs.map((/** @type {any} */ each) => [each.job, when(each.ran_at)]),
      "",
    ),
    section(
      "Migrations",
      ["Name", "Applied"],
      migrations.map((/** @type {any} */ each) => [each.name, when(each.applied_at)]),
      "",
    ),
    h(
      "p",
      { class: "quiet" },
      "To add or remove admins, or to create codes, run ",
      h("code", {}, "solisync admins"),
      " on the server.",
    ),
  ];
});
