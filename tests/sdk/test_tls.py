"""Whom a client trusts."""

import shutil
import ssl
import subprocess
import threading
import warnings
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from urllib3.exceptions import InsecureRequestWarning

from corvo_sdk.errors import ConnectionFailedError
from corvo_sdk.transport.ports import Tls
from tests.support.sdk import client_of

OPENSSL = shutil.which("openssl")


class Answering(BaseHTTPRequestHandler):
    """Says which server it is."""

    def do_GET(self) -> None:
        body = b'{"server_version":"1","api_version":"v1"}'
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


class Quiet(ThreadingHTTPServer):
    """A refused handshake is the point of a test, not news."""

    def handle_error(self, request: object, client_address: object) -> None:
        pass


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if OPENSSL is None:
        pytest.skip("openssl makes the certificate")
    folder = tmp_path_factory.mktemp("tls")
    command = f"{OPENSSL} req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
    command += " -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1,DNS:localhost"
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "certificate.pem")]
    subprocess.run([*command.split(), *files], check=True, capture_output=True)
    return folder / "certificate.pem"


@pytest.fixture(scope="module")
def url(certificate: Path) -> Iterator[str]:
    server = Quiet(("127.0.0.1", 0), Answering)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"https://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_own_authority_is_trusted(url: str, certificate: Path, shell: str) -> None:
    """A certificate that a given file vouches for is accepted."""
    with client_of(shell, url, tls=Tls(ca_file=str(certificate))) as client:
        assert client.info().server_version == "1"


def test_unknown_certificate_is_refused(url: str, shell: str) -> None:
    """By default nothing is sent to a server nobody vouches for."""
    with client_of(shell, url, retries=0) as client, pytest.raises(ConnectionFailedError) as caught:
        client.fetch("q", worker_id="w", timeout=0)
    assert not caught.value.was_sent


def test_checking_can_be_turned_off(url: str, shell: str) -> None:
    """Whoever says so trusts anybody."""
    with warnings.catch_warnings(), client_of(shell, url, tls=Tls(verify=False)) as client:
        warnings.simplefilter("ignore", InsecureRequestWarning)  # of urllib3, once per request
        assert client.info().api_version == "v1"
