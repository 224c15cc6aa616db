"""The curl commands of a document with their answers, run one after the other as by a reader."""

import re
import shlex

from tests.harness.constants import ROOT

KEPT = ("access_token", "refresh_token", "id")  # stored in shell variables, for the commands that follow


def curl_examples(page):
    """The curl commands on a page, each with the line below it."""
    return re.findall(r"^    \$ (curl .+)\n    (.+)$", page, re.M)


async def follow(server, examples, files=(), ask=None):
    """Run each command, which must be answered with 200 and the fields shown below it; return the answers in order.

    `files` maps "@name" to the bytes that a command sends; other files are the project's. `ask` replaces `server.ask`.
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
    """The request that curl would send: method, URL, headers, body."""
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
