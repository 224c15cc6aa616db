// @ts-check
/** The driver of the JavaScript client on Node: commands as lines of JSON (clients/conformance/README.md). */

import { createInterface } from "node:readline";
import { commands } from "./commands.js";
import { fileStore } from "./file.js";

const answer = commands(fileStore, ["share"]);
for await (const line of createInterface({ input: process.stdin })) {
  answer(JSON.parse(line)).then((answered) => process.stdout.write(`${JSON.stringify(answered)}\n`));
}
process.exit();
