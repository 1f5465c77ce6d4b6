"""Judges the history of a rights campaign (rights.py): every answer must be one that the rules grant with some of the values that the
facts (decisions.py) may have had while the request was under way.  So nothing is disclosed to a request that began after the
acknowledged end of a right, and nothing is missing in one that began after an acknowledged grant.

    head    "facts": {fact: value}, "since": when, "accounts": […], "lost": those of which nobody knows some facts
    change  "fact", "value"; in a document: "document", "version"; "end" null: it is not known whether it happened, and no other follows
    read    "account", "session" (null: nobody has signed in), "right", "refused" (the credential), "seen": {document: null or what was
            shown: {"v", "main", "members", "secret", "n"}; what a path does not show is absent}
    write   the same with "document", "allowed", "version"
    live    "account", "session", "events": [[document, version]…], from "start" (of the connection) to "end" (it arrived);
            "since": the first of the connections that continue each other began, or, with hosts = many, as much earlier as a
            notification may be late
    missed  "words": at the end, a listener does not have what it may read
"""
from bisect import bisect_right
from collections import Counter, defaultdict

from decisions import is_signed_in, may, outcomes
from report import Violation

NEVER = float('inf')
CERTAIN_LEAST, ENOUGH = 0.1, 200  # share of answers that only one decision explains


class Line:
    """One line of a history."""

    def __init__(self, line):
        self.line, self.name, self.kind, self.result = line, line['id'], line['kind'], line['result']
        self.start, self.end = line['start'], line.get('end')
        self.version, self.reads, self.writes = line.get('version'), (), {}  # for report.py

    def __getattr__(self, name):
        return self.line.get(name)


class Facts:
    """The values that each fact may have had in a time."""

    def __init__(self, head, changes):
        self.rows = defaultdict(list)  # fact -> [(start, end, value)]
        for fact, value in head['facts'].items():
            self.rows[fact].append((-NEVER, -NEVER, value))
        for change in sorted(changes, key=lambda change: change.start):
            rows = self.rows[change.fact]
            if not rows:
                rows.append((-NEVER, -NEVER, None))
            rows.append((change.start, NEVER if change.end is None else change.end, change.value))
        self.starts = {fact: [row[0] for row in rows] for fact, rows in self.rows.items()}

    def possible(self, fact, start, end):
        rows = self.rows.get(fact)
        if not rows:
            return [None]
        last = bisect_right(self.starts[fact], end) - 1
        found = [rows[last][2]]
        while last > 0 and rows[last][1] >= start:  # its change may not have happened yet
            last -= 1
            if rows[last][2] not in found:
                found.append(rows[last][2])
        return found


