#!/usr/bin/python3
"""list.py: prints a shopping list, and prints it again each time somebody changes it.

usage: list.py URL ID        for instance: list.py https://localhost:8443/lab party
"""
import json
import ssl
import sys
import time
import urllib.parse
import urllib.request

URL, ID = sys.argv[1:]
TRUST = ssl._create_unverified_context()  # the demonstration's certificate is its own
copy = {'v': 0, 'ct': 0, 'dt': 0, 'items': {}}


def synchronise():
    """Sends the stamps of the copy, and applies what has changed since."""
    held = {'c': 'List', 'id': ID, 'v': copy['v'], 'ct': copy['ct'], 'dt': copy['dt']}
    request = urllib.request.Request(f'{URL}/op/sync', json.dumps({'syncs': [held]}).encode(),
                                     {'Content-Type': 'application/json'})
    with urllib.request.urlopen(request, context=TRUST) as answer:
        news = json.load(answer)['syncs'][0]
    items = copy['items']
    if news['ct'] != copy['ct']:  # the document is a new one, or does not exist
        items.clear()
    for item in news.get('items', []):  # what was changed
        items[item['c'], item.get('k')] = item
    for item in news.get('dels', []):  # what was removed
        items.pop((item['c'], item.get('k')), None)
    if 'clkeys' in news:  # the copy was very old: the names of all that is left unchanged
        named = set(news['clkeys']) | {name(*key) for key in ((i['c'], i.get('k')) for i in news['items'])}
        for key in [key for key in items if name(*key) not in named]:
            del items[key]
    copy.update(v=news['v'], ct=news['ct'], dt=news['dt'])
    return len(news.get('items', [])) + len(news.get('dels', []))


def name(item_class, key):
    return item_class if key is None else f'{item_class}.{key}'


def show(changes):
    items = copy['items']
    print(items['Title', None]['j'] if ('Title', None) in items else '(no list)', f'(items received: {changes})')
    for (item_class, _), item in sorted(items.items(), key=str):
        if item_class == 'Line':
            print(f"[{'x' if item['j']['done'] else ' '}] {item['j']['text']}")
    sys.stdout.flush()


definition = urllib.parse.quote('List/' + urllib.parse.quote(ID, safe=''), safe='')
while True:
    try:
        with urllib.request.urlopen(f'{URL}/live?def={definition}', context=TRUST) as events:
            for line in events:
                if line.strip() in (b'event: ready', b'event: change', b'event: reset'):
                    show(synchronise())
    except OSError:
        time.sleep(1)  # the server is away: connect again
