/**
 * Calls a function with modules of the pages for players, which are all in one folder: node engine.mjs FOLDER
 *
 * Standard input has `{function, argument, workers}`, standard output gets the result. The modules find as much of a
 * browser as they need: events, a header without content, and workers, if wanted.
 */

import { readFileSync } from "node:fs";
import { isMainThread, parentPort, Worker as Thread, workerData } from "node:worker_threads";

class Worker {
  #thread;

  constructor(path) {
    this.#thread = new Thread(new URL(import.meta.url), { workerData: path });
  }

  addEventListener(name, listener) {
    this.#thread.on(name, listener);
  }

  postMessage(data, ports) {
    this.#thread.postMessage({ data, ports }, ports);
  }
}

if (isMainThread) {
  globalThis.window = globalThis;
  globalThis.addEventListener = () => {};
  globalThis.location = { pathname: "/" };
  globalThis.document = { getElementById: () => ({ replaceChildren: () => {} }), querySelectorAll: () => [] };
  const asked = JSON.parse(readFileSync(0, "utf8"));
  if (asked.workers) globalThis.Worker = Worker;
  globalThis.web = (name) => import(`${process.argv[2]}/${name}`);
  const answer = await (0, eval)(`(${asked.function})`)(asked.argument);
  process.stdout.write(JSON.stringify(answer), () => process.exit());
} else {
  globalThis.addEventListener = (name, listener) => parentPort.on(name, listener);
  await import(workerData);
}
