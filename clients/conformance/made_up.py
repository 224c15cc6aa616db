"""Scenarios by chance: any number of them, each the same for the same seed."""

from random import Random
from typing import Any

Step = dict[str, Any]

LOSSES = ("drop_request", "drop_answer", "twice", "twice_then_lost")
ROUTES = ("any", "any", "games", "progress", "upload", "refresh", "me")
TRANSIENT: list[Step] = [
    {"fault": "refuse", "status": 429, "code": "rate_limited", "wait": 1},
    {"fault": "refuse", "status": 503, "code": "unavailable", "wait": 1},
    {"fault": "answer", "status": 502, "headers": {"content-type": "text/html"}, "body": "<h1>Bad Gateway</h1>"},
    {
        "fault": "answer",
        "status": 200,
        "headers": {"content-type": "text/html"},
        "body": "<h1>Welcome to our Wi-Fi</h1>",
    },
    {"fault": "answer", "status": 302, "headers": {"location": "http://127.0.0.1:9/login"}},
]
DAY = 86_400


def made_up(seed: int) -> dict[str, Any]:
    """Return the scenario of a seed: one to three devices of a player play while messages are lost."""
    chance = Random(seed)
    names = ["a", "b", "c"][: chance.choice((1, 2, 2, 3))]
    early = [name for name in names if chance.random() < 0.2]  # these finish games before they have a session
    steps: list[Step] = [{"device": name, "do": do} for name in early for do in chance.choices(("win", "lose"), k=2)]
    if chance.random() < 0.2:
        steps += [{"device": "a", "do": "guest"}, {"device": "a", "do": "win"}, *_some(chance, ["a"], 3)]
        steps += [{"device": "a", "do": "online"}, {"device": "a", "do": "sync"}, {"device": "a", "do": "claim"}]
    else:
        steps.append({"device": "a", "do": "register"})
    for name in names[1:]:
        if chance.random() < 0.2:
            steps += [{"device": name, "do": "guest"}, {"device": name, "do": "win"}, *_some(chance, [name], 2)]
            steps += [{"device": name, "do": "online"}, {"device": name, "do": "join"}]
        else:
            steps.append({"device": name, "do": "login"})
    steps += _some(chance, names, chance.randint(8, 24))
    if chance.random() < 0.1:
        crash = {"do": chance.choice(("kill_service", "kill_service", "kill_database"))}
        steps[-2:-2] = [crash] if chance.random() < 0.5 else [{**_killing(chance, crash["do"]), "device": names[-1]}]
    return {"name": f"seed {seed}", "steps": steps}


def _some(chance: Random, names: list[str], count: int) -> list[Step]:
    return [_one(chance, names) for _ in range(count)]


def _one(chance: Random, names: list[str]) -> Step:
    device = chance.choice(names)
    kind = chance.choices(
        ("win", "lose", "sync", "fault", "refresh", "restart", "again", "clock", "online", "together"),
        (20, 12, 25, 25, 5, 5, 2, 2, 3, 6),
    )[0]
    if kind == "fault":
        return {"device": device, **_fault(chance)}
    if kind == "together":
        parts: list[Step] = [{"device": name, "do": "sync"} for name in names]
        parts.append({"device": device, "do": chance.choice(("win", "sync", "me", "refresh")), "allow": ["any"]})
        return {"together": parts}
    if kind == "again":
        return {"together": [{"device": device, "do": "win"}, {"device": device, "do": "again", "allow": ["any"]}]}
    more: Step = {"win": {}, "lose": {}, "clock": {"seconds": chance.choice((-DAY, 0, DAY, 3_600))}}.get(kind, {})
    if kind in ("refresh", "me"):
        more = {"allow": ["any"]}
    return {"device": device, "do": kind, **more}


def _fault(chance: Random) -> Step:
    where: Step = {
        "on": chance.choice(ROUTES),
        "times": chance.choice((1, 1, 1, 2, 3)),
        "skip": chance.choice((0, 0, 1)),
    }
    kind = chance.choice(("loss", "loss", "loss", "transient", "cut", "delay", "late", "old_token", "refused", "kill"))
    if kind == "loss":
        return where | {"fault": chance.choice(LOSSES)}
    if kind == "transient":
        return where | chance.choice(TRANSIENT)
    if kind == "cut":
        return where | {"fault": "cut", "bytes": chance.choice((0, 1, 20, 150, 400, 600))}
    if kind == "delay":
        return where | {"fault": chance.choice(("delay", "delay_answer")), "seconds": chance.choice((0.05, 0.3))}
    if kind == "late":
        return where | {"fault": "late", "on": chance.choice(("games", "upload", "progress")), "seconds": 0.2}
    if kind == "old_token":
        return where | {"fault": "old_token", "on": chance.choice(("games", "progress"))}
    if kind == "refused":
        on = chance.choice(("games", "progress", "upload", "me"))
        return where | {"fault": "refuse", "status": 401, "code": "unauthorized", "times": 1, "on": on}
    return where | {"fault": "kill", "what": "device", "when": chance.choice(("before", "during", "after")), "times": 1}


def _killing(chance: Random, do: str) -> Step:
    when = chance.choice(("before", "during", "after"))
    return {"fault": "kill", "what": do.removeprefix("kill_"), "when": when, "on": chance.choice(ROUTES)}
