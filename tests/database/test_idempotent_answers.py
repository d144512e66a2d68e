import asyncio

import pytest

from app.database.engine import Database
from app.database.idempotent_answers import (
    PORTION,
    Claim,
    StoredAnswer,
    claim_key,
    delete_expired,
    release_key,
    store_answer,
)

pytestmark = pytest.mark.anyio

KEY, REQUEST, OTHER = b"k" * 32, b"r" * 32, b"o" * 32
TIMES = [f"2026-11-15T10:00:{second:02d}.000Z" for second in range(60)]


async def claimed(database: Database, now: int, until: int, request: bytes = REQUEST) -> Claim | StoredAnswer | None:
    async with database.writing() as connection:
        return await claim_key(connection, KEY, request, TIMES[now], TIMES[until])


async def test_one_of_many_gets_the_key_and_the_others_see_it_in_progress(database: Database) -> None:
    found = await asyncio.gather(*(claimed(database, 0, 10) for _ in range(8)))
    assert [type(each) for each in found].count(Claim) == 1
    assert [each for each in found if not isinstance(each, Claim)] == [StoredAnswer(REQUEST, None)] * 7


async def test_an_answer_is_found_until_it_expires(database: Database) -> None:
    claim = await claimed(database, 0, 10)
    assert isinstance(claim, Claim)
    async with database.writing() as connection:
        await store_answer(connection, claim, b"answer", TIMES[30])
    assert await claimed(database, 29, 39, OTHER) == StoredAnswer(REQUEST, b"answer")
    assert isinstance(await claimed(database, 30, 40, OTHER), Claim)


async def test_an_abandoned_claim_ends_by_itself_and_its_process_can_store_nothing_any_more(database: Database) -> None:
    first = await claimed(database, 0, 10)
    second = await claimed(database, 10, 20, OTHER)
    assert isinstance(first, Claim)
    assert isinstance(second, Claim)
    async with database.writing() as connection:
        await store_answer(connection, first, b"late", TIMES[30])
        await release_key(connection, first)
    assert await claimed(database, 11, 21) == StoredAnswer(OTHER, None)


async def test_a_released_key_can_be_claimed_at_once(database: Database) -> None:
    claim = await claimed(database, 0, 10)
    assert isinstance(claim, Claim)
    async with database.writing() as connection:
        await release_key(connection, claim)
    assert isinstance(await claimed(database, 1, 11), Claim)


async def test_what_has_expired_is_deleted(database: Database) -> None:
    await claimed(database, 0, 10)
    async with database.writing() as connection:
        assert await delete_expired(connection, TIMES[9]) == 0
        assert await delete_expired(connection, TIMES[10]) == 1


async def test_a_backlog_is_deleted_in_portions(database: Database) -> None:
    async with database.writing() as connection:
        for number in range(PORTION + 1):
            await claim_key(connection, number.to_bytes(32, "big"), REQUEST, TIMES[0], TIMES[10])
        await claim_key(connection, KEY, REQUEST, TIMES[0], TIMES[20])
        assert [await delete_expired(connection, TIMES[10]) for _ in range(3)] == [PORTION, 1, 0]


async def test_a_key_that_is_claimed_again_meanwhile_is_not_deleted(database: Database) -> None:
    async def delete() -> int:
        async with database.writing() as connection:
            return await delete_expired(connection, TIMES[10])

    await claimed(database, 0, 10)
    async with database.writing() as connection:
        assert isinstance(await claim_key(connection, KEY, OTHER, TIMES[10], TIMES[20]), Claim)
        deleting = asyncio.create_task(delete())
        await asyncio.sleep(0.3)  # it waits for this transaction
        assert not deleting.done()
    assert await deleting == 0
