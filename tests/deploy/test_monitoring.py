"""Alert rules, the configuration of Prometheus and the dashboard, against the metrics of a real service.

promtool and prometheus come with Debian's package `prometheus`.
"""

import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml  # type: ignore[import-untyped]
from prometheus_client.parser import text_string_to_metric_families

from app.runtime.checkpoints import LATE_SECONDS
from app.settings import load_settings
from app.web.app import ROUTES
from tests.deploy.proxies import adapted, free_port, program
from tests.documents import GUIDE, spans
from tests.web.serving import Running, bearer, create_key, serving

MONITORING = Path(__file__).parents[2] / "deploy" / "monitoring"
DASHBOARD: dict[str, Any] = json.loads((MONITORING / "grafana" / "dashboards" / "normalcy.json").read_text())
GROUPS: list[dict[str, Any]] = yaml.safe_load((MONITORING / "alerts.yml").read_text())["groups"]
RULES: list[dict[str, Any]] = [rule for group in GROUPS for rule in group["rules"]]
TARGETS: list[dict[str, Any]] = [target for panel in DASHBOARD["panels"] for target in panel["targets"]]
EXPRESSIONS = [rule["expr"] for rule in RULES] + [target["expr"] for target in TARGETS]
SELECTOR = re.compile(r"\b(normalcy_\w+)(?:\{((?:[^{}\"]|\"[^\"]*\")*)\})?")
LABEL = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"([^\"]*)\"")

STEP_SECONDS = 15
HEALTHY = {  # an hour of two replicas: series and values, in the notation of promtool
    **{f'up{{job="normalcy",instance="{one}"}}': "1x240" for one in "ab"},
    **{
        f'normalcy_ready{{job="normalcy",instance="{one}",check="{check}"}}': "1x240"
        for one in "ab"
        for check in ("accepting", "models_loaded", "audit_writable")
    },
    **{f'normalcy_current_model{{instance="{one}",site="SoV",version="1.0.0",sha256="x"}}': "1x240" for one in "ab"},
    'normalcy_requests_total{instance="a",route="/v1/sites/{site}/score",method="POST",status="200"}': "0+600x240",
    'normalcy_request_seconds_bucket{instance="a",route="/v1/sites/{site}/score",le="0.5"}': "0+600x240",
    'normalcy_request_seconds_bucket{instance="a",route="/v1/sites/{site}/score",le="1"}': "0+600x240",
    'normalcy_request_seconds_bucket{instance="a",route="/v1/sites/{site}/score",le="+Inf"}': "0+600x240",
    'normalcy_audit_durable{instance="a"}': "1x240",
    'normalcy_audit_failures_total{instance="a"}': "0x240",
    'normalcy_audit_dropped_total{instance="a"}': "0x240",
    'normalcy_audit_queue_depth{instance="a"}': "12x240",
    'normalcy_checkpoint_age_seconds{instance="a"}': "59x240",
    'normalcy_checkpoint_failures_total{instance="a"}': "0x240",
    'normalcy_key_expiry_seconds{instance="a"}': "9000000x240",
}


def warning(code: str) -> dict[str, str]:
    return {f'normalcy_warnings{{instance="a",code="{code}"}}': "0x47 1x120"}


# What makes each alert fire from the twelfth minute on, and how soon it must.
INCIDENTS: dict[str, tuple[dict[str, str], int]] = {
    "NormalcyReplicaDown": ({'up{job="normalcy",instance="a"}': "1x47 0x120"}, 2),
    "NormalcyDown": ({name: "1x47 _x120" for name in HEALTHY if name.startswith("normalcy_ready")}, 7),
    "NormalcyNotReady": ({'normalcy_ready{job="normalcy",instance="a",check="models_loaded"}': "1x47 0x120"}, 3),
    "NormalcyDefect": ({'normalcy_requests_total{route="/v1/limits",status="500"}': "0x49 1x118"}, 2),
    "NormalcyUnavailable": ({'normalcy_requests_total{route="r",status="503"}': "0x47 0+60x120"}, 5),
    "NormalcySlow": (
        {name: "0+600x47 28200x120" for name in HEALTHY if "_bucket" in name and "+Inf" not in name},
        12,
    ),
    "NormalcyAuditNotWritable": (
        {'normalcy_ready{job="normalcy",instance="a",check="audit_writable"}': "1x47 0x120"},
        1,
    ),
    "NormalcyAuditNotDurable": ({'normalcy_audit_durable{instance="a"}': "1x47 0x120"}, 1),
    "NormalcyAuditFailures": ({'normalcy_audit_failures_total{instance="a"}': "0x47 1x120"}, 1),
    "NormalcyRefusalsNotRecorded": ({'normalcy_audit_dropped_total{instance="a"}': "0x47 1x120"}, 1),
    "NormalcyAuditQueueDeep": ({'normalcy_audit_queue_depth{instance="a"}': "12x47 500x120"}, 2),
    "NormalcyCheckpointLate": ({'normalcy_checkpoint_age_seconds{instance="a"}': "59x47 60+15x120"}, 10),
    "NormalcyCheckpointFailures": ({'normalcy_checkpoint_failures_total{instance="a"}': "0x47 1x120"}, 1),
    "NormalcyAuditChainsLost": (warning("audit_chains_lost"), 1),
    "NormalcyAuditNotVerified": (warning("audit_not_verified"), 17),
    "NormalcyPartitionsRunOut": (warning("partitions_run_out"), 1),
    "NormalcyModelMismatch": (
        {
            'normalcy_current_model{instance="b",site="SoV",version="1.0.0",sha256="x"}': "1x47 _x120",
            'normalcy_current_model{instance="b",site="SoV",version="1.1.0",sha256="y"}': "_x47 1x120",
        },
        8,
    ),
    "NormalcyModelNotUsable": (warning("activation_not_followed"), 1),
    "NormalcyKeyExpiresSoon": ({'normalcy_key_expiry_seconds{instance="a"}': "9000000x47 2000000x120"}, 1),
    "NormalcyNoLiveKey": (warning("no_live_key"), 1),
    "NormalcyLoginRights": (warning("owner_login"), 1),
    "NormalcyCredentialRefusals": ({'normalcy_credential_refusals_total{reason="key_wrong"}': "0x47 0+60x120"}, 12),
    "NormalcyIssuerKeysNotRead": ({'normalcy_issuer_keys_age_seconds{issuer="a"}': "100x47 1801x120"}, 1),
}
INCIDENT_MINUTE = 12


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def promtool(*arguments: str | Path) -> None:
    done = subprocess.run([program("promtool"), *arguments], capture_output=True, text=True, timeout=120)  # noqa: S603
    assert done.returncode == 0, done.stdout + done.stderr


