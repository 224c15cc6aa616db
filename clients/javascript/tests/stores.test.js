// @ts-check
/** The stores keep each change, alone and shared. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, stat, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileStore } from "../file.js";
import { memoryStore } from "../src/stores.js";

const SILENCE_S = 30;

const add = (/** @type {number | undefined} */ value = 0) => [value + 1, value + 1];
const place = () => mkdtemp(join(tmpdir(), "solisync-"));
const FILE = new URL("../file.js", import.meta.url).href;
const STORE = `const { fileStore } = await import(${JSON.stringify(FILE)}); const store = fileStore(process.argv[1]);`;

/** Run a program with a store in a directory. @param {string} code @param {string} directory */
const program = (code, directory) =>
  spawn(process.execPath, ["--input-type=module", "--eval", STORE + code, directory], {
    stdio: ["ignore", "pipe", "inherit"],
  });

for (const [name, make] of Object.entries({
  memory: async () => memoryStore(),
  file: async () => fileStore(await place()),
})) {
  test(`the ${name} store runs changes one after another`, async () => {
    const store = await make();
    assert.equal(await store.read(), undefined);
    await Promise.all(Array.from({ length: 20 }, () => store.change(add)));
    assert.equal(await store.read(), 20);
  });

  test(`the ${name} store keeps the old value when a change throws`, async () => {
    const store = await make();
    await store.change(add);
    await assert.rejects(
      store.change(() => {
        throw new Error("no");
      }),
      /no/,
    );
    assert.equal(await store.change(add), 2);
  });

  test(`the ${name} store runs work of one name alone`, async () => {
    const store = await make();
    let running = 0;
    const most = await Promise.all(
      Array.from({ length: 5 }, () =>
        store.exclusively("work", async () => {
          running += 1;
          await new Promise((resolve) => setTimeout(resolve, 2));
          return running--;
        }),
      ),
    );
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
  const holder = program(
    "await store.exclusively('work', async () => { console.log('held'); setInterval(() => {}, 1000); await new Promise(() => {}); });",
    directory,
  );
  await once(holder.stdout, "data");
  holder.kill("SIGKILL");
  await once(holder, "exit");
  const store = fileStore(directory);
  assert.equal(await store.exclusively("work", async () => "done"), "done");
  assert.equal(await store.change(add), 1);
  assert.deepEqual(
    (await readdir(directory)).filter((file) => /\.(try|new)\./.test(file)),
    [],
  );
});

/** The store that version 1.1 has left in a directory. @param {string} directory */
async function formerStore(directory) {
  await writeFile(join(directory, "solisync.json"), "{}");
  return /** @type {import("../src/stores.js").Store} */ (await fileStore(directory).former?.());
}

/** Run work, and return the seconds that it took. @param {() => Promise<unknown>} work */
async function seconds(work) {
  const before = performance.now();
  await work();
  return (performance.now() - before) / 1000;
}

test("what remains of a lock when its process is killed or sleeps", { concurrency: true }, async (t) => {
  const HOLD = "console.log('held'); await new Promise((resolve) => setTimeout(resolve, 45_000));";

  await Promise.all([
    t.test("a lock of a process elsewhere is taken over after a silence, though its number runs here", async () => {
      const directory = await place();
      await writeFile(join(directory, "2.change.lock.7"), `1.0.a another-machine,,pid:[1] 000000001`);
      const store = fileStore(directory);
      assert.ok((await seconds(() => store.change(add))) >= SILENCE_S);
      assert.ok((await seconds(() => store.change(add))) < 1);
    }),

    t.test("a lock of version 1.1 is never taken over from a process that runs", async () => {
      const directory = await place();
      const former = await formerStore(directory);
      await writeFile(join(directory, "work.lock.7"), `${process.ppid}.a`);
      const refused = () =>
        assert.rejects(
          former.exclusively("work", async () => {}),
          /version 1.1 uses/,
        );
      assert.ok((await seconds(refused)) >= SILENCE_S);
      await writeFile(join(directory, "work.lock.7"), "");
      assert.ok((await seconds(() => former.exclusively("work", async () => {}))) < 1);
    }),

    t.test("a lock of version 1.1 is taken over after a silence if its process has ended", async () => {
      const directory = await place();
      const former = await formerStore(directory);
      const ended = program("", directory);
      await once(ended, "exit");
      await writeFile(join(directory, "work.lock.7"), `${ended.pid}.a`);
      assert.ok((await seconds(() => former.exclusively("work", async () => {}))) >= SILENCE_S);
    }),

    t.test("a lock of version 1.1 is taken over after a silence if another process has its number now", async () => {
      const directory = await place();
      const former = await formerStore(directory);
      const lock = join(directory, "work.lock.7");
      await writeFile(lock, `${process.pid}.a`);
      const before = Date.now() / 1000 - process.uptime() - 60;
      await utimes(lock, before, before);
      assert.ok((await seconds(() => former.exclusively("work", async () => {}))) >= SILENCE_S);
    }),

    t.test("a free lock of version 1.1 is free", async () => {
      const directory = await place();
      const former = await formerStore(directory);
      await writeFile(join(directory, "work.lock.7"), "");
      assert.ok((await seconds(() => former.exclusively("work", async () => {}))) < 1);
    }),

    t.test("a holder that works for long keeps its lock", async () => {
      const directory = await place();
      const holder = program(
        `await store.exclusively('work', async () => { ${HOLD} }); await store.change(() => ['done', null]);`,
        directory,
      );
      await once(holder.stdout, "data");
      assert.ok((await seconds(() => fileStore(directory).exclusively("work", async () => {}))) >= 40);
    }),

    t.test("a holder that has slept doesn't replace what others have stored since", async () => {
      const directory = await place();
      const slow = `
        await store.change((value = 0) => {
          console.log('held');
          if (!globalThis.slept) { globalThis.slept = true; process.kill(process.pid, "SIGSTOP"); }
          return [value + 100, null];
        });
        console.log('done');`;
      const holder = program(slow, directory);
      const ended = once(holder, "exit");
      await once(holder.stdout, "data");
      const store = fileStore(directory);
      assert.equal(await store.change(add), 1);
      assert.equal(await store.change(add), 2);
      holder.kill("SIGCONT");
      await ended;
      assert.equal(await store.read(), 102);
    }),

    t.test("two waiters never both take over a silent lock", async () => {
      const directory = await place();
      await writeFile(join(directory, "2.work.lock.1"), "1.0.a elsewhere 000000001");
      const log = join(directory, "log");
      const code = `const { appendFileSync } = await import("node:fs");
        const note = (text) => appendFileSync(${JSON.stringify(log)}, text);
        await store.exclusively('work', async () => { note("in "); await new Promise((resolve) => setTimeout(resolve, 200)); note("out "); });`;
      await Promise.all(Array.from({ length: 6 }, () => once(program(code, directory), "exit")));
      assert.equal(await readFile(log, "utf8"), "in out ".repeat(6));
    }),
  ]);
});

test("only the user can read the file", async () => {
  const directory = await place();
  await fileStore(directory).change(add);
  assert.equal((await stat(join(directory, "solisync-2.json"))).mode & 0o777, 0o600);
  assert.equal(await readFile(join(directory, "solisync-2.json"), "utf8"), "1");
});

test("a file that isn't JSON is renamed, and never overwritten", async () => {
  const directory = await place();
  await writeFile(join(directory, "solisync-2.json"), '{"version": 2, "pla');
  const store = fileStore(directory);
  assert.equal(await store.read(), undefined);
  await writeFile(join(directory, "solisync-2.json"), "");
  await writeFile(join(directory, "solisync-2.json"), "[");
  assert.equal(await store.change(add), 1);
  const damaged = (await readdir(directory)).filter((file) => file.includes(".damaged."));
  const texts = await Promise.all(damaged.map((file) => readFile(join(directory, file), "utf8")));
  assert.deepEqual(texts.sort(), ["[", '{"version": 2, "pla']);
});

test("replays in files are read with the journal", async () => {
  const directory = await place();
  const entry = (/** @type {string} */ id) => ({
    game: { game_id: id },
    win: { body: null, replay: null, refused: false },
  });
  const journal = {
    version: 2,
    players: { ann: { games: [entry("a"), { game: {}, win: null }, entry("b")] }, bob: null },
  };
  await writeFile(join(directory, "solisync-2.json"), JSON.stringify(journal));
  await mkdir(join(directory, "replays"));
  await writeFile(join(directory, "replays", "a.json"), '{"game_id":"a"}');
  const { games } = (await fileStore(directory).read()).players.ann;
  assert.deepEqual(games[0].win, { body: '{"game_id":"a"}', replay: null, refused: false });
  assert.deepEqual(games[2].win, { body: null, replay: null, refused: true }); // nothing is left to upload
});
