# base.sh: words for the person at the terminal, and care with processes.  Sourced by every script here.
#
# A process that a script starts must outlive the script and be found again by a later one, after kill -9 and
# after a reboot too.  So each runs as the leader of a session of its own, and <name>.pid holds
# "<pid> <start time> <boot id>": together they name one process, at any time, where a bare pid may be somebody else's.
# All children (stampd's workers, nginx's) stay in the session, so what a killed leader left behind is found as well.
# A process that has taken over from another (process_succeed) is not the leader of its session: two more words,
# "<session> <start time of its leader>", name that.
# Only files of /proc that everybody may read are used: root in a container may not read the others.

umask 022
SCRIPT_NAME=${SCRIPT_NAME:-${0##*/}}
ME=$(id -un)
if [ "$EUID" = 0 ]; then IS_ROOT=yes; else IS_ROOT=no; fi

say() { printf '%s\n' "$*"; }

# fail WORDS: one clear line, and the script ends.
fail() {
    printf '%s: %s\n' "$SCRIPT_NAME" "$*" >&2
    exit 1
}

# as_user USER COMMAND...: in the folder /, which everybody may enter.
as_user() {
    user_prefix "$1"
    shift
    (cd / && "${AS_USER[@]}" "$@")
}

# user_prefix USER: the words before a command that make it run as USER, without a process in between.
user_prefix() {
    AS_USER=(env HOME=/ "USER=$1" "LOGNAME=$1")
    if [ "$1" != "$ME" ]; then
        AS_USER=(setpriv --reuid "$1" --regid "$(id -g "$1")" --init-groups -- "${AS_USER[@]}")
    fi
}

# check_number NAME VALUE LEAST MOST: refuses a setting of the environment that is no such number.
check_number() {
    case $2 in
        '' | *[!0-9]* | 0?*) fail "$1 must be a number from $3 to $4, not \"$2\"" ;;
    esac
    [ "${#2}" -le 9 ] && [ "$2" -ge "$3" ] && [ "$2" -le "$4" ] ||
        fail "$1 must be a number from $3 to $4, not $2"
}

# free_mb PATH: room on the disk that PATH is or will be on.
free_mb() {
    local path=$1
    while [ ! -e "$path" ]; do path=$(dirname "$path"); done
    df --output=avail -BM "$path" | tr -dc '0-9\n' | tail -n 1
}

# port_is_taken PORT: something listens there on loopback.
port_is_taken() {
    (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

# nap: 20 ms, without a process: what waits there never comes.
exec {NAP}<> <(:)
nap() { read -r -t 0.02 -u "$NAP" || true; }

# wait_until SECONDS COMMAND...: tries every 20 ms; false when the time is over.
wait_until() {
    local end=$((EPOCHSECONDS + $1))
    shift
    until "$@"; do
        [ "$EPOCHSECONDS" -lt "$end" ] || return 1
        nap
    done
}

read -r BOOT </proc/sys/kernel/random/boot_id

# process_look PID: sets seen_name, seen_state, seen_session, seen_start; false when there is no such process.
process_look() {
    local line
    { read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
    seen_name=${line#*(}
    seen_name=${seen_name%)*}
    set -- ${line##*) }
    seen_state=$1 seen_session=$4 seen_start=${20}
}

# process_start FILE LOG FOLDER USER COMMAND...: starts it in FOLDER as a session of its own, notes it in FILE.
process_start() {
    local file=$1 log=$2 folder=$3 pid
    user_prefix "$4"
    shift 4
    # Descriptor 9 is the scripts' lock: a server must not hold it.
    (cd "$folder" && exec setsid "${AS_USER[@]}" "$@") </dev/null >>"$log" 2>&1 9>&- {NAP}>&- &
    pid=$!
    disown "$pid"
    process_look "$pid" || return 1
    echo "$pid $seen_start $BOOT" >"$file.new"
    mv "$file.new" "$file"
}

# process_read FILE: sets noted_pid and noted_start, noted_session and noted_since; false when there is no note, or one
# of before a reboot.
process_read() {
    local boot
    [ -s "$1" ] && read -r noted_pid noted_start boot noted_session noted_since <"$1" && [ "$boot" = "$BOOT" ] || return 1
    noted_session=${noted_session:-$noted_pid} noted_since=${noted_since:-$noted_start}
}

# process_succeed FILE PID: notes a process of the same session in place of the one that is noted.
process_succeed() {
    process_read "$1" && process_look "$2" || return 1
    echo "$2 $seen_start $BOOT $noted_session $noted_since" >"$1.new"
    mv "$1.new" "$1"
}

process_runs() {
    process_read "$1" && process_look "$noted_pid" && [ "$seen_start" = "$noted_start" ] && [ "$seen_state" != Z ]
}

process_has_ended() { ! process_runs "$1"; }

# process_pid FILE: prints the leader's pid, false when it does not run.
process_pid() { process_runs "$1" && echo "$noted_pid"; }

# process_session FILE NAME: the pids of all that lives of it, the leader's orphans included; NAME begins their names.
# While a session has members its number is given to no new process: a stranger under the leader's pid means none is left.
process_session() {
    local pid
    process_read "$1" || return 0
    if process_look "$noted_session" && [ "$seen_start" != "$noted_since" ]; then return 0; fi
    for pid in /proc/[0-9]*; do
        process_look "${pid#/proc/}" || continue
        case $seen_session:$seen_state:$seen_name in
            *:Z:*) ;;
            "$noted_session":?:"$2"*) echo "${pid#/proc/}" ;;
        esac
    done
}

process_session_is_empty() { [ -z "$(process_session "$1" "$2")" ]; }

# process_stop FILE NAME SIGNAL:SECONDS...: asks the leader with each signal in turn, then ends what is left of the
# session; true once nothing of it lives.
process_stop() {
    local file=$1 name=$2 step left
    shift 2
    [ -e "$file" ] || return 0 # nothing is known of any
    for step in "$@"; do
        process_runs "$file" || break
        kill "-${step%:*}" "$noted_pid" 2>/dev/null || true
        wait_until "${step#*:}" process_has_ended "$file" || true
    done
    for step in '' TERM:2 KILL:10; do
        left=$(process_session "$file" "$name")
        if [ -z "$left" ]; then
            rm -f "$file"
            return 0
        fi
        [ -n "$step" ] || continue
        # shellcheck disable=SC2086
        kill "-${step%:*}" $left 2>/dev/null || true
        wait_until "${step#*:}" process_session_is_empty "$file" "$name" || true
    done
    process_session_is_empty "$file" "$name" && rm -f "$file"
}

# processes_titled WORDS: pids of those whose command line begins with WORDS.
processes_titled() {
    local pid title
    for pid in /proc/[0-9]*; do
        { read -r -d '' title <"$pid/cmdline"; } 2>/dev/null || continue
        case $title in "$1"*) echo "${pid#/proc/}" ;; esac
    done
}
