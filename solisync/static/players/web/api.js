// @ts-check
/** Requests to the API, with or without the player's token. Only those with a token load session.js. */

import { ASIDE, json, local, send, username } from "./http.js";

const AGAIN_MS = 60_000;

const session = () => import("./session.js");

const aside = Number(local?.getItem(ASIDE));
if (aside && Math.abs(Date.now() - aside) > AGAIN_MS) session().then(({ again }) => again());

/** Send a request as the player, or only as a certain player. @param {string} method @param {string} path @param {{json?: object, body?: Blob, as?: string, signal?: AbortSignal}} [content] */
export const ask = async (method, path, content) => (await session()).ask(method, path, content);

/** Begin, change or end the session. @param {string} method @param {string} path @param {object} [body] */
export const exchange = async (method, path, body) => (await session()).exchange(method, path, body);

/** @type {{name: string | null, answer: Promise<any>} | undefined} */
let known;

/** The player's data from the server, requested once a page, and again if `anew`. @returns {Promise<any>} */
export function me(anew = false) {
  if (anew || known?.name !== username()) {
    const answer = session().then(({ me }) => me());
    known = { name: username(), answer };
    answer.then(
      ({ username: name }) => known?.answer === answer && (known.name = name),
      () => (known = undefined),
    );
  }
  return /** @type {NonNullable<typeof known>} */ (known).answer;
}

/** The JSON that a route returns without a token. @param {string} path @returns {Promise<any>} */
export const read = async (path) => json(await send(path));

/** The JSON that a route returns to the player. @param {string} path @param {string} [as] @returns {Promise<any>} */
export const readOwn = async (path, as) => json(await ask("GET", path, { as }));
