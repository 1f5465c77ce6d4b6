#!/bin/sh
# test_manuals: the manual pages name every command and option that the programs name in their --help, and no other.
#
# Run by make check in the build folder; STAMPCTL, STAMPD and STAMP_QUEUE are the programs.
set -eu
export LC_ALL=C
source=$(cd "$(dirname "$0")/../.." && pwd)
stampctl=${STAMPCTL:-src/stampctl}
stampd=${STAMPD:-src/stampd}
queue=${STAMP_QUEUE:-src/stamp-queue}
journal=${STAMP_JOURNAL:-src/stamp-journal}
thumbnail=${STAMP_THUMBNAIL:-src/stamp-thumbnail}
area=$(mktemp -d "${TMPDIR:-/tmp}/stampd-manuals-XXXXXX")
trap 'rm -rf "$area"' EXIT

# The commands below a group, one a line; a command that is a group itself is opened.
commands()
{
    # shellcheck disable=SC2086
    "$stampctl" $1 --help | awk '/^Commands:/ { inside = 1; next } /^$/ { inside = 0 } inside { print $1 }' |
    while read -r word; do
        # shellcheck disable=SC2086
        if "$stampctl" $1 $word --help </dev/null | grep -q '^Commands:'; then
            commands "${1:+$1 }$word"
        else
            echo "${1:+$1 }$word"
        fi
    done
}

# Options of a --help on standard input, one a line.
options()
{
    awk '/^ +(-[a-zA-Z], +)?--[a-z]/ && match($0, /--[a-z][a-z-]*/) {
        print substr($0, RSTART + 2, RLENGTH - 2)
    }'
}

# Options of a section of a page on standard input: those in the heads of its paragraphs, the lines behind .TP.
described()
{
    sed -e 's/\\f[A-Z]/ /g' -e 's/\\//g' | awk 'head && match($0, /--[a-z][a-z-]*/) { print substr($0, RSTART + 2, RLENGTH - 2) }
    { head = /^\.T[PQ]/ }'
}

# section PAGE KIND NAME: the lines of one section.
section()
{
    awk -v kind="$2" -v name="$3" '
    /^\.S[HS] / {
        title = substr($0, 5)
        gsub(/"/, "", title)
        inside = $1 == kind && (title == name || index(title, name " ") == 1)
        next
    }
    inside' "$1"
}

failures=0
complain()
{
    echo "$1"
    failures=$((failures + 1))
}

page=$source/doc/stampctl.1
section "$page" .SH 'COMMON OPTIONS' | described | sort >"$area/common"
commands '' >"$area/commands"
[ "$(wc -l <"$area/commands")" -gt 5 ] || complain "$stampctl --help: no commands were found"
while read -r command; do
    if ! grep -Eq "^\.SS \"$command( .*)?\"\$" "$page"; then
        complain "doc/stampctl.1:1: the command $command has no section .SS \"$command …\""
        continue
    fi
    # shellcheck disable=SC2086
    "$stampctl" $command --help </dev/null | options | sort >"$area/help"
    section "$page" .SS "$command" | described | sort >"$area/page"
    sort -u "$area/page" "$area/common" | comm -23 "$area/help" - >"$area/missing"
    while read -r option; do
        complain "doc/stampctl.1:1: $command: the option --$option is not described"
    done <"$area/missing"
    comm -13 "$area/help" "$area/page" >"$area/extra"
    while read -r option; do
        complain "doc/stampctl.1:1: $command: there is no option --$option"
    done <"$area/extra"
done <"$area/commands"
sed -n 's/^\.SS "\(.*\)"$/\1/p' "$page" | while read -r title; do
    known=
    while read -r command; do
        case "$title " in "$command "*) known=yes ;; esac
    done <"$area/commands"
    [ -n "$known" ] || echo "$title"
done >"$area/unknown"
while read -r title; do
    complain "doc/stampctl.1:1: \"$title\" is no command"
done <"$area/unknown"

[ "${STAMPD_THUMBNAILS:-yes}" = yes ] || thumbnail= # a build without it
for program in "$stampd" "$queue" "$journal" ${thumbnail:+"$thumbnail"}; do
    page=doc/${program##*/}.8
    "$program" --help </dev/null | options | sort >"$area/help"
    section "$source/$page" .SH OPTIONS | described | sort >"$area/page"
    [ -s "$area/help" ] || complain "$program --help: no options were found"
    comm -3 "$area/help" "$area/page" >"$area/differ"
    while read -r option; do
        complain "$page:1: --$option stands in one of the page and ${program##*/} --help only"
    done <"$area/differ"
done

[ "$failures" -eq 0 ] || exit 1
echo "test_manuals: $(wc -l <"$area/commands") commands are described as they are"
