"""The converter of Debian's package catalogue."""
import itertools
import json
import subprocess
import sys

import pytest

from stack import SOURCE

sys.path.insert(0, str(SOURCE / 'scripts/lib'))
import catalogue  # noqa: E402

pytestmark = pytest.mark.plain

TEXT = '''\
Package: a
Version: 1.0-2
Installed-Size: 12
Maintainer: Zoé <z@example.org>
Architecture: amd64
Depends: b (>= 1.0), b (<< 2), c:any | d (= 3), libx [amd64]
Pre-Depends: dpkg (>= 1.15.6~)
Description: the first line
 the second line
Tag: one::two,
 three::four
Section: utils
Size: 345

Package: b
Version: 1

Package: a
Version: 1.0-10
Description-en: higher

Package: without-version
'''


def convert(text, *options):
    done = subprocess.run(['/usr/bin/python3', SOURCE / 'scripts/lib/catalogue.py', *options], input=text.encode(),
                          stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


def test_a_document_for_each_package():
    documents = convert(TEXT.replace('1.0-10', '1.0-1'))
    assert [(document['c'], document['id']) for document in documents] == [('Package', 'a'), ('Package', 'b')]
    status, *relations = documents[0]['items']
    assert status == {'c': 'Sta', 'j': {
        'archive': 'debian', 'version': '1.0-2', 'section': 'utils', 'maintainer': 'Zoé <z@example.org>', 'architecture': 'amd64',
        'installed_size': 12, 'size': 345, 'description': 'the first line', 'depends': ['b', 'c', 'd', 'dpkg', 'libx'],
        'words': ['a', 'first', 'line', 'the']}}
    assert {item['k']: item['j'] for item in relations} == {
        'b': {'version': '(>= 1.0), (<< 2)'}, 'c': {'qualifier': 'any', 'alternative': True},
        'd': {'version': '(= 3)', 'alternative': True}, 'libx': {}, 'dpkg': {'version': '(>= 1.15.6~)', 'pre': True}}
    assert documents[1]['items'] == [{'c': 'Sta', 'j': {'archive': 'debian', 'version': '1', 'words': ['b']}}]


def test_the_highest_version_wins():
    assert convert(TEXT)[0]['items'] == [{'c': 'Sta', 'j': {'archive': 'debian', 'version': '1.0-10', 'description': 'higher', 'words': ['a', 'higher']}}]


def test_limit_and_first():
    assert [document['id'] for document in convert(TEXT, '--first', 'b')] == ['b', 'a']
    assert [document['id'] for document in convert(TEXT, '--first', 'b', '--limit', '1')] == ['b']
    assert convert('') == []


def test_versions_sort_as_dpkg_sorts():
    versions = ['0', '1.0', '1.0~', '1.0~~', '1.0~rc1', '1.0-1', '1.0-1+b1', '1.0-1~bpo1', '1:0.5', '1.0+dfsg-1', '1.0.1', '1.0a',
                '1.0.', '1.0+', '9', '10', '2.36-9+deb12u9', '2.36-9+deb12u10', '1-a']
    for one, other in itertools.combinations(versions, 2):
        is_less = subprocess.run(['dpkg', '--compare-versions', one, 'lt', other], check=False).returncode == 0
        assert (catalogue.version_key(one) < catalogue.version_key(other)) == is_less, (one, other)
