"""What the pages show is so: their Python and their commands are run, and what comes of it is compared."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from postgres import Server
from spark import Cluster

import laprasdp as lp

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "scripts"))

import pages  # noqa: E402

DOCS = ROOT / "docs"
PAGES = sorted(page for part in ("tutorials", "how-to", "explanation") for page in DOCS.glob(f"{part}/*.md"))
NEEDS_POSTGRES, NEEDS_SPARK = {"postgresql"}, {"spark"}


@pytest.fixture
def clinic(postgres: Server) -> Iterator[str]:
    """The address of a database that is there for one test."""
    with psycopg.connect(postgres.url, autocommit=True) as server:
        server.execute("CREATE DATABASE clinic")
        yield postgres.url.replace("/postgres?", "/clinic?")
        server.execute("DROP DATABASE clinic WITH (FORCE)")


@pytest.mark.filterwarnings("ignore:.*which is experimental:UserWarning")
@pytest.mark.parametrize("page", [pytest.param(page, id=page.stem) for page in PAGES])
def test_what_a_page_shows_is_what_comes_of_it(
    page: Path, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    names = {}
    if page.stem in NEEDS_POSTGRES:
        names = {"postgresql://postgres@db.example/clinic": request.getfixturevalue("clinic")}
    if page.stem in NEEDS_SPARK:
        cluster: Cluster = request.getfixturevalue("cluster")
        names = {"spark://spark.example:7077": cluster.master, "/data/clinic": str(tmp_path)}
    faults, _ = pages.run(page, names)
    assert not faults, "\n".join(faults)


ASKED = "import laprasdp as lp\n\nprint(round(lp.Budget(1.0, 1e-6).mu, 3), 'of', 'μ')\n"
RIGHT = f"# A page\n\n```python\n{ASKED}```\n\n```text\n0.237 of μ\n```\n"
CONSOLE = "\n```console noisy\n$ lapras --version\nlapras 7.7.7\n```\n"


def faults_of(text: str, folder: Path) -> list[str]:
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    return pages.run(page)[0]


def test_a_page_that_is_right_passes(tmp_path: Path) -> None:
    assert faults_of(RIGHT + CONSOLE, tmp_path) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("0.237", "0.238"),  # a number that is exact
        ("of μ\n", "of σ\n"),
        ("```text\n0.237 of μ\n```", "nothing"),  # printed and not shown
        ("print(", "len("),  # shown and not printed
        ("lapras 7.7.7", "lapras version 7.7"),  # words of noisy output
        ("--version", "version"),
        ("```console noisy", "```console"),
        ("```text", "```json"),  # a block that nothing would test
    ],
)
def test_a_page_that_is_wrong_fails(tmp_path: Path, right: str, wrong: str) -> None:
    text = RIGHT + CONSOLE
    assert right in text
    try:
        faults = faults_of(text.replace(right, wrong, 1), tmp_path)
    except (AssertionError, TypeError):
        return
    assert faults


def test_of_noise_the_numbers_alone_may_differ() -> None:
    shown = "sex = Male   32,650.2 ± 14.1  ▇▇▇▇\n"
    assert pages.compare(shown, "sex = Male  9.9 ± 1  ▇\n", noisy=True) is None
    assert pages.compare(shown, "sex = Female  9.9 ± 1  ▇\n", noisy=True) is not None
    assert pages.compare(shown, "sex = Male  ± 1  ▇\n", noisy=True) is not None
    assert pages.compare(shown, "sex = Male  9.9 ± 1  ▇\n") is not None
    assert pages.compare("about 6.2 of 3\n", "about 6.1 of 3\n") is None  # an estimate says so
    assert pages.compare("about 6.2 of 3\n", "about 6.1 of 4\n") is not None
    assert pages.compare("a\n…\nd", "a\nb\nc\nd\n") is None
    assert pages.compare("a\n…\nd", "a\nb\nc\ne\n") is not None


def test_a_page_is_written_anew_with_what_is_printed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(RIGHT.replace("0.237", "1") + CONSOLE, encoding="utf-8")
    faults, again = pages.run(page)
    assert len(faults) == 1
    assert again == (RIGHT + CONSOLE).replace("lapras 7.7.7", f"lapras {lp.__version__}")