class RightsChecker:
    """The same members as Checker (checker.py), for `check`."""

    def __init__(self, head, lines):
        self.head, self.lines = head, [Line(line) for line in lines]
        self.operations = {line.name: line for line in self.lines}
        changes = [line for line in self.lines if line.kind == 'change']
        self.facts = Facts(head, changes)
        self.commits = {(line.document, line.version): line for line in self.lines if line.document and line.version}
        self.secret = {where for where, line in self.commits.items() if (line.fact or '').startswith('secret:')}
        self.lost = set(head.get('lost', ()))
        self.violations, self.notes, self.counts = [], [], Counter()

    def complain(self, kind, words, *lines):
        self.violations.append(Violation(kind, words, lines))

    def check(self):
        judges = {'write': self.judge_write, 'live': self.judge_live, 'missed': lambda line: self.complain('a listener missed a change', line.words, line)}
        for line in self.lines:
            if line.result == 'wrong':
                self.complain('an answer that may not be', line.words, line)
            elif line.result == 'ok' and line.kind != 'change' and line.account not in self.lost:
                judges.get(line.kind, self.judge_read)(line)
        answers = self.counts['answers']
        if answers > ENOUGH and self.counts['certain'] < CERTAIN_LEAST * answers:
            self.notes.append(f'only {self.counts["certain"]} of {answers} decisions were certain')
        return self.violations

    def summary(self):
        return ', '.join(f'{what} {count:,}' for what, count in sorted(self.counts.items()))

    def possible_in(self, start, end):
        return lambda fact: self.facts.possible(fact, start, end)

    def judge(self, start, end, decide, known=None):
        """What it may be; None: nobody can tell."""
        found = outcomes(decide, self.possible_in(start, end), known)
        self.counts['answers'] += 1
        self.counts['certain'] += found is not None and len(found) == 1
        return found

    # --- the credential ---

    def judge_credential(self, line):
        """False: it was refused, or should have been."""
        if line.session is None:
            return True
        found = outcomes(lambda value: bool(is_signed_in(line.account, line.session, value)), self.possible_in(line.start, line.end))
        self.counts['credentials'] += 1
        is_taken = not line.refused
        if found is not None and is_taken not in found:
            self.complain('a credential was taken that had ended' if is_taken else 'a credential was refused that is valid',
                          f'{line.account}, session {line.session}', line)
            return False
        return is_taken

    # --- reads ---

    def judge_read(self, line):
        if self.judge_credential(line):
            for document, shown in (line.seen or {}).items():
                self.judge_document(line, document, shown)

    def judge_document(self, line, document, shown):
        known = self.known_of(line, document, shown) if shown else {}
        if known is None:
            return

        def decide(value):
            is_shown = may(line.right, document, line.account, value)
            return is_shown, is_shown and may('see', document, line.account, value) and value(f'secret:{document}') is not None
        found = self.judge(line.start, line.end, decide, known)
        if found is None:
            return
        self.counts['shown' if shown else 'hidden'] += len(found) == 1
        if bool(shown) not in {is_shown for is_shown, _ in found}:
            self.complain('a right that had ended disclosed' if shown else 'a grant was missing', f'{document} to {line.account}', line)
        elif shown and 'secret' in shown and (True, shown['secret'] is not None) not in found:
            self.complain('an item was shown that may not be seen' if shown['secret'] is not None else 'an item was missing that may be seen',
                          f'{document} to {line.account}', line)
        elif shown and shown.get('v') and not any(sees for _, sees in found) and (document, shown['v']) in self.secret:
            self.complain('a version was disclosed', f'{document}@{shown["v"]}, of a hidden item, to {line.account}', line)

    def known_of(self, line, document, shown):
        """The facts that are told by what was shown; None: it cannot have been so."""
        known = {}
        if 'main' in shown:
            known[f'main:{document}'] = shown['main']
        if 'members' in shown:
            known.update((f'member:{document}:{account}', shown['members'].get(account)) for account in self.head['accounts'])
        if shown.get('secret') is not None:
            known[f'secret:{document}'] = shown['secret']
        for fact, value in known.items():
            if value not in self.facts.possible(fact, line.start, line.end):
                self.complain('stale read', f'{fact} is {value}', line)
                return None
        return known

    # --- writes ---

    def judge_write(self, line):
        if not self.judge_credential(line):
            return
        found = self.judge(line.start, line.end, lambda value: bool(may('update', line.document, line.account, value)))
        if found is not None and bool(line.allowed) not in found:
            self.complain('a right that had ended allowed a write' if line.allowed else 'a grant was missing', f'{line.document} of {line.account}', line)

    # --- live events ---

    def judge_live(self, line):
        """An event is judged after its commit has begun, and before it arrives."""
        for document, version in line.events:
            commit = self.commits.get((document, version))
            start = commit.start if commit else line.start
            if start < self.head['since'] or (version and not commit and line.since < self.head['since']):
                continue  # what was then, or before a commit of then by which a reader has lost sight of the document, is not known
            found = self.judge(start, line.end, lambda value, document=document: bool(
                (line.session is None or is_signed_in(line.account, line.session, value)) and may('read', document, line.account, value)))
            self.counts['events'] += 1
            if not version and self.has_other_team(document, line):
                continue  # whichever documents depend on teams
            if found == {False}:
                self.complain('an event was sent that disclosed', f'{document}@{version} to {line.account}', line, *filter(None, [commit]))
            elif commit and (document, version) in self.secret and self.judge(
                    start, line.end, lambda value, document=document: bool(may('see', document, line.account, value))) == {False}:
                self.complain('an event was sent that disclosed', f'{document}@{version}, of a hidden item, to {line.account}', line, commit)

    def has_other_team(self, document, line):
        """Has the account joined or left a team, or changed its role in one, so late that this listener has perhaps not been sent it?"""
        return document.startswith('Duty/') and any(
            fact.startswith('member:Crew/') and fact.endswith(f':{line.account}') and len(self.facts.possible(fact, line.since, line.end)) > 1
            for fact in list(self.facts.rows))


def judge_rights(head, lines):
    checker = RightsChecker(head, lines)
    checker.check()
    return checker
