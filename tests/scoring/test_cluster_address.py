"""RAY_ADDRESS, before Ray is asked, which waits for ever for a cluster that is not there."""

import re
import socket

import pytest

from cleanset.errors import CleansetError
from cleanset.scoring.cluster import check_address


def test_a_port_at_which_nothing_listens_is_refused_with_the_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        check_address(address)
        check_address(f"ray://{address}")
    with pytest.raises(CleansetError, match=rf"^RAY_ADDRESS {re.escape(address)}: nothing answers there \(.*refused"):
        check_address(address)


def test_a_name_that_nobody_knows_is_refused() -> None:
    with pytest.raises(CleansetError, match=r"^RAY_ADDRESS no-host.invalid:6379: nothing answers there \(.*; expected"):
        check_address("no-host.invalid:6379")


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "127.0.0.1:", ":6379", "127.0.0.1:port", "[::1:6379", "127.0.0.1:99999"]
)
def test_an_address_without_host_and_port_is_refused(address: str) -> None:
    with pytest.raises(
        CleansetError, match=rf"^RAY_ADDRESS {re.escape(address)}: no host and port; expected the running"
    ):
        check_address(address)


@pytest.mark.parametrize("address", ["", "auto", "local"])
def test_what_names_no_place_is_left_to_ray(address: str) -> None:
    check_address(address)
