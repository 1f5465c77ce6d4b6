#!/bin/sh
# test_checks: each house check can fail.  A small tree that passes them all is made in a private folder; each case
# plants one fault in a copy of it and expects its check to refuse the copy with the right words.
#
# Run by make check.  Needs what the checks need: a POSIX shell and awk; git and clang-format 14 where there are some.
set -u
export LC_ALL=C
unset STAMPD_ALLOW_NO_FORMAT CLANG_FORMAT
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
area=$(mktemp -d "${TMPDIR:-/tmp}/stampd-house-XXXXXX")
trap 'rm -rf "$area"' EXIT
trap 'exit 1' HUP INT TERM
good=$area/good
failures=0
cases=0

put()
{
    mkdir -p "$(dirname "$good/$1")"
    cat >"$good/$1"
}

make_good_tree()
{
    mkdir -p "$good/scripts" "$good/src/python/stampd" "$good/test"
    cp "$root"/scripts/check-* "$root/scripts/c-text.awk" "$root/scripts/setting-claims.awk" "$root/scripts/list-files" "$root/scripts/source-map" "$good/scripts/"
    cp "$root/.clang-format" "$good/"
    put src/base/low.h <<'END'
/* low: the bottom of a tree that only tests see. */
#ifndef STAMPD_BASE_LOW_H
#define STAMPD_BASE_LOW_H

#include <stdint.h>

int low_add(int a, int b);

#endif
END
    put src/base/low.c <<'END'
/* low: adds.  It calls neither atoi() nor strcpy() but may speak of them. */
#include "base/low.h"

#include <stdio.h>

int low_add(int a, int b)
{
    puts("not a call: sprintf(x) /* nor a comment");
    return a + b; // system() is only named here
}
END
    put src/base/settings_table.h <<'END'
/* Every setting. */
/* clang-format off */
TEXT(database, "", "Where, exactly.")
NUMBER(limit_name_bytes, 255, 16, 255, "bytes", "Longest name.")
CHOICE(log_to, "stderr", "stderr syslog", "Where to log.")
/* clang-format on */
END
    put src/base/fault_table.h <<'END'
/* Every fault. */
FAULT(AARG, "An argument is wrong.", 400, 400, false, FINAL, "its name")
FAULT(AUTF8, "The text is not UTF-8.", 400, 400, false, FINAL, "")
END
    echo '/* stamp.js: stamps. */' | put src/web/client/stamp.js
    printf '/* fault.js: faults. */\nimport { stamp } from "./stamp.js"\n' | put src/web/client/fault.js
    put src/store/refusal_table.h <<'END'
/* Every refusal. */
REFUSAL(MOVED, "ST001", "CORE", "It has moved.")
REFUSAL(TAKEN, "ST002", "take", "It is taken.")
END
    put src/store/statements_table.h <<'END'
/* Every statement. */
STATEMENT(CORE, "core", 0, "select fail('ST001', '')")
END
    put sql/0001_things.sql <<'END'
-- Things.
create function stampd.take(thing text) returns void language plpgsql as $$
begin
  perform fail('ST002', thing); -- not 'ST001'
end $$;
comment on function stampd.take(text) is 'ST002: it is taken.';
END
    put src/edge/wire.h <<'END'
/* wire: a foreign library. */
#ifndef STAMPD_EDGE_WIRE_H
#define STAMPD_EDGE_WIRE_H

#include "base/low.h"

#endif
END
    put src/edge/wire.c <<'END'
/* wire: wraps a library. */
#include "edge/wire.h"

#include <libpq-fe.h>
#include <openssl/evp.h>

#include "base/low.h"
END
    put src/document/paper.h <<'END'
/* paper: a document. */
#ifndef STAMPD_DOCUMENT_PAPER_H
#define STAMPD_DOCUMENT_PAPER_H

#include "edge/wire.h"

#endif
END
    put src/serve/door.h <<'END'
/* door: a server. */
#ifndef STAMPD_SERVE_DOOR_H
#define STAMPD_SERVE_DOOR_H

#include "document/paper.h"

#endif
END
    put src/control/desk.h <<'END'
/* desk: a tool. */
#ifndef STAMPD_CONTROL_DESK_H
#define STAMPD_CONTROL_DESK_H

#include "document/paper.h"

#endif
END
    put src/main.c <<'END'
/* main: knows everybody. */
#include "control/desk.h"
#include "serve/door.h"
END
    put doc/stampd.conf.5 <<'END'
.TH STAMPD.CONF 5
.SH SETTINGS
.TP
.B database
Where.
.br
Default: empty.
.TP
.B limit_name_bytes
Longest name.
.br
Default: 255 bytes; from 16 to 255.
.TP
.B log_to
Target.
.br
Default: stderr; values: stderr or syslog.
.SH FILES
END
    put doc/reference/protocol.md <<'END'
# Protocol

## Resources

| method | does |
| --- | --- |
| `PUT` | It replaces. |

## Limits

| setting | default |
| --- | --- |
| `limit_name_bytes` | 255 |

## Faults

See [above](#limits), [the readme](../../README.md#hello-world) and `src/base/low.c`.

| code | words |
| --- | --- |
| `AARG` | An argument is wrong. |
END
    put README.md <<'END'
# Hello, world

[Protocol](doc/reference/protocol.md)
END
    put doc/reference/architecture.md <<'END'
# Architecture

`src/base/low.c:low_add` adds.

## Where is…?

| question | answer | function | test |
| --- | --- | --- | --- |
| What is added? | two numbers | `src/base/low.c:low_add` | `test/unit/test_low.c` |
END
    put test/unit/test_low.c <<'END'
/* test_low: low_add adds. */
END
    put test/mutants/base.mutants <<'END'
= nothing is added
by unit low
in src/base/low.c
- return a + b;
+     return a;
END
    (cd "$good" && scripts/check-settings --write-sample && scripts/check-settings --write-faults)
}

fail()
{
    echo "FAIL: $1"
    failures=$((failures + 1))
}

# The check passes on the good tree (77: without clang-format).
expect_good()
{
    cases=$((cases + 1))
    output=$("$good/scripts/$1" "$good" 2>&1)
    case $? in
        0 | 77) ;;
        *)
            fail "$1 refuses the good tree"
            printf '%s\n' "$output"
            ;;
    esac
}

