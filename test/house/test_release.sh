#!/bin/bash
# test_release: scripts/release names its steps without doing one, refuses what must not be released, and makes a release whose
# sums and signatures are good. Compilers, npm and the scripts that build are played; git and gpg are real.
set -euo pipefail
source=$(cd "$(dirname "$0")/../.." && pwd)
for tool in git gpg make; do
    command -v $tool >/dev/null || { echo "test_release: $tool is missing"; exit 77; }
done
area=$(mktemp -d /tmp/stampd-release-XXXXXX)
trap 'gpgconf --homedir "$area/keys" --kill all >/dev/null 2>&1; rm -rf "$area"' EXIT
export LC_ALL=C GNUPGHOME=$area/keys GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=Ann GIT_AUTHOR_EMAIL=ann@example.org GIT_COMMITTER_NAME=Ann GIT_COMMITTER_EMAIL=ann@example.org
unset DEBFULLNAME DEBEMAIL
die()
{
    echo "test_release: $1"
    exit 1
}

# program NAME: a program in PATH, or with a folder in the tree, that does what it is given.
program()
{
    { echo '#!/bin/sh -e'; cat; } >"$1"
    chmod +x "$1"
}
mkdir -m 0700 "$area/keys"
mkdir -p "$area/bin" "$area/tree/scripts" "$area/tree/src/python" "$area/tree/src/web/client"
gpg --batch --quiet --passphrase '' --quick-generate-key 'Ann Example <ann@example.org>' ed25519 sign never 2>/dev/null
for tool in gcc dpkg-buildpackage; do
    program "$area/bin/$tool" </dev/null
