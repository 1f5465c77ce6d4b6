#!/usr/bin/python3
"""Debian's package catalogue as documents.

Reads what `apt-cache dumpavail` prints on standard input, writes one document a line as stampctl load takes them:
class Package, id = name, the singleton Sta with what is known of the package, the names of those it depends on and the
words of its name and description among it, and an item Dep for each of those.  Of several versions of a package the highest is kept.
"""
import argparse
import json
import re
import sys

STATUS_TEXTS = (('section', 'Section'), ('maintainer', 'Maintainer'), ('architecture', 'Architecture'),
                ('priority', 'Priority'), ('homepage', 'Homepage'), ('source', 'Source'))
STATUS_NUMBERS = (('installed_size', 'Installed-Size'), ('size', 'Size'))
RELATION = re.compile(r'([A-Za-z0-9][A-Za-z0-9+.-]*)(?::([a-z0-9-]+))?\s*(?:(\([^)]*\)))?')
WORD = re.compile(r'[^\W_]+')
NOT_DIGITS_THEN_DIGITS = re.compile(r'([^0-9]*)([0-9]*)')


def paragraphs(lines):
    """Yields each paragraph as {field: value}; of a value that goes on over several lines, all of them."""
    fields, name = {}, None
    for line in lines:
        line = line.rstrip('\n')
        if not line.strip():
            if fields:
                yield fields
            fields, name = {}, None
        elif line[0] in ' \t':
            if name:
                fields[name] += '\n' + line.strip()
        else:
            name, _, value = line.partition(':')
            fields[name] = value.strip()
    if fields:
        yield fields


def order_of_text(text):
    """Debian's order of the parts that are no digits: ~ before the end, the end before letters, letters before all else."""
    weights = [-1 if c == '~' else ord(c) if c.isalpha() else ord(c) + 256 for c in text]
    return weights + [0]


def version_key(version):
    """Sorts as dpkg compares (deb-version(7)): epoch, upstream version, revision."""
    epoch, colon, rest = version.partition(':')
    if not colon:
        epoch, rest = '0', version
    upstream, dash, revision = rest.rpartition('-')
    if not dash:
        upstream, revision = rest, ''
    return (int(epoch) if epoch.isdigit() else 0, part_key(upstream), part_key(revision))


def part_key(part):
    return [(order_of_text(text), int(digits or 0)) for text, digits in NOT_DIGITS_THEN_DIGITS.findall(part)]


def relations(fields):
    """{package: content} of Pre-Depends and Depends; a package named twice has both its versions."""
    found = {}
    for field in ('Pre-Depends', 'Depends'):
        for group in filter(str.strip, fields.get(field, '').replace('\n', ' ').split(',')):
            members = group.split('|')
            for member in members:
                match = RELATION.match(member.strip())
                if not match:
                    continue
                package, qualifier, version = match.groups()
                content = found.setdefault(package, {})
                if version:
                    content['version'] = content['version'] + ', ' + version if 'version' in content else version
                if qualifier:
                    content['qualifier'] = qualifier
                if len(members) > 1:
                    content['alternative'] = True
                if field == 'Pre-Depends':
                    content['pre'] = True
    return found


def status(fields):
    content = {'archive': 'debian', 'version': fields['Version']}
    content.update((name, fields[field]) for name, field in STATUS_TEXTS if fields.get(field))
    content.update((name, int(fields[field])) for name, field in STATUS_NUMBERS if fields.get(field, '').isdigit())
    description = fields.get('Description') or fields.get('Description-en')
    if description:
        content['description'] = description.partition('\n')[0]
    return content


def document(name, fields):
    found = sorted(relations(fields).items())
    known = status(fields)
    known['words'] = sorted(set(WORD.findall(f'{name} {known.get("description", "")}'.lower())))
    if found:
        known['depends'] = [package for package, _ in found]
    items = [{'c': 'Sta', 'j': known}]
    items += [{'c': 'Dep', 'k': package, 'j': content} for package, content in found]
    return {'c': 'Package', 'id': name, 'items': items}


def catalogue(lines):
    """{name: paragraph}, in the order of the names' first appearance."""
    packages = {}
    for fields in paragraphs(lines):
        name = fields.get('Package')
        if not name or not fields.get('Version'):
            continue
        known = packages.get(name)
        if known is None or version_key(fields['Version']) > version_key(known['Version']):
            packages[name] = fields
    return packages


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('--limit', type=int, metavar='N', help='write N documents at most')
    parser.add_argument('--first', default='libc6', metavar='NAME', help='package that comes first (libc6)')
    options = parser.parse_args()
    sys.stdin.reconfigure(encoding='utf-8', errors='replace')
    sys.stdout.reconfigure(encoding='utf-8')
    packages = catalogue(sys.stdin)
    names = sorted(packages, key=lambda name: (name != options.first, name))
    for name in names[:options.limit]:
        print(json.dumps(document(name, packages[name]), ensure_ascii=False, separators=(',', ':')))


if __name__ == '__main__':
    main()
