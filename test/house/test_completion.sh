#!/bin/bash
# test_completion: bash completes stampctl's commands, options and words by the file that make install puts where
# bash-completion looks for it.
#
# Run by make check in the build folder; STAMPCTL is the program.
set -eu
export LC_ALL=C
source=$(cd "$(dirname "$0")/../.." && pwd)
stampctl=${STAMPCTL:-src/stampctl}
area=$(mktemp -d "${TMPDIR:-/tmp}/stampd-completion-XXXXXX")
trap 'rm -rf "$area"' EXIT
failures=0

# expect "typed words" "what they may become": the last word, perhaps empty, is completed.
expect()
{
    local found words=$1
    read -r -a COMP_WORDS <<<"$words"
    case "$words" in *' ') COMP_WORDS+=('') ;; esac
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    COMPREPLY=()
    paths=
    _stampctl "$stampctl" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
    found="${COMPREPLY[*]}$paths"
    if [ "$found" != "$2" ]; then
        echo "test_completion: \"$words\" becomes \"$found\", expected \"$2\""
        failures=$((failures + 1))
    fi
}

# Outside of a completion the builtin fails: this notes that file names were asked for.
compopt()
{
    paths="$*"
}

# shellcheck source=/dev/null
. "$source/scripts/completions/stampctl"
complete -p stampctl | grep -q _stampctl || { echo 'test_completion: bash has no completion of stampctl'; exit 1; }

expect 'stampctl n' 'ns nginx'
expect 'stampctl pu' 'purge push'
expect 'stampctl ns o' 'origins off on'
expect 'stampctl journal l' 'list listen'
expect 'stampctl ns state lab ' 'on readonly off gone'
expect 'stampctl task ' 'list show history backlog run move hold drop redrive pause resume limit'
expect 'stampctl ns list --j' '--json'
expect 'stampctl ns list --' '--config --admin-conninfo --json --help'
expect 'stampctl ns access lab ' 'closed read open rules'
expect 'stampctl ns access lab r' 'read rules'
expect 'stampctl ns access --config stampd.conf lab o' 'open'
expect 'stampctl ns push lab o' 'on off'
expect 'stampctl ns create lab --access c' 'closed'
expect 'stampctl ns list --config ' '-o default'
expect 'stampctl ns list -c ' '-o default'
expect 'stampctl key hash ' '-o default'
expect 'stampctl -c ' '-o default'
expect 'stampctl -c stampd.conf sch' 'schema'
expect 'stampctl --v' '--version'
expect 'stampctl ns list x' ''
expect 'stampctl nothing x' ''
expect 'stampctl task drop lab a ' ''

# Each command that --help lists is offered.
for word in $("$stampctl" --help | awk '/^Commands:/ { inside = 1; next } /^$/ { inside = 0 } inside { print $1 }'); do
    expect "stampctl $word" "$("$stampctl" --help | awk -v word="$word" '/^Commands:/ { inside = 1; next } /^$/ { inside = 0 }
        inside && index($1, word) == 1 { printf "%s%s", sep, $1; sep = " " }')"
done

if [ -f Makefile ]; then
    "${MAKE:-make}" -s install-dist_bashcompletionDATA DESTDIR="$area" datarootdir=/share >/dev/null
    cmp "$source/scripts/completions/stampctl" "$area/share/bash-completion/completions/stampctl" || failures=$((failures + 1))
fi

[ "$failures" -eq 0 ] || exit 1
echo 'test_completion: bash completes what --help lists'
