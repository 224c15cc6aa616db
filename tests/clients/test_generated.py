"""Types for TypeScript from the OpenAPI document (docs/clients.md "Generated clients")."""

import json
import re
import subprocess

import pytest

from solisync.web.json_schemas import EXAMPLE
from tests.harness.constants import PATIENCE, ROOT
from tests.harness.error_codes import openapi
from tests.harness.payloads import progress_of

OPTIONS = re.search(r"openapi-typescript \S+ -o api.d.ts\s+(.+?)`", (ROOT / "docs" / "clients.md").read_text("utf-8"))[
    1
]
# Each line that begins with a comment must be an error.
PROGRAM = """
import type { components, paths } from "./api";

type Upload = paths["/api/replays"]["post"]["requestBody"]["content"]["application/json"];
type Payload = components["schemas"]["Payload"];
type StreamEvent = components["schemas"]["StreamEvent"];

export const upload: Upload = %(upload)s;
export const payload: Payload = %(payload)s;
export const batch: components["schemas"]["Batch"] = { session_id: "s", events: [
  { id: "x", event_type: "won", payload: { seconds: 95 }, client_time: "2026-11-20T12:00:00Z" },
] };
export const foundation: components["schemas"]["Pile"] = { Foundation: 3 };

export function revision(event: StreamEvent): string | null {
  switch (event.event) {
    case "hello":
    case "progress": return event.data.revision;
    case "verdict": return event.data.status;
    case "board": return event.data.board;
    case "end": return event.data.reason;
  }
}

// @ts-expect-error: neither a foundation nor a column
export const nowhere: components["schemas"]["Pile"] = {};
// @ts-expect-error: no such reason
export const end: StreamEvent = { event: "end", data: { reason: "tired" } };
"""
TSC = ["npm", "exec", "--yes", "--package=typescript@5", "--", "tsc", "--strict", "--noEmit", "--skipLibCheck"]
GENERATE = ["npm", "exec", "--yes", "--package=openapi-typescript@7", "--", "openapi-typescript"]


@pytest.mark.needs("npm")
@pytest.mark.limit(10 * PATIENCE)
def test_types_for_typescript_fit_the_documented_messages(tmp_path):
    """The examples compile with the options of the page, also with fields of a newer game."""
    (tmp_path / "openapi.json").write_text(json.dumps(openapi()))
    payload = progress_of(newer=[1])
    payload["stats"]["newer"] = 1
    texts = {"upload": json.dumps(EXAMPLE | {"newer": 1}), "payload": json.dumps(payload)}
    (tmp_path / "program.ts").write_text(PROGRAM % texts)
    for words in ([*GENERATE, "openapi.json", "-o", "api.d.ts", *OPTIONS.split()], [*TSC, "program.ts"]):
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=5 * PATIENCE)
        assert done.returncode == 0, done.stdout + done.stderr
