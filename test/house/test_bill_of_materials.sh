#!/bin/bash
# test_bill_of_materials: the bill of materials is SPDX 2.3, and has each library that a program of this build links, and each
# package of npm that is part of a page, as its lock file has it.
#
# Run by make check in the build folder.
set -euo pipefail
source=$(cd "$(dirname "$0")/../.." && pwd)
for tool in /usr/bin/python3 readelf; do
    command -v $tool >/dev/null || { echo "test_bill_of_materials: $tool is missing"; exit 77; }
done
area=$(mktemp -d "${TMPDIR:-/tmp}/stampd-materials-XXXXXX")
trap 'rm -rf "$area"' EXIT

SOURCE_DATE_EPOCH=1798761600 "$source/scripts/bill-of-materials" . >"$area/bill"
SOURCE_DATE_EPOCH=1798761600 "$source/scripts/bill-of-materials" . | cmp - "$area/bill"
find src -maxdepth 1 -type f -perm -u+x | while read -r program; do
    readelf -dW "$program" 2>/dev/null | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'
done | sort -u >"$area/libraries"
[ "$(wc -l <"$area/libraries")" -gt 10 ] || { echo "test_bill_of_materials: programs link only $(cat "$area/libraries")"; exit 1; }
if "$source/scripts/bill-of-materials" "$area" 2>"$area/words"; then
    echo 'test_bill_of_materials: there is a bill of no programs'
    exit 1
fi
grep -q 'there is no program in' "$area/words"

/usr/bin/python3 - "$source" "$area" <<'END'
import json
import pathlib
import re
import shutil
import sys

source, area = map(pathlib.Path, sys.argv[1:])
bill = json.loads((area / 'bill').read_text())

# What section 6 of SPDX 2.3 demands of a document, section 7 of a package, section 11 of a relationship.
assert (bill['spdxVersion'], bill['dataLicense'], bill['SPDXID']) == ('SPDX-2.3', 'CC0-1.0', 'SPDXRef-DOCUMENT')
assert re.fullmatch(r'https://[^\s#]+', bill['documentNamespace']) and bill['name']
assert bill['creationInfo']['created'] == '2027-01-01T00:00:00Z'
assert all(re.match('(Tool|Person|Organization): .', creator) for creator in bill['creationInfo']['creators'])
packages = {package['SPDXID']: package for package in bill['packages']}
assert len(packages) == len(bill['packages'])
for name, package in packages.items():
    assert re.fullmatch('SPDXRef-[A-Za-z0-9.-]+', name), name
    assert package['name'] and package['downloadLocation'] == 'NOASSERTION' and package['filesAnalyzed'] is False, package
    for reference in package.get('externalRefs', ()):
        assert re.fullmatch(r'pkg:(deb/debian|npm)/[^\s@]+@[^\s@]+', reference['referenceLocator']), reference
    for checksum in package.get('checksums', ()):
        assert checksum['algorithm'] == 'SHA512' and re.fullmatch('[0-9a-f]{128}', checksum['checksumValue']), checksum
edges = {(row['spdxElementId'], row['relationshipType'], row['relatedSpdxElement']) for row in bill['relationships']}
assert len(edges) == len(bill['relationships'])
(root,) = (other for one, kind, other in edges if (one, kind) == ('SPDXRef-DOCUMENT', 'DESCRIBES'))
assert packages[root]['name'] == 'stampd' and packages[root]['licenseDeclared'] == 'MIT'
for one, kind, other in edges:
    assert {one, other} <= {'SPDXRef-DOCUMENT', *packages} and kind in ('DESCRIBES', 'DEPENDS_ON', 'CONTAINS', 'DEV_DEPENDENCY_OF'), (one, kind, other)
assert all(any(name in (one, other) for one, _, other in edges) for name in packages)

# Each library is in a package on which stampd depends, with its version where dpkg knows it.
depends = [packages[other] for one, kind, other in edges if (one, kind) == (root, 'DEPENDS_ON')]
for library in (area / 'libraries').read_text().split():
    (package,) = (row for row in depends if row['name'] == library or library in re.findall(r'[^\s,]+(?=[,.](?:\s|$))', row.get('comment', '')))
    if shutil.which('dpkg-query') and library == 'libc.so.6':
        assert package['name'] == 'libc6' and package['versionInfo'], package

# The console contains what it is built with and carries along.
(console,) = (name for name, package in packages.items() if package['name'] == 'stampd-console')
contained = {(packages[other]['name'], packages[other]['versionInfo']) for one, kind, other in edges if (one, kind) == (console, 'CONTAINS')}
declared = json.loads((source / 'src/web/console/package.json').read_text())
assert contained == set(declared['dependencies'].items()), contained
tools = {(packages[one]['name'], packages[one]['versionInfo']) for one, kind, other in edges if (kind, other) == ('DEV_DEPENDENCY_OF', console)}
assert tools == set(declared['devDependencies'].items()), tools
imports = {name.split('/')[0] for file in (source / 'src/web/console').glob('*.js*') for name in re.findall(r"""from ['"]([a-z][^'"]*)['"]""", file.read_text())}
assert 'preact' in imports and imports - {'stampd-client'} == set(declared['dependencies']), imports
END
echo 'the bill of materials has all that programs link and pages contain'
