"""Pages of lists are as large as a controller has memory for, whatever objects somebody makes."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from berth.kube.client import ApiClient
from berth.kube.http_answer import LARGEST_BODY
from berth.kube.page_size import LARGEST_PAGE, LIST_PAGE, PAGE_GROWTH, USUAL_PAGE, PageSize
from berth.kube.resources import CONFIGMAPS
from tests.support.api_server import Answer, Request, api_server


def test_small_objects_come_by_the_hundred() -> None:
    size = PageSize(LIST_PAGE)
    size.read(500, 500 * 5000)
    assert (size.limit, size.largest) == (LIST_PAGE, LARGEST_PAGE)


@given(sizes=st.lists(st.integers(min_value=100, max_value=2_000_000), min_size=1, max_size=400))
def test_every_object_is_read_once_and_no_page_is_larger_than_it_may_be(sizes: list[int]) -> None:
    size = PageSize(LIST_PAGE)
    at = tries = 0
    while at < len(sizes):
        page = sizes[at : at + size.limit]
        tries += 1
        if sum(page) > size.largest:
            assert size.shrink()
            continue
        assert sum(page) <= LARGEST_PAGE
        at += len(page)
        size.read(len(page), sum(page))
    # Most pages are as large as usual ones: at the worst each of the larger objects comes alone.
    assert tries <= 2 + 4 * (sum(sizes) / USUAL_PAGE + len(sizes) / LIST_PAGE) + 3 * sum(one > 10**6 for one in sizes)


def test_a_single_object_may_be_as_large_as_any_answer() -> None:
    size = PageSize(8)
    assert size.shrink()
    assert (size.limit, size.largest) == (1, LARGEST_BODY)
    assert not size.shrink()


def test_pages_of_a_list_that_expired_are_larger() -> None:
    size = PageSize(LIST_PAGE, factor=PAGE_GROWTH)
    assert (size.limit, size.largest) == (LIST_PAGE * PAGE_GROWTH, LARGEST_PAGE * PAGE_GROWTH)
    size.read(100, USUAL_PAGE)
    assert size.limit == 100 * PAGE_GROWTH


def config_maps(sizes: list[int], asked: list[int]) -> Callable[[Request], Answer]:
    """A server with ConfigMaps of so many bytes; `asked` gets the limits."""

    def answer(request: Request) -> Answer:
        query = URL(request.path).query
        limit, begin = int(query["limit"]), int(query.get("continue", "0"))
        asked.append(limit)
        end = begin + limit
        items = [
            {"metadata": {"name": f"c{begin + n}", "resourceVersion": "1"}, "data": {"k": "x" * size}}
            for n, size in enumerate(sizes[begin:end])
        ]
        more = str(end) if end < len(sizes) else ""
        return Answer(200, {"metadata": {"resourceVersion": "1", "continue": more}, "items": items})

    return answer


async def test_a_page_that_is_too_large_is_asked_for_with_fewer_objects() -> None:
    """As of 500 pods of a megabyte: three times as much was needed to read them."""
    sizes, asked = [10] * 500 + [2**20] * 40, list[int]()
    with api_server(config_maps(sizes, asked)) as server:
        async with ApiClient(server.connection()) as client:
            found = await client.list_all(CONFIGMAPS)
    assert [len(item.data["k"]) for item in found] == sizes
    assert asked == [500, 500, 62, 7, 7, 7, 7, 7, 7]
