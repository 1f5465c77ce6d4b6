#!/usr/bin/env python3
"""worker.py https://host/namespace QUEUE KEY_FILE: takes tasks of one queue, and stores what it has made of each with its end."""
import http.client, json, os, signal, ssl, sys, threading, urllib.request
url, queue, key, stop = sys.argv[1], int(sys.argv[2]), open(sys.argv[3]).read().strip(), threading.Event()
trust = ssl.create_default_context(cafile=os.environ.get('CERTIFICATE'))
FAILURES = OSError, ValueError, http.client.HTTPException
def call(name, **param):
    request = urllib.request.Request(f'{url}/op/{name}', json.dumps({'param': param}).encode(), {'Authorization': 'Bearer ' + key, 'Content-Type': 'application/json'})
    return json.load(urllib.request.urlopen(request, context=trust, timeout=90))['out']
def end(name, **param):  # sent again, as it may be, after a fault of the server or no answer: perhaps it was done
    for pause in (1, 3, 9):
        try: return call(name, **param)
        except FAILURES as problem:
            if getattr(problem, 'code', 500) < 500: raise
        stop.wait(pause)
    return call(name, **param)
def keep(claim, over):
    while not over.wait(20): call('keep', **claim)
def work(param):  # yours: the result, and the changes of documents that happen with the end of the task, or not at all
    return param['text'].upper(), [{'c': 'Note', 'id': param['id'], 'items': [{'c': 'Loud', 'j': param['text'].upper()}]}]
signal.signal(signal.SIGTERM, lambda *_: stop.set())
wanted, answer = {'qn': queue, 'claim': 60, 'worker': f'python-{os.getpid()}'}, {}
while answer.get('tasks') or not stop.is_set():
    try:
        if not answer.get('tasks'):
            answer = call('take', wait=20, **wanted)
        tasks, answer = answer['tasks'], {'pause': answer.get('pause', 0)}
        for task in tasks:
            claim, over = {name: task[name] for name in ('id', 'starttime', 'retry')}, threading.Event()
            threading.Thread(target=keep, args=(claim, over), daemon=True).start()
            try:
                try: result, docs = work(task['param'])
                except (ValueError, KeyError, TypeError) as problem: end('fail', **claim, report=repr(problem))
                else: answer = end('done', **claim, result=result, docs=docs, take=None if stop.is_set() else wanted)
            finally:
                over.set()
        stop.wait(answer.get('pause', 0) / 1000)
    except FAILURES as problem:  # 409: the claim has ended, another has the task; nobody answers: the claim ends, the task comes again
        print(problem, file=sys.stderr)
        stop.wait(2)