# insert file line text: puts a line behind that line.  replace file pattern text.
helpers='
insert() { awk -v at="$2" -v text="$3" "{ print } NR == at { print text }" "$1" >x && mv x "$1"; }
replace() { sed "s%$2%$3%" "$1" >x && ! cmp -s x "$1" && mv x "$1"; }
'

# plant name check words script: the script plants the fault in a copy, which the check must refuse with the words.
plant()
{
    cases=$((cases + 1))
    rm -rf "$area/bad"
    cp -R "$good" "$area/bad"
    (cd "$area/bad" && sh -euc "$helpers$4") || fail "$1: the fault was not planted"
    output=$("$area/bad/scripts/$2" "$area/bad" 2>&1)
    result=$?
    if [ "$result" -eq 0 ] || [ "$result" -eq 77 ]; then
        fail "$1: $2 saw nothing"
    elif ! printf '%s\n' "$output" | grep -Eq -- "$3"; then
        fail "$1: $2 did not say \"$3\" but:"
        printf '%s\n' "$output"
    fi
}

make_good_tree
for check in check-layers check-names check-settings check-style check-docs check-refusals check-web check-claims; do
    expect_good "$check"
done

# --- source-map ---
cases=$((cases + 1))
"$good/scripts/source-map" | grep -q '^src/base/low.h, .c: the bottom of a tree that only tests see$' ||
    fail 'source-map does not print the files of a module with the first sentence of its header'

# --- check-layers ---
plant 'upward include' check-layers '^src/base/low.h:5: upward include: base must not know edge/wire.h' \
    'insert src/base/low.h 4 "#include \"edge/wire.h\""'
plant 'include of a main' check-layers 'src/serve/door.h:5: upward include' \
    'printf "/* x. */\n#ifndef STAMPD_X_H\n#define STAMPD_X_H\n#endif\n" >src/x.h
     insert src/serve/door.h 4 "#include \"x.h\""'
plant 'sideways include' check-layers '^src/serve/door.h:5: sideways include' \
    'insert src/serve/door.h 4 "#include \"control/desk.h\""'
plant 'circular include' check-layers 'circular include' \
    'sed -e s/low/lower/ -e s/LOW/LOWER/ src/base/low.h >src/base/lower.h
     insert src/base/lower.h 4 "#include \"base/low.h\""
     insert src/base/low.h 4 "#include \"base/lower.h\""'
plant 'circular calls' check-layers '^src/base/(low|other).c:[0-9]*: circular calls: src/base/(low.c src/base/other.c src/base/low.c .low_add|other.c src/base/low.c src/base/other.c .other_add)' \
    'sed -e s/low/other/ -e s/LOW/OTHER/ src/base/low.h >src/base/other.h
     sed -e s/low/other/ -e "s/return a + b/return low_add(a, b)/" src/base/low.c >src/base/other.c
     replace src/base/low.c "return a + b" "return other_add(a, b)"'
plant 'include without folder' check-layers '"low.h" is no file of src/' \
    'insert src/edge/wire.h 4 "#include \"low.h\""'
plant 'folder without layer' check-layers 'folder attic has no layer' \
    'mkdir src/attic && echo "/* x: y. */" >src/attic/x_table.h'
