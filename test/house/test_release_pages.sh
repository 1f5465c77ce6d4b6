#!/bin/bash
# test_release_pages: a release has the pages for browsers, and is built and installed without npm; a checkout says what it lacks.
set -euo pipefail
source=$(cd "${srcdir:-.}" && pwd)
area=$(mktemp -d)
trap 'rm -rf "$area"' EXIT
die()
{
    echo "test_release_pages: $1"
    exit 1
}

# Programs for scripts, and no npm.
mkdir "$area/bin"
for program in sh bash cat cp cut dirname mkdir rm env make install sed grep; do
    ln -s "$(command -v $program)" "$area/bin/$program"
done

mkdir -p "$area/checkout/scripts" "$area/checkout/src/web/client" "$area/release/web/console"
cp "$source"/scripts/dist-web "$source"/scripts/build-web "$source"/scripts/npm-install "$area/checkout/scripts"
echo '{}' >"$area/checkout/src/web/client/package.json"
if PATH=$area/bin "$area/checkout/scripts/dist-web" "$area/checkout" "$area/out" "$area/web" >"$area/words"; then
    die 'a release was made without the pages'
fi
grep -q 'a release has the built pages; install Node and npm' "$area/words" || die "the refusal is $(cat "$area/words")"

echo page >"$area/release/web/console/index.html"
PATH=$area/bin "$area/checkout/scripts/dist-web" "$area/release" "$area/out" "$area/web"
[ "$(cat "$area/out/console/index.html")" = page ] || die 'the pages of a release are not in the next one'

PATH=$area/bin "${MAKE:-make}" -s install-data-local DESTDIR="$area/root" datarootdir=/share >"$area/words"
for page in client console catalogue; do
    if [ -d "$source/web/$page" ] || [ -d "web/$page/dist" ]; then
        [ -n "$(ls "$area/root/share/stampd/web/$page")" ] || die "$page is not installed"
    else
        grep -q "^$page is not installed: it was not built" "$area/words" || die "nothing is said of $page: $(cat "$area/words")"
    fi
done
PATH=$area/bin "${MAKE:-make}" -s uninstall-local DESTDIR="$area/root" datarootdir=/share
[ ! -e "$area/root/share/stampd/web" ] || die 'the pages stay behind'
