// @ts-check
/** A store for Node: a file in a directory, which processes of one machine may share. */

import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { link, mkdir, open, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { hostname, uptime } from "node:os";
import { dirname, join } from "node:path";
import { threadId } from "node:worker_threads";
import { Queues } from "./src/stores.js";

const [FILE, FORMER] = ["solisync-2.json", "solisync.json"];
const LOOK_MS = 20;
const BEAT_MS = 5_000;
const SILENCE_MS = 30_000;
const TICK_MS = 10; // of Linux, for the times of processes
const SLACK_MS = 10_000; // between two readings of the clock
const AWAKE_MS = 1_000; // the most that one look adds to a silence: during a longer pause, the holder may have slept too

/** The marks of this thread's locks: after a restart, it may have the number of a killed process. @type {Set<string>} */
const marks = new Set();

/** The text of a file or a link, or "" on systems without it. @param {() => string} read */
function textOf(read) {
  try {
    return read().trim();
  } catch {
    return "";
  }
}

/** Where process numbers mean the same as here: this machine since its start, and on Linux this container. */
const HERE = [
  hostname(),
  textOf(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8")),
  textOf(() => readlinkSync("/proc/self/ns/pid")),
].join();

/** Whether the holder of a lock has certainly ended. A number that runs proves nothing: it may be another process. @param {string} text of the lock */
function hasEnded(text) {
  const [mark, place] = text.split(" ");
  const [pid, thread] = mark.split(".").map(Number);
  if (place !== HERE) return false;
  if (pid === process.pid) return thread === threadId && !marks.has(mark);
  return !runs(pid);
}

/** @param {number} pid */
function runs(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code !== "ESRCH"; // another user's
  }
}

/** Whether a process of version 1.1 holds a lock: that version writes no beats. A process that began after the lock has another's number. @param {string} text of the lock @param {string} path */
async function isFormers(text, path) {
  const [, pid] = /^(\d+)\.[^. ]+$/.exec(text) ?? [];
  if (!pid || !runs(Number(pid))) return false;
  const ticks = textOf(() => readFileSync(`/proc/${pid}/stat`, "utf8"))
    .replace(/.*\)/s, "")
    .split(" ")[20]; // since the machine began
  const began = Date.now() - 1000 * uptime() + TICK_MS * Number(ticks ?? 0);
  const lock = await stat(path).catch(unless("ENOENT"));
  return lock !== null && lock.mtimeMs > began - SLACK_MS;
}

/** @param {string[]} files @param {string} prefix */
const endingsOf = (files, prefix) =>
  files.filter((file) => file.startsWith(prefix)).map((file) => file.slice(prefix.length));

/** @param {string} code of the error that counts as nothing @returns {(error: any) => null} */
const unless = (code) => (error) => {
  if (error.code !== code) throw error;
  return null;
};

/**
 * Run `work` when no other process does. The lock of a name is the file `<name>.lock.<number>` with the highest number.
 * It contains the holder's mark and a number that changes every five seconds, or nothing when it is free. A lock whose
 * holder has ended, or whose text hasn't changed for thirty seconds, is free too: that is measured by the waiter's own
 * clock. The next holder links a file as the next number, which only one process can do. A holder that was stopped
 * learns from `held` that there is a higher number. One of version 1.1 doesn't, so its lock is never taken over while it
 * may run: after a silence this throws an error instead.
 * @template T @param {string} directory @param {string} name @param {(held: () => boolean) => Promise<T>} work @returns {Promise<T>}
 */
