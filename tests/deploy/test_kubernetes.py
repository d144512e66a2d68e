"""The manifests for Kubernetes: valid, confined, and in agreement with the service. What was tried: docs/kubernetes.md.

No cluster runs them here. A validator with the schemas of Kubernetes checks each file, and, where kustomize is
installed, what it builds of them; a ServiceMonitor, whose schema is not part of Kubernetes, is checked by hand.
"""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml  # type: ignore[import-untyped]

from app.database.engine import POOL_SIZE
from app.errors import InvalidSettings
from app.settings import TABLE, load_settings
from app.web import server
from app.web.app import ROUTES
from app.web.routes import batch
from app.web.server import IDLE_SECONDS, READING_SECONDS
from tests.deploy.manifests import KUBERNETES, Manifest, built, documents, kustomize_command, listed_files, pod_spec
from tests.deploy.manifests import resources as listed_resources

BASE, EXAMPLE, ISSUERS = (KUBERNETES / name for name in ("base", "example", "issuers"))
OPERATOR = "monitoring.coreos.com/v1"
# The oldest release that has autoscaling/v2 and policy/v1 and is still widely run, and the newest known here.
VERSIONS = ["1.25", "1.37"]
RESOURCES = [*listed_resources(EXAMPLE), *listed_resources(ISSUERS)]
PODS = {manifest["metadata"]["name"]: spec for manifest in RESOURCES if (spec := pod_spec(manifest))}
SECRETS = {
    "normalcy-service": {"database_url", "subject_key", "audit_key", "signing_key", "database_ca"},
    "normalcy-manager": {"database_url", "subject_key", "signing_key", "database_ca"},
    "normalcy-audit-check": {"database_url", "audit_public_keys", "database_ca"},
    "normalcy-metrics": {"api_key"},
}


def named(kind: str, name: str = "normalcy") -> Manifest:
    [found] = [one for one in RESOURCES if (one["kind"], one["metadata"]["name"]) == (kind, name)]
    return found


def container(pod: str) -> Manifest:
    [only] = PODS[pod]["containers"]
    return dict(only)


def literals(folder: Path) -> dict[str, str]:
    [listing] = documents(folder / "kustomization.yaml")
    [generator] = listing["configMapGenerator"]
    return dict(literal.split("=", 1) for literal in generator["literals"])


def environment(pod: str) -> dict[str, str]:
    assert container(pod)["envFrom"] == [{"configMapRef": {"name": "normalcy-settings"}}]
    own = {variable["name"]: variable["value"] for variable in container(pod)["env"]}
    return literals(BASE) | literals(EXAMPLE) | own


def seconds_of_shutdown() -> float:
    return server.DRAIN_SECONDS + server.LAST_REQUESTS_SECONDS + server.GRACE_SECONDS


def problem(manifest: Manifest, version: str) -> str | None:
    """What is wrong with it, if anything."""
    try:
        kubernetes_validate.validate(manifest, version, strict=True)
    except kubernetes_validate.ValidationError as error:
        return f"{'.'.join(map(str, error.path))}: {error.message}"
    return None


class TestSchemas:
    @pytest.mark.parametrize("version", VERSIONS)
    def test_every_manifest_is_valid(self, version: str) -> None:
        core = [manifest for manifest in RESOURCES if manifest["apiVersion"] != OPERATOR]
        assert len(core) >= 12
        found = {f"{one['kind']} {one['metadata']['name']}": problem(one, version) for one in core}
        assert {name: what for name, what in found.items() if what} == {}

    @pytest.mark.parametrize("version", VERSIONS)
    def test_the_validator_sees_a_misspelt_field_and_a_wrong_type(self, version: str) -> None:
        deployment = named("Deployment")
        assert problem({**deployment, "spec": {**deployment["spec"], "minReadySecond": 5}}, version)
        assert problem({**deployment, "spec": {**deployment["spec"], "minReadySeconds": "five"}}, version)

    @pytest.mark.parametrize("folder", [BASE, EXAMPLE], ids=["base", "example"])
    def test_what_kustomize_builds_is_valid(self, folder: Path) -> None:
        command = kustomize_command()
        if command is None:
            pytest.skip("neither kustomize nor kubectl is installed: the files were validated one by one")
        found = built(command, folder)
        core = [manifest for manifest in found if manifest["apiVersion"] != OPERATOR]
        assert [what for one in core if (what := problem(one, VERSIONS[-1]))] == []
        assert {(one["kind"], one["metadata"]["name"]) for one in listed_resources(folder)} <= {
            (one["kind"], one["metadata"]["name"]) for one in found
        }
        services = [one for one in found if one["kind"] == "Service"]
        assert [one["metadata"]["labels"]["app.kubernetes.io/name"] for one in services] == ["normalcy"]
        settings = [one for one in found if one["kind"] == "ConfigMap"]
        expected = literals(BASE) | (literals(EXAMPLE) if folder == EXAMPLE else {})
        assert [one["data"] for one in settings] == [expected]
        for one in found:
            if spec := pod_spec(one):
                [only] = spec["containers"]
                assert only["envFrom"] == [{"configMapRef": {"name": settings[0]["metadata"]["name"]}}]

    def test_no_file_is_forgotten(self) -> None:
        listed = {*listed_files(EXAMPLE), *listed_files(ISSUERS)}
        assert {file.resolve() for file in KUBERNETES.rglob("*.yaml")} == listed