plant 'library in two files' check-layers '^src/edge/xray.c:3: <libpq-fe.h> is already used by src/edge/wire.c' \
    'printf "/* x: y. */\n#include \"edge/wire.h\"\n#include <libpq-fe.h>\n" >src/edge/xray.c'
plant 'library of a family in two files' check-layers '<openssl/sha.h> is already used' \
    'printf "/* x: y. */\n#include \"edge/wire.h\"\n#include <openssl/sha.h>\n" >src/edge/xray.c'
plant 'library above the edge' check-layers '<yajl/yajl_parse.h> belongs to yajl' \
    'insert src/document/paper.h 4 "#include <yajl/yajl_parse.h>"'
plant 'library in a header of the edge' check-layers '<curl/curl.h> belongs to libcurl' \
    'insert src/edge/wire.h 4 "#include <curl/curl.h>"'
plant 'private header of another folder' check-layers 'edge/wire_private.h is for its neighbours in src/edge only' \
    'printf "/* x. */\n#ifndef STAMPD_EDGE_WIRE_PRIVATE_H\n#define STAMPD_EDGE_WIRE_PRIVATE_H\n#endif\n" >src/edge/wire_private.h
     insert src/document/paper.h 4 "#include \"edge/wire_private.h\""'
plant 'library in a folder of the edge, twice' check-layers '^src/edge/wire/xray.c:3: <libpq-fe.h> is already used by src/edge/wire.c' \
    'mkdir src/edge/wire && printf "/* x: y. */\n#include \"edge/wire.h\"\n#include <libpq-fe.h>\n" >src/edge/wire/xray.c'
plant 'file that no build knows' check-layers '^src/base/low.h:1: no build knows this file' \
    'printf "libstampd_a_SOURCES = \\\\\n\tsrc/base/low.c\n" >src/local.mk; echo >Makefile.am; echo >src/base/local.mk'
plant 'sources out of order' check-layers '^src/local.mk:3: the modules are not in the order of the alphabet' \
    'printf "libstampd_a_SOURCES = \\\\\n\tsrc/base/b.c \\\\\n\tsrc/base/a.c\n" >src/local.mk; echo >Makefile.am; echo >src/base/local.mk'
plant 'too many files in a folder' check-layers '^src/base:1: the folder has 44 files, 40 are the most' \
    'for number in $(seq 40); do echo "/* x: y. */" >src/base/x${number}_table.h; done'
plant 'too many lines in a folder' check-layers '^src/base:1: the folder has 2[0-9]* of 2[0-9]* lines, 12 % are the most' \
    'seq -f "/* %g */" 21000 >src/base/x_table.h'
plant 'mapped memory above the edge' check-layers '<sys/mman.h> belongs to mapped memory' \
    'insert src/base/low.c 3 "#include <sys/mman.h>"'
plant 'unknown header' check-layers '<frob.h> is unknown' \
    'insert src/base/low.c 3 "#include <frob.h>"'
plant 'fcgi_stdio.h' check-layers 'fcgi_stdio.h redefines stdio' \
    'insert src/edge/wire.c 3 "#include <fcgi_stdio.h>"'
plant 'own header not first' check-layers '^src/base/low.c:2: the first include must be "base/low.h"' \
    'insert src/base/low.c 1 "#include <stdlib.h>"'
plant 'no header of the layer first' check-layers 'must be the header of this layer' \
    'printf "/* x: y. */\n#include \"base/low.h\"\n" >src/edge/xray.c'
plant 'wrong guard' check-layers 'the guard must be STAMPD_BASE_LOW_H' \
    'replace src/base/low.h STAMPD_BASE_LOW_H STAMPD_LOW_H'
plant 'no guard' check-layers '^src/base/low.h:1: the header has no guard' \
    'echo "/* low: x. */" >src/base/low.h'
for name in strcpy strcat sprintf vsprintf atoi setlocale system; do
    plant "a call of $name" check-layers "^src/base/low.c:9: $name\\(\\) is refused" \
        "insert src/base/low.c 8 '    (void)(1 + $name (x));'"
done

# --- check-names ---
plant 'struct tag of two things' check-names '^src/edge/wire.c:7: struct place is defined at src/base/low.h:7 too' \
    'insert src/base/low.h 6 "struct place {"; insert src/base/low.h 7 "};"
     insert src/edge/wire.c 6 "static const struct place {"; insert src/edge/wire.c 7 "} places[1];"'
plant 'function without the name of its file' check-names '^src/base/low.h:8: add_low.. does not begin with low_' \
    'insert src/base/low.h 7 "int add_low(int a, int b);"'
