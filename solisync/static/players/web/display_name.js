// @ts-check
/** The form for the player's name on the leaderboard, on /leaderboard and /account: join, rename, leave. */

import { ask, readOwn } from "./api.js";
import { attempt, field, stack, submits } from "./forms.js";
import { byId, fill, h, tell } from "./page.js";

/** Put the form into an element; if `folds`, folded for players who have a name. @param {HTMLElement} place @param {() => Promise<unknown>} [changed] @param {boolean} [folds] */
export async function showName(place, changed = async () => {}, folds = false) {
  await fill(place, async () => {
    const { visible, display_name: name } = await readOwn("/api/leaderboard/opt-in");
    const again = async (/** @type {string} */ done) => {
      await showName(place, changed, folds);
      tell(done);
      byId("display-name").closest("details")?.setAttribute("open", ""); // otherwise it can’t get the focus
      byId("display-name").focus();
      await changed();
    };
    const input = field("display-name", "Display name", {
      name: "display_name",
      maxlength: 64,
      autocomplete: "nickname",
      "aria-describedby": "name-hint",
      value: name ?? "",
    });
    const hint = h(
      "p",
      { class: "quiet", id: "name-hint" },
      "Other players see this name. Your entry links to your replay, which shows your username.",
    );
    const leave = h(
      "button",
      {
        type: "button",
        id: "leave",
        click: () =>
          attempt(byId("leave-refused"), async () => {
            await ask("DELETE", "/api/leaderboard/opt-in");
            await again("You have left the leaderboard.");
          }),
      },
      "Leave the leaderboard",
    );
    const form = stack(
      "name-form",
      [...input, hint],
      [h("button", { class: "main" }, visible ? "Save name" : "Join the leaderboard"), ...(visible ? [leave] : [])],
    );
    submits(form, async () => {
      const chosen = form.display_name.value.trim();
      await ask("POST", "/api/leaderboard/opt-in", { json: { display_name: chosen } });
      await again(`You appear as “${chosen}”.`);
    });
    const parts = [form, h("div", { id: "leave-refused" })];
    return [
      h("h2", {}, visible ? "Your name on the leaderboard" : "Join the leaderboard"),
      h("p", { id: "seen" }, visible ? `You appear as “${name}”.` : "Only players who choose to appear are on it."),
      ...(folds && visible ? [h("details", {}, h("summary", {}, "Change"), ...parts)] : parts),
    ];
  });
}
