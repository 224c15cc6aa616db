// @ts-check
/** Requests to the console's API. A request without a session asks the admin to sign in, and is sent again. */

import { Refusal, send } from "./http.js";
import { signIn } from "./sign_in.js";

export const ROOT = "/api/admin";

/** A path that the service gives, as the functions below take it. @param {string} path */
export const inRoot = (path) => path.slice(ROOT.length);

/** Send a request. After a 401, let the admin sign in and send it again. @param {string} method @param {string} path @param {object} [body] */
export async function ask(method, path, body) {
  const more =
    method === "GET"
      ? {}
      : { method, headers: { "Content-Type": "application/json" }, body: body && JSON.stringify(body) };
  for (;;) {
    try {
      return await send(ROOT + path, more);
    } catch (error) {
      if (!(error instanceof Refusal) || error.status !== 401) throw error;
      await signIn();
    }
  }
}

/** The JSON that a route returns. @param {string} path @returns {Promise<any>} */
export const read = async (path) => (await ask("GET", path)).json();

/** The JSON that a route returns after a change. @param {string} method @param {string} path @param {object} [body] @returns {Promise<any>} */
export const act = async (method, path, body) => (await ask(method, path, body)).json();