plant 'function without the name, after an attribute' check-names '^src/base/low.h:8: sum_low.. does not begin with low_' \
    'insert src/base/low.h 7 "MUST_USE struct low *sum_low(int a,"; insert src/base/low.h 8 "                     int b);"'
plant 'function with the name of a layer' check-names '^src/base/low.h:8: base_add.. does not begin with low_' \
    'insert src/base/low.h 7 "int base_add(int a, int b);"'
plant 'static name of four files' check-names '^src/base/c.c:4: 4 files have a static function refuse.., three are the most; call it c_refuse' \
    'for name in a b c d; do
         printf "/* %s: x. */\n#include \"base/low.h\"\n\nstatic bool refuse(void)\n{\n}\n" "$name" >src/base/$name.c
     done'
plant 'function of two headers' check-names '^src/edge/wire.h:7: low_same.. is declared in src/base/low.h too' \
    'insert src/base/low.h 7 "int low_same(int a, int b);"; insert src/edge/wire.h 6 "int low_same(int a, int b);"'
plant 'function of another file that begins alike' check-names '^src/base/low.h:8: lower.. does not begin' \
    'insert src/base/low.h 7 "int lower(int a, int b);"'

# --- check-settings ---
plant 'settings out of order' check-settings 'settings_table.h:4: alpha stands behind database' \
    'insert src/base/settings_table.h 3 "TEXT(alpha, \"\", \"First.\")"'
plant 'default outside the limits' check-settings 'the default 300 is outside' \
    'replace src/base/settings_table.h ", 255, 16" ", 300, 16"'
plant 'default that is no choice' check-settings 'log_to: the default file is none of its words' \
    'replace src/base/settings_table.h "\"stderr\", \"stderr syslog\"" "\"file\", \"stderr syslog\""'
plant 'setting without manual' check-settings 'settings_table.h:[0-9]*: zeta is not in the section SETTINGS' \
    'insert src/base/settings_table.h 5 "TEXT(zeta, \"\", \"Last.\")"; scripts/check-settings --write-sample'
plant 'manual of no setting' check-settings 'stampd.conf.5:[0-9]*: zeta: there is no such setting' \
    'insert doc/stampd.conf.5 17 ".TP
.B zeta
None.
.br
Default: empty."'
plant 'manual with another default' check-settings '"Default: syslog; .*should be "Default: stderr; values: stderr or syslog."' \
    'replace doc/stampd.conf.5 "Default: stderr" "Default: syslog"'
plant 'manual with other limits' check-settings 'should be "Default: 255 bytes; from 16 to 255."' \
    'replace doc/stampd.conf.5 "from 16" "from 17"'
plant 'manual without default' check-settings 'log_to: the line "Default: stderr; .* is missing' \
    'replace doc/stampd.conf.5 "Default: stderr" "stderr"'
plant 'stale sample' check-settings 'stampd.conf.sample:[0-9]*: this is not what .* says' \
    'replace doc/stampd.conf.sample "#log_to = stderr" "#log_to = syslog"'
plant 'no sample' check-settings 'stampd.conf.sample:1: this is not what' \
    'rm doc/stampd.conf.sample'
plant 'fault not documented' check-settings 'faults.md:[0-9]*: this is not what .* says' \
    'insert src/base/fault_table.h 3 "FAULT(AZ, \"Z.\", 400, 400, false, FINAL, \"\")"'
plant 'fault with other words' check-settings 'faults.md:[0-9]*: this is not what .* says' \
    'replace doc/reference/faults.md "argument is wrong" "argument is right"'
plant 'fault of no class' check-settings 'fault_table.h:3: ZA: a code is of capitals' \
    'replace src/base/fault_table.h AUTF8 ZA'
plant 'fault without remedy' check-settings 'fault_table.h:3: AUTF8: the remedy is one of' \
    'replace src/base/fault_table.h "false, FINAL, \"\"" "false, NONE, \"\""'
plant 'remedies of another table' check-settings '^src/web/client/remedies.js:1: this is not what' \
    'replace src/web/client/remedies.js final again'
plant 'remedies of another table, in Python' check-settings '^src/python/stampd/remedies.py:1: this is not what' \
    'replace src/python/stampd/remedies.py final again'
plant 'fault named twice' check-settings 'fault_table.h:3: AARG stands in line 2 already' \
    'replace src/base/fault_table.h AUTF8 AARG'
plant 'fault without columns' check-settings 'fault_table.h:4: a row is FAULT.name, words' \
    'insert src/base/fault_table.h 3 "FAULT(AZ, \"Z.\")"'
plant 'fault that succeeds' check-settings 'fault_table.h:2: AARG: a status is from 400 to 599' \
    'replace src/base/fault_table.h "wrong[.]\", 400" "wrong.\", 200"'
