import pytest
from decided_claims import fill
from empty_warehouse import empty_warehouse


@pytest.fixture(scope="module")
def empty():
    with empty_warehouse() as connection:
        connection.execute("SET threads = 1")
        yield connection


@pytest.fixture
def database(empty, tmp_path):
    """An empty warehouse in memory, and a function that fills it with studies until the test ends."""
    empty.begin()
    yield empty, lambda *studies: fill(empty, tmp_path, *studies)
    empty.rollback()
