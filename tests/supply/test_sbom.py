"""The bills of materials are valid CycloneDX, complete and the same each time."""

from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from tests.supply.pins import installed_on, pins
from tests.supply.sbom import IMAGE, SUBJECTS, Json, bill, debian_packages, main, written

STATUS = """\
Package: libc6
Status: install ok installed
Architecture: amd64
Version: 2.36-9+deb12u10
Description: GNU C Library
 Version: not this one

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 1.0
"""


def names(found: Json, kind: str = "library") -> set[str]:
    return {component["name"] for component in found["components"] if component["type"] == kind}


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.req("REQ-122")
def test_it_is_valid(subject: str) -> None:
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(written(bill(subject))) is None


def test_an_invalid_one_is_noticed() -> None:
    broken = bill("serve")
    broken["components"][0]["type"] = "package"
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(written(broken)) is not None


@pytest.mark.parametrize("subject", SUBJECTS)
def test_every_reference_is_to_a_component(subject: str) -> None:
    found = bill(subject)
    listed = [component["bom-ref"] for component in found["components"]] + [found["metadata"]["component"]["bom-ref"]]
    assert len(listed) == len(set(listed))
    assert {one["ref"] for one in found["dependencies"]} <= set(listed)
    reached = {ref for one in found["dependencies"] for ref in one["dependsOn"]}
    assert reached == set(listed[:-1])


@pytest.mark.req("REQ-122")
def test_an_environment_lists_every_pin_with_its_hashes() -> None:
    found = bill("train")
    stated = {
        (one["name"], one["version"], tuple(h["content"] for h in one["externalReferences"][0]["hashes"]))
        for one in found["components"]
    }
    assert stated == {(pin.name, pin.version, pin.hashes) for pin in pins("train")}
    assert all(hashes for _, _, hashes in stated)


def test_an_image_has_one_numpy_debian_packages_and_the_models() -> None:
    found = bill("image-cpu")
    assert [one["version"] for one in found["components"] if one["name"] == "numpy"] == ["1.26.4"]
    assert names(found) == {pin.name for pin in installed_on(pins("serve"), **IMAGE)} | {"python3"}
    assert names(found, "operating-system") == {"debian"}
    assert names(found, "machine-learning-model") == {"SoV", "AA"}
    assert "nvidia-cublas-cu12" in names(bill("image-gpu"))


def test_what_a_stage_installs_is_followed_to_its_base() -> None:
    dockerfile = "\n".join(
        [
            "FROM debian AS base\nRUN apt-get update && apt-get install -y --no-install-recommends b a && true",
            "FROM base AS other\nRUN apt-get install -y c \\\n    && true",
            "FROM base AS cpu\nRUN true\n",
        ]
    )
    assert debian_packages(dockerfile, "cpu") == ["a", "b"]
    assert debian_packages(dockerfile, "other") == ["a", "b", "c"]


def test_the_packages_of_a_built_image_have_versions() -> None:
    found = bill("image-cpu", STATUS)
    [libc] = [one for one in found["components"] if one["name"] == "libc6"]
    assert libc["purl"] == "pkg:deb/debian/libc6@2.36-9+deb12u10?arch=amd64&distro=bookworm"
    assert not {"gone", "python3"} & names(found)
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(written(found)) is None


def test_the_command_writes_the_same_bytes_each_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = tmp_path / "status"
    status.write_text(STATUS)
    for folder in ("first", "second"):
        main(["--out", str(tmp_path / folder)])
    first, second = (
        {file.name: file.read_bytes() for file in (tmp_path / name).iterdir()} for name in ("first", "second")
    )
    assert first == second
    assert set(first) == {f"{subject}.cdx.json" for subject in SUBJECTS}
    main(["--out", str(tmp_path), "--subject", "image-cpu", "--debian", str(status)])
    assert "libc6" in (tmp_path / "image-cpu.cdx.json").read_text()
    with pytest.raises(SystemExit):
        main(["--debian", str(status)])
    assert "--subject" in capsys.readouterr().err
