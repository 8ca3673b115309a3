"""Checks exported ledgers by docs/ledger-format.md alone: python replay_ledger EXPORT.jsonl

Standard library only; nothing of LAPRAS is used.  Exit code 0: sound.  1: findings, one on a line.
What it does not check is said under "Replay" there: answers that take least squares to work out.
"""

import hashlib
import json
import sys

from ledger_forms import CANONICAL, UNFIT
from ledger_replay import Replay


def check(header, kept):
    """Print what is wrong with one ledger, or that all is sound; whether it is."""
    assert header["format"] == 1, "this script knows format 1"
    name, replay, found = header.get("dataset", "ledger"), Replay(json.loads(header["settings"])), 0
    digest = hashlib.sha256(header["settings"].encode()).hexdigest()
    for position, line in enumerate(kept):
        digest = hashlib.sha256((digest + line["entry"]).encode()).hexdigest()
        entry, findings = None, []
        try:
            entry = json.loads(line["entry"])
            if CANONICAL.encode(entry) != line["entry"]:
                findings.append("it is not written as the form says")
            findings += replay.look(entry)
        except UNFIT as error:
            findings.append(f"nothing can be worked out with it: {error}")
        if line["digest"] != digest or not entry or entry.get("position") != position:
            findings.insert(0, "it does not follow from the entry before")
            digest = line["digest"]
        for finding in findings:
            print(f"{name}, entry {position}: {finding}")
        found += len(findings)
    if replay.turn:
        print(f"{name}: the last release has no reply")
    if found or replay.turn:
        return False
    unit, most = ("ε", replay.epsilon) if replay.basic else ("μ²", max(replay.spent.weights))
    print(f"{name}: {len(kept)} entries, all sound; {most} units of {unit} spent; head {digest}")
    return True


def main(path):
    ledgers = []
    with open(path, encoding="ascii") as lines:
        for line in map(json.loads, lines):
            if "settings" in line:
                ledgers.append((line, []))
            else:
                ledgers[-1][1].append(line)
    sound = [check(*ledger) for ledger in ledgers]
    return 0 if sound and all(sound) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
