"""The SCRAM login against the server's side of RFC 5802, written out here."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from secadmin.kafka.wire.scram import ScramClient

SALT, ROUNDS = b"salt of the server", 4096
SERVER_FIRST = b"r=mine+theirs,s=" + base64.b64encode(SALT) + b",i=4096"


def _hmac(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha512")


def _server(password: bytes, first: bytes, final: bytes) -> bytes:
    """Check the client's proof as a server does; give the server's last message."""
    without_proof, _, proof = final.partition(b",p=")
    signed = b",".join([first.removeprefix(b"n,,"), SERVER_FIRST, without_proof])
    salted = hashlib.pbkdf2_hmac("sha512", password, SALT, ROUNDS)
    stored = hashlib.sha512(_hmac(salted, b"Client Key")).digest()
    signature = _hmac(stored, signed)
    key = bytes(a ^ b for a, b in zip(base64.b64decode(proof), signature, strict=True))
    assert hashlib.sha512(key).digest() == stored
    return b"v=" + base64.b64encode(_hmac(_hmac(salted, b"Server Key"), signed))


def test_both_prove_that_they_know_the_password() -> None:
    client = ScramClient("a=b,c", "secret", nonce="mine")
    first = client.first()
    assert first == b"n,,n=a=3Db=2Cc,r=mine"
    client.verify(_server(b"secret", first, client.final(SERVER_FIRST)))


def test_a_server_that_does_not_know_the_password() -> None:
    client = ScramClient("user", "secret", nonce="mine")
    client.first()
    client.final(SERVER_FIRST)
    for answer in (b"v=" + base64.b64encode(b"x" * 64), b"e=other-error", b"v="):
        with pytest.raises(ValueError, match="did not prove"):
            client.verify(answer)


def test_an_answer_to_another_login() -> None:
    client = ScramClient("user", "secret", nonce="other")
    with pytest.raises(ValueError, match="not this one"):
        client.final(SERVER_FIRST)


@pytest.mark.parametrize("lacking", [b"r=", b"s=", b"i="])
def test_an_answer_that_lacks_something(lacking: bytes) -> None:
    client = ScramClient("user", "secret", nonce="mine")
    client.first()
    fields = [field for field in SERVER_FIRST.split(b",") if not field.startswith(lacking)]
    with pytest.raises(ValueError, match="not one of SCRAM"):
        client.final(b",".join(fields))


def test_no_proof_before_the_login() -> None:
    with pytest.raises(ValueError, match="did not prove"):
        ScramClient("user", "secret").verify(b"v=")
