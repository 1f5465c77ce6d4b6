#!/usr/bin/env python3
"""worker.py https://host/namespace QUEUE KEY_FILE: takes tasks of one queue, and stores what it has made of each with its end.

It needs the package stampd (pip install src/python).  CERTIFICATE names the file of an authority that the system does not know."""
import os
import ssl
import sys

from stampd import Client, Done, Worker


def work(task):
    """Yours: the result, and the changes of documents that happen with the end of the task, or not at all."""
    loud = task.param['text'].upper()
    return Done(loud, [{'c': 'Note', 'id': task.param['id'], 'items': [{'c': 'Loud', 'j': loud}]}])


url, queue, key_file = sys.argv[1:]
with open(key_file) as file:
    client = Client(url, file.read().strip(), context=ssl.create_default_context(cafile=os.environ.get('CERTIFICATE')))
worker = Worker(client, int(queue), work)
worker.stop_at_signals()
worker.run()
