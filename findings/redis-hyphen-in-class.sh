#!/bin/sh
# Guess:  in a pattern of Redis (KEYS, SCAN MATCH, PSUBSCRIBE, ACL) `[a-]` is an a or a hyphen, and `[]a]` a bracket or an a, as in
#         shells and regular expressions.
# Seen:   `[a-]` is the range from `]` to `a`: it matches ], ^, _, ` and a, but no hyphen, and goes on behind the bracket, so that
#         `[a-]x` has lost its x. `[]a]` is an empty class, which matches nothing.
# With:   Redis 7.0.15 (Debian 12).
# Source: stringmatchlen in util.c: a class ends at the first `]` that is not the end of a range; a range takes any byte as its end.
# So:     write the hyphen first, `[-a]`, and a bracket behind a backslash, `[\]a]`.
set -eu
export LC_ALL=C
folder=$(mktemp -d)
pid=
trap 'kill "$pid" 2>/dev/null || true; wait; rm -rf "$folder"' EXIT
cd "$folder"
apt-get download redis-tools libjemalloc2 liblua5.1-0 lua-cjson lua-bitop liblzf1 libhiredis0.14 libatomic1 >apt.log 2>&1 || { cat apt.log; exit 1; }
for package in *.deb; do dpkg -x "$package" root; done
export LD_LIBRARY_PATH="$folder/root/usr/lib/x86_64-linux-gnu"
ln -s "$folder/root/usr/bin/redis-check-rdb" redis-server # one program, which looks at its name
./redis-server --port 0 --unixsocket "$folder/socket" --save '' >log & pid=$!
while ! [ -S socket ]; do sleep 0.1; done
ask() { root/usr/bin/redis-cli -s "$folder/socket" "$@"; }
ask MSET k- 1 ka 1 'k]' 1 k_ 1 kx 1 kax 1 k-x 1 >/dev/null
for pattern in 'k[a-]' 'k[a-]x' 'k[]a]' 'k[-a]' 'k[\]a]'; do
    echo "$pattern:" $(ask KEYS "$pattern" | sort)
done | tee seen
cat >expected <<'END'
k[a-]: k] k_ ka
k[a-]x: k] k_ ka kx
k[]a]:
k[-a]: k- ka
k[\]a]: k] ka
END
cmp seen expected
