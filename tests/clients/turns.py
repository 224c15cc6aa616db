"""A driver that lets several clients take turns on one store: `python -m tests.clients.turns PROGRAM... + PROGRAM...`.

At each `open`, the next program continues with the store; the file `turn` in the store counts them.
"""

import itertools
import json
import subprocess
import sys
from pathlib import Path


def main():
    """Pass each command to the client whose turn it is, which answers to the same output."""
    words = sys.argv[1:]
    programs = [list(group) for plus, group in itertools.groupby(words, key="+".__eq__) if not plus]
    client = None
    for line in sys.stdin:
        command = json.loads(line)
        if command["do"] == "open":
            if client is not None:
                client.kill()
                client.wait()
            turn = Path(command["store"], "turn")
            number = int(turn.read_text()) if turn.exists() else 0
            turn.write_text(str(number + 1))
            client = subprocess.Popen(programs[number % len(programs)], stdin=subprocess.PIPE, text=True)
        client.stdin.write(line)
        client.stdin.flush()


if __name__ == "__main__":
    main()
