// @ts-check
/** Sharing a win. */

import { byId, clock, counted, h, tell } from "./page.js";

/** Share a win with the device's own dialog, or else copy it. @param {import("./game.js").Game} game @param {string | undefined} replay without one, share the deal */
export async function share({ seed, draw, day, seconds, score }, replay) {
  const drawn = `draw ${draw === 3 ? "three" : "one"}`;
  const deal = day ? `the deal of ${day.date}` : `deal ${seed}`;
  const text = `I won ${deal} (${drawn}) in ${clock(seconds)} with ${counted(score, "point")}.`;
  const url = new URL(replay ? `/replays/${replay}` : `/play?deal=${seed}&${drawn.replace(" ", "=")}`, location.href)
    .href;
  try {
    if (navigator.share) return await navigator.share({ text, url });
    await navigator.clipboard.writeText(`${text} ${url}`);
    tell("Result and link copied.");
  } catch (error) {
    if (error.name === "AbortError") return; // the player has cancelled
    const field = h("input", { value: `${text} ${url}`, readonly: true, "aria-label": "Result and link" }); // plain HTTP has no clipboard
    byId("won-next").append(field);
    field.select();
  }
}
