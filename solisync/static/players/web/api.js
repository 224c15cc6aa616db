// @ts-check
/** The API, asked by anybody or as the player. The session's module is loaded for the latter alone. */

import { send, username } from "./http.js";

const session = () => import("./session.js");

/** Ask as the player, or as a certain one. @param {string} method @param {string} path @param {{json?: object, body?: Blob, as?: string, signal?: AbortSignal}} [content] */
export const ask = async (method, path, content) => (await session()).ask(method, path, content);

/** Begin, change or end the session. @param {string} method @param {string} path @param {object} [body] */
export const exchange = async (method, path, body) => (await session()).exchange(method, path, body);

/** @type {{name: string | null, answer: Promise<any>} | undefined} */
let known;

/** The player as the server has them, asked for once a page, or `anew`. @returns {Promise<any>} */
export function me(anew = false) {
  if (anew || known?.name !== username()) {
    const answer = session().then(({ me }) => me());
    known = { name: username(), answer };
    answer.then(({ username: name }) => known?.answer === answer && (known.name = name), () => (known = undefined));
  }
  return /** @type {NonNullable<typeof known>} */ (known).answer;
}

/** The JSON that a route answers to everybody. @param {string} path @returns {Promise<any>} */
export const read = async (path) => (await send(path)).json();

/** The JSON that a route answers to the player. @param {string} path @param {string} [as] @returns {Promise<any>} */
export const readOwn = async (path, as) => (await ask("GET", path, { as })).json();
