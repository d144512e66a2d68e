"""What the container files promise, as far as it can be read from them. What was tried for real: docs/containers.md."""

import re
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).parents[2]
OURS = ["migrate", "service", "service-gpu"]  # of our own image
MONITORING = ["prometheus", "grafana"]
SERVICES = ["database", *OURS, *MONITORING]
DATA = {"database": "/var/lib/postgresql/data", "prometheus": "/prometheus", "grafana": "/var/lib/grafana"}
FROM = re.compile(r"^FROM (\S+) AS (\S+)$", re.MULTILINE)
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)", re.MULTILINE)


def dockerfile() -> str:
    """With continued lines joined, and without comments."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    return text.replace("\\\n", " ")


def stages() -> dict[str, tuple[str, str]]:
    """By name: what a stage begins with, and its text."""
    parts = re.split(r"^(?=FROM )", dockerfile(), flags=re.MULTILINE)[1:]
    found = [FROM.match(part) for part in parts]
    return {name[2]: (name[1], part) for name, part in zip(found, parts, strict=True) if name}


def lineage(target: str) -> str:
    """All that is in an image: its stage, and those that it begins with."""
    begins, text = stages()[target]
    return (lineage(begins) if begins in stages() else "") + text


def compose() -> dict[str, Any]:
    return dict(yaml.safe_load((ROOT / "docker-compose.yml").read_text()))


def pins(name: str) -> set[tuple[str, str]]:
    return set(PIN.findall((ROOT / "requirements" / f"{name}.txt").read_text()))


def packages(name: str) -> set[str]:
    return {package for package, _ in pins(name)}


class TestDockerfile:
    def test_there_is_one_base_and_cpu_is_what_one_gets(self) -> None:
        names = list(stages())
        assert {begins for begins, _ in stages().values() if begins not in names} == {"${BASE}"}
        assert dockerfile().lstrip().startswith("ARG BASE=debian:bookworm-slim\nFROM ")
        assert names[-1] == "cpu"
        assert "gpu" in names

    @pytest.mark.parametrize("target", ["cpu", "gpu"])
    @pytest.mark.req("REQ-123")
    def test_an_image_runs_as_a_number_that_is_not_root(self, target: str) -> None:
        (user,) = re.findall(r"^USER (\S+)$", lineage(target), re.MULTILINE)
        assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", user)

    @pytest.mark.parametrize("target", ["cpu", "gpu"])
    def test_an_image_holds_models_migrations_and_a_health_check(self, target: str) -> None:
        text = lineage(target)
        assert "COPY models_store models_store" in text
        assert "COPY --from=program /opt/normalcy /opt/normalcy" in text
        assert "COPY migrations migrations" in stages()["program"][1]
        assert "COPY docs app/docs" in stages()["program"][1]  # the guide
        (check,) = re.findall(r"^HEALTHCHECK .*", text, re.MULTILINE)
        assert "/health/live" in check  # not readiness: a restart of the service brings no database back
        assert "curl" not in text
        assert re.search(r"^VOLUME /var/lib/normalcy$", text, re.MULTILINE)
        assert "NORMALCY_DATA_DIR=/var/lib/normalcy" in text

    @pytest.mark.parametrize(("target", "pinned"), [("cpu", "serve"), ("gpu", "gpu")])
    @pytest.mark.req("REQ-120")
    def test_an_image_gets_its_own_packages_by_their_hashes(self, target: str, pinned: str) -> None:
        assert re.findall(r"COPY --from=(\S+-packages)", lineage(target)) == [f"{target}-packages"]
        installing = stages()[f"{target}-packages"][1]
        assert f"COPY requirements/{pinned}.txt ." in installing
        assert f"--require-hashes -r {pinned}.txt" in installing

    def test_only_the_gpu_image_has_tensorflow(self) -> None:
        assert "tensorflow" not in packages("serve")
        assert "tensorflow" not in lineage("cpu")
        assert "NORMALCY_BACKEND=tensorflow" in lineage("gpu")
        assert {"tensorflow", "nvidia-cudnn-cu12"} <= packages("gpu")

    def test_the_gpu_image_computes_with_the_versions_of_serving_and_training(self) -> None:
        assert pins("gpu") >= pins("serve")
        (tensorflow,) = [pin for pin in pins("gpu") if pin[0] == "tensorflow"]
        assert tensorflow in pins("train")
        text = (ROOT / "requirements" / "gpu.txt").read_text()
        blocks = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)[1:]
        assert all("--hash=sha256:" in block for block in blocks)
        assert "://" not in text

    def test_packages_are_installed_before_the_program_is_copied(self) -> None:
        for name in ("cpu-packages", "gpu-packages", "installer", "python"):
            assert not re.search(r"^COPY (app|migrations|\.) ", stages()[name][1], re.MULTILINE)

    def test_the_builder_is_sent_only_what_an_image_holds(self) -> None:
        lines = (ROOT / ".dockerignore").read_text().splitlines()
        rules = [line for line in lines if line and not line.startswith("#")]
        assert rules[0] == "*"
        sent = {rule[1:] for rule in rules if rule.startswith("!")}
        copied = set(re.findall(r"^COPY (?!--from)(\S+) ", dockerfile(), re.MULTILINE))
        assert sent == copied
        assert {"**/__pycache__", "app/benchmark"} <= set(rules[rules.index("!app") :])  # the last match counts


class TestCompose:
    def test_migrations_run_once_before_the_service(self) -> None:
        services = compose()["services"]
        assert services["migrate"]["command"] == ["db", "upgrade"]
        assert services["migrate"]["restart"] == "no"
        for name in ("service", "service-gpu"):
            assert services[name]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
        assert services["migrate"]["depends_on"]["database"] == {"condition": "service_healthy"}
        assert "pg_isready" in services["database"]["healthcheck"]["test"]

    @pytest.mark.parametrize(("name", "target"), [("migrate", "cpu"), ("service", "cpu"), ("service-gpu", "gpu")])
    def test_base_and_commit_of_both_images_can_be_chosen(self, name: str, target: str) -> None:
        build = compose()["services"][name]["build"]
        assert build["target"] == target
        assert build["args"] == {"BASE": "${BASE:-debian:bookworm-slim}", "COMMIT": "${COMMIT:-unknown}"}
        assert all(f"ARG {name}=" in dockerfile() for name in build["args"])
        documented = (ROOT / "docs" / "containers.md").read_text()
        assert f"--target {target} --build-arg BASE=$BASE --build-arg COMMIT=$COMMIT ." in documented

    @pytest.mark.parametrize("name", SERVICES)
    def test_a_container_has_no_rights_and_writes_to_its_volume_alone(self, name: str) -> None:
        service = compose()["services"][name]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert "cap_add" not in service
        assert service["security_opt"] == ["no-new-privileges:true"]
        writable = [volume for volume in service["volumes"] if not volume.endswith(":ro")]
        assert writable == [f"{name}:{DATA[name]}" if name in DATA else "data:/var/lib/normalcy"]

    def test_no_container_runs_as_root(self) -> None:
        services = compose()["services"]
        users = {name: service["user"] for name, service in services.items() if "user" in service}
        assert users.keys() == {"database", *MONITORING}
        assert not any(user.startswith(("0:", "root")) for user in users.values())
        assert users["database"] == "999:999"

    @pytest.mark.parametrize("name", SERVICES)
    def test_memory_processors_and_processes_are_limited(self, name: str) -> None:
        service = compose()["services"][name]
        assert re.fullmatch(r"[1-9]\d*[mg]", service["mem_limit"])
        assert 0 < service["cpus"] <= 4
        assert 50 <= service["pids_limit"] <= 500

    def test_names_of_containers_are_complete(self) -> None:
        assert sorted(compose()["services"]) == sorted(SERVICES)

    def test_the_database_is_reached_by_the_back_network_alone(self) -> None:
        whole = compose()
        assert whole["networks"] == {"front": None, "back": {"internal": True}, "monitoring": None}
        services = whole["services"]
        assert {name: service["networks"] for name, service in services.items()} == {
            "database": ["back"],
            "migrate": ["back"],
            "service": ["front", "back"],
            "service-gpu": ["front", "back"],
            "prometheus": ["front", "monitoring"],
            "grafana": ["monitoring"],
        }
        published = [name for name, service in services.items() if "ports" in service]
        assert published == ["service", "service-gpu", *MONITORING]

    def test_the_database_asks_everybody_for_a_password(self) -> None:
        environment = compose()["services"]["database"]["environment"]
        assert "--auth=scram-sha-256" in environment["POSTGRES_INITDB_ARGS"].split()
        assert "POSTGRES_HOST_AUTH_METHOD" not in environment

    def test_secrets_are_files_and_never_values(self) -> None:
        whole = compose()
        secrets = whole["secrets"]
        assert all(secret["file"] == f"./secrets/{name}" for name, secret in secrets.items())
        for service in whole["services"].values():
            handed = set(service["secrets"])
            assert handed <= secrets.keys()
            for name, value in service.get("environment", {}).items():
                assert not re.search(r"PASSWORD$|URL$|KEY$", name)
                if name.endswith("_FILE"):
                    assert value.removeprefix("/run/secrets/") in handed

    def test_each_container_holds_the_logins_that_it_needs(self) -> None:
        services = compose()["services"]
        held = {name: {s for s in service["secrets"] if s.startswith("database")} for name, service in services.items()}
        assert held.pop("database") == {f"database_{login}_password" for login in ("admin", "manager", "service")}
        only_service = {"database_service_url"}
        assert {name: held[name] for name in OURS} == {
            "migrate": {"database_manager_url"}, "service": only_service, "service-gpu": only_service
        }  # fmt: skip
        assert not any(held[name] for name in MONITORING)

    def test_the_gpu_is_reserved_in_a_profile_of_its_own(self) -> None:
        services = compose()["services"]
        assert {name for name, service in services.items() if "profiles" in service} == {"service-gpu", *MONITORING}
        gpu = services["service-gpu"]
        assert (gpu["profiles"], gpu["build"]["target"]) == (["gpu"], "gpu")
        (device,) = gpu["deploy"]["resources"]["reservations"]["devices"]
        assert (device["driver"], device["capabilities"]) == ("nvidia", ["gpu"])
        assert services["service"]["build"]["target"] == "cpu"

    def test_monitoring_is_a_profile_with_images_of_one_version(self) -> None:
        for name in MONITORING:
            service = compose()["services"][name]
            assert service["profiles"] == ["monitoring"]
            assert re.fullmatch(r"[a-z/]+:v?\d+\.\d+\.\d+", service["image"])

    def test_prometheus_gets_what_its_configuration_names(self) -> None:
        service = compose()["services"]["prometheus"]
        mounts = dict(volume.split(":")[:2] for volume in service["volumes"])
        where = mounts["./deploy/monitoring/prometheus.yml"]
        assert f"--config.file={where}" in service["command"]
        assert f"--storage.tsdb.path={mounts['prometheus']}" in service["command"]
        configuration = yaml.safe_load((ROOT / "deploy" / "monitoring" / "prometheus.yml").read_text())
        rules = [str(Path(where).parent / name) for name in configuration["rule_files"]]
        assert rules == [mounts["./deploy/monitoring/alerts.yml"]]
        [job] = configuration["scrape_configs"]
        assert job["authorization"]["credentials_file"].removeprefix("/run/secrets/") in service["secrets"]
        [found] = job["dns_sd_configs"]
        assert (found["names"], found["port"]) == (["service"], 8000)

    def test_every_volume_and_file_that_is_named_is_there(self) -> None:
        whole = compose()
        for service in whole["services"].values():
            for volume in service["volumes"]:
                source = volume.split(":")[0]
                assert (ROOT / source).exists() if source.startswith("./") else source in whole["volumes"]

    def test_ports_open_to_this_machine_alone(self) -> None:
        ports = [port for service in compose()["services"].values() for port in service.get("ports", ())]
        assert all(port.startswith("127.0.0.1:") for port in ports)
        assert len(ports) == len(set(ports)) == 4


def make_secrets(folder: Path) -> dict[str, str]:
    script = ROOT / "deploy" / "make-secrets.sh"
    subprocess.run(["/bin/sh", script, folder], check=True)  # noqa: S603
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_secrets_are_made_once_and_match(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    made = make_secrets(folder)
    assert made.keys() == compose()["secrets"].keys() - {"metrics_key"}  # that one is an API key
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for login in ("manager", "service"):
        password = made[f"database_{login}_password"]
        assert len(password) == 64
        assert made[f"database_{login}_url"] == f"postgresql://normalcy_{login}:{password}@database:5432/normalcy"
    assert made["signing_key"].startswith("-----BEGIN PRIVATE KEY-----")
    random = {value for name, value in made.items() if not name.endswith("_url") and name != "signing_key"}
    assert len(random) == 6
    assert {len(value) for value in random} == {64}
    assert make_secrets(folder) == made


def test_the_service_login_joins_the_roles_of_the_migrations() -> None:
    from app.database.roles import AUDITOR, WRITER

    script = (ROOT / "deploy" / "create-service-login.sh").read_text()
    assert f"GRANT {WRITER}, {AUDITOR} TO" in script
    assert "normalcy_owner" not in script
