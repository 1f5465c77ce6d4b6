"""Who follows a campaign from outside: listeners to live events, and closed sessions that a push service wakes."""
import http.client
import random
import re
import shutil
import ssl
import subprocess
import threading
import time
from urllib.parse import quote, urlsplit

from live_reader import LiveReader
from push_service import Browser, PushService
from stack import BUILD
from teams import CLASS, TEAMS, TeamCopy

CONTACT = 'mailto:ops@example.net'
SENT_S = 90        # a listener gets a change within this time, when nothing is harmed any more
SILENCE_S = 20     # of a server that writes each second
BROWSERS = 2
LIVE = {'live_keepalive_s': 1, 'live_stall_s': 5}


def stampctl(*words):
    return subprocess.run([BUILD / 'src/stampctl', *map(str, words)], check=True, capture_output=True, text=True, timeout=60).stdout


class Listener(LiveReader):
    """Holds documents, and the members of the collections, by nothing but live events and the looks that they ask for."""

    def __init__(self, campaign, client, number):
        self.campaign, self.client = campaign, client
        self.dice = random.Random(f'{campaign.seed}/live{number}')
        documents = campaign.documents
        self.documents = documents[number % 2::2] if number else documents
        self.definitions = [*(f'{CLASS}/{document}' for document in self.documents), *(f'{CLASS}/team@{team}' for team in TEAMS)]
        self.held, self.team_copies = {}, {team: TeamCopy(team) for team in TEAMS}
        self.last, self.wrong, self.is_ending = None, [], False
        self.counts = {'events': 0, 'connections': 0, 'resumed': 0, 'looks at all': 0}
        self.thread = threading.Thread(target=self.live, daemon=True)
        self.thread.start()

    def listen(self, url, certificate):
        host = urlsplit(url)
        connection = http.client.HTTPSConnection(host.hostname, host.port, timeout=SILENCE_S, context=ssl.create_default_context(cafile=certificate))
        try:
            headers = {'Last-Event-ID': self.last} if self.last else {}
            connection.request('GET', f'/{self.campaign.ns}/live?' + '&'.join(f'def={quote(one, safe="")}' for one in self.definitions), headers=headers)
            answer = connection.getresponse()
            if answer.status == 200:
                self.counts['connections'] += 1
                self.read(answer)
            elif answer.status == 400:
                self.wrong.append(f'live: {answer.status} {answer.read()[:600]!r} to the id {self.last}')
        finally:
            connection.close()

    def hear(self, name, data):
        """False: the documents of the event could not be read."""
        self.counts['events'] += 1
        if name == 'reset' or (name == 'ready' and not data['resumed']):
            self.counts['looks at all'] += 1
            return self.look(self.documents, {}) and all(map(self.look_at_team, TEAMS))
        self.counts['resumed'] += name == 'ready'
        if name == 'change':
            changed = dict(data['changed'])
            documents = [document for document in self.documents if f'{CLASS}/{document}' in changed]
            teams = [team for team in TEAMS if f'{CLASS}/team@{team}' in changed]
            return (not documents or self.look(documents, changed)) and all(map(self.look_at_team, teams))
        return True

    def look(self, documents, changed):
        answer = self.client.operate('get', {'param': {'docs': [{'c': CLASS, 'id': document} for document in documents]}})
        if self.client.trouble(answer):
            return False
        for one in answer.body['out']['docs']:
            version = changed.get(f'{CLASS}/{one["id"]}', 0)
            if one['v'] and one['v'] < version:
                self.wrong.append(f'was sent {one["id"]}@{version}, then read {one["v"]}')
            self.held[one['id']] = one['v']
        return True

    def look_at_team(self, team):
        return self.client.teams.ask(self.team_copies[team], 'ids')[1]

    def differs(self, versions, members):
        """What it holds that is not so; None: it holds what there is."""
        for document in self.documents:
            if self.held.get(document) != versions[document]:
                return f'{document} is at {versions[document]}, held is {self.held.get(document)}'
        for team in TEAMS:
            held = {id_ for id_ in self.team_copies[team].members if id_ in versions}
            if held != members[team]:
                return f'of {team} are {sorted(members[team])}, held are {sorted(held)}'
        return None

    def close(self):
        self.is_ending = True


class Sleepers:
    """Sessions that are closed, and the browsers that would wake them."""

    def __init__(self, campaign, client, service):
        self.campaign, self.client = campaign, client
        self.browsers, self.sent = [], []
        for number in range(BROWSERS):
            browser, documents = Browser(service), campaign.documents[number::BROWSERS]
            self.browsers.append((browser, f'{client.own_names()}sleeper-{number}'.ljust(16, '-').replace('.', '_'), documents))
            self.sent.append(dict.fromkeys(documents, 0))
        self.seen = [0] * BROWSERS
        self.are_declared = False

    def declare(self):
        for browser, session, documents in self.browsers:
            param = {'defs': [f'{CLASS}/{document}' for document in documents], 'life': 1440, 'push': browser.subscription}
            while self.client.trouble(answer := self.client.operate('subs', {'session': session, 'param': param})):
                if answer.result == 'wrong':
                    raise RuntimeError(answer.words)
        self.are_declared = True

    def note(self):
        """What has come until now: one line for each session."""
        client = self.client
        for number, (browser, _, documents) in enumerate(self.browsers):
            start = time.monotonic_ns()
            for wrong in browser.wrong:
                client.note(client.next_name(), 'push', start, 'wrong', words=repr(wrong))
            browser.wrong.clear()
            for when, message in browser.arrived[self.seen[number]:]:
                changed = [definition.partition('/')[2] for definition, _ in message['changed']]
                for document in changed or documents:
                    self.sent[number][document] = when
            self.seen[number] = len(browser.arrived)
            client.note(client.next_name(), 'push', start, 'ok', woken=dict(self.sent[number]))


def prepare_push(room):
    """The key by which push services know the server; settings of a stack."""
    file = room / 'push.key'
    stampctl('push', 'key', file)
    return {'push_key_file': file, 'push_contact': CONTACT, 'debug_push_local': 'on', 'subscription_trial_min': 0, **LIVE}


def open_push(stack, namespaces, file):
    """The service, and the namespaces that wake."""
    for user in re.findall(r'^user = (.+)$', (stack.path / 'etc/stampd.conf').read_text(), re.M):
        shutil.chown(file, user)
    service = PushService(CONTACT)
    service.key = stampctl('push', 'public', file).strip()
    for ns in namespaces:
        stampctl('ns', 'push', ns, 'on', '--config', stack.path / 'etc/stampd.conf', '--admin-conninfo', stack.conninfo_of_server())
    return service
