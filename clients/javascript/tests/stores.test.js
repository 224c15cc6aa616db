// @ts-check
/** The stores keep each change, alone and shared. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileStore } from "../file.js";
import { memoryStore } from "../src/stores.js";

const add = (/** @type {number | undefined} */ value = 0) => [value + 1, value + 1];
const place = () => mkdtemp(join(tmpdir(), "solisync-"));
const FILE = new URL("../file.js", import.meta.url).href;
const STORE = `const { fileStore } = await import(${JSON.stringify(FILE)}); const store = fileStore(process.argv[1]);`;

/** Run a program with a store in a directory. @param {string} code @param {string} directory */
const program = (code, directory) =>
  spawn(process.execPath, ["--input-type=module", "--eval", STORE + code, directory], { stdio: ["ignore", "pipe", "inherit"] });

for (const [name, make] of Object.entries({ memory: async () => memoryStore(), file: async () => fileStore(await place()) })) {
  test(`the ${name} store runs changes one after another`, async () => {
    const store = await make();
    assert.equal(await store.read(), undefined);
    await Promise.all(Array.from({ length: 20 }, () => store.change(add)));
    assert.equal(await store.read(), 20);
  });

  test(`the ${name} store keeps the old value when a change throws`, async () => {
    const store = await make();
    await store.change(add);
    await assert.rejects(store.change(() => { throw new Error("no"); }), /no/);
    assert.equal(await store.change(add), 2);
  });

  test(`the ${name} store runs work of one name alone`, async () => {
    const store = await make();
    let running = 0;
    const most = await Promise.all(Array.from({ length: 5 }, () => store.exclusively("work", async () => {
      running += 1;
      await new Promise((resolve) => setTimeout(resolve, 2));
      return running--;
    })));
    assert.deepEqual(most, [1, 1, 1, 1, 1]);
  });
}

test("processes share a file store", async () => {
  const directory = await place();
  const code = "for (let count = 0; count < 50; count++) await store.change((value = 0) => [value + 1, null]);";
  await Promise.all(Array.from({ length: 4 }, () => once(program(code, directory), "exit")));
  assert.equal(await fileStore(directory).read(), 200);
});

test("a lock of a killed process is free", async () => {
  const directory = await place();
  const holder = program("await store.exclusively('work', async () => { console.log('held'); setInterval(() => {}, 1000); await new Promise(() => {}); });", directory);
  await once(holder.stdout, "data");
  holder.kill("SIGKILL");
  await once(holder, "exit");
  const store = fileStore(directory);
  assert.equal(await store.exclusively("work", async () => "done"), "done");
  assert.equal(await store.change(add), 1);
  assert.deepEqual((await readdir(directory)).filter((file) => file.includes(".by.")), []);
});

test("only the user can read the file", async () => {
  const directory = await place();
  await fileStore(directory).change(add);
  assert.equal((await stat(join(directory, "solisync.json"))).mode & 0o777, 0o600);
  assert.equal(await readFile(join(directory, "solisync.json"), "utf8"), "1");
});
