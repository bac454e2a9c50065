"""SFTP as fsspec speaks it, but only with hosts that `known_hosts` knows, and from several threads at a time.

fsspec by itself believes any host. It also has all threads speak through one channel, where paramiko lets a thread take
another's answer: the other then waits for ever. Here every thread has a channel of its own.
"""

from __future__ import annotations

import threading
from typing import Any

import paramiko
from fsspec.implementations.sftp import SFTPFileSystem

CHANNELS = 8
"""Of a connection: servers usually allow ten."""


class KnownHosts(SFTPFileSystem):  # type: ignore[misc]
    """SFTP with a host that the user's SSH has met before."""

    def _connect(self) -> None:
        self._own = threading.local()
        self._opening = threading.Lock()
        self._clients: list[paramiko.SSHClient] = []
        self._opened = 0
        self._own.ftp = self._channel()  # what is wrong with the host shows at once

    @property
    def ftp(self) -> paramiko.SFTPClient:
        """The channel of this thread."""
        if not hasattr(self._own, "ftp"):
            self._own.ftp = self._channel()
        return self._own.ftp

    def _channel(self) -> paramiko.SFTPClient:
        with self._opening:
            if self._opened % CHANNELS == 0:
                client = paramiko.SSHClient()
                client.load_system_host_keys()
                client.set_missing_host_key_policy(paramiko.RejectPolicy())
                client.connect(self.host, **self.ssh_kwargs)
                self._clients.append(client)
            self._opened += 1
            return self._clients[-1].open_sftp()


def opened(url: str) -> tuple[Any, str]:
    """The file system behind `sftp://[USER@]HOST[:PORT]/FOLDER`, and the folder."""
    told = KnownHosts._get_kwargs_from_urls(url)
    return KnownHosts(**told, skip_instance_cache=True), KnownHosts._strip_protocol(url)
