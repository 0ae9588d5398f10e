"""A page of a study that is running, in a browser: it follows the study until somebody uses it."""

import pytest
from conftest import Explored

from headstream.tasks.report.explorer.explorer_contents import PageOptions, write_explorer
from headstream.tasks.results.study_results import open_results
from headstream.tasks.watching.page_server import served_page

expect = pytest.importorskip("playwright.sync_api").expect
ALONE = "Nobody serves this page any more: it stays as it is."


@pytest.fixture(scope="module")
def pages(explored: Explored, tmp_path_factory):
    """Pages of three versions."""
    folder = tmp_path_factory.mktemp("pages")
    with open_results(explored.warehouse, "invented") as results:
        for version in "123":
            write_explorer(results, explored.files, folder / version, [f"page {version}"], PageOptions(version=version))
    return folder


def test_a_page_follows_its_study_until_somebody_uses_it(browser, pages):
    with browser.new_context() as context, served_page(0) as server:
        page, wrong = context.new_page(), []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.clock.install()

        def look_again():
            with page.expect_response("**/version"):
                page.clock.run_for(3000)

        server.show(pages / "1", "1")
        page.goto(f"{server.address}#2L4H/L0H1?view=about")
        expect(page.locator(".about")).to_contain_text("page 1")
        expect(page.locator(".newer")).to_contain_text("This study is running")
        server.show(pages / "2", "2")
        look_again()
        expect(page.locator(".about")).to_contain_text("page 2")
        assert page.url.endswith("#2L4H/L0H1?view=about")
        page.locator("h1").click()
        server.show(pages / "3", "3")
        look_again()
        show = page.get_by_role("button", name="Show it")
        expect(show).to_be_visible()
        expect(page.locator(".about")).to_contain_text("page 2")
        show.click()
        expect(page.locator(".about")).to_contain_text("page 3")
    assert wrong == []


def test_a_page_that_nobody_serves_any_more_says_so_and_stays(browser, pages):
    with browser.new_context() as context:
        page = context.new_page()
        page.clock.install()
        with served_page(0) as server:
            server.show(pages / "1", "1")
            page.goto(server.address)
            expect(page.locator(".newer")).to_contain_text("This study is running")
        page.clock.run_for(3000)
        expect(page.locator(".newer")).to_have_text(ALONE)
        expect(page.locator(".cell").first).to_be_visible()


def test_a_page_without_a_server_asks_for_nothing(browser, explored: Explored):
    with browser.new_context() as context:
        page, asked = context.new_page(), []
        page.on("request", lambda request: asked.append(request.url))
        page.clock.install()
        page.goto(explored.page.as_uri())
        expect(page.locator(".cell").first).to_be_visible()
        page.clock.run_for(10_000)
        assert asked == [explored.page.as_uri()]
        expect(page.locator(".newer")).to_be_empty()
