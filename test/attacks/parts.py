#!/usr/bin/env python3
"""A stranger with one address and several anonymous accounts announces uploads in parts of 800 MB, and sends nothing, so that others find no
room.  Bounded: uploads count for the account and for the address, and reserve what has arrived."""
import base64
import random

from kit import BOUNDED, hold, run

LENGTH = 800_000_000


def owner(target, client):
    """An account with a document of its own: its token, the id."""
    account, token = target.account(client)
    id_ = f'n{random.getrandbits(40):x}'
    answer = client.op('team', 'put', {'docs': [{'c': 'Note', 'id': id_, 'items': [{'c': 'Info', 'j': {'owner': account}}]}]}, token)
    hold(answer.status == 200, f'a document of the account: {answer}')
    return token, id_


def begin(client, token, id_, key, length):
    metadata = ','.join(f'{name} {base64.b64encode(value.encode()).decode()}' for name, value in (('class', 'Note'), ('id', id_), ('key', key), ('filetype', 'text/plain')))
    return client.ask('POST', '/team/upload', b'', {'Tus-Resumable': '1.0.0', 'Upload-Length': str(length), 'Upload-Metadata': metadata, 'Authorization': f'Bearer {token}'})


def attack(target):
    places, refusals, owners = [], [], []
    with target.client(target.address()) as client, target.client() as other:
        try:
            for _ in range(target.options.accounts):
                owners.append(owner(target, client))
                token, id_ = owners[-1]
                for number in range(target.options.uploads):
                    answer = begin(client, token, id_, f'f{number}', LENGTH)
                    if answer.status != 201:
                        refusals.append(answer)
                        break
                    places.append((token, answer.headers['location']))
            hold(len(refusals) == target.options.accounts, f'{len(places)} uploads were begun, and none was refused')
            hold(all(answer.code == 'XBUSY' for answer in refusals), f'another answer: {refusals[:1]}')
            most = [int(answer.args[1]) for answer in refusals if answer.args[0] == 'limit_client_partial_uploads']
            hold(not most or len(places) <= most[0], f'{len(places)} uploads of one address')
            token, id_ = owner(target, other)
            answer = begin(other, token, id_, 'small', 1_000_000)
            hold(answer.status == 201, f'the upload of somebody else is refused: {answer}')
            places.append((token, answer.headers['location']))
        finally:
            for token, place in places:
                client.ask('DELETE', place, None, {'Tus-Resumable': '1.0.0', 'Authorization': f'Bearer {token}'})
    return BOUNDED, {'accounts': target.options.accounts, 'uploads begun': len(places) - 1, 'bytes announced': (len(places) - 1) * LENGTH,
                     'refused by': ', '.join(sorted({answer.args[0] for answer in refusals})), 'somebody else': 'uploads'}


run(attack, ('--accounts', 3, 'of one address'), ('--uploads', 200, 'that each account tries to begin'))
