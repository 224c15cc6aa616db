// @ts-check
/** The interface of the console, asked as the admin who is signed in. Where nobody is, it asks to sign in first. */

import { Refusal, send } from "./http.js";

export const ROOT = "/api/admin";

/** One request, which is sent again once somebody has signed in. @param {string} method @param {string} path @param {object} [body] */
export async function ask(method, path, body) {
  const more = method === "GET" ? {} : { method, headers: { "Content-Type": "application/json" }, body: body && JSON.stringify(body) };
  for (;;) {
    try {
      return await send(ROOT + path, more);
    } catch (error) {
      if (!(error instanceof Refusal) || error.status !== 401 || path === "/session") throw error;
      await (await import("./sign_in.js")).signIn();
    }
  }
}

/** What a route answers. @param {string} path @returns {Promise<any>} */
export const read = async (path) => (await ask("GET", path)).json();

/** What a route answers that changes something. @param {string} method @param {string} path @param {object} [body] @returns {Promise<any>} */
export const act = async (method, path, body) => (await ask(method, path, body)).json();
