"""Large bodies wait on nginx's disk until they are whole: how many of one address, and of one namespace, and how large they may be."""
import contextlib
import http.client
import threading

import pytest

from door_client import Client, Reply
from stack import wait_until
from test_uploads import checked, create, new_document, patch

pytestmark = pytest.mark.plain

STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'lab': 'open', 'few': 'open'},
         'settings': {'limit_client_requests': 0, 'limit_client_bodies': 3, 'limit_namespace_bodies': 5, 'limit_upload_bytes': 1 << 20}}


def test_large_files_come_in_parts(stack):
    doc = new_document(stack, 'few')
    path = f'few/doc/{doc}/file/large'
    with Client(stack, '127.0.0.9') as client:
        refusal = client.ask('PUT', f'/{path}', b'x' * ((1 << 20) + 1))
        assert (refusal.status, refusal.code, refusal.args) == (413, 'ALIMIT', ['limit_upload_bytes', '1048576', '1048577'])
        assert client.ask('PUT', f'/{path}', b'x' * (1 << 20)).status == 201
    upload = create(stack, doc, (1 << 20) + 1, 'parts', ns='few').headers['Location']
    assert patch(stack, upload, 0, b'x' * ((1 << 20) + 1)).status_code == 413
    checked(patch(stack, upload, 0, b'x' * (1 << 20)), 204)
    checked(patch(stack, upload, 1 << 20, b'x'), 204)


class Begun(threading.Thread):
    """A request with a part of its body, and the answer if one comes before the rest."""

    def __init__(self, stack, address, path):
        super().__init__(daemon=True)
        self.connection, self.path, self.reply = Client(stack, address).connect(), path, None
        self.start()

    def run(self):
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError, AttributeError):  # it is closed at the end of the test
            self.connection.putrequest('PUT', self.path)
            self.connection.putheader('Content-Type', 'application/octet-stream')
            self.connection.putheader('Content-Length', str(1 << 20))
            self.connection.endheaders(b'x' * 200000)
            self.reply = Reply(self.connection.getresponse())


def test_an_address_and_a_namespace_send_so_many_large_bodies_at_once(stack):
    """One address had 100 connections, each with 1 GiB on nginx's disk."""
    doc = new_document(stack, 'few')
    begun = []
    try:
        for address, left in (('127.0.0.2', 3), ('127.0.0.3', 2)):
            some = [Begun(stack, address, f'/few/doc/{doc}/file/k{number}') for number in range(8)]
            begun += some
            replies = wait_until(lambda: [one.reply for one in some if one.reply] if sum(one.reply is not None for one in some) >= 8 - left else None, what='the refusals')
            assert [(reply.status, reply.code, *reply.args) for reply in replies] == [(429, 'XBUSY', 'limit_client_bodies', '3')] * (8 - left)
        with Client(stack, '127.0.0.4') as other:
            assert other.op('lab', 'put', {'docs': []}).status == 200, 'small bodies are not counted'
            assert other.ask('PUT', f'/lab/doc/{new_document(stack)}/file/k', b'x' * 200000).status == 201, 'other namespaces have their own'
    finally:
        for one in begun:
            one.connection.close()
