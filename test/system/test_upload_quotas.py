"""A file for which a quota of bytes has no room is refused when it is announced: nginx asks before it takes the body, and an upload in parts is
refused by its whole size, whichever of its bytes come first."""
import json

import pytest

from door_client import Client, Reply
from stack import wait_until
from test_accounts import OPEN
from test_uploads import TYPE, metadata

pytestmark = pytest.mark.plain

STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'few': 'open', 'team': 'closed'},
         'settings': {'limit_client_requests': 0, 'limit_client_connections': 0, 'keep_interval_s': 3600}}  # what commits while the keeper measures counts twice
MOST, LARGE, SMALL = 1500000, 1450000, 100000  # nginx asks about bodies above 64 KiB
RULES = {'Note': {'owner': 'Main.owner', **{right: ['owner'] for right in ('read', 'list', 'create', 'update', 'delete')}}}
QUOTAS = {'namespace.bytes': {'namespace': {'bytes': MOST}},
          'namespace.file_bytes': {'namespace': {'file_bytes': MOST}},
          'classes.Note.file_bytes': {'classes': {'Note': {'file_bytes': MOST}}},
          'account.bytes': {'account': {'bytes': MOST}}}


def configure(stack, ns, **members):
    stack.op('z', 'ns', {'set': {'ns': ns, **members}}, admin=True)


class Door:
    """A caller in the namespace of the quota, with a document of its own that has a file of half of what there is."""

    def __init__(self, stack, client, quota):
        self.stack, self.client, self.ns, self.named = stack, client, 'team' if quota == 'account.bytes' else 'few', {}
        content = {}
        if self.ns == 'team':
            configure(stack, 'team', access='rules', accounts=OPEN, rules=RULES)
            made = client.op('team', 'register', {}).json['out']
            self.named, content = {'Authorization': f'Bearer {made["token"]}'}, {'owner': made['account']}
        stack.clear(self.ns, 'Note')
        configure(stack, self.ns, quotas=QUOTAS[quota])
        answer = client.ask('PUT', f'/{self.ns}/doc/Note/one', json.dumps({'items': [{'c': 'Main', 'j': content}]}).encode(), Content_Type='application/json', **self.named)
        assert answer.status == 201, answer
        assert self.whole('half', MOST // 2).status == 201

    def whole(self, key, size):
        return self.client.ask('PUT', f'/{self.ns}/doc/Note/one/file/{key}', b'x' * size, **self.named)

    def begin(self, method, path, size, **headers):
        """The answer to a head alone; the client waits with its body."""
        connection = self.client.connect()
        try:
            connection.putrequest(method, path)
            for name, value in {'Content-Length': size, **self.named, **headers}.items():
                connection.putheader(name, str(value))
            connection.endheaders()
            return Reply(connection.getresponse())
        finally:
            connection.close()

    def announce(self, key, length, size, **more):
        """Creates an upload in parts; `size` bytes come with it."""
        named = {'Tus-Resumable': '1.0.0', 'Upload-Length': length, 'Upload-Metadata': metadata(**{'class': 'Note', 'id': 'one', 'key': key}), **more}
        return self.begin('POST', f'/{self.ns}/upload', size, **named)


@pytest.fixture(params=QUOTAS)
def door(stack, request):
    with Client(stack, '127.0.0.9') as client:
        door = Door(stack, client, request.param)
        door.quota = request.param
        yield door
        configure(stack, door.ns, quotas=None)


def refused(door, reply, tus=False):
    assert (reply.status, reply.code, reply.args[:2]) == (400, 'ALIMIT', [f'quotas.{door.quota}', str(MOST)]), reply
    assert int(reply.args[2]) > MOST and reply.json['phase'] <= 1, reply
    assert reply.headers.get('tus-resumable') == ('1.0.0' if tus else None)


def count(door):
    quota = door.quota.replace('.Note', '')
    return door.stack.metrics().get(f'stampd_quota_refused_total{{ns="{door.ns}",quota="{quota}"}}', 0)


def test_a_file_is_refused_before_its_body(door):
    before, path = count(door), f'/{door.ns}/doc/Note/one/file'
    refused(door, door.begin('PUT', f'{path}/other', LARGE))
    assert count(door) == before + 1
    assert door.whole('other', SMALL).status == 201, 'there is room for it'
    assert door.whole('half', MOST // 2 - 1).status == 200, 'what makes it smaller is always possible'
    refused(door, door.begin('PUT', f'{path}/half', LARGE))


def test_an_upload_in_parts_is_refused_when_it_is_announced(door):
    refused(door, door.announce('other', LARGE, 0), tus=True)
    refused(door, door.announce('other', LARGE, SMALL, **{'Content-Type': TYPE}), tus=True)
    made = door.announce('other', SMALL, 0)
    assert made.status == 201
    part = door.client.ask('PATCH', made.headers['location'], b'x' * SMALL, Tus_Resumable='1.0.0', Upload_Offset='0', Content_Type=TYPE, **door.named)
    assert part.status == 204, part
    assert door.announce('half', MOST // 2 - 1, 0).status == 201, 'it replaces a larger one'


def test_a_part_is_refused_before_its_body_when_others_were_faster(door):
    """What was there when the upload was announced is taken meanwhile."""
    made = door.announce('late', MOST // 2 - 50000, 0)
    assert made.status == 201 and door.whole('fast', SMALL).status == 201
    named = {'Tus-Resumable': '1.0.0', 'Upload-Offset': 0, 'Content-Type': TYPE}
    refused(door, door.begin('PATCH', made.headers['location'], SMALL, **named), tus=True)
    assert door.client.ask('DELETE', f'/{door.ns}/doc/Note/one/file/fast', **door.named).status == 200
    answer = door.client.ask('PATCH', made.headers['location'], b'x' * SMALL, Tus_Resumable='1.0.0', Upload_Offset='0', Content_Type=TYPE, **door.named)
    assert answer.status == 204, answer


def test_nobody_learns_by_a_quota_what_it_may_not(stack):
    """A caller who may not write the document is refused as ever, and its account may not learn what another one has."""
    with Client(stack, '127.0.0.9') as client:
        door = Door(stack, client, 'account.bytes')
        other = client.op('team', 'register', {}).json['out']['token']
        answers = [client.ask('PUT', f'/team/doc/Note/{id_}/file/k', b'x' * size, Authorization=f'Bearer {other}')
                   for id_, size in (('one', LARGE), ('one', SMALL), ('none', LARGE))]
        assert len({(answer.status, answer.code) for answer in answers}) == 1 and answers[0].status in (403, 404), answers
        rules = {'Note': {**RULES['Note'], 'read': ['account'], 'update': ['account']}}
        configure(stack, 'team', rules=rules)

        def refusal():
            return door.client.ask('PUT', '/team/doc/Note/one/file/k', b'x' * LARGE, Authorization=f'Bearer {other}')
        answer = wait_until(lambda: (reply := refusal()).code == 'ALIMIT' and reply, what='the refusal')
        assert answer.args == ['quotas.account.bytes', str(MOST)]
        configure(stack, 'team', quotas=None)
