"""Notes that expire, the sessions that are woken for them, and what was sent about them."""
import os
import secrets
import signal

from push_service import Browser
from schema import Schemas
from stack import wait_until

NOTE = {'items': {'Main': {'singleton': True, 'fields': {'word': 'string'}}}, 'maxLife': 'Main.until',
        'collections': {'team': {'key': ['Main.team'], 'mutable': True}}, 'unique': {'name': {'key': ['Main.name']}}}


class Session:
    def __init__(self, lab, service, *definitions):
        self.name, self.browser = secrets.token_urlsafe(24), Browser(service)
        lab.op('lab', 'subs', {'defs': list(definitions), 'push': self.browser.subscription, 'context': 'to be shown'}, session=self.name)

    def told(self):
        """Of each message what changed."""
        assert not self.browser.wrong and all(message['context'] == 'to be shown' for message in self.browser.messages)
        return [dict(map(tuple, message['changed'])) for message in self.browser.messages]


def prepare(stack, service, key, folder, clock, *hosts):
    """The schema of the notes, and minutes that pass when the clock says so."""
    key.enable(stack, service)
    Schemas(stack, folder).apply('lab', {'Note': NOTE})
    clock.follow(stack, 'lab')
    for host in hosts or [stack]:
        use(host)


def use(host):
    """A keeper looks after the namespaces that have been used; one that finds none looks again at the next real minute."""
    host.get('lab', ('Note', 'used'))
    os.kill(host.keeper(), signal.SIGKILL)


def put(lab, id_, **content):
    return lab.put('lab', {'c': 'Note', 'id': id_, 'items': [{'c': 'Main', 'j': content}]})


def version(lab, id_):
    return lab.psql('lab', "select version, ctime from doc where class = 'Note' and id = %s", (id_,))[0]


def is_purged(lab, id_):
    return version(lab, id_)[1] == 0


def team(lab, held):
    while True:
        held.apply(lab.op('lab', 'collection', {'c': 'Note', 'collection': 'team', 'value': 'red', 'want': 'ids', **held.place()})['out'])
        if not held.cursor:
            return held


def changes(listener):
    return [pair for name, data in listener.events if name == 'change' for pair in map(tuple, data['changed'])]
