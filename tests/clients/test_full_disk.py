"""The file store of the npm package on a full disk."""

import subprocess

import pytest

from tests.harness.constants import PATIENCE, ROOT

PROGRAM = """
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileStore } from "%(client)s/file.js";
import { Solisync } from "%(client)s/src/solisync.js";

const directory = process.argv[2];
const ballast = join(directory, "ballast");
const add = (games = []) => [[...games, "x".repeat(10_000)], games.length + 1];
const store = fileStore(join(directory, "store"));
for (let count = 0; count < 5; count++) await store.change(add);
const solis = new Solisync("http://127.0.0.1:9", { store: fileStore(join(directory, "game")), background: false });
for (const size of [65536, 4096, 1]) {
  try {
    for (;;) writeFileSync(ballast, "x".repeat(size), { flag: "a" });
  } catch {}
}
const outcomes = [];
for (let count = 0; count < 3; count++) outcomes.push(await store.change(add).catch((error) => error.code));
outcomes.push((await store.read()).length);
outcomes.push(await solis.guest().catch((error) => error.code));
outcomes.push(await solis.sync().catch((error) => error.code));
rmSync(ballast);
outcomes.push(await store.change(add));
outcomes.push(readdirSync(join(directory, "store")).filter((file) => /\\.(try|new)/.test(file)).length);
console.log(outcomes.join(" "));
"""


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 1 MiB."""
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", tmp_path], check=False)
    if mounted.returncode != 0:
        pytest.skip("only root may mount a small file system")
    yield tmp_path
    subprocess.run(["umount", "--lazy", tmp_path], check=True)


@pytest.mark.needs("node")
def test_full_disk_leaves_the_stored_value_alone(small_disk, tmp_path_factory):
    """Changes fail, nothing is sent, and the next change with room continues from the last stored value."""
    program = tmp_path_factory.mktemp("program") / "full.mjs"
    program.write_text(PROGRAM % {"client": (ROOT / "clients" / "javascript").as_uri()})
    done = subprocess.run(["node", program, small_disk], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["ENOSPC"] * 3 + ["5", "storage", "storage", "6", "0"]
