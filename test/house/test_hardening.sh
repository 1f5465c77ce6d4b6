#!/bin/bash
# test_hardening: are the programs of this build as hard to break as configure promised?  Reads them with readelf and nm.
# Not for a build with the sanitizers or with --disable-hardening.
set -euo pipefail
failures=0
wrong() {
    echo "FAIL: $*"
    failures=$((failures + 1))
}

[ "${HARDENED:-no}" = yes ] || { echo 'this build is not hardened'; exit 1; }
command -v readelf >/dev/null || { echo 'readelf is missing'; exit 1; }
machine=$(uname -m)
flags=${HARDEN_CFLAGS:-}

# has WHAT FILE PATTERN COMMAND...: the output of the command matches.
has() {
    local what=$1 file=$2 pattern=$3
    shift 3
    grep -Eq -- "$pattern" <<<"$("$@" "$file" 2>/dev/null)" || wrong "$file: $what"
}

programs='src/stampd src/stamp-queue src/stamp-forward src/stampctl'
[ "${STAMPD_THUMBNAILS:-yes}" != yes ] || programs+=' src/stamp-thumbnail'
for program in $programs; do
    has 'is no position-independent program' "$program" 'Type: +DYN' readelf -hW
    has 'says not that it is one' "$program" 'FLAGS_1.*PIE' readelf -dW
    has 'addresses are bound late (-z now)' "$program" 'BIND_NOW|FLAGS_1.*NOW' readelf -dW
    has 'tables of addresses can be written (-z relro)' "$program" 'GNU_RELRO' readelf -lW
    has 'has no note about its stack' "$program" 'GNU_STACK' readelf -lW
    if grep -Eq '(GNU_STACK|LOAD).*RWE' <<<"$(readelf -lW "$program")"; then wrong "$program: memory to be written and run"; fi
    has 'no function protects its stack' "$program" '__stack_chk_fail' nm -D
    case $flags in
        *_FORTIFY_SOURCE*) has 'no call is checked (_FORTIFY_SOURCE)' "$program" 'U __(snprintf|vsnprintf|memcpy|read|fprintf)_chk' nm -D ;;
        *) wrong "$program: built without _FORTIFY_SOURCE: $flags" ;;
    esac
done

# The linker gives the property to a program only when the C library's own start files have it, which Debian 12's have not:
# so it is asked of our objects.
case $machine:$flags in
    x86_64:*-fcf-protection*)
        for object in src/stampd.o $(find src -name '*.o' | sort | sed -n '1p;$p'); do
            has 'jumps are not guarded (-fcf-protection)' "$object" 'IBT, SHSTK' readelf -nW
        done
        ;;
    x86_64:*) wrong "built without -fcf-protection: $flags" ;;
esac
[ "$failures" = 0 ] && echo 'the programs are hardened'