def rule_test(alert: str | None) -> dict[str, Any]:
    """A test for promtool: this alert fires and does not before; or none ever does."""
    series, minutes = INCIDENTS[alert] if alert else ({}, 0)
    firing = f'count(ALERTS{{alertname="{alert}",alertstate="firing"}})' if alert else "count(ALERTS)"
    quiet = {"expr": firing, "eval_time": f"{INCIDENT_MINUTE - 1}m", "exp_samples": []}
    later = {"expr": firing, "eval_time": f"{INCIDENT_MINUTE + minutes}m"}
    return {
        "name": alert or "healthy",
        "interval": f"{STEP_SECONDS}s",
        "input_series": [{"series": name, "values": values} for name, values in (HEALTHY | series).items()],
        "promql_expr_test": [quiet, later | {"exp_samples": [{"labels": "{}", "value": 1}] if alert else []}],
    }


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, models_dir: Path) -> Iterator[tuple[Running, str]]:
    """A service that has scored and rejected, and a key for its metrics."""
    settings = load_settings({"NORMALCY_DATA_DIR": str(tmp_path_factory.mktemp("data"))})
    with serving(settings, models_dir):
        pass  # creates the database
    key = create_key(settings, ["score", "model:read"])
    with serving(settings, models_dir) as service:
        assert service.score(headers=bearer(key)).status_code == 200
        assert service.score().status_code == 401
        yield service, key


@pytest.fixture(scope="module")
def samples(running: tuple[Running, str]) -> dict[str, set[str]]:
    """By name of a series: the names of its labels."""
    service, key = running
    text = service.client.get("/metrics", headers=bearer(key)).text
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        found |= {family.name: set()} if family.type == "gauge" else {}  # also one without a series at the moment
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_metric_and_label_of_an_expression_is_one_of_the_service(
    expression: str, samples: dict[str, set[str]]
) -> None:
    added = {"job", "instance"} | ({"code"} if "normalcy_warnings" in expression else set())
    for name, selected in SELECTOR.findall(expression):
        assert name in samples
        assert {label for label, _ in LABEL.findall(selected)} <= samples[name] | added


def test_every_metric_is_on_the_dashboard_or_in_a_rule(samples: dict[str, set[str]]) -> None:
    used = {name for expression in EXPRESSIONS for name, _ in SELECTOR.findall(expression)}
    histograms = re.compile(r"_(bucket|count|sum|created)$")
    assert {name for name in samples if not histograms.search(name)} - used == set()


def test_routes_checks_and_warnings_in_expressions_exist(running: tuple[Running, str]) -> None:
    selected = [pair for one in EXPRESSIONS for _, labels in SELECTOR.findall(one) for pair in LABEL.findall(labels)]
    assert {value for label, value in selected if label == "route"} <= {route.path for route in ROUTES}
    checks = running[0].client.get("/health/ready").json()["checks"]
    assert {value for label, value in selected if label == "check"} <= checks.keys()
    codes = {code for label, value in selected if label == "code" for code in value.split("|")}
    assert len(codes) >= 6
    assert codes <= set(spans(GUIDE))


def test_the_limits_are_those_of_the_service() -> None:
    by_name = {rule["alert"]: rule["expr"] for rule in RULES}
    assert by_name["NormalcyCheckpointLate"].endswith(f"> {LATE_SECONDS:g}")


