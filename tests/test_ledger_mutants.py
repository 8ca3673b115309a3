"""Any change of any field of any entry, the chain made whole again: verification finds it, nothing crashes.

A drawn sample of the changes of each kind of ledger; of LAPRAS_MUTANTS of them, or of all.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import random
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from forged import COUNT, FEW, GROUPS, KINDS, Forged, Text, ask, budget_of, mutants, session, sound

import laprasdp as lp
from laprasdp.ledger.verify import verify

SCRIPT = Path(__file__).parent.parent / "examples" / "replay_ledger"
DRAWN = 15
"""Of each kind of ledger, in the gate."""

NEUTRAL = {
    "whose and when, with no release beside it": r"(reply|refusal|raise) (at|analyst|statement): ",
    "a refusal that might have been": r"refusal (reason|counted|queries.*): ",
    "a budget raised to more": r"raise new\.(epsilon|delta): ",
    "an allowance larger than the charge": r"release allowance: ",
    "a noisy value that no answer rests on, or a change of less than 10⁻⁶ of the noise": r"release noisy",
    "the same, in what is measured": r"release measurement",
    "the same charge written otherwise": r"release charge\.amounts\.classes",
    "a statement more or less, or in another order": r" entry: ",
}
"""What may go unnoticed, and why; everything else is found."""
SQUARES = re.compile(
    r"reply (answers|queries)|release (noisy|measurement|opening)| entry: |"
    r"release charge\.amounts\.weights.*: one more"
)
"""What takes least squares to see, or is a unit more than doubles tell: no promise of the script."""


def script() -> ModuleType:
    sys.path.insert(0, str(SCRIPT))
    try:
        spec = importlib.util.spec_from_file_location("replay_ledger", SCRIPT / "__main__.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(SCRIPT))
    return module


REPLAY = script()


def replayed(text: Text) -> bool:
    with contextlib.redirect_stdout(io.StringIO()):
        return bool(REPLAY.check(*text.export()))


def drawn(kind: str) -> list[tuple[str, Text]]:
    every = list(mutants(sound(kind)))
    wanted = os.environ.get("LAPRAS_MUTANTS", str(DRAWN))
    return every if wanted == "all" else random.Random(kind).sample(every, int(wanted))


@pytest.mark.parametrize("kind", KINDS)
def test_a_ledger_that_was_not_changed_is_sound(kind: str) -> None:
    text = sound(kind)
    assert verify(Forged(text), database=False) == []
    assert replayed(text)
    ask(session(Forged(text), kind, budget=budget_of(text)), FEW[0], GROUPS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_is_found_and_no_session_crashes(kind: str) -> None:
    budget, faults = budget_of(sound(kind)), []
    for what, text in drawn(kind):
        found = verify(Forged(text), database=False)
        if not found and not any(re.search(pattern, what) for pattern in NEUTRAL.values()):
            faults.append(f"{what} is not found")
        sees = not replayed(text)
        if sees != bool(found) and (sees or not SQUARES.search(what)):
            faults.append(f"{what}: the script says {sees}, verification {found}")
        with contextlib.suppress(lp.LaprasError):
            ask(
                session(Forged(text), kind, budget=budget),
                FEW[0], GROUPS, f"{COUNT} WHERE age IN (0, 2, 3)", f"{COUNT} WHERE age = 1",
            )  # fmt: skip
    assert faults == []
