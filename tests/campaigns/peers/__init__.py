"""Our predict function in other model servers, in the environment of `make peers-env`: no audit, no keys, no metrics.

    python -m tests.campaigns.peers.litserve_server PORT        also bentoml_server, mlflow_server

Each takes the service's request at the service's path and answers with all numbers of a score.
"""
