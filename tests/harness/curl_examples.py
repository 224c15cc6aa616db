"""The curl commands that a document shows, each with its answer: run as a reader would, one after the other."""

import re
import shlex

from tests.harness.constants import ROOT

KEPT = ("access_token", "refresh_token", "id")  # in variables of the shell, for the commands that follow


def curl_examples(page):
    """The curl commands on a page, and the line below each of them."""
    return re.findall(r"^    \$ (curl .+)\n    (.+)$", page, re.M)


async def follow(server, examples, files=(), ask=None):
    """Each command is answered with 200 and the fields that stand below it; the answers, in their order.

    `files` has the bytes of those that a command sends, by "@name"; others are files of the project. `ask` replaces
    `server.ask`.
    """
    variables, answers = {"URL": ""}, []
    for command, shown in examples:
        for name, value in variables.items():
            command = command.replace(f"${name}", value)
        method, path, headers, body = _curl(shlex.split(command)[1:])
        if body is not None and body.startswith("@"):
            body = dict(files).get(body) or (ROOT / body[1:]).read_bytes()
        answer = await (ask or server.ask)(method, path, headers, body.encode() if isinstance(body, str) else body)
        assert answer.status == 200, (command, answer)
        (answered,) = answer.json if isinstance(answer.json, list) else [answer.json]
        fields = set(re.findall(r'[{,] ?"(\w+)":', re.sub(r"\[.*?\]", "[]", shown.strip("[]"))))
        assert fields <= set(answered), command
        assert fields == set(answered) or shown.rstrip("}").endswith("…"), command
        variables |= {name.upper(): answered[name] for name in KEPT if name in answered}
        if "codes" in answered:
            variables["CODE"] = answered["codes"][0]
        answers.append(answered)
    return answers


def _curl(words):
    """What curl would send: method, URL, headers, body."""
    method, headers, body, url = None, {}, None, None
    words = iter(words)
    for word in words:
        if word == "-X":
            method = next(words)
        elif word == "-H":
            name, _, value = next(words).partition(": ")
            headers[name] = value
        elif word in ("-d", "--data-binary"):
            body = next(words)
            headers.setdefault("Content-Type", "application/x-www-form-urlencoded")
        else:
            url = word
    return method or ("POST" if body is not None else "GET"), url, headers, body
