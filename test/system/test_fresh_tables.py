"""A namespace that has just been made: sessions plan their statements while the tables are empty, and PostgreSQL has no statistics.
What a commit reads must not grow with what is there."""
import time

import pytest

from schema import Schemas

pytestmark = pytest.mark.plain

STACK = {'workers': 2, 'postgres': {'autovacuum': 'off'}, 'namespaces': {'z': 'closed', 'few': 'open', 'lab': 'open'}}
AT_ONCE, FEW, MANY = 16, 160, 1600
NAMESPACES = {'few': FEW, 'lab': MANY}
CLASS = {'maxLife': 'Main.until', 'items': {'Main': {'singleton': True, 'fields': {'words': 'string[]', 'of': 'string', 'until': 'long'}}},
         'unique': {'name': {'key': ['Main.name']}},
         'collections': {'of': {'key': ['Main.of'], 'mutable': True}, 'words': {'key': ['Main.words'], 'list': True, 'mutable': True}}}


def write(stack, ns, count, step):
    until = int(time.time()) // 60 + 100000
    for first in range(0, count, AT_ONCE):
        stack.put(ns, *({'c': 'Text', 'id': f'text {number:05}', 'items': [{'c': 'Main', 'j': {
            'name': f'name {number} {step}', 'words': [f'word {number * step * turn % 97}' for turn in (1, 2, 3)], 'of': f'place {(number + step) % 7}', 'until': until}}]}
            for number in range(first, first + AT_ONCE)))


def test_commits_read_as_much_of_many_documents_as_of_few(stack, tmp_path):
    for ns in NAMESPACES:
        Schemas(stack, tmp_path).apply(ns, {'Text': CLASS})
    stack.restart_stampd()
    for ns, count in NAMESPACES.items():  # each in sessions that have begun with empty tables
        write(stack, ns, count, 1)
        write(stack, ns, count, 2)  # documents leave collections and lose words
    stack.end_sessions()
    read = {ns: dict(stack.psql(ns, "select indexrelname::text, idx_tup_read::float / %s from pg_stat_user_indexes where schemaname = 'stampd'", (2 * count,)))
            for ns, count in NAMESPACES.items()}
    assert read['lab']['k_Text_Main_words'] > 1 and read['lab']['member_pkey'] > 1
    growing = {name: (read['few'][name], of_many) for name, of_many in read['lab'].items() if of_many > 1.5 * read['few'][name] + 5}
    assert not growing