plant 'no page of faults' check-settings 'faults.md:1: this is not what' 'rm doc/reference/faults.md'
plant 'fault in the protocol that is none' check-settings 'protocol.md:[0-9]*: AZ: there is no such fault' \
    'echo "| \`AZ\` | Z. |" >>doc/reference/protocol.md'
plant 'limit with another default' check-settings 'limit_name_bytes: the default is 255, not 256' \
    'replace doc/reference/protocol.md "| 255 |" "| 256 |"'
plant 'limit not documented' check-settings 'limit_name_bytes is not in the table of limits' \
    'replace doc/reference/protocol.md "| .limit_name_bytes. | 255 |" ""'
plant 'no manual' check-settings 'the manual page is not there' 'rm doc/stampd.conf.5'

# --- check-refusals ---
plant 'no table of refusals' check-refusals 'refusal_table.h:1: the table is not there' 'rm src/store/refusal_table.h'
plant 'refusal without row' check-refusals 'things.sql:4: ST003 is not in' 'replace sql/0001_things.sql ST002...thing "ST003\x27, thing"'
plant 'refusal of another function' check-refusals 'things.sql:4: ST001 is raised by take, which its row' \
    'replace sql/0001_things.sql ST002...thing "ST001\x27, thing"'
plant 'refusal of a statement without row' check-refusals 'statements_table.h:3: ST002 is raised by BORN, which its row' \
    'insert src/store/statements_table.h 2 "STATEMENT(BORN, \"born\", 0, \"fail(\x27ST002\x27)\")"'
plant 'refusal that is not raised' check-refusals 'refusal_table.h:3: ST002 is not raised by give' \
    'replace src/store/refusal_table.h "\"take\"" "\"take give\""'
plant 'refusal with two meanings' check-refusals 'refusal_table.h:3: ST001 stands in line 2 already' \
    'replace src/store/refusal_table.h ST002 ST001'
plant 'refusal without meaning' check-refusals 'refusal_table.h:3: a row is REFUSAL' \
    'replace src/store/refusal_table.h ", \"It is taken.\"" ""'
plant 'refusal written out' check-refusals 'low.c:2: compare with refusal_of' \
    'insert src/base/low.c 1 "#define TAKEN \"ST002\""'

# --- check-style ---
plant 'long file' check-style '^src/base/low.c:6[0-9]*: 6[0-9]* lines, 600 are the most' \
    'i=0; while [ $i -lt 600 ]; do echo; i=$((i + 1)); done >>src/base/low.c; echo "/* end */" >>src/base/low.c'
plant 'long function' check-style '^src/base/low.c:7: a function of 84 lines, 80 are the most' \
    'i=0; while [ $i -lt 80 ]; do insert src/base/low.c 8 "    puts(\"x\");"; i=$((i + 1)); done'
plant 'nameless file' check-style '^src/base/low.c:1: the first line must say' \
    'replace src/base/low.c "^/[*] low:.*" ""'
plant 'tab' check-style '^src/base/low.c:[0-9]*: a tab' \
    'replace src/base/low.c "    return" "	return"'
plant 'trailing blank' check-style '^README.md:3: a blank at the end' \
    'replace README.md "protocol.md)$" "protocol.md) "'
plant 'carriage return' check-style '^README.md:[0-9]*: a blank at the end' \
    'printf "x\r\n" >>README.md'
plant 'no last newline' check-style '^src/base/low.c:[0-9]*: no newline at the end' \
    'printf "/* end */" >>src/base/low.c'
for word in TODO FIXME XXX; do
    plant "$word" check-style "^src/base/low.c:2: \"$word\": do it now" \
        "insert src/base/low.c 1 '/* $word: more. */'"
done
if clang-format-14 --version >/dev/null 2>&1; then
    plant 'format' check-style '^src/base/low.c:9: not as .clang-format wants it' \
        'replace src/base/low.c "a + b" "a  +  b"'
fi
cases=$((cases + 1))
mkdir "$area/tools"
for tool in sh awk sed grep find sort xargs cat cmp tail od tr wc dirname mkdir; do
    ln -s "$(command -v "$tool")" "$area/tools/$tool"
done
PATH="$area/tools" "$good/scripts/check-style" "$good" >/dev/null 2>&1
[ $? -eq 77 ] || fail 'check-style without clang-format is not skipped'
PATH="$area/tools" STAMPD_ALLOW_NO_FORMAT=1 "$good/scripts/check-style" "$good" >/dev/null 2>&1 ||
    fail 'STAMPD_ALLOW_NO_FORMAT=1 does not let check-style pass without clang-format'

# --- check-docs ---
plant 'dead link' check-docs '^README.md:5: the link doc/none.md leads nowhere' \
    'printf "\n[none](doc/none.md)\n" >>README.md'
