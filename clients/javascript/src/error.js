// @ts-check
/** The error of a request, or of a store. */

/** An error of a request: the service's answer, or the code "network" after no usable answer. */
export class SolisyncError extends Error {
  /** @param {number} status 0 without an answer @param {string} code @param {string} message @param {{retryAfter?: number, requestId?: string | null, until?: Date | null}} [more] */
  constructor(status, code, message, { retryAfter = 0, requestId = null, until = null } = {}) {
    super(message);
    this.name = "SolisyncError";
    this.status = status;
    /** An error code of docs/protocol.md; "network" without a usable answer; "signed_out" without a session; "storage" when the store fails. */
    this.code = /** @type {import("../messages.js").ErrorCode | "network" | "signed_out" | "storage"} */ (code);
    /** Seconds to wait before the next attempt; 0 if the answer doesn't say. */
    this.retryAfter = retryAfter;
    /** To quote in bug reports. */
    this.requestId = requestId;
    /** The end of a suspension that ends by itself. */
    this.until = until;
  }

  /** Whether the same request may succeed later. */
  get passes() {
    return this.code === "network" || this.code === "storage" || this.status === 429 || this.status >= 500;
  }
}

/** The error of a request without a usable answer. @param {number} [status] @param {number} [retryAfter] */
export const unanswered = (status = 0, retryAfter = 0) =>
  new SolisyncError(status, "network", "The server can’t be reached. Nothing is lost; please try again.", {
    retryAfter,
  });

/** A module that is loaded when it is needed. Without a connection, the error is that of a request. @template T @param {Promise<T>} module @returns {Promise<T>} */
export const loaded = (module) =>
  module.catch(() => {
    throw unanswered();
  });
