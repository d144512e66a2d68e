import asyncio
from pathlib import Path

import pytest

from app.errors import ArtefactRefused, NoModelLoaded, UnknownSite, UnknownVersion
from app.services import shelf as module
from app.services.prepare import Backend, ServedModel, choose_backend, prepare
from app.services.shelf import Shelf
from app.settings import load_settings
from tests.web.serving import publish_small

BACKEND = choose_backend(load_settings({}))


@pytest.fixture(scope="module")
def models_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("models")
    for number in range(3):
        publish_small(root, "SoV", f"1.{number}.0", number)
    return root


def test_a_model_is_read_once_however_many_ask(models_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readings: list[tuple[str, str]] = []

    def counted(root: Path, backend: Backend, site: str, version: str) -> ServedModel:
        readings.append((site, version))
        return prepare(root, backend, site, version)

    monkeypatch.setattr(module, "prepare", counted)

    async def main() -> None:
        shelf = Shelf(models_dir, BACKEND)
        found = await asyncio.gather(*(shelf.find("SoV", "1.0.0") for _ in range(5)))
        assert len({id(model) for model in found}) == 1
        assert await shelf.find("SoV", "1.0.0") is found[0]

    asyncio.run(main())
    assert readings == [("SoV", "1.0.0")]


def test_the_former_version_stays_at_hand(models_dir: Path) -> None:
    async def main() -> None:
        shelf = Shelf(models_dir, BACKEND)
        older, newer = await shelf.fetch("SoV", "1.0.0"), await shelf.fetch("SoV", "1.1.0")
        shelf.make_current(older)
        shelf.make_current(newer)
        assert shelf.find_current("SoV") is newer
        assert await shelf.find("SoV", "1.0.0") is older
        assert [model.ref.version for model in shelf.loaded] == ["1.1.0", "1.0.0"]

    asyncio.run(main())


def test_versions_that_nobody_asks_for_any_more_make_room(models_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OTHERS", 1)

    async def main() -> None:
        shelf = Shelf(models_dir, BACKEND)
        shelf.make_current(await shelf.fetch("SoV", "1.2.0"))
        await shelf.fetch("SoV", "1.0.0")
        await shelf.fetch("SoV", "1.1.0")
        assert [model.ref.version for model in shelf.loaded] == ["1.2.0", "1.1.0"]

    asyncio.run(main())


def test_what_is_not_there_is_named(models_dir: Path) -> None:
    async def main() -> None:
        shelf = Shelf(models_dir, BACKEND)
        with pytest.raises(NoModelLoaded):
            await shelf.find("SoV")
        shelf.make_current(await shelf.fetch("SoV", "1.0.0"))
        with pytest.raises(UnknownSite):
            await shelf.find("AA")
        with pytest.raises(UnknownSite):
            await shelf.find("../SoV", "1.0.0")
        with pytest.raises(UnknownVersion):
            await shelf.find("SoV", "../1.0.0")
        with pytest.raises(ArtefactRefused, match="not the one on record"):
            await shelf.fetch("SoV", "1.0.0", "0" * 64)

    asyncio.run(main())