plant 'dead heading' check-docs 'the link doc/reference/protocol.md#nothing leads to no heading' \
    'printf "\n[none](doc/reference/protocol.md#nothing)\n" >>README.md'
plant 'file that is none' check-docs '.src/base/none.c. is no file of the project' \
    'printf "\nSee \`src/base/none.c\`.\n" >>README.md'
plant 'function that is none' check-docs '.src/base/low.c:high_add.: the file has no such function' \
    'replace doc/reference/architecture.md low_add high_add'
plant 'setting that is none' check-docs '.limit_none. is no setting' \
    'printf "\nSee \`limit_none\`.\n" >>README.md'
plant 'page that is none' check-docs '^src/base/low.c:2: there is no page design.md' \
    'insert src/base/low.c 1 "/* design.md 6 says why. */"'
plant 'folder of a page that is another' check-docs '^sql/0001_things.sql:1: there is no file doc/protocol.md in the project' \
    '{ echo "-- doc/protocol.md says why."; cat sql/0001_things.sql; } >x && mv x sql/0001_things.sql'
plant 'test that a comment names and that is none' check-docs '^src/base/low.c:2: there is no file test/unit/test_none.c in the project' \
    'insert src/base/low.c 1 "/* tried in test/unit/test_none.c */"'
plant 'heading that a comment names and that is none' check-docs '^src/base/low.c:2: the page protocol.md has no heading "Faultz"' \
    'insert src/base/low.c 1 "/* protocol.md, \"Faultz\" says why. */"'
plant 'function that a comment names and that is none' check-docs '^src/base/low.c:2: low_take is no word of the code' \
    'insert src/base/low.c 1 "/* Before low_take. */"'
plant 'setting that a comment names and that is none' check-docs '^src/base/low.h:2: limit_names is no word of the code' \
    'insert src/base/low.h 1 "/* At most limit_names; LOW_most, low.c and low_* are not meant. */"'
plant 'test that is none' check-docs '^README.md:5: .test_none.py::test_none. is no test' \
    'printf "\nShown by \`test_none.py::test_none\`.\n" >>README.md'
plant 'claim without a test' check-docs '^doc/explanation/security.md:3: the claim names no test' \
    'mkdir doc/explanation && printf "# Security\n\n- Nobody can read anything.\n" >doc/explanation/security.md'
plant 'page that is not installed' check-docs '^doc/reference/protocol.md:1: the page is not installed' \
    'echo "doc_DATA = doc/reference/architecture.md doc/reference/faults.md" >doc/local.mk'
plant 'word explained twice' check-docs 'glossary.md:2: ..slot.. is explained a second time' \
    'printf "| **slot** | a |\n| **slot** | b |\n" >doc/reference/glossary.md'
plant 'private path' check-docs "a path of somebody's machine" \
    'printf "\nSee /home/%s/x.\n" joe >>README.md'

plant_commit()
{
    plant "$1" check-docs "$2" 'mkdir -p src/store
cat >src/store/statements_documents_table.h <<"X"
/* Every statement. */
STATEMENT(ONCE, "once", 1, "select $1")
STATEMENT(
    CORE, "core", 1, "select $1")
X
cat >src/store/commit_table.h <<"X"
/* The parts. */
PART(idempotency, "once")
PART(main_part, "core x_…_write")
X
cat >doc/commit.md <<"X"
# Commit

| part | statements | when |
| --- | --- | --- |
| idempotency | `once` | always |
| main part | `core` `x_…_write` | always |
X
'"$3"
}
plant_commit 'parts of a commit in another order' \
    '^doc/commit.md:5: part 1 of a commit is "main part" .src/store/commit_table.h:2., not "idempotency"' \
    'printf "/* The parts. */\nPART(main_part, \"core\")\nPART(idempotency, \"once\")\n" >src/store/commit_table.h'
plant_commit 'part of a commit that no page has' \
    '^doc/commit.md:1: the table of the parts of a commit lacks "late" .src/store/commit_table.h:4.' \
    'printf "PART(late, \"core\")\n" >>src/store/commit_table.h'
plant_commit 'statement of a part that no page has' \
    '^doc/commit.md:5: "idempotency" sends once core .src/store/commit_table.h:2.' \
    'replace src/store/commit_table.h "\"once\"" "\"once core\""'
plant_commit 'statement of a part that is none' '^src/store/commit_table.h:2: onse is no statement' \
    'replace src/store/commit_table.h "\"once\"" "\"onse\""'

