#!/usr/bin/env python3
"""A page of any origin logs its visitor in to the account of the attacker, in a namespace whose origins are `*`: by a form, as a navigation or
by a script.  Refused: the cookie is set for pages of origins that are listed by name only."""
import json
import random
import urllib.parse

from kit import hold, REFUSED, run

PAGES = ({'Origin': 'https://evil.example'}, {'Origin': 'null'}, {'Origin': 'https://evil.example', 'Sec-Fetch-Site': 'cross-site'},
         {'Origin': 'https://evil.example', 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'document'})


def attack(target):
    name, password = f'evil{random.getrandbits(40):x}', 'correct horse battery staple'
    former = target.administer('z', 'ns', {'get': 'team'}).get('origins')
    target.administer('z', 'ns', {'set': {'ns': 'team', 'origins': ['*']}})
    tried = 0
    try:
        with target.client() as client:
            target.account(client, name=name, password=password)
            for page in PAGES:
                for operation, param in (('login', {'name': name, 'password': password}), ('register', {})):
                    for kind in ('application/x-www-form-urlencoded', 'application/json', 'text/plain'):
                        text = json.dumps({**param, 'cookie': True})
                        body = urllib.parse.urlencode({'param': text}) if kind.endswith('urlencoded') else json.dumps({'param': json.loads(text)})
                        answer = client.ask('POST', f'/team/op/{operation}', body.encode(), {'Content-Type': kind, **page})
                        hold('set-cookie' not in answer.headers, f'{operation} by {kind} of {page}: {answer}')
                        hold(answer.status >= 400, f'{operation} by {kind} of {page}: {answer}')
                        tried += 1
    finally:
        target.administer('z', 'ns', {'set': {'ns': 'team', 'origins': former}})
    return REFUSED, {'requests of foreign pages': tried, 'cookies set': 0}


run(attack)
