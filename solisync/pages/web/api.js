// @ts-check
/** The API, asked by anybody or as the player. The session's module is loaded for the latter alone. */

import { send } from "./http.js";

const session = () => import("./session.js");

/** Ask as the player. @param {string} method @param {string} path @param {{json?: object, body?: Blob}} [content] */
export const ask = async (method, path, content) => (await session()).ask(method, path, content);

/** Begin, change or end the session. @param {string} method @param {string} path @param {object} [body] */
export const exchange = async (method, path, body) => (await session()).exchange(method, path, body);

/** The JSON that a route answers to everybody. @param {string} path @returns {Promise<any>} */
export const read = async (path) => (await send(path)).json();

/** The JSON that a route answers to the player. @param {string} path @returns {Promise<any>} */
export const readOwn = async (path) => (await ask("GET", path)).json();
