"""The description of the interface is followed: no request that it allows, or nearly, finds a defect."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from office import Office

schemathesis = pytest.importorskip("schemathesis")
MODES = ["positive", "negative"]
EXAMPLES = 8


@pytest.mark.parametrize("mode", MODES)
def test_nothing_near_what_is_described_finds_a_defect(tmp_path: Path, mode: str) -> None:
    office = Office(tmp_path)
    schema = schemathesis.openapi.from_asgi("/api/v1/openapi.json", office.client.app)
    statuses: dict[str, set[int]] = {}
    for found in schema.get_all_operations():
        operation = found.ok()
        if operation.path.startswith("/d/"):
            continue
        name = f"{operation.method.upper()} {operation.path}"
        seen = statuses.setdefault(name, set())
        for case in cases(operation, mode):
            for who in ("ada", "cleo", "otto"):
                headers = {"Authorization": f"Bearer {office.tokens[who]}"}
                response = case.call(headers=headers)
                assert response.status_code < 500, (name, case, response.content)
                seen.add(response.status_code)
                if response.status_code >= 400:
                    assert response.headers["content-type"] == ["application/problem+json"], (name, case)
    assert len(statuses) > 18
    if mode == "positive":
        assert 200 in statuses["GET /api/v1/answers"]
        assert statuses["POST /api/v1/ask"] & {400, 404, 422}  # texts that are no statements
    else:
        assert 422 in statuses["POST /api/v1/ask"]
    assert office.get("otto", "ledger/verify").json()["sound"]
    office.close()


def cases(operation: Any, mode: str) -> list[Any]:
    """Requests that the description allows, or does not; the same each time."""
    drawn: list[Any] = []
    strategy = operation.as_strategy(generation_mode=schemathesis.GenerationMode(mode))
    quiet = list(HealthCheck)

    @settings(
        max_examples=EXAMPLES, deadline=None, database=None, derandomize=True, suppress_health_check=quiet
    )
    @given(case=strategy)
    def draw(case: Any) -> None:
        drawn.append(case)

    refusing = suppress(Exception) if mode == "negative" else nullcontext()
    with refusing:  # there may be nothing that this operation does not allow
        draw()
    return drawn[:EXAMPLES]
