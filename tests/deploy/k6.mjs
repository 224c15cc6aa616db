// What a script for k6 needs of k6: one virtual user, who runs so many rounds one after the other, with curl for HTTP.
// `node k6.mjs SCRIPT ROUNDS` prints a line for each check, and ends with 1 when one failed.

import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

globalThis.__ENV = process.env;
globalThis.__VU = 1;

const place = mkdtempSync(join(tmpdir(), "k6-"));
writeFileSync(
  join(place, "http.mjs"),
  `import { execFileSync } from "node:child_process";
  export default { request(method, url, body, parameters) {
    const headers = Object.entries(parameters.headers).flatMap(([name, value]) => ["-H", name + ": " + value]);
    const data = body === null ? [] : ["--data-binary", "@-"];
    const words = ["-s", "-w", "\\n%{http_code}", "-X", method, ...headers, ...data, url];
    const said = execFileSync("curl", words, { input: body ?? "" }).toString();
    const end = said.lastIndexOf("\\n");
    const text = said.slice(0, end);
    return { status: Number(said.slice(end + 1)), body: text, headers: {}, json: (name) => JSON.parse(text)[name] };
  } };`,
);
writeFileSync(
  join(place, "k6.mjs"),
  `export function check(answer, checks) {
    for (const [name, holds] of Object.entries(checks)) {
      console.log(holds(answer) ? "ok" : "failed", name, answer.status);
      if (!holds(answer)) process.exitCode = 1;
    }
  }
  export function sleep() {}`,
);
const script = readFileSync(process.argv[2], "utf8").replace('"k6/http"', '"./http.mjs"').replace('"k6"', '"./k6.mjs"');
writeFileSync(join(place, "script.mjs"), script);
const { default: round } = await import(pathToFileURL(join(place, "script.mjs")));
for (let number = 0; number < Number(process.argv[3]); number += 1) {
  round();
}
