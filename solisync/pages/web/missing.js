// @ts-check
/** What is not there: only the header has a script. */

import "./page.js";
