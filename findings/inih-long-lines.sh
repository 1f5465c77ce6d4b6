#!/bin/sh
# Guess:  a line of an INI file that is longer than the parser can hold is refused, or cut.
# Seen:   it is parted: what lies behind the 199th byte is read as a line of its own. The end of a long comment becomes a
#         setting, the end of a long value another setting, and ini_parse returns 0, which means "no error". A line that
#         is indented below a value is a second value of the same name, equals sign included.
# With:   inih 55 (Debian 12), as packaged: INI_MAX_LINE 200, multi-line entries allowed.
# Source: the loop of ini_parse_stream in ini.c.
# So:     give it lines by ini_parse_stream with a reader of your own that refuses those too long, as comments too.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download libinih1=55-1 libinih-dev=55-1 >apt.log 2>&1 || { cat apt.log; exit 1; }
for package in *.deb; do dpkg -x "$package" root; done
cat >show.c <<'END'
#include <ini.h>
#include <stdio.h>

static int show(void *unused, const char *section, const char *name, const char *value)
{
    (void)unused;
    printf("[%s] %s is \"%.20s\"\n", section, name, value);
    return 1;
}

int main(void)
{
    printf("status %d\n", ini_parse("settings.ini", show, NULL));
}
END
libraries=$(dirname "$(find root -name 'libinih.so.1')")
gcc -I root/usr/include show.c -L "$libraries" -l:libinih.so.1 -o show
{
    echo '[server]'
    printf '; '; printf '%197s' '' | tr ' ' -; printf 'port = 1\n'      # a comment of 207 bytes
    printf 'title = '; printf '%191s' '' | tr ' ' y; printf 'owner = me\n' # one value
    printf 'path = /srv\n  mode = open\n'
} >settings.ini
LD_LIBRARY_PATH=$libraries ./show | tee seen
cat >expected <<'END'
[server] port is "1"
[server] title is "yyyyyyyyyyyyyyyyyyyy"
[server] owner is "me"
[server] path is "/srv"
[server] path is "mode = open"
status 0
END
cmp seen expected