done
program "$area/bin/npm" <<<'[ "$1" = pack ] && echo client >"$4/stampd-client-1.2.0.tgz"'
program "$area/bin/python3" <<<'for source; do :; done; [ -f "$source/pyproject.toml" ]; echo wheel >"$8/stampd-1.2.0-py3-none-any.whl"'
program "$area/bin/autoreconf" <<'END'
cat >configure <<'MAKE'
mkdir -p web/client
cat >Makefile <<RULES
dist:
	mkdir stampd-1.2.0
	cd ${0%/*} && cp -R NEWS.md configure.ac scripts src "$PWD/stampd-1.2.0"
	tar -czf stampd-1.2.0.tar.gz stampd-1.2.0
RULES
MAKE
chmod +x configure
END
PATH=$area/bin:$PATH

cd "$area/tree"
program scripts/make-deb <<<'mkdir -p "$1/stampd-1.2.0/build"; echo "$DEBFULLNAME, $DEBEMAIL" >"$1/stampd_1.2.0-1_all.deb"'
program scripts/bill-of-materials <<<'[ -d "$1" ] && echo materials'
cp "$source/scripts/release" scripts/
echo 'AC_INIT([stampd], [1.2.0], [], [stampd])' >configure.ac
echo 'version = "1.2.0"' >src/python/pyproject.toml
echo '  "version": "1.2.0",' >src/web/client/package.json
printf '# News\n\n## 1.2.0 (2026-12-24)\n\nNew words.\n\n## 1.1.0 (2026-11-30)\n\nOld words.\n' >NEWS.md
git init --quiet
git add .
git commit --quiet --message 'release: 1.2.0'

# refuses WORDS ARGUMENTS...: the release is refused in these words, dry or not, and nothing is made.
refuses()
{
    local expected=$1 dry
    shift
    for dry in '' --dry-run; do
        if scripts/release $dry "$@" "$area/out" >"$area/words" 2>&1; then
            die "not refused: $expected"
        fi
        grep -qF -- "$expected" "$area/words" || die "the refusal is $(cat "$area/words"), not: $expected"
    done
    [ ! -e "$area/out" ] || die "what was refused has left $(ls "$area/out")"
}
# with FILE OLD NEW WORDS: refused after this change of a file, which is undone.
with()
{
    sed -i "s/$2/$3/" "$1"
    git commit --quiet --all --message changed
    refuses "$4" --key ann@example.org
    git reset --quiet --hard HEAD^
}

refuses usage
refuses 'gpg has no secret key bob@example.org' --key bob@example.org
echo more >>NEWS.md
refuses 'the tree is dirty' --key ann@example.org
git checkout --quiet NEWS.md
touch stray
refuses 'the tree is dirty' --key ann@example.org
rm stray
with src/python/pyproject.toml 1.2.0 1.1.0 'and src/python/pyproject.toml has 1.1.0'
with src/web/client/package.json 1.2.0 1.1.0 'and src/web/client/package.json has 1.1.0'
with NEWS.md ' (2026-12-24)' '' 'the first heading of NEWS.md is "## 1.2.0"'
with NEWS.md '## 1.2.0' '## 1.3.0' 'the first heading of NEWS.md is "## 1.3.0 (2026-12-24)"'
git tag v1.2.0
refuses 'the tag v1.2.0 of this commit has no good signature' --key ann@example.org
git commit --quiet --allow-empty --message later
refuses 'the tag v1.2.0 exists, of another commit' --key ann@example.org
git tag --delete v1.2.0 >/dev/null

scripts/release --dry-run --key ann@example.org "$area/out" >"$area/dry"
[ ! -e "$area/out" ] && [ -z "$(git tag)$(git status --porcelain)" ] || die 'the dry run has changed something'
grep -q 'nothing has changed' "$area/dry" || die "the dry run says $(cat "$area/dry")"

# A step that fails is the last: no tag, and nothing that looks like a release.
program "$area/bin/broken" <<<'exit 1'
mv "$area/bin/npm" "$area/npm"
cp "$area/bin/broken" "$area/bin/npm"
if scripts/release --key ann@example.org "$area/out" >"$area/words" 2>&1; then
    die 'a release without the package of npm was made'
fi
[ -z "$(git tag)" ] && [ ! -e "$area/out/stampd-1.2.0" ] || die 'a release that failed is there'
mv "$area/npm" "$area/bin/npm"

scripts/release --key ann@example.org "$area/out" >"$area/words" 2>&1 || die "no release: $(cat "$area/words" "$area"/out/work/*.log)"
diff <(grep '^release: [a-z]* ' "$area/dry" | grep -v 'dry run') <(grep -v 'to publish' "$area/words") || die 'the dry run names other steps'
[ -z "$(git status --porcelain)" ] || die 'the release has changed the tree'
git verify-tag v1.2.0 2>/dev/null || die 'the tag has no good signature'
[ "$(git rev-parse 'v1.2.0^{commit}')" = "$(git rev-parse HEAD)" ] || die 'the tag names another commit'

cd "$area/out/stampd-1.2.0"
expected='SHA256SUMS SHA256SUMS.asc notes.md stampd-1.2.0-py3-none-any.whl stampd-1.2.0.spdx.json stampd-1.2.0.tar.gz
stampd-client-1.2.0.tgz stampd_1.2.0-1_all.deb'
[ "$(echo *)" = "${expected//$'\n'/ }" ] || die "the release has $(echo *)"
gpg --quiet --verify SHA256SUMS.asc SHA256SUMS 2>/dev/null || die 'the sums have no good signature'
sha256sum --quiet --check SHA256SUMS || die 'the sums are wrong'
[ "$(wc -l <SHA256SUMS)" = 6 ] || die "these have sums: $(cat SHA256SUMS)"
grep -q 'New words' notes.md && ! grep -q 'Old words' notes.md || die "the notes are $(cat notes.md)"
[ "$(cat stampd_1.2.0-1_all.deb)" = 'Ann Example, ann@example.org' ] || die 'the packages have another maintainer'

# Again: the tag of this commit is kept, the release is not overwritten.
cd "$area/tree"
if scripts/release --key ann@example.org "$area/out" >"$area/words" 2>&1; then
    die 'a release was overwritten'
fi
grep -q 'there is a release already' "$area/words" || die "the refusal is $(cat "$area/words")"
scripts/release --dry-run --key ann@example.org "$area/elsewhere" >"$area/words" || die 'no dry run'
grep -q 'the tag v1.2.0 is there, with a good signature' "$area/words" || die 'the tag of this commit is not kept'
echo 'a release is made by one command, or refused'