plant_module()
{
    plant "$1" check-docs "$2" 'cat >src/stampd.h <<"X"
/* stampd.h: call stampd_nothing(). */
bool stampd_failed(void);
void stampd_log(int level); /* as stampd_other() does */
X
mkdir -p doc/reference
cat >doc/reference/modules.md <<"X"
# Modules

`stampd_module`, `stampd_failed`, '"$3"'
X
'
}
plant_module 'function of modules that no page has' '^src/stampd.h:3: doc/reference/modules.md describes no stampd_log$' '`stampd_failed`'
plant_module 'function of modules that is none' '^doc/reference/modules.md:3: stampd.h has no function stampd_logs$' \
    '`stampd_log`, `stampd_logs`'
cases=$((cases + 1))
[ -f "$root/src/store/commit_table.h" ] || fail 'the parts of a commit are not checked: src/store/commit_table.h is elsewhere'

# --- check-web ---
plant 'upward import' check-web '^src/web/client/fault.js:2: upward import: fault.js must not know session.js' \
    'insert src/web/client/fault.js 1 "import { open } from \"./session.js\""'
plant 'import of a library' check-web 'the library depends on nothing' \
    'insert src/web/client/fault.js 1 "import { openDB } from \"idb\""'
plant 'import of another library in the console' check-web '^src/web/console/words.js:2: idb: the console depends on Preact and uPlot alone' \
    'mkdir src/web/console && printf "/* words.js: x. */\nimport { openDB } from \"idb\"\n" >src/web/console/words.js'
plant 'import of Node' check-web 'import modules of Node' \
    'insert src/web/client/fault.js 1 "import fs from \"node:fs\""'
plant 'module without rank' check-web '^src/web/client/attic.js:1: attic has no rank' \
    'echo "/* attic.js: things. */" >src/web/client/attic.js'
plant 'first line of a module' check-web '^src/web/client/stamp.js:1: the first line must say' \
    'replace src/web/client/stamp.js "stamp.js: " ""'
plant 'blank at the end in a module' check-web '^src/web/client/stamp.js:2: a blank at the end' \
    'echo "export const x = 1 " >>src/web/client/stamp.js'
plant 'long module' check-web '^src/web/client/stamp.js:401: more than 400 lines' \
    'for i in $(seq 400); do echo; done >>src/web/client/stamp.js'

# --- check-claims ---
plant 'default that is another' check-claims '^README.md:5: the default of .limit_name_bytes. is 255 bytes, not 256' \
    'printf "\nNames are short (\`limit_name_bytes\`, 256 by\ndefault).\n" >>README.md'
claim() { plant "claim of a number: $1" check-claims "$2" "$3"; }
claim 'before the name' '^README.md:5: the default of .limit_name_bytes. is 255 bytes, not 256 bytes' \
    'printf "\nNames have at most 256 bytes (\`limit_name_bytes\`).\n" >>README.md'
claim 'of things' '^README.md:5: the default of .limit_name_bytes. is 255 bytes, not twelve' \
    'printf "\nNames have at most twelve letters (\`limit_name_bytes\`).\n" >>README.md'
claim 'in parentheses' '^README.md:5: the default of .limit_name_bytes. is 255 bytes, not 256' \
    'printf "\nNames have at most \`limit_name_bytes\` (256).\n" >>README.md'
claim 'named as the default' '^README.md:5: the default of .limit_name_bytes. is 255 bytes, not 1 KB' \
    'printf "\nNames are short (\`limit_name_bytes\` (default: 1 KB) bounds them).\n" >>README.md'
claim 'of another unit' '^README.md:5: the default of .pause_s. is 60 s, not two minutes' \
    'insert src/base/settings_table.h 5 "NUMBER(pause_s, 60, 1, 3600, \"s\", \"Pause.\")"
     printf "\nIt pauses two minutes (\`pause_s\`).\n" >>README.md'
claim 'beyond the limits' '^README.md:5: .limit_name_bytes. is from 16 to 255, so it cannot be 300' \
    'printf "\nSet \`limit_name_bytes = 300\`.\n" >>README.md'
claim 'of the limits' '^README.md:5: .limit_name_bytes. is from 16 to 255$' \
    'printf "\nSet \`limit_name_bytes\` (from 1 to 255).\n" >>README.md'
claim 'in an example' '^README.md:6: .limit_name_bytes. is from 16 to 255, so it cannot be 8' \
    'printf "\n\`\`\`\nlimit_name_bytes = 8\n\`\`\`\n" >>README.md'
claim 'in a table' '^README.md:7: the default of .limit_name_bytes. is 255 bytes, not 256' \
    'printf "\n| setting | default |\n| --- | --- |\n| \`limit_name_bytes\` | 256 |\n" >>README.md'
claim 'in a comment' '^src/base/low.c:2: the default of .limit_name_bytes. is 255 bytes, not 256 bytes' \
    'insert src/base/low.c 1 "/* A name has 256 bytes (limit_name_bytes). */"'
