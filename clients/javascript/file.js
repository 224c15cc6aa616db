// @ts-check
/** A store for Node: a file in a directory, which processes of one machine may share. */

import { randomUUID } from "node:crypto";
import { link, mkdir, open, readdir, readFile, rename, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Queues } from "./src/stores.js";

const FILE = "solisync.json";
const WAIT_MS = 20;

/** The marks of this process's locks: after a restart, it may have the number of a killed process. @type {Set<string>} */
const marks = new Set();

/** Whether the process runs that has made a mark. @param {string} mark its number, and a UUID */
function lives(mark) {
  const pid = parseInt(mark);
  if (!pid || pid === process.pid) return marks.has(mark);
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code === "EPERM"; // it runs as another user
  }
}

/**
 * Run `work` when no other process does. The lock of a name is the file `<name>.lock.<number>` with the highest number;
 * it contains the mark of its holder, or nothing. The next holder links its own file as the next number, which only one
 * process can do, so the lock of a killed process is never taken over twice.
 * @template T @param {string} directory @param {string} name @param {() => Promise<T>} work @returns {Promise<T>}
 */
async function locked(directory, name, work) {
  const mark = `${process.pid}.${randomUUID()}`;
  const [locks, files] = [`${name}.lock.`, `${name}.by.`];
  const at = (/** @type {string | number} */ end) => join(directory, locks + end);
  const endings = async (/** @type {string} */ prefix) =>
    (await readdir(directory)).filter((file) => file.startsWith(prefix)).map((file) => file.slice(prefix.length));
  const own = join(directory, files + mark);
  await writeFile(own, mark);
  marks.add(mark);
  try {
    for (;;) {
      const last = Math.max(0, ...(await endings(locks)).map(Number));
      const next = last + 1;
      const holder = await readFile(at(last), "utf8").catch(() => "");
      if (!lives(holder) && (await link(own, at(next)).then(() => true, () => false))) {
        const numbers = (await endings(locks)).map(Number);
        if (Math.max(...numbers) === next) {
          const dead = (await endings(files)).filter((other) => !lives(other)).map((other) => join(directory, files + other));
          const old = numbers.filter((number) => number < next).map(at);
          await Promise.all([...dead, ...old].map((file) => rm(file, { force: true })));
          return await work();
        }
        await rm(at(next), { force: true }); // this process has slept, and the lock has a higher number
      }
      await new Promise((resolve) => setTimeout(resolve, WAIT_MS));
    }
  } finally {
    marks.delete(mark);
    await truncate(own); // and with it the lock, which is the same file
    await rm(own);
  }
}

/** Write a file completely or not at all, also if the machine fails. @param {string} directory @param {string} text */
async function replace(directory, text) {
  const next = join(directory, `${FILE}.new`);
  const file = await open(next, "w", 0o600); // it has tokens
  await file.writeFile(text);
  await file.sync();
  await file.close();
  await rename(next, join(directory, FILE));
  const folder = await open(directory, "r").catch(() => null); // Windows opens no directories
  await folder?.sync().catch(() => {});
  await folder?.close();
}

/** Keeps the value in a file of a directory, which is made if it doesn't exist. @param {string} directory @returns {import("./src/stores.js").Store} */
export function fileStore(directory) {
  const queues = new Queues();
  const made = mkdir(directory, { recursive: true });
  const read = async () => {
    const text = await readFile(join(directory, FILE), "utf8").catch((error) => {
      if (error.code !== "ENOENT") throw error;
      return "";
    });
    return text ? JSON.parse(text) : undefined;
  };
  /** @template T @param {string} name @param {() => Promise<T>} work */
  const exclusively = (name, work) => queues.run(name, async () => {
    await made;
    return locked(directory, name, work);
  });
  return {
    read,
    change: (alter) => exclusively("change", async () => {
      const [next, result] = alter(await read());
      await replace(directory, JSON.stringify(next));
      return result;
    }),
    exclusively,
  };
}