class TestPods:
    """Every pod, also those of jobs."""

    @pytest.mark.parametrize("pod", PODS)
    def test_it_is_confined(self, pod: str) -> None:
        spec, only = PODS[pod], container(pod)
        security = spec["securityContext"]
        assert security["runAsNonRoot"] is True
        assert (security["runAsUser"], security["runAsGroup"]) == (10001, 10001)  # the user of the image
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        assert only["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert spec["automountServiceAccountToken"] is False
        assert {"cpu", "memory"} == only["resources"]["requests"].keys() == only["resources"]["limits"].keys()

    @pytest.mark.parametrize("pod", PODS)
    def test_it_gets_no_variables_of_services(self, pod: str) -> None:
        assert PODS[pod]["enableServiceLinks"] is False

    def test_variables_of_services_would_keep_it_from_starting(self) -> None:
        """Those that Kubernetes sets for a Service called normalcy: why service links are off."""
        linked = {"NORMALCY_PORT": "tcp://10.0.0.1:80", "NORMALCY_SERVICE_HOST": "10.0.0.1"}
        with pytest.raises(InvalidSettings) as refused:
            load_settings(linked)
        assert "NORMALCY_PORT" in str(refused.value)
        assert "NORMALCY_SERVICE_HOST" in str(refused.value)

    @pytest.mark.parametrize("pod", PODS)
    def test_its_settings_exist_and_its_secrets_are_files_of_mounted_secrets(self, pod: str) -> None:
        settings = environment(pod)
        real = {s.name for s in TABLE} | {f"{s.name}_FILE" for s in TABLE if s.secret}
        assert settings.keys() <= real
        assert not settings.keys() & {s.name for s in TABLE if s.secret}
        spec = PODS[pod]
        [mount] = [one for one in container(pod)["volumeMounts"] if one["name"] == "secrets"]
        [volume] = [one for one in spec["volumes"] if one["name"] == "secrets"]
        assert mount["readOnly"] is True
        assert volume["secret"]["defaultMode"] == 0o440  # for the group of the pod alone
        assert spec["securityContext"]["fsGroup"] == 10001
        files = {Path(value) for value in settings.values() if value.startswith("/")}
        assert {file.parent for file in files} == {Path(mount["mountPath"])}
        assert {file.name for file in files} <= SECRETS[volume["secret"]["secretName"]]

    @pytest.mark.parametrize("pod", PODS)
    def test_it_mounts_every_volume_and_writes_to_the_data_folder_and_tmp_alone(self, pod: str) -> None:
        mounts = container(pod)["volumeMounts"]
        assert {mount["name"] for mount in mounts} == {volume["name"] for volume in PODS[pod]["volumes"]}
        writable = {mount["mountPath"] for mount in mounts if not mount.get("readOnly")}
        assert writable == {"/var/lib/normalcy", "/tmp"}  # noqa: S108 - in the container

    def test_only_managing_pods_have_the_managers_login(self) -> None:
        holders = {
            pod
            for pod, spec in PODS.items()
            for volume in spec["volumes"]
            if volume.get("secret", {}).get("secretName") == "normalcy-manager"
        }
        assert holders == {"normalcy-migrate", "normalcy-partitions", "normalcy-manager"}
        assert named("Deployment", "normalcy-manager")["spec"]["replicas"] == 0

    def test_the_check_of_the_audit_cannot_sign(self) -> None:
        holders = {
            pod
            for pod, spec in PODS.items()
            for volume in spec["volumes"]
            if "signing_key" in SECRETS.get(volume.get("secret", {}).get("secretName"), ())
        }
        assert holders == PODS.keys() - {"normalcy-audit-check"}
        [script] = container("normalcy-audit-check")["args"]
        [mount] = [one for one in container("normalcy-audit-check")["volumeMounts"] if one["name"] == "secrets"]
        assert f"normalcy audit verify --public-key {mount['mountPath']}/audit_public_keys\n" in script

    def test_the_secrets_are_those_that_the_operators_create(self) -> None:
        text = (KUBERNETES.parents[1] / "docs" / "kubernetes.md").read_text()
        created = {
            name: set(re.findall(r"--from-(?:file|literal)=(\w+)=", options))
            for name, options in re.findall(r"create secret generic ([\w-]+)((?:.*\\\n)*.*)", text)
        }
        assert created == SECRETS

    @pytest.mark.parametrize("pod", ["normalcy-migrate", "normalcy-partitions"])
    def test_migrations_are_the_command_for_them(self, pod: str) -> None:
        assert container(pod)["args"] == ["db", "upgrade"]


class TestDeployment:
    def test_probes_ask_routes_of_the_service_at_its_port(self) -> None:
        only = container("normalcy")
        served = {route.path for route in ROUTES if route.method == "GET"}
        [port] = only["ports"]
        default = {setting.field: setting.default for setting in TABLE}["port"]
        assert port == {"name": "http", "containerPort": int(environment("normalcy").get("NORMALCY_PORT", default))}
        probes = {kind: only[f"{kind}Probe"]["httpGet"] for kind in ("startup", "readiness", "liveness")}
        assert {probe["port"] for probe in probes.values()} == {"http"}
        assert {probe["path"] for probe in probes.values()} <= served
        assert probes["readiness"]["path"] == "/health/ready"
        assert probes["startup"]["path"] == probes["liveness"]["path"] == "/health/live"

    def test_readiness_is_seen_to_fail_before_the_port_closes(self) -> None:
        probe = container("normalcy")["readinessProbe"]
        assert probe["periodSeconds"] * probe["failureThreshold"] <= server.DRAIN_SECONDS

    def test_a_pod_has_the_time_to_stop(self) -> None:
        command = container("normalcy")["lifecycle"]["preStop"]["exec"]["command"]
        assert command[0] == "/bin/sleep"
        before = float(command[1])
        assert PODS["normalcy"]["terminationGracePeriodSeconds"] >= 1.5 * (before + seconds_of_shutdown())

    def test_no_pod_stops_before_another_is_ready(self) -> None:
        spec = named("Deployment")["spec"]
        assert spec["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
        assert spec["minReadySeconds"] >= server.DRAIN_SECONDS

    def test_the_autoscaler_sets_the_replicas(self) -> None:
        scaler = named("HorizontalPodAutoscaler")["spec"]
        assert (scaler["scaleTargetRef"]["kind"], scaler["scaleTargetRef"]["name"]) == ("Deployment", "normalcy")
        assert "replicas" not in named("Deployment")["spec"]
        assert scaler["minReplicas"] >= 2 > named("PodDisruptionBudget")["spec"]["maxUnavailable"]
        connections = 2 * POOL_SIZE + 1  # two pools and the audit writer
        assert scaler["maxReplicas"] * connections < 97  # PostgreSQL's default of 100, less three for a superuser


class TestNetwork:
    def labels(self, pod: str) -> dict[str, str]:
        [manifest] = [one for one in RESOURCES if one["metadata"]["name"] == pod and pod_spec(one)]
        spec = manifest["spec"]
        template = (spec["jobTemplate"]["spec"] if manifest["kind"] == "CronJob" else spec)["template"]
        return dict(template["metadata"]["labels"])

    def selected(self, selector: dict[str, str]) -> set[str]:
        return {pod for pod in PODS if selector.items() <= self.labels(pod).items()}

    def test_every_selector_finds_the_service_and_nothing_else(self) -> None:
        [spread] = PODS["normalcy"]["topologySpreadConstraints"]
        selectors = [
            named("Service")["spec"]["selector"],
            named("Deployment")["spec"]["selector"]["matchLabels"],
            named("PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
            named("NetworkPolicy", "normalcy-service")["spec"]["podSelector"]["matchLabels"],
            spread["labelSelector"]["matchLabels"],
        ]
        assert [self.selected(selector) for selector in selectors] == [{"normalcy"}] * len(selectors)

    def test_every_pod_reaches_names_and_the_database_and_nothing_else(self) -> None:
        policy = named("NetworkPolicy", "normalcy-database-only")["spec"]
        assert self.selected(policy["podSelector"]["matchLabels"]) == PODS.keys()
        assert policy["policyTypes"] == ["Ingress", "Egress"]
        assert "ingress" not in policy
        assert [{port["port"] for port in rule["ports"]} for rule in policy["egress"]] == [{53}, {5432}]

    def test_with_issuers_the_service_alone_also_reaches_https(self) -> None:
        policy = named("NetworkPolicy", "normalcy-issuers")["spec"]
        assert self.selected(policy["podSelector"]["matchLabels"]) == {"normalcy"}
        assert policy["policyTypes"] == ["Egress"]
        assert [rule["ports"] for rule in policy["egress"]] == [[{"port": 443, "protocol": "TCP"}]]

    def test_the_component_for_issuers_adds_to_an_overlay(self, tmp_path: Path) -> None:
        command = kustomize_command()
        if command is None:
            pytest.skip("neither kustomize nor kubectl is installed: the file was validated by itself")
        listing = {"resources": [os.path.relpath(BASE, tmp_path)], "components": [os.path.relpath(ISSUERS, tmp_path)]}
        (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(listing))
        found = built(command, tmp_path)
        assert [what for one in found if (what := problem(one, VERSIONS[-1]))] == []
        policies = {one["metadata"]["name"] for one in found if one["kind"] == "NetworkPolicy"}
        assert policies == {"normalcy-service", "normalcy-database-only", "normalcy-issuers"}

    def test_the_service_is_reached_at_its_port_by_chosen_namespaces(self) -> None:
        [rule] = named("NetworkPolicy", "normalcy-service")["spec"]["ingress"]
        assert rule["ports"] == [{"port": "http", "protocol": "TCP"}]
        assert all(source["namespaceSelector"]["matchLabels"] for source in rule["from"])

    @pytest.mark.parametrize("name", ["normalcy", "normalcy-batches"])
    def test_an_ingress_leads_to_the_service_and_repeats_no_post(self, name: str) -> None:
        ingress = named("Ingress", name)
        [rule] = ingress["spec"]["rules"]
        [path] = rule["http"]["paths"]
        assert path["backend"]["service"] == {"name": "normalcy", "port": {"name": "http"}}
        retried = ingress["metadata"]["annotations"]["nginx.ingress.kubernetes.io/proxy-next-upstream"]
        assert "non_idempotent" not in retried.split()

    def test_streams_have_an_ingress_without_limits_of_size_and_with_longer_pauses(self) -> None:
        ingress = named("Ingress", "normalcy-batches")
        [path] = ingress["spec"]["rules"][0]["http"]["paths"]
        assert (path["path"], path["pathType"]) == (batch.router.routes[0].path, "Exact")  # type: ignore[attr-defined]
        annotations = {name.rpartition("/")[2]: value for name, value in ingress["metadata"]["annotations"].items()}
        assert annotations["proxy-body-size"] == "0"
        assert annotations["proxy-request-buffering"] == annotations["proxy-buffering"] == "off"
        for direction in ("read", "send"):
            assert int(annotations[f"proxy-{direction}-timeout"]) > max(IDLE_SECONDS, READING_SECONDS)


class TestMonitoring:
    def test_the_service_monitor_reads_metrics_with_a_key(self) -> None:
        """By hand: its schema belongs to the Prometheus operator."""
        monitor = named("ServiceMonitor")
        assert monitor["apiVersion"] == OPERATOR
        assert monitor["spec"].keys() == {"jobLabel", "selector", "endpoints"}
        labels = {"app.kubernetes.io/name": "normalcy"}  # set on the Service by the base
        assert monitor["spec"]["selector"] == {"matchLabels": labels}
        assert documents(BASE / "kustomization.yaml")[0]["labels"][0]["pairs"] == labels
        assert monitor["spec"]["jobLabel"] in labels
        [endpoint] = monitor["spec"]["endpoints"]
        assert endpoint["port"] in {port["name"] for port in named("Service")["spec"]["ports"]}
        assert endpoint["path"] in {route.path for route in ROUTES}
        key = endpoint["authorization"]["credentials"]
        assert key["key"] in SECRETS[key["name"]]

    def test_the_alert_rules_are_those_of_the_compose_file(self) -> None:
        script = KUBERNETES / "monitoring" / "prometheus-rule.sh"
        done = subprocess.run(["/bin/sh", script], check=True, capture_output=True, timeout=30)  # noqa: S603
        rule: dict[str, Any] = yaml.safe_load(done.stdout)
        assert (rule["apiVersion"], rule["kind"]) == (OPERATOR, "PrometheusRule")
        [rules] = documents(KUBERNETES.parent / "monitoring" / "alerts.yml")
        assert rule["spec"] == rules
