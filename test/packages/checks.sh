# checks.sh: assertions of the packages' test, counted in the file RESULTS.  Sourced by run and by inside, after LOG and RESULTS are set.

step() { printf -- '--- %s\n' "$*"; }

# check WORDS COMMAND...: the command must succeed; what it prints is shown only when it does not.
check() {
    local words=$1
    shift
    if "$@" >"$LOG" 2>&1; then
        echo passed >>"$RESULTS"
        printf 'passed: %s\n' "$words"
    else
        echo failed >>"$RESULTS"
        printf 'failed: %s (%s)\n' "$words" "$*"
        tail -n 15 "$LOG" | sed 's/^/    /'
    fi
}

# check_refused WORDS PATTERN COMMAND...: the command must fail, and one of its lines match the pattern.
check_refused() {
    local words=$1 pattern=$2
    shift 2
    check "$words" refused "$pattern" "$@"
}
refused() {
    local pattern=$1 status=0
    shift
    "$@" >"$LOG.refused" 2>&1 || status=$?
    cat "$LOG.refused"
    [ "$status" != 0 ] && grep -Eq -- "$pattern" "$LOG.refused"
}

# check_soon WORDS COMMAND...: the command must succeed, within a minute.
check_soon() {
    local words=$1
    shift
    check "$words" soon "$@"
}
soon() {
    local left=600
    until "$@"; do
        [ $((left--)) -gt 0 ] || return 1
        sleep 0.1
    done
}
