import asyncio
import shutil
from pathlib import Path

import pytest

from app.errors import InvalidArtefact, NoModelLoaded, UnknownSite, UnknownVersion
from app.inference.executor import LoadedModel
from app.runtime import models as module
from app.runtime.models import Backend, LoadedModels, choose_backend, load_model
from app.settings import load_settings
from tests.web.serving import publish_small

BACKEND = choose_backend(load_settings({}))


@pytest.fixture(scope="module")
def models_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("models")
    for number in range(3):
        publish_small(root, "SoV", f"1.{number}.0", number)
    return root


def test_concurrent_requests_read_a_model_once(models_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[tuple[str, str]] = []

    def counting(root: Path, backend: Backend, site: str, version: str) -> LoadedModel:
        loads.append((site, version))
        return load_model(root, backend, site, version)

    monkeypatch.setattr(module, "load_model", counting)

    async def main() -> None:
        loaded_models = LoadedModels(models_dir, BACKEND)
        found = await asyncio.gather(*(loaded_models.find("SoV", "1.0.0") for _ in range(5)))
        assert len({id(model) for model in found}) == 1
        assert await loaded_models.find("SoV", "1.0.0") is found[0]

    asyncio.run(main())
    assert loads == [("SoV", "1.0.0")]


def test_the_former_version_stays_in_memory(models_dir: Path) -> None:
    async def main() -> None:
        loaded_models = LoadedModels(models_dir, BACKEND)
        older, newer = await loaded_models.fetch("SoV", "1.0.0"), await loaded_models.fetch("SoV", "1.1.0")
        loaded_models.make_current(older)
        loaded_models.make_current(newer)
        assert loaded_models.find_current("SoV") is newer
        assert await loaded_models.find("SoV", "1.0.0") is older
        assert [model.ref.version for model in loaded_models.loaded] == ["1.1.0", "1.0.0"]

    asyncio.run(main())


def test_the_least_recently_used_version_is_dropped(models_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_OTHER_VERSIONS", 1)

    async def main() -> None:
        loaded_models = LoadedModels(models_dir, BACKEND)
        loaded_models.make_current(await loaded_models.fetch("SoV", "1.2.0"))
        await loaded_models.fetch("SoV", "1.0.0")
        await loaded_models.fetch("SoV", "1.1.0")
        assert [model.ref.version for model in loaded_models.loaded] == ["1.2.0", "1.1.0"]

    asyncio.run(main())


def test_a_missing_site_or_version_has_its_own_error(models_dir: Path) -> None:
    async def main() -> None:
        loaded_models = LoadedModels(models_dir, BACKEND)
        with pytest.raises(NoModelLoaded):
            await loaded_models.find("SoV")
        loaded_models.make_current(await loaded_models.fetch("SoV", "1.0.0"))
        with pytest.raises(UnknownSite):
            await loaded_models.find("AA")
        with pytest.raises(UnknownSite):
            await loaded_models.find("../SoV", "1.0.0")
        with pytest.raises(UnknownVersion):
            await loaded_models.find("SoV", "../1.0.0")
        with pytest.raises(InvalidArtefact, match="not the one on record"):
            await loaded_models.fetch("SoV", "1.0.0", "0" * 64)

    asyncio.run(main())


def test_files_that_are_not_those_on_record_are_to_be_restored(models_dir: Path) -> None:
    async def main() -> str:
        with pytest.raises(InvalidArtefact) as caught:
            await LoadedModels(models_dir, BACKEND).fetch("SoV", "1.0.0", "0" * 64)
        return str(caught.value)

    message = asyncio.run(main())
    assert message.startswith("SHA256SUMS: the digest of SoV 1.0.0 is not the one on record")
    assert message.endswith("Restore the original files.")


def test_a_version_is_published_whether_it_is_in_memory_usable_or_neither(models_dir: Path, tmp_path: Path) -> None:
    shutil.copytree(models_dir, tmp_path / "models")
    (tmp_path / "models" / "SoV" / "2.0.0").mkdir()  # without any file

    async def main() -> None:
        loaded_models = LoadedModels(tmp_path / "models", BACKEND)
        for version in ("1.0.0", "2.0.0", "current"):
            assert await loaded_models.is_published("SoV", version)
        for site, version in (("SoV", "3.0.0"), ("SoV", "../SoV/1.0.0"), ("AA", "1.0.0"), ("AA", "current")):
            assert not await loaded_models.is_published(site, version)
        await loaded_models.fetch("SoV", "1.0.0")
        shutil.rmtree(tmp_path / "models")
        assert await loaded_models.is_published("SoV", "1.0.0")

    asyncio.run(main())
