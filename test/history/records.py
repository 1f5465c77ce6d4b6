"""The lines of a history, and the versions of documents, as the checker has them."""
import json

EXTRAS = {'age': 0, 'reservations': (), 'held': {}, 'taken': None, 'mortal': None, 'requested': (), 'alive': (), 'wall': None, 'low': 0, 'copies': {},
          'copied': False, 'sources': {}, 'matched': (), 'definitions': (), 'is_named': False, 'stands': (), 'lost': '', 'missed': '', 'woken': {},
          'labour': (), 'claims': (), 'claim': (), 'late': False, 'released': False, 'repeats': False, 'ended': {}}


class Operation:
    """One line of a history.  `result`: ok; no: it was not done, for certain; unknown; wrong: an answer that may not be."""
    __slots__ = ('tasks', 'tallies', 'left', 'team', 'outside', 'inside', 'age', 'aged', 'reservations', 'held', 'taken', 'mortal', 'requested', 'alive',
                 'wall', 'low', 'copies', 'copied', 'sources', 'matched', 'definitions', 'is_named', 'stands', 'lost', 'missed', 'woken', 'labour', 'claims', 'claim', 'late', 'released', 'repeats', 'ended', 'name', 'kind', 'start', 'end', 'result', 'version', 'reads', 'writes', 'parent', 'answers', 'words',
                 'node', 'is_sure', 'is_supposed')

    def __init__(self, line):
        self.name, self.kind, self.result = line['id'], line['kind'], line['result']
        self.start, self.end = line['start'], line.get('end')
        self.version = line.get('version')
        self.reads = [tuple(read) for read in line.get('reads', [])]  # (document, version, state or None)
        self.writes = line.get('writes', {})  # document -> actions
        self.parent = line.get('parent')
        self.answers = line.get('answers', [])
        self.words = line.get('words', '')
        self.tasks = [tuple(task) for task in line.get('tasks', [])]  # (tally, key, how often it counts)
        self.tallies = line.get('tallies')  # at the end: tally -> key -> how often it was counted
        self.left = line.get('left', 0)     # tasks that could not be brought to their end
        self.team, self.outside, self.inside = line.get('team'), line.get('outside', ()), line.get('inside', ())  # members.py
        self.aged = [tuple(read) for read in line.get('aged', [])]  # from here on: judges.py
        for name, absent in EXTRAS.items():
            setattr(self, name, line.get(name, absent))
        self.node = None
        if self.result == 'unknown':
            self.end = None
        self.is_sure = self.result == 'ok'  # it happened
        self.is_supposed = False            # it has a place in a chain, in case that it happened


class Write:
    """A version of a document.  `operation` None: the first of the history, or nobody knows who; `version` None: an
    absence whose version no answer has; `state` None: nobody saw it."""
    __slots__ = ('version', 'operation', 'state')

    def __init__(self, version, operation, state=None):
        self.version, self.operation, self.state = version, operation, state


def load(lines):
    """The first line is {"initial": {document: [version, state]}, …}, each other one an operation."""
    lines = iter(lines)
    head = json.loads(next(lines))
    return head, [Operation(json.loads(line)) for line in lines]
