#!/usr/bin/env python3
"""Keys, ids and contents in logs: requests that nginx or a worker refuses, with a mark wherever a secret may be.  Refused: no line of any log has
the mark."""
import random
from pathlib import Path

from kit import hold, Impossible, REFUSED, run


def attack(target):
    logs = Path(target.options.state, 'log')
    if not target.options.state or not logs.is_dir():
        raise Impossible('the logs are needed: --state')
    mark, answers = f'mark{random.getrandbits(60):015x}', []
    huge = {'Content-Length': '99999999999', 'Content-Type': 'application/json'}
    with target.client() as client:
        for method, path, body, headers in (
                ('POST', f'/lab/op/get?admin={mark}', b'', huge), ('POST', f'/lab/op/get?key={mark}', b'{', {}),
                ('GET', f'/lab/doc/Attack/{mark}?admin={mark}', None, {}), ('PUT', f'/lab/doc/Attack/{mark}/file/{mark}.txt', b'', huge),
                ('GET', f'/shut/doc/Attack/{mark}', None, {'Authorization': f'Bearer {mark}'}), ('GET', f'/{mark}/{mark}', None, {}),
                ('POST', '/lab/op/put', {'param': {'docs': [{'c': 'Attack', 'id': mark, 'items': [{'c': mark, 'j': mark}]}]}}, {}),
                ('GET', f'/lab/op/list?param={mark}', None, {'Cookie': f'__Host-stampd-lab={mark}'}), ('BREW', f'/lab/doc/Attack/{mark}', None, {})):
            answers.append(client.ask(method, path, body, headers))
            client.close()
    texts = {file.name: file.read_bytes() for file in logs.iterdir() if file.is_file()}
    for name, text in texts.items():
        lines = [line for line in text.splitlines() if mark.encode() in line]
        hold(not lines, f'{name}: {lines[:1]}')
    return REFUSED, {'requests': len(answers), 'statuses': ' '.join(str(answer.status) for answer in answers), 'logs read': ', '.join(sorted(texts)),
                     'lines with the mark': 0}


run(attack)
