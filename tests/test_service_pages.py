"""The pages in a real Chromium: what people see and do, with scripts and without, and what nobody can."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from browser import Browser, Service, chromium, needs_browser
from office import COUNT, write_office

pytestmark = needs_browser()
PRICE, ASK = "Show the price", "main button.main"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("office")
    write_office(folder)
    made = Service(folder)
    yield made
    assert made.stop() == 0


@pytest.fixture(autouse=True)
def quiet(browser: Browser, service: Service) -> Iterator[None]:
    """Whatever a test does: no complaint of the content policy or of a script, no request to elsewhere."""
    browser.complaints.clear()
    browser.requests.clear()
    yield
    refused = re.compile(r"status of 4\d\d")  # Chromium tells of a refusal that the page shows
    assert [line for line in browser.complaints if not refused.search(line)] == []
    assert [url for url in browser.requests if not url.startswith((service.url, "data:", "null"))] == []


def asked(page: Any, statement: str, button: str = ASK) -> str:
    """Ask on the page, and what it says then."""
    page.evaluate("document.getElementById('told').innerHTML = ''")
    page.fill("#statement", statement)
    page.click(button)
    page.wait_for_selector("#told .sheet")
    text: str = page.inner_text("#told")
    return text


def test_a_newcomer_sees_a_price_asks_and_the_budget_moves(browser: Browser, service: Service) -> None:
    with browser.enter(service, service.tokens["cleo"]) as page:
        page.click("nav >> text=People")
        page.fill("#name", "dora")
        page.fill("form.sheet [name=cap]", "0.6")
        page.click("text=Add, and make a token")
        token = page.inner_text("#new-token")
        page.click("nav >> text=People")
        assert token not in page.content()  # it was shown once
    with browser.enter(service, token) as page:
        left = page.inner_text("#left")
        page.evaluate("window.stayed = true")
        price = asked(page, f"{COUNT} WHERE n < 3", f"text={PRICE}")
        assert "±" in price
        assert "of the budget" in price
        assert page.inner_text("#left") == left
        answer = asked(page, f"{COUNT} WHERE n < 3")
        assert re.search(r"\d ± [\d.]+", answer)
        assert page.locator("#told svg.interval").count() == 1
        assert page.inner_text("#left") != left
        assert "Your cap" in page.inner_text("#left")
        assert page.evaluate("window.stayed")  # nothing was loaded anew
        assert f"{COUNT} WHERE n < 3" in page.inner_text("#last")
        page.click("text=Link to this answer")
        assert "dora" in page.inner_text("main")
        page.click("text=Ask it again, free")
        assert page.input_value("#statement") == f"{COUNT} WHERE n < 3"


def test_an_exhausted_cap_is_a_clear_refusal(browser: Browser, service: Service) -> None:
    service.ask("ben", f"{COUNT} WHERE n > 6 AND m = 'x'")
    with browser.enter(service, service.tokens["cleo"]) as page:
        page.click("nav >> text=People")
        row = page.locator("tbody tr", has_text="ben")
        row.locator("summary").click()
        row.locator("[name=cap]").fill("0.0001")
        row.locator("button[value=cap]").click()
        assert "ε 0.0001" in page.inner_text("tbody")
    with browser.enter(service, service.tokens["ben"]) as page:
        refused = asked(page, f"{COUNT} WHERE n > 7 AND m = 'x'")
        assert "Refused" in refused
        assert "the cap of ben" in refused
        assert "The statement cost nothing" in refused
        assert "free" in asked(page, f"{COUNT} WHERE n > 6 AND m = 'x'")
    assert service.ask("ada", f"{COUNT} WHERE n > 7 AND m = 'x'").status_code == 200


def test_the_same_question_is_free_also_after_a_crash(browser: Browser, service: Service) -> None:
    def figure(page: Any) -> str:
        text: str = page.inner_text("#told .figure")
        return text

    with browser.enter(service, service.tokens["ada"]) as page:
        asked(page, f"{COUNT} WHERE n = 4")
        first = figure(page)
        assert "free" in asked(page, f"{COUNT} WHERE n = 4")
        assert figure(page) == first
    service.stop(signal.SIGKILL)
    service.start()
    with browser.enter(service, service.tokens["ada"]) as page:
        assert "free" in asked(page, f"{COUNT} WHERE n = 4")
        assert figure(page) == first
        page.click("nav >> text=History")
        page.fill("#q", "n = 4")
        page.click("main button")
        assert page.locator("tbody tr").count() == 3


def test_browsers_and_programs_at_once_stay_within_the_budget(browser: Browser, service: Service) -> None:
    with (
        browser.enter(service, service.tokens["ada"]) as ada,
        browser.enter(service, service.tokens["ben"]) as ben,
        ThreadPoolExecutor(2) as pool,
    ):
        programs = [
            pool.submit(
                lambda name, low: service.ask(name, f"{COUNT} WHERE n = {low}").status_code, name, low
            )
            for low in range(10)
            for name in ("ada", "ben")
        ]
        for low in range(4):
            for page in (ada, ben):
                asked(page, f"{COUNT} WHERE n >= {low} AND m = 'x'")
        assert {one.result() for one in programs} <= {200, 403}
    spending = service.get("cleo", "budget").json()["spending"][0]
    assert spending["epsilon_spent"] <= spending["epsilon"]
    with browser.enter(service, service.tokens["otto"]) as page:
        page.click("text=Verify it")
        page.wait_for_selector("#verified .figure")
        assert "Sound" in page.inner_text("#verified")
        head = page.inner_text("#verified code")
        with page.expect_download() as download:
            page.click("text=Export as JSON lines")
        assert head in Path(download.value.path()).read_text()


def test_nobody_does_what_the_role_may_not(browser: Browser, service: Service) -> None:
    with browser.enter(service, service.tokens["ada"]) as page:
        for path in ("people", "budget", "audit", "audit/export"):
            answer = page.goto(f"{service.url}/d/t/{path}")
            assert answer.status == 403
            assert "This is not for you" in page.content()
        for path in ("people", "budget", "audit"):
            page.goto(f"{service.url}/d/t/ask")
            field = page.input_value("#question [name=form_token]")
            sent = page.request.post(
                f"{service.url}/d/t/{path}",
                form={"form_token": field, "name": "eve", "role": "curator", "act": "add"},
            )
            assert sent.status == 403
    made = service_token(service, "ada")
    with browser.enter(service, made["token"]) as page:
        asked(page, COUNT)
        with browser.enter(service, service.tokens["cleo"]) as curator:
            curator.click("nav >> text=People")
            row = curator.locator("tbody tr", has_text="ada")
            row.locator("summary").click()
            row.locator("li", has_text="for a browser").locator("button").click()
        page.goto(f"{service.url}/d/t/ask")
        assert page.url.endswith("/sign-in")  # it died at once
        page.fill("#token", made["token"])
        page.click("main button")
        assert "lets nobody in" in page.inner_text("main")
    with browser.fresh() as page:
        page.goto(f"{service.url}/d/t/ask")
        assert page.url.endswith("/sign-in")


def service_token(service: Service, name: str) -> dict[str, str]:
    made: dict[str, str] = httpx2.post(
        f"{service.url}/api/v1/tokens",
        headers={"Authorization": f"Bearer {service.tokens['cleo']}"},
        json={"principal": name, "name": "for a browser"},
    ).json()
    return made


def test_other_sites_can_send_nothing(browser: Browser, service: Service) -> None:
    with browser.enter(service, service.tokens["cleo"]) as page:
        context = page.context
        (cookie,) = context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        page.click("nav >> text=People")
        field = page.input_value("form.sheet [name=form_token]")
        people, form = f"{service.url}/d/t/people", {"name": "eve", "role": "curator", "act": "add"}
        own = {"Cookie": f"{cookie['name']}={cookie['value']}"}
        host = service.url.removeprefix("http://")
        for headers, token, expected in (
            ({"Sec-Fetch-Site": "cross-site"}, field, 403),
            ({"Sec-Fetch-Site": "same-site"}, field, 403),
            ({"Origin": "http://evil.example"}, field, 403),
            ({"Origin": "null"}, field, 403),
            ({"Sec-Fetch-Site": "same-origin"}, "", 403),
            ({}, "0" * 64, 403),
            ({"Origin": f"http://{host}"}, field, 200),
        ):
            sent = httpx2.post(people, headers={**own, **headers}, data={**form, "form_token": token})
            assert sent.status_code == expected, (headers, token)
        hidden = {"form_token": field, "name": "evan", "role": "curator"}
        names = "".join(f"<input name={name} value={value}>" for name, value in hidden.items())
        form_of = f"<form method=post action={people}>{names}<button name=act value=add>Win</button></form>"
        evil = context.new_page()
        evil.route(
            "http://evil.example/", lambda route: route.fulfill(body=form_of, content_type="text/html")
        )
        evil.goto("http://evil.example/")
        evil.click("text=Win")
        evil.wait_for_url(f"{service.url}/**")
        page.goto(people)
        names_there = page.locator("tbody tr > th").all_inner_texts()
        assert "eve" in names_there
        assert "evan" not in names_there


def test_html_in_statements_and_names_is_inert(browser: Browser, service: Service) -> None:
    hostile = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    with browser.enter(service, service.tokens["ada"]) as page:
        groups = asked(page, f"{COUNT} GROUP BY m")
        assert "<b>y</b>" in groups
        assert page.locator("#told b").count() == 0
        refused = asked(page, f"SELECT '{hostile}' FROM t")
        assert "cannot be asked" in refused
        asked(page, f"{COUNT} WHERE m = '{hostile}'")
        page.click("nav >> text=History")
        assert page.locator("main img").count() == 0
        assert page.title() != "owned"
        page.goto(f"{service.url}/d/t/ask?statement={hostile}")
        assert page.input_value("#statement") == hostile
        assert page.title() != "owned"
    with browser.enter(service, service.tokens["cleo"]) as page:
        page.click("nav >> text=People")
        page.fill("#name", "<i>mallory<i>")
        page.fill("form.sheet [name=cap]", "0.1")
        page.click("text=Add, and make a token")
        assert page.locator("main i").count() == 0


def test_it_works_without_scripts_and_by_keyboard_alone(browser: Browser, service: Service) -> None:
    with browser.enter(service, service.tokens["ada"], java_script_enabled=False) as page:
        page.fill("#statement", f"{COUNT} WHERE n = 2")
        page.click(f"text={PRICE}")
        assert "The price" in page.inner_text("main")
        page.click(ASK)
        assert "The answer" in page.inner_text("main")
        with page.expect_download() as download:
            page.click("text=CSV")
        name, *_ = Path(download.value.path()).read_text().splitlines()[0].split(",")
        assert name == "count_star()"
        page.goto(f"{service.url}/d/t/ask?statement=SELECT")
        page.click("summary >> nth=0")
        page.click("button[name=insert] >> nth=0")
        assert page.input_value("#statement") == "SELECT n"
        page.click("text=Sign out")
        assert page.url.endswith("/sign-in")
    with browser.fresh() as page:
        page.goto(f"{service.url}/sign-in")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        while page.evaluate("document.activeElement.id") != "token":
            page.keyboard.press("Tab")
        page.keyboard.type(service.tokens["ada"])
        page.keyboard.press("Enter")
        page.wait_for_url("**/ask")
        while page.evaluate("document.activeElement.id") != "statement":
            page.keyboard.press("Tab")
        page.keyboard.type(f"{COUNT} WHERE n = 2")
        while page.evaluate("document.activeElement.value") != "ask":
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_selector("#told .figure")


PAGES = {
    "ada": ("ask", "history", "plan"),
    "cleo": ("budget", "people", "plan"),
    "otto": ("audit", "history", "budget"),
}
LOOKS = (("light", 1200), ("dark", 1200), ("light", 320), ("dark", 320))


@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_everybody_can_use_every_page(browser: Browser, service: Service, scheme: str, width: int) -> None:
    from axe_playwright_python.sync_playwright import Axe

    def found(page: Any) -> list[str]:
        result = Axe().run(page).response["violations"]
        return [f"{page.url} {one['id']}: {one['nodes'][0]['html']}" for one in result]

    wrong: list[str] = []
    options = {"color_scheme": scheme, "viewport": {"width": width, "height": 800}}
    with browser.fresh(**options) as page:
        page.goto(f"{service.url}/sign-in")
        wrong += found(page)
    for name, paths in PAGES.items():
        with browser.enter(service, service.tokens[name], **options) as page:
            for path in paths:
                page.goto(f"{service.url}/d/t/{path}")
                if path == "ask":
                    asked(page, f"{COUNT} GROUP BY m")
                page.evaluate("document.querySelectorAll('details').forEach((one) => one.open = true)")
                wrong += found(page)
                wide = page.evaluate("document.documentElement.scrollWidth")
                assert wide <= width, (path, wide)
    assert wrong == []


def test_the_other_parts_are_worked_out_where_they_stand(browser: Browser, service: Service) -> None:
    with browser.enter(service, service.tokens["ada"]) as page:
        page.click("nav >> text=Plan")
        page.click("text=Work it out")
        page.wait_for_selector("#curve svg")
        assert page.locator("#curve tbody tr").count() == 5
    with browser.enter(service, service.tokens["cleo"]) as page:
        page.click("text=Work it out")
        page.wait_for_selector("#rest p")
        page.fill("#epsilon", "1.5")
        page.fill("#confirm", "no")
        page.click("text=Raise the budget")
        assert "confirm it" in page.inner_text("[role=alert]")
        page.fill("#epsilon", "1.5")
        page.fill("#confirm", "raise")
        page.click("text=Raise the budget")
        assert "of 1.5 spent" in page.inner_text("main")
    with browser.enter(service, service.tokens["otto"]) as page:
        page.click("text=Run it")
        page.wait_for_selector("#audited .figure", timeout=60_000)
        assert "no evidence against it" in page.inner_text("#audited")


def test_a_curator_sets_predictions_sees_their_errors_and_begins(browser: Browser, tmp_path: Path) -> None:
    from axe_playwright_python.sync_playwright import Axe

    write_office(tmp_path)
    waiting = Service(tmp_path, BEGIN="curator")
    try:
        with browser.enter(waiting, waiting.tokens["cleo"], viewport={"width": 320, "height": 800}) as page:
            assert page.url.endswith("/plan")  # there is no budget to look at yet
            page.fill("#statements", f"{COUNT}\n{COUNT} WHERE n < 3")
            page.click("text=Set them, and plan again")
            assert "WHERE n < 3" in page.inner_text("table")
            assert Axe().run(page).response["violations"] == []
            assert page.evaluate("document.documentElement.scrollWidth") <= 320
            assert waiting.ask("ada", COUNT).json()["code"] == "waiting"
            page.fill("#confirm", "begin")
            page.click("main button:text-is('Begin')")
            assert "nobody can change them here" in page.inner_text("main")
        assert waiting.ask("ada", f"{COUNT} WHERE n < 3").json()["rows"][0]["source"] == "predicted"
    finally:
        assert waiting.stop() == 0
        browser.requests.clear()