claim 'in a manual page' '^doc/stampd.8:[0-9]*: the default of .limit_name_bytes. is 255 bytes, not 256' \
    'printf ".PP\nA name has at most\n.I limit_name_bytes\n(256) bytes.\n" >>doc/stampd.8'
cases=$((cases + 1))
cp -R "$good" "$area/right"
insert_right() { printf '%s\n' '' "$1" >>"$area/right/README.md"; }
insert_right 'A fault (`limit_name_bytes`, 404), half of 300 bytes (`limit_name_bytes`), 300 or more names; `limit_name_bytes` of 300 clients.'
insert_right 'Names have 255 bytes (`limit_name_bytes`), set `limit_name_bytes = 16`; 300 names; `limit_name_bytes` (an hour ago).'
"$area/right/scripts/check-claims" "$area/right" >"$area/output" 2>&1 || fail "claims that are right are refused: $(cat "$area/output")"
rm -rf "$area/right"
plant 'lines of a file' check-claims '^README.md:5: low.c has [0-9]* lines, not 90' \
    'printf "\nAll is in \`src/base/low.c\`, 90 lines.\n" >>README.md'
plant 'mutations that are fewer' check-claims '^README.md:5: there are 1 mutations in test/mutants, not more than 1,000' \
    'printf "\nIt has more than 1,000 small mutations.\n" >>README.md'
plant 'name that is nowhere' check-claims '^README.md:5: .low_fail. is no word of the sources' \
    'printf "\nIt fails through \`low_fail\`.\n" >>README.md'
plant 'thing that is there' check-claims '^README.md:5: there is a setting limit_name_bytes' \
    'printf "\nIt has no setting \`limit_name_bytes\`.\n" >>README.md'
plant 'path that is there' check-claims '^doc/how-to/release.md:1: there is sql, so the statement of its row is wrong' \
    'mkdir doc/how-to; printf "| no SQL | no \`sql\` | 2026-11-29 |\n" >doc/how-to/release.md'
plant 'news that are long' check-claims '^NEWS.md:1: it has 61 lines' \
    'seq 61 >NEWS.md'
plant 'setting of the next start' check-claims '^doc/stampd.8:1: the settings that take effect at the next start differ .*: user' \
    'printf "/* master: x. */\n    keep_text(\"user\", 1);\n" >src/serve/master.c; mkdir doc/how-to
echo "take effect at the next start: \`user\`." >doc/how-to/operating.md; echo "take effect at the next start" >doc/stampd.8'
plant 'package that a page lacks' check-claims '^README.md:1: the list of packages lacks libx-dev' \
    'mkdir scripts/lib doc/how-to; echo libx-dev | tee scripts/lib/packages.build HACKING.md >doc/how-to/operating.md'
plant 'function that its test does not mention' check-claims 'architecture.md:9: no test of this row mentions low_add' \
    'replace test/unit/test_low.c low_add "it"'
plant 'function that no mutation changes' check-claims \
    'architecture.md:9: no mutation in test/mutants changes src/base/low.c:low_add and names a test of this row' \
    'replace test/mutants/base.mutants "return a + b" "int low_add"'
plant 'function whose mutation another test notices' check-claims 'architecture.md:9: no mutation' \
    'replace test/mutants/base.mutants "unit low" "unit high"'
plant 'row without a function' check-claims 'architecture.md:9: this row names no function' \
    'replace doc/reference/architecture.md "src/base/low.c:low_add. | " "src/base/low.c. | "'
plant 'claim without a date' check-claims '^doc/explanation/not-for-you-if.md:1: release.md has no date of review for "magic"' \
    'mkdir doc/how-to doc/explanation; echo "| x | y | 2026-11-29 |" >doc/how-to/release.md
echo "| **magic** and more | no |" >doc/explanation/not-for-you-if.md'

# --- check-dist ---
if git --version >/dev/null 2>&1; then
    cases=$((cases + 3))
    repository=$area/repository
    cp -R "$good" "$repository"
    (cd "$repository" && git init -q . && git add -A)
    cp -R "$good" "$area/release"
    "$good/scripts/check-dist" "$repository" "$area/release" || fail 'check-dist refuses a whole release'
    rm "$area/release/src/base/low.c"
    "$good/scripts/check-dist" "$repository" "$area/release" | grep -q '^src/base/low.c:1: is not in the release' ||
        fail 'check-dist does not see a missing file'
    cp "$good/src/base/low.c" "$area/release/src/base/"
    echo x >"$area/release/junk"
    "$good/scripts/check-dist" "$repository" "$area/release" | grep -q '^junk:1: is in the release but unknown' ||
        fail 'check-dist does not see a file too many'
fi

if [ "$failures" -gt 0 ]; then
    echo "test_checks: $failures of $cases failed"
    exit 1
fi
echo "test_checks: $cases cases, each check can fail"