def test_every_alert_says_what_to_do() -> None:
    for rule in RULES:
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert rule["annotations"].keys() == {"summary", "action"}
    assert len({rule["alert"] for rule in RULES}) == len(RULES)


def test_panels_have_queries_and_titles_and_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        assert panel["title"]
        assert panel["targets"]
        x, y, width, height = (panel["gridPos"][name] for name in "xywh")
        cells = {(column, row) for column in range(x, x + width) for row in range(y, y + height)}
        assert not cells & taken
        assert x + width <= 24
        taken |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_grafana_finds_its_data_source_and_its_dashboards() -> None:
    provisioning = MONITORING / "grafana" / "provisioning"
    [source] = yaml.safe_load((provisioning / "datasources" / "prometheus.yml").read_text())["datasources"]
    compose = yaml.safe_load((MONITORING.parents[1] / "docker-compose.yml").read_text())["services"]
    assert source["url"] == "http://prometheus:9090"
    assert "prometheus" in compose
    assert {target["datasource"]["uid"] for target in TARGETS} == {source["uid"]}
    [files] = yaml.safe_load((provisioning / "dashboards" / "files.yml").read_text())["providers"]
    mounts = dict(volume.split(":")[:2] for volume in compose["grafana"]["volumes"])
    assert mounts["./deploy/monitoring/grafana/dashboards"] == files["options"]["path"]
    home = compose["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert Path(home) == Path(files["options"]["path"]) / "normalcy.json"


def test_each_alert_has_an_incident() -> None:
    assert INCIDENTS.keys() == {rule["alert"] for rule in RULES}


@pytest.mark.slow
def test_alerts_fire_when_they_should_and_never_while_all_is_well(tmp_path: Path) -> None:
    file = tmp_path / "alerts_test.yml"
    tests = [rule_test(alert) for alert in (None, *INCIDENTS)]
    content = {"rule_files": [str(MONITORING / "alerts.yml")], "evaluation_interval": "15s", "tests": tests}
    file.write_text(yaml.safe_dump(content))
    promtool("test", "rules", file)


def configuration(folder: Path, key: str, target: str) -> Path:
    """As in the compose file, with the address of one service in place of its name there."""
    (folder / "metrics_key").write_text(f"{key}\n")
    changes = {
        "/run/secrets/metrics_key": str(folder / "metrics_key"),
        "rule_files: [alerts.yml]": f"rule_files: [{MONITORING / 'alerts.yml'}]",
        "    dns_sd_configs:\n      - {names: [service], type: A, port: 8000, refresh_interval: 15s}\n": (
            f"    static_configs: [{{targets: ['{target}']}}]\n"
        ),
        "scrape_interval: 15s": "scrape_interval: 1s",
        "scrape_timeout: 5s": "scrape_timeout: 1s",
    }
    file = folder / "prometheus.yml"
    file.write_text(adapted((MONITORING / "prometheus.yml").read_text(), changes))
    return file


def test_promtool_accepts_the_configuration(tmp_path: Path) -> None:
    promtool("check", "config", "--syntax-only", MONITORING / "prometheus.yml")
    promtool("check", "config", configuration(tmp_path, "key", "127.0.0.1:8000"))


@pytest.fixture
def prometheus(running: tuple[Running, str], tmp_path: Path) -> Iterator[httpx.Client]:
    """A real one, which reads the metrics of a real service every second."""
    service, key = running
    file, address = configuration(tmp_path, key, service.url.removeprefix("http://")), f"127.0.0.1:{free_port()}"
    command = [program("prometheus"), f"--config.file={file}", f"--storage.tsdb.path={tmp_path / 'data'}"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen([*command, f"--web.listen-address={address}"], stdout=log, stderr=log)  # noqa: S603
        try:
            with httpx.Client(base_url=f"http://{address}", transport=httpx.HTTPTransport(retries=8)) as client:
                wait_until(lambda: client.get("/-/ready").status_code == 200)
                yield client
        finally:
            process.terminate()
            process.wait(30)


def value(client: httpx.Client, expression: str) -> list[dict[str, Any]]:
    query = expression.replace("$__rate_interval", "1m")  # as Grafana does
    answer = client.get("/api/v1/query", params={"query": query})
    assert answer.status_code == 200, (expression, answer.text)
    found: list[dict[str, Any]] = answer.json()["data"]["result"]
    return found


@pytest.mark.slow
def test_prometheus_reads_the_service_and_answers_every_panel(prometheus: httpx.Client) -> None:
    wait_until(lambda: bool(value(prometheus, 'up{job="normalcy"} == 1')))
    [ready] = value(prometheus, TARGETS[0]["expr"])
    assert ready["value"][1] == "1"
    for expression in EXPRESSIONS:
        value(prometheus, expression)  # a query that Prometheus cannot evaluate is a 4xx
    rules = prometheus.get("/api/v1/rules").json()["data"]["groups"]
    assert {rule["name"] for group in rules for rule in group["rules"]} == {rule["alert"] for rule in RULES}
