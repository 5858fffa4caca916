"""The settings of a gateway's connection."""

from __future__ import annotations

import socket

from contrib_serve import config_of, live
from crosswalk.testing.replay import ReplayServer


def test_a_body_does_not_wait_until_its_head_is_acknowledged(upstream: ReplayServer) -> None:
    with live(config_of(upstream)) as here:
        with here.connect() as client:
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: here\r\n\r\n")
            assert client.recv(15) == b"HTTP/1.1 200 OK"
            options = [
                connection.transport.get_extra_info("socket").getsockopt(
                    socket.IPPROTO_TCP, socket.TCP_NODELAY
                )
                for connection in here.server.server_state.connections
            ]
        assert options
        assert all(options)
