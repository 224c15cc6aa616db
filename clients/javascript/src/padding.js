// @ts-check
/**
 * A remedy for databases of Chromium that a full disk has damaged.
 *
 * Chromium adds each change to a log. A full disk can cut the last one. Chromium then continues behind it, and deletes
 * all databases of the site at its next start, because it can't read the log any more. After 4 MiB it begins another
 * log, and the damaged one is no longer needed.
 */

const RECORDS = 90;
const BYTES = 60_000; // larger values aren't in the log, and a pattern would be compressed

/** Fill the log, so that Chromium begins another one. @param {IDBDatabase} database */
export async function fillLog(database) {
  for (const work of ["put", "delete"]) {
    const [name] = database.objectStoreNames;
    const transaction = database.transaction(name, "readwrite", { durability: "strict" });
    const store = transaction.objectStore(name);
    for (let number = 0; number < RECORDS; number++) {
      if (work === "put") store.put(crypto.getRandomValues(new Uint8Array(BYTES)), `padding ${number}`);
      else store.delete(`padding ${number}`);
    }
    await new Promise((resolve, reject) => {
      transaction.oncomplete = resolve;
      transaction.onabort = () => reject(transaction.error);
      database.addEventListener("close", reject);
    });
  }
}
