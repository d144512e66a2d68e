#!/bin/sh
# Prints the alert rules of deploy/monitoring as a PrometheusRule:  ./prometheus-rule.sh | kubectl -n normalcy apply -f -
set -eu
cat <<'YAML'
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: normalcy
  labels: {app.kubernetes.io/name: normalcy}
spec:
YAML
sed 's/^\(.\)/  \1/' "$(dirname "$0")/../../monitoring/alerts.yml"
