/** What eslint checks: its recommended rules, with the names that each kind of script knows. */

import js from "@eslint/js";
import globals from "globals";

const named = (...names) => Object.fromEntries(names.map((name) => [name, "readonly"]));

export default [
  js.configs.recommended,
  {
    languageOptions: { globals: { ...globals.browser, ...globals.node } },
    rules: { "no-unused-vars": ["error", { ignoreRestSiblings: true }] },
  },
  { files: ["**/sw.js"], languageOptions: { globals: globals.serviceworker } },
  { files: ["**/docs/page.js"], languageOptions: { globals: named("SwaggerUIBundle") } },
  { files: ["**/k6.mjs", "**/load/*.js"], languageOptions: { globals: named("__ENV", "__VU") } },
];
