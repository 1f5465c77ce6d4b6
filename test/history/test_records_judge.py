"""The judge of records on several hosts, on histories written by hand."""
import os
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

from records_judge import Deed, judge  # noqa: E402


def kinds(*deeds):
    return [kind for kind, _, _ in judge([Deed(kind, 'k', value, ttl, start, start + 0.1, result, 'h', *apart) for kind, value, ttl, start, result, *apart in deeds])]


WRITE = ('insert', 'v', 10, 1, 'done')


class Records(unittest.TestCase):
    def test_what_may_be(self):
        for deeds in ([WRITE, ('read', 'v', 0, 5, 'found')], [WRITE, ('remove', None, 0, 3, 'done'), ('read', None, 0, 5, 'absent')], [WRITE, ('read', None, 0, 12, 'absent')],
                      [WRITE, ('remove', None, 0, 1, 'unknown'), ('read', None, 0, 5, 'absent'), ('insert', 'w', 5, 6, 'done')], [WRITE, ('insert', 'v', 0, 5, 'found')],
                      [WRITE, ('touch', None, 3, 2, 'unknown'), ('read', None, 0, 6, 'absent')], [WRITE, ('touch', None, 20, 2, 'done'), ('read', 'v', 0, 15, 'found')],
                      [WRITE, ('change', 'w', 10, 3, 'unknown'), ('read', 'v', 0, 5, 'found')], [('insert', 'v', 10, 1, 'unknown'), ('read', 'v', 0, 5, 'found')],
                      [WRITE, ('read', None, 0, 5, 'unknown'), ('read', None, 0, 5, 'nothing')]):
            self.assertEqual(kinds(*deeds), [], deeds)

    def test_what_may_not_be(self):
        for wanted, deeds in (('false absence', [WRITE, ('read', None, 0, 5, 'absent')]), ('false absence', [WRITE, ('insert', 'w', 5, 5, 'done')]),
                              ('false absence', [WRITE, ('change', 'w', 5, 5, 'absent')]), ('from nowhere', [('read', 'v', 0, 5, 'found')]),
                              ('after its end', [WRITE, ('read', 'v', 0, 12, 'found')]), ('old value', [WRITE, ('change', 'w', 10, 3, 'done'), ('read', 'v', 0, 5, 'found')]),
                              ('old value', [WRITE, ('remove', None, 0, 3, 'done'), ('read', 'v', 0, 5, 'found')]),
                              ('stale', [WRITE, ('remove', None, 0, 3, 'done'), ('read', 'v', 0, 5, 'found', True)])):
            self.assertEqual(kinds(*deeds), [wanted], deeds)


if __name__ == '__main__':
    os.chdir('/')
    unittest.main(verbosity=0)
