// @ts-check
/** The deal that an address of /play names, by its day or by its seed. */

import { challenge, dayOf } from "./days.js";
import { seedOf } from "./game.js";

/** How many cards the address wants to draw. @param {URLSearchParams} query @returns {1 | 3 | undefined} */
export function drawOf(query) {
  if (query.has("draw3")) return 3;
  const word = query.get("draw");
  return word === "three" ? 3 : word === "one" ? 1 : undefined;
}

/** The deal, or null if there is no such deal. @param {URLSearchParams} query @param {(text: string) => void} refuse */
export async function linked(query, refuse) {
  if (query.has("daily"))
    return challenge(query.get("daily")).catch((error) => {
      if (error.status !== 404) throw error;
      refuse("There is no deal for this day.");
      return null;
    });
  const text = query.get("deal") ?? query.get("seed") ?? "";
  const seed = seedOf(text);
  if (seed) return { seed, day: await dayOf(seed) };
  refuse(`There is no deal “${text.slice(0, 40)}”: deals are numbers from 0 to 18446744073709551615.`);
  return null;
}
