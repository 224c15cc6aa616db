"""A small client in Python: the steps of docs/clients.md "Build a client in an hour", which explains each.

Start a service with `make run`, and run `python3 docs/client.py docs/replays/won_draw_one.json`.
"""

import json
import secrets
import sys
import time
import urllib.error
import urllib.request
import uuid
from datetime import datetime
from pathlib import Path

SERVICE = "http://127.0.0.1:8080"


class Refused(Exception):
    def __init__(self, status, code, seconds):
        super().__init__(f"{status} {code}")
        self.status, self.code, self.seconds = status, code, seconds


def send(method, path, body=None, token=None):
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    data = None if body is None else body.encode()
    request = urllib.request.Request(SERVICE + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        fields = error.headers
        raise Refused(error.code, fields.get("Error-Code", "network"), int(fields.get("Retry-After", 60))) from None


kept = {"session": None, "retry_key": None, "progress": None, "games": {}}


def save():
    """Write `kept` to your storage, completely or not at all."""


def sign_up(username, password):
    kept["session"] = send("POST", "/api/auth/register", json.dumps({"username": username, "password": password}))
    save()


def refresh():
    kept["retry_key"] = kept["retry_key"] or secrets.token_urlsafe(16)
    save()
    body = {"refresh_token": kept["session"]["refresh_token"], "retry_key": kept["retry_key"]}
    kept["session"] = send("POST", "/api/auth/refresh", json.dumps(body))
    kept["retry_key"] = None
    save()


def as_player(method, path, body=None):
    try:
        return send(method, path, body, kept["session"]["access_token"])
    except Refused as error:
        if error.code != "unauthorized":
            raise
    refresh()  # with threads: under a lock, and only if no other thread has just refreshed
    return send(method, path, body, kept["session"]["access_token"])


def finish(game, replay=None):
    entry = {"game": game, "sent": False, "replay": replay and replay | {"game_id": game["game_id"]}}
    kept["games"].setdefault(game["game_id"], entry)
    save()


def count():
    unsent = [entry for entry in kept["games"].values() if not entry["sent"]]
    for first in range(0, len(unsent), 100):
        entries = unsent[first : first + 100]
        answer = as_player("POST", "/api/games", json.dumps({"games": [entry["game"] for entry in entries]}))
        for entry, result in zip(entries, answer["games"], strict=True):
            entry["sent"] = True
            entry["error"] = result["error"]
        kept["progress"] = answer["merged"]
        save()


def upload():
    for entry in kept["games"].values():
        if entry["replay"]:
            replay = as_player("POST", "/api/replays", json.dumps(entry["replay"]))["id"]
            entry["replay"] = None
            save()
            print("uploaded", replay, verdict(replay))


def verdict(replay):
    while (status := send("GET", f"/api/replays/{replay}/verdict")["status"]) == "pending":
        time.sleep(1)
    return status


def result(won, score, seconds):
    ended = datetime.now().astimezone().isoformat()
    game = {"game_id": str(uuid.uuid4()), "won": won, "score": score, "seconds": seconds, "ended_at": ended}
    return game | {"mode": "Classic", "draw_mode": "DrawOne", "undone": False}


def main(replay):
    won = result(True, replay["final_score"], replay["time_seconds"])
    finish(won | {"seed": str(replay["seed"])}, replay)
    finish(result(False, 0, 60))
    sign_up(f"ann_{secrets.token_hex(4)}", "correct horse")
    refresh()
    count()
    upload()
    print("won", kept["progress"]["stats"]["games_won"], "of", kept["progress"]["stats"]["games_played"])


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text("utf-8")))