async function locked(directory, name, work) {
  const mark = `${process.pid}.${threadId}.${randomUUID()}`;
  const head = `${mark} ${HERE} `;
  const beatOf = (/** @type {number} */ count) => String(count).padStart(9, "0");
  const [locks, tries] = [`${name}.lock.`, `${name}.try.`];
  const at = (/** @type {number} */ number) => join(directory, `${locks}${number}`);
  const highest = (/** @type {string[]} */ files) => Math.max(0, ...endingsOf(files, locks).map(Number));
  const own = join(directory, tries + mark);
  let [seen, silence, looked] = ["", 0, performance.now()];
  for (; ; await new Promise((resolve) => setTimeout(resolve, LOOK_MS))) {
    const last = highest(await readdir(directory));
    const text = last ? await readFile(at(last), "utf8").catch(unless("ENOENT")) : "";
    if (text === null) continue; // there is a higher number by now
    const now = performance.now();
    silence = seen === `${last} ${text}` ? silence + Math.min(now - looked, AWAKE_MS) : 0;
    [seen, looked] = [`${last} ${text}`, now];
    if (text && !hasEnded(text) && silence < SILENCE_MS) continue;
    if (await isFormers(text, at(last))) throw new Error("a program of version 1.1 uses this directory");
    const number = last + 1;
    const file = await open(own, "w", 0o600);
    marks.add(mark);
    try {
      await file.writeFile(head + beatOf(0));
      if (
        !(await link(own, at(number))
          .then(() => true, unless("EEXIST"))
          .catch(unless("ENOENT")))
      )
        continue;
      const files = await readdir(directory);
      if (highest(files) !== number) {
        // this process has slept between two lines
        await rm(at(number), { force: true });
        continue;
      }
      const old = endingsOf(files, locks)
        .map(Number)
        .filter((other) => other < last)
        .map(at);
      const left = endingsOf(files, tries).map((other) => join(directory, tries + other)); // of killed processes, or too late
      await Promise.all([...old, ...left].map((path) => rm(path, { force: true })));
      let [count, beat] = [0, Promise.resolve()];
      const place = Buffer.byteLength(head);
      const beats = setInterval(
        () =>
          (beat = file.write(beatOf(++count), place).then(
            () => {},
            () => {},
          )),
        BEAT_MS,
      ).unref();
      try {
        return await work(() => highest(readdirSync(directory)) === number);
      } finally {
        clearInterval(beats);
        await beat; // or it would write into the free lock
        await file.truncate().catch(() => {});
      }
    } finally {
      marks.delete(mark);
      await file.close();
      await rm(own, { force: true });
    }
  }
}

const LOST = new Error("the lock has been taken over");

/**
 * Write the file completely or not at all, also if the machine fails. Throw LOST if another process holds the lock: it
 * removes what it finds of former holders before it reads the file, so none of them can replace the file later.
 * @param {string} place @param {string} text @param {() => boolean} held
 */
async function replace(place, text, held) {
  const next = `${place}.new.${randomUUID()}`;
  const file = await open(next, "wx", 0o600); // it has tokens
  try {
    if (!held()) throw LOST;
    await file.writeFile(text);
    await file.sync();
    await file.close();
    await rename(next, place).catch((error) => {
      throw error.code === "ENOENT" ? LOST : error;
    });
  } finally {
    await file.close();
    await rm(next, { force: true });
  }
  const folder = await open(dirname(place), "r").catch(() => null); // Windows opens no directories
  await folder?.sync().catch(() => {});
  await folder?.close();
}

/** Add the replays that the client for Rust keeps in files of their own. @param {string} directory @param {any} journal */
async function withReplays(directory, journal) {
  for (const entry of Object.values(Object(journal?.players)).flatMap((player) => player?.games ?? [])) {
    const { game, win } = Object(entry);
    if (win?.body !== null || win.replay || win.refused) continue;
    win.body = await readFile(join(directory, "replays", `${game?.game_id}.json`), "utf8").catch(unless("ENOENT"));
    win.refused = win.body === null;
  }
  return journal;
}

/** @param {string} directory @param {string} file its name @param {string} prefix of the names of locks @returns {import("./src/stores.js").Store} */
function storeOf(directory, file, prefix = "") {
  const queues = new Queues();
  const place = join(directory, file);
  /** @template T @param {string} name @param {(held: () => boolean) => Promise<T>} work @returns {Promise<T>} */
  const exclusively = (name, work) =>
    queues.run(name, async () => {
      await mkdir(directory, { recursive: true });
      return locked(directory, prefix + name, work);
    });
  const parsed = async () => {
    const text = await readFile(place, "utf8").catch(unless("ENOENT"));
    return text ? withReplays(directory, JSON.parse(text)) : undefined;
  };
  const sound = () =>
    parsed().catch(async (error) => {
      if (!(error instanceof SyntaxError)) throw error;
      await rename(place, `${place}.damaged.${randomUUID()}`);
    });
  const read = () =>
    parsed().catch((error) => {
      if (!(error instanceof SyntaxError)) throw error;
      return exclusively("change", sound);
    });
  /** @template T @param {(value: any) => [any, T]} alter @returns {Promise<T>} */
  const change = (alter) =>
    exclusively("change", async (held) => {
      const left = (await readdir(directory)).filter((name) => name.startsWith(`${file}.new`));
      await Promise.all(left.map((name) => rm(join(directory, name), { force: true })));
      const [next, result] = alter(await sound());
      await replace(place, JSON.stringify(next), held);
      return result;
    }).catch((error) => {
      if (error !== LOST) throw error;
      return change(alter);
    });
  return { read, change, exclusively };
}

/** Keeps the value in a file of a directory, which is made if it doesn't exist. A file that isn't JSON is renamed. @param {string} directory @returns {import("./src/stores.js").Store} */
export const fileStore = (directory) => ({
  ...storeOf(directory, FILE, "2."),
  former: async () =>
    (await stat(join(directory, FORMER)).catch(unless("ENOENT"))) ? storeOf(directory, FORMER) : null,
});
