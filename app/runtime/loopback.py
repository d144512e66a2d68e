"""Whether an address is this machine's own."""

import ipaddress
from functools import lru_cache


@lru_cache(maxsize=8)  # called for every request while no credential is required
def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
