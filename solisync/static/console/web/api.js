// @ts-check
/** Requests to the API of the console. Without a session, a request first asks the admin to sign in. */

import { Refusal, send } from "./http.js";
import { signIn } from "./sign_in.js";

export const ROOT = "/api/admin";

/** Send a request, and send it again after the admin has signed in. @param {string} method @param {string} path @param {object} [body] */
export async function ask(method, path, body) {
  const more = method === "GET" ? {} : { method, headers: { "Content-Type": "application/json" }, body: body && JSON.stringify(body) };
  for (;;) {
    try {
      return await send(ROOT + path, more);
    } catch (error) {
      if (!(error instanceof Refusal) || error.status !== 401) throw error;
      await signIn();
    }
  }
}

/** What a route answers. @param {string} path @returns {Promise<any>} */
export const read = async (path) => (await ask("GET", path)).json();

/** What a route answers that changes something. @param {string} method @param {string} path @param {object} [body] @returns {Promise<any>} */
export const act = async (method, path, body) => (await ask(method, path, body)).json();
