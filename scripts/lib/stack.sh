# stack.sh: a private PostgreSQL, nginx and stampd under one folder, for the demonstration and for the system tests.
#
#   STACK          the folder            STACK_BUILD        folder of the build: src/stampd, src/stampctl, src/stamp-queue
#   STACK_TOOLS    folder of the build whose src/stampctl prepares the stack (STACK_BUILD)
#   STACK_PORT     nginx, TLS            STACK_PROBE_PORT   nginx, probes, plain; both on 127.0.0.1 only
#   STACK_IN_TURN     yes: idle workers get requests in turn, so that some requests meet each of them (no)
#   STACK_LOCAL_PORT  nginx, the same as on STACK_PORT without TLS, on 127.0.0.1 only (0: none)
#   STACK_WORKERS  worker processes      STACK_POSTGRES     more lines for postgresql.conf
#   STACK_SEED     a folder made by stack_seed: its cluster and its certificate are copied in place of making them
#   STACK_DATA     folder of the cluster's files, which pg leads to (pg itself)
#   STACK_SETTINGS more lines for stampd.conf
#   STACK_RELOAD   yes: nginx is reloaded by stampctl when namespaces come and go
#   STACK_ACCESS_LOG  nginx's (off)
#   STACK_DATABASE folder of PostgreSQL's socket (its own)
#   STACK_COPIES   yes: stampd runs from a copy in the stack, which its user can start again when it cannot enter the build, and
#                  so does what it runs itself
#
# In it: etc (settings, certificate), pg (the cluster), run (sockets and pids), log; www (pages at /), console and doc, where they are.
# Started by root, each part has the user of its own that it would have in production; else all run as the caller.
# PostgreSQL identifies a client by the owner of its process (peer): there is no password anywhere.

if [ "$IS_ROOT" = yes ]; then
    POSTGRES_USER=postgres STAMPD_USER=daemon NGINX_USER=www-data
else
    POSTGRES_USER=$ME STAMPD_USER=$ME NGINX_USER=$ME
fi
POSTGRES_BIN=${POSTGRES_BIN:-/usr/lib/postgresql/15/bin}
NGINX_BIN=${NGINX_BIN:-/usr/sbin/nginx}
STACK_WORKERS=${STACK_WORKERS:-8}
STACK_PATH_LONGEST=76 # a socket's path may have 107 bytes, ours add up to 31

# All of a stack is in HOME/state.  The programs know it by that name where they can.  Where the name would not do (blanks,
# too long for a socket), by a link with a short name; where root's servers, which have users of their own, could not enter
# because a folder above is closed, by a mount of that folder at a place that is open.

# stack_locate HOME NAME: prints the path by which the programs reach the stack.
stack_locate() {
    local home=$1 inside=$1/state
    if [ -L "$inside" ]; then realpath -m -- "$inside"; return; fi # of a release that kept the data elsewhere
    if stack_name_is_plain "$inside" && stack_is_open "$home"; then
        echo "$inside"
    elif [ "$IS_ROOT" = yes ]; then
        echo "/run/$2-$(stack_hash "$home")"
    else
        echo "/tmp/$2-$(stack_hash "$home")"
    fi
}

stack_hash() { echo "$1" | sha256sum | head -c 12; }

stack_name_is_plain() {
    case $1 in
        *[!A-Za-z0-9_./+-]*) return 1 ;;
        *) [ ${#1} -le "$STACK_PATH_LONGEST" ] ;;
    esac
}

# stack_is_open FOLDER: the servers' users may enter it, or what exists of the way to it.
stack_is_open() {
    local folder=$1
    [ "$IS_ROOT" = yes ] || return 0
    while [ ! -e "$folder" ]; do folder=$(dirname "$folder"); done
    as_user nobody test -x "$folder"
}

# stack_can_mount: root may not everywhere, as in most containers.
stack_can_mount() { [ "$IS_ROOT" = yes ] && unshare --mount true 2>/dev/null; }

# stack_make HOME: the folder, under the name that stack_locate gave to STACK.
stack_make() {
    local home=$1
    mkdir -p "$home/state" || fail "$home/state cannot be made"
    stack_lead "$home"
    stack_prepare
}

# stack_lead HOME: makes STACK lead to HOME/state, after a reboot too.
stack_lead() {
    local inside=$1/state
    if [ "$STACK" = "$inside" ] || [ -L "$inside" ] || [ "$STACK" -ef "$inside" ]; then return 0; fi
    if stack_is_open "$1"; then
        [ ! -L "$STACK" ] || rm -f "$STACK"
        ln -s "$inside" "$STACK" || fail "$STACK cannot be made"
        [ "$STACK" -ef "$inside" ] && [ "$(stat -c %u "$STACK")" = "$(id -u)" ] || fail "$STACK belongs to somebody else"
        return
    fi
    mkdir -p "$STACK" && mount --bind "$inside" "$STACK" 2>/dev/null ||
        fail "the users of the servers ($POSTGRES_USER, $STAMPD_USER) may not enter $1, since a folder above it is closed, and" \
            "nothing can be mounted here; choose a folder that they may enter: STAMPD_HOME=/srv/stampd-demo"
}

# stack_part HOME: STACK leads nowhere any more; what is in HOME/state stays.
stack_part() {
    [ "$STACK" != "$1/state" ] || return 0
    if mountpoint -q "$STACK" 2>/dev/null; then umount "$STACK" && rmdir "$STACK"; fi
    if [ -L "$STACK" ]; then rm -f "$STACK"; fi
}

# stack_erase FOLDER: removes it, when it is one of ours.
stack_erase() {
    if [ -e "$1" ] && [ ! -e "$1/etc/stack" ]; then
        fail "$1 was not made by these scripts; it stays"
    fi
    if [ -L "$1/run/stampd" ]; then rm -rf "$(realpath -- "$1/run/stampd")"; fi
    rm -rf "$1"
}

# stack_remove HOME
stack_remove() {
    stack_part "$1"
    stack_erase "$(realpath -m -- "$1/state")"
    if [ -L "$1/state" ]; then rm -f "$1/state"; fi
}

# stack_prepare: the folders, each owned by the user that writes there.
stack_prepare() {
    mkdir -p "$STACK"/etc "$STACK"/log "$STACK"/run/nginx "$STACK"/run/postgres "$STACK"/files "$STACK"/records ||
        fail "$STACK cannot be written"
    stack_memory
    [ -d "$STACK/run/stampd" ] || mkdir -p "$STACK/run/stampd"
    chmod 711 "$STACK/."
    chmod 700 "$STACK/log" "$STACK/records" # addresses, and what programs complain of
    chmod 755 "$STACK/run/postgres" "$STACK/run/stampd"
    chmod 750 "$STACK/files"
    if [ "$IS_ROOT" = yes ]; then
        NGINX_GROUP=$(id -gn "$NGINX_USER")
        chown "$POSTGRES_USER:" "$STACK/run/postgres"
        chown "$STAMPD_USER:" "$STACK/run/stampd" "$STACK/records"
        chown "$STAMPD_USER:$NGINX_GROUP" "$STACK/files" # nginx sends them
    fi
    STACK_DATABASE=${STACK_DATABASE:-$STACK/run/postgres}
    : >>"$STACK/etc/stack"
}

# stack_memory: the folder of the segment is in memory, which encrypted namespaces need, where there is such a folder.
stack_memory() {
    local folder=$STACK/run/stampd kind free size
    if [ -e "$folder" ] && { [ -L "$folder" ] || process_runs "$STACK/run/stampd.pid"; }; then return; fi
    read -r kind free size < <(stat -f -c '%T %a %S' /dev/shm 2>/dev/null) || return 0
    [ "$kind" = tmpfs ] && [ -w /dev/shm ] || return 0
    [ "$((free * size >> 20))" -ge 256 ] || return 0 # as in small containers
    if [ -e "$folder" ] || [ -L "$folder" ]; then rm -rf "$folder"; fi # of a stopped server, or in memory before this host was started
    ln -s "$(mktemp -d /dev/shm/stampd-XXXXXX)" "$folder"
}

stack_disk_is_full() { [ "$(free_mb "$STACK")" -lt 16 ]; }

# stack_why LOG WORDS: fails with the cause found in LOG; a full disk is said as such.
stack_why() {
    local log=$1 cause
    shift
    if stack_disk_is_full || tail -n 50 "$log" 2>/dev/null | grep -q 'No space left on device'; then
        fail "$*: the disk of $STACK is full ($(free_mb "$STACK") MB free)"
    fi
    cause=$(tail -n 50 "$log" 2>/dev/null | grep -aE 'FATAL|PANIC|emerg|error|rror:' | tail -n 1) || true
    [ -n "$cause" ] || cause=$(tail -n 1 "$log" 2>/dev/null) || true
    fail "$*: ${cause:-it left no word} (log: $log)"
}

# --- PostgreSQL ---

# postgres_create [FOLDER]: where there is no cluster; a copy of that in FOLDER.
postgres_create() {
    [ ! -e "$STACK/pg" ] || return 0
    if [ -e "$STACK/pg.new" ] || [ -L "$STACK/pg.new" ]; then rm -rf "$STACK/pg.new"; fi
    id "$POSTGRES_USER" >/dev/null 2>&1 || fail "the user $POSTGRES_USER does not exist (package postgresql-common makes it)"
    if [ -n "${STACK_DATA:-}" ]; then
        mkdir -p "$STACK_DATA" && chmod 711 "$STACK_DATA" && ln -s "$(mktemp -d "$STACK_DATA/pg-XXXXXX")" "$STACK/pg.new"
    else
        mkdir "$STACK/pg.new"
    fi
    chmod 700 "$STACK/pg.new"
    [ "$IS_ROOT" = no ] || chown "$POSTGRES_USER:" "$STACK/pg.new"
    if [ -n "${1:-}" ]; then
        cp -a "$1/." "$STACK/pg.new"
    else
        as_user "$POSTGRES_USER" "$POSTGRES_BIN/initdb" -D "$STACK/pg.new" --username=postgres --auth=peer \
            --encoding=UTF8 --locale=C.UTF-8 ${STACK_INITDB:-} >"$STACK/log/initdb.log" 2>&1 ||
            stack_why "$STACK/log/initdb.log" "PostgreSQL's cluster could not be made"
    fi
    mv "$STACK/pg.new" "$STACK/pg"
}

# stack_seed: what stacks copy, since making it takes longer than all else of their start.  The cluster "bare" has the databases of the
# usual namespaces: each has the schema and is otherwise as "stampctl ns create" finds it after an interruption.  In the cluster
# "usual" that command has completed them.  Small segments of the write-ahead log are copied, begun and ended faster.
USUAL='z=closed demo=read lab=open'
stack_seed() {
    [ ! -e "$STACK/seeded" ] || return 0
    local file name namespace STACK_INITDB=--wal-segsize=1 STACK_POSTGRES='min_wal_size = 2MB' # none is kept to be used again
    certificate_make
    postgres_create
    postgres_start
    stack_psql postgres -q -c 'create role stampd login' \
        -c "create database stampd_seed template template0 encoding 'UTF8' locale 'C.UTF-8'"
    for file in "$SOURCE"/sql/[0-9]*_*.sql; do
        name=${file##*/}
        stack_psql stampd_seed -q -1 -f "$file" \
            -c "insert into stampd.migration (number, name, applied) values (${name%%_*}, '$name', now())"
    done >/dev/null
    for namespace in $USUAL; do
        stack_psql postgres -q -c "create database stampd_${namespace%=*} template stampd_seed strategy file_copy"
    done
    stack_psql postgres -q -c 'drop database stampd_seed'
    postgres_stop
    mv "$STACK/pg" "$STACK/bare"
    postgres_create "$STACK/bare"
    postgres_start
    printf '%s\n' "database = host=$STACK_DATABASE user=stampd" "run_directory = $STACK/run/stampd" >"$STACK/etc/stampd.conf"
    for namespace in $USUAL; do namespace_create "${namespace%=*}" "${namespace#*=}"; done
    postgres_stop
    mv "$STACK/pg" "$STACK/usual"
    : >"$STACK/seeded"
}

# stack_has_usual CODE=ACCESS...: the usual namespaces are wanted, in the usual databases.
stack_has_usual() {
    [ "$*" = "$USUAL" ] || return 1
    case $'\n'${STACK_SETTINGS:-} in *$'\n'z_database' '* | *$'\n'database' '*) return 1 ;; esac
}

# postgres_renew CODE=ACCESS...: copies a database for each namespace that is none of the usual ones, and gives those of a copied
# cluster what is drawn at random in each database that ns create makes.
postgres_renew() {
    local renew='update stampd.namespace set epoch = default, secret = default, restored = default;' namespace code others=()
    for namespace in "$@"; do
        case " $USUAL" in *" ${namespace%=*}="*) ;; *) others+=("${namespace%=*}") ;; esac
    done
    {
        for code in "${others[@]}"; do echo "create database \"stampd_$code\" template stampd_demo strategy file_copy;"; done
        echo "$renew"
        for code in demo lab "${others[@]}"; do printf '\\connect "stampd_%s"\n%s\n' "$code" "$renew"; done
    } | stack_psql stampd_z -q >/dev/null || fail "the copied databases could not be renewed"
}

postgres_configure() {
    postgres_name
    echo "listen_addresses = ''
unix_socket_directories = '$STACK/run/postgres'
cluster_name = '$POSTGRES_NAME'
max_connections = 100
shared_buffers = 256MB
min_wal_size = 80MB
max_wal_size = 2GB
fsync = on
synchronous_commit = on
jit = off
log_line_prefix = '%m [%p] %q%u@%d '
logging_collector = off
${STACK_POSTGRES:-}" >"$STACK/pg/postgresql.auto.conf"
    echo "local all all peer map=stack
local replication all peer map=stack" >"$STACK/pg/pg_hba.conf"
    echo "stack $POSTGRES_USER postgres
stack $ME postgres
stack $ME stampd
stack $STAMPD_USER stampd
stack $POSTGRES_USER stampd_backup" >"$STACK/pg/pg_ident.conf"
}

# postgres_adopt: somebody else has restarted the cluster (pg_ctl restart, a crash and a helping hand): it is ours again.
postgres_adopt() {
    local file=$STACK/run/postgres.pid pid=
    if process_runs "$file"; then return 0; fi
    { read -r pid <"$STACK/pg/postmaster.pid"; } 2>/dev/null || return 0
    case $pid in '' | *[!0-9]*) return 0 ;; esac
    process_look "$pid" && [ "$seen_name" = postgres ] && [ "$(stat -c %U "/proc/$pid")" = "$POSTGRES_USER" ] && postgres_answers ||
        return 0
    echo "$pid $seen_start $BOOT" >"$file"
}

postgres_start() {
    local file=$STACK/run/postgres.pid log=$STACK/log/postgresql.log
    postgres_adopt
    if process_runs "$file"; then return 0; fi
    # The backends of a killed postmaster have sessions of their own and end by themselves; while one lives, it is
    # attached to the memory of the cluster, and the new server would refuse to start.
    [ ! -e "$STACK/pg/postmaster.pid" ] || wait_until 30 postgres_has_no_orphans || fail "backends of a former PostgreSQL do not end: $(postgres_orphans)"
    rm -f "$STACK/pg/postmaster.pid" "$STACK"/run/postgres/.s.PGSQL.*
    postgres_configure
    : >>"$log"
    process_start "$file" "$log" / "$POSTGRES_USER" "$POSTGRES_BIN/postgres" -D "$STACK/pg" || true
    wait_until 120 postgres_is_decided || true
    postgres_says_ready && process_runs "$file" || stack_why "$log" "PostgreSQL does not start"
}

# The title of every backend begins with the cluster's name.
postgres_orphans() { postgres_name && processes_titled "postgres: $POSTGRES_NAME: "; }
postgres_has_no_orphans() { postgres_name && [ -z "$(postgres_orphans)" ]; }
# postgres_name: sets POSTGRES_NAME.
postgres_name() {
    if [ "${POSTGRES_NAME_OF:-}" != "$STACK" ]; then POSTGRES_NAME=stampd-$(stack_hash "$STACK") POSTGRES_NAME_OF=$STACK; fi
}

postgres_answers() { "$POSTGRES_BIN/pg_isready" -q -h "$STACK/run/postgres" -U postgres -d postgres; }
postgres_is_decided() { postgres_says_ready || ! process_runs "$STACK/run/postgres.pid"; }

# postgres_says_ready: in the eighth line of its file, which postgres_start has removed before; to look there costs no process.
postgres_says_ready() {
    local lines
    mapfile -t lines <"$STACK/pg/postmaster.pid" && [[ ${lines[7]-} == ready* ]]
} 2>/dev/null

# postgres_stop [fast|immediate|kill]
postgres_stop() {
    local file=$STACK/run/postgres.pid
    postgres_adopt
    case ${1:-fast} in
        fast) process_stop "$file" postgres INT:60 QUIT:20 ;;
        immediate) process_stop "$file" postgres QUIT:20 ;;
        kill) process_stop "$file" postgres KILL:20 ;;
    esac || return 1
    wait_until 30 postgres_has_no_orphans || return 1
    rm -f "$STACK"/run/postgres/.s.PGSQL.*
}

# stack_psql DATABASE WORDS...: as the administrator's role.
stack_psql() {
    local database=$1
    shift
    "$POSTGRES_BIN/psql" -X -v ON_ERROR_STOP=1 -h "$STACK/run/postgres" -U postgres -d "$database" "$@"
}

# --- stampd ---

# stampd_configure KEY_FILE: writes the settings; the administrator's key is made when it is missing.
stampd_configure() {
    local key=$1 hash
    stampd_hash "$key" && hash=$key_hash
    stampd_hash "$STACK/etc/queue.key"
    {
        echo "# Written again at each start."
        case $'\n'${STACK_SETTINGS:-} in *$'\n''database '*) ;; *) echo "database = host=$STACK_DATABASE user=stampd" ;; esac
        echo "run_directory = $STACK/run/stampd"
        case ${STACK_SETTINGS:-} in *blob_directory*) ;; *) echo "blob_directory = $STACK/files" ;; esac
        case ${STACK_SETTINGS:-} in
            *records_directory*) ;;
            *) ! grep -qs 'define HAVE_RECORDS_ON_DISK 1' "$STACK_BUILD/config.h" || echo "records_directory = $STACK/records" ;;
        esac
        echo "workers = $STACK_WORKERS"
        case ${STACK_SETTINGS:-} in *drain_s*) ;; *) echo "drain_s = 10" ;; esac
        echo "admin_key_sha256 = $hash"
        if [ "$IS_ROOT" = yes ]; then
            echo "user = $STAMPD_USER"
            echo "socket_group = ${NGINX_GROUP:-$(id -gn "$NGINX_USER")}"
        fi
        echo "queue_key_sha256 = $key_hash"
        echo "queue_key_file = $STACK/etc/queue.key"
        echo "queue_url = https://localhost:$STACK_PORT"
        echo "queue_ca_file = $STACK/etc/certificate.pem"
        case ${STACK_SETTINGS:-} in *queue_socket*) ;; *) echo "queue_socket = $STACK/run/stampd/wake-ups.sock" ;; esac
        if [ "${STACK_RELOAD:-no}" = yes ]; then
            # The value of a setting may go on in indented lines; the command finds no nginx at the first start.
            echo "nginx_reload = [ ! -s $STACK/run/nginx/nginx.pid ] ||"
            echo "  kill -HUP \$(cat $STACK/run/nginx/nginx.pid) 2>/dev/null || true"
        fi
        # Load tests, histories and the demonstration send everything from one address: no limit of clients holds for it.
        # An attack that is to be limited comes from 127.0.0.2 and further.
        case ${STACK_SETTINGS:-} in
            *exempt_clients*) ;;
            *) echo "exempt_clients = 127.0.0.1" ;;
        esac
        case ${STACK_SETTINGS:-} in
            *push_services*) ;;
            *) echo "push_services = *" ;; # tests have services of their own
        esac
        printf '%s\n' "${STACK_SETTINGS:-}"
    } >"$STACK/etc/stampd.conf"
}

# stampd_hash FILE: sets key_hash to that of the key in it, which is made when it is missing.
stampd_hash() {
    if [ -s "$1" ]; then key_hash=$(stampctl key hash "$1"); else key_hash=$(stampctl key new "$1"); fi || return 1
    key_hash=${key_hash##*= }
}

stampctl() { "${STACK_TOOLS:-$STACK_BUILD}/src/stampctl" "$@"; }

# stampctl_admin WORDS...: a command that works on the databases.
stampctl_admin() {
    STAMPD_SQL=$SOURCE/sql stampctl "$@" --config "$STACK/etc/stampd.conf" \
        --admin-conninfo "host=${STACK_DATABASE:-$STACK/run/postgres} user=postgres"
}

# namespace_create CODE ACCESS: completes one that exists, and leaves its access alone.
namespace_create() {
    local log=$STACK/log/namespaces.log access=(--access "$2")
    if grep -qs "^$1 " "$STACK/etc/namespaces.map"; then access=(); fi
    stampctl_admin ns create "$1" "${access[@]}" >>"$log" 2>&1 || stack_why "$log" "namespace $1 could not be made"
}

stampd_start() {
    local file=$STACK/run/stampd.pid log=$STACK/log/stampd.log
    if process_runs "$file"; then return 0; fi
    process_stop "$file" stampd || fail "processes of a former stampd do not end: $(process_session "$file" stampd)"
    rm -f "$STACK"/run/stampd/worker-*.sock # those of one that was killed would say that the new one listens
    : >>"$log"
    stack_note_program stampd
    process_start "$file" "$log" / "$ME" "$(stampd_program)" --config "$STACK/etc/stampd.conf" \
        --pidfile "$STACK/run/stampd/stampd.pid" || true
    wait_until 120 stampd_is_decided || true
    stampd_listens || stack_why "$log" "stampd does not start"
}

# stampd_program: prints the path of what is started, and is to be found there by a SIGUSR2.
stampd_program() {
    if [ "${STACK_COPIES:-no}" != yes ]; then echo "$STACK_BUILD/src/stampd"; return; fi
    mkdir -p "$STACK/bin"
    if [ -x "$STACK_BUILD/src/stamp-thumbnail" ]; then
        stack_copy stamp-thumbnail
    else
        rm -f "$STACK/bin/stamp-thumbnail"
    fi
    stack_copy stampd
    echo "$STACK/bin/stampd"
}

stack_copy() {
    local copy=$STACK/bin/$1
    cp "$STACK_BUILD/src/$1" "$copy.new" && mv "$copy.new" "$copy" || fail "$copy cannot be written"
}

# stampd_replace: the program as it is now, with the settings of now, takes over the sockets of the running one; no request
# fails.  False: it cannot (log/stampd.log has the reason), and the running one goes on.
stampd_replace() {
    local file=$STACK/run/stampd.pid log=$STACK/log/stampd.log size old
    [ -s "$STACK/run/stampd/stampd.pid" ] && process_runs "$file" || return 1
    stampd_program >/dev/null
    old=$noted_pid
    size=$(stat -c %s "$log")
    kill -USR2 "$old" 2>/dev/null || return 1
    wait_until 60 stampd_has_decided "$old" "$log" "$size" || return 1
    stampd_is_replaced "$old" || return 1
    process_succeed "$file" "$(cat "$STACK/run/stampd/stampd.pid")" || return 1
    stack_note_program stampd
    wait_until 60 process_is_over "$old" || true # it lets the connections of nginx end
}

# stampd_is_replaced OLD: another master serves.
stampd_is_replaced() {
    local now=
    { read -r now <"$STACK/run/stampd/stampd.pid"; } 2>/dev/null
    [ -n "$now" ] && [ "$now" != "$1" ]
}

# stampd_has_decided OLD LOG SIZE: so it is, or the log says behind SIZE bytes that none comes.
stampd_has_decided() {
    stampd_is_replaced "$1" || grep -q 'the successor did not start' < <(tail -c "+$(($3 + 1))" "$2") || ! process_look "$1"
}

process_is_over() { ! process_look "$1" || [ "$seen_state" = Z ]; }

# stack_program NAME: file, time and path of a program of the build; stack_note_program keeps it for the running one.
stack_program() { stat -c '%i %Y %n' "$STACK_BUILD/src/$1"; }
stack_note_program() { stack_program "$1" >"$STACK/run/$1.program"; }
# stack_is_current NAME: was what runs started from what is there now?
stack_is_current() { [ "$(cat "$STACK/run/$1.program" 2>/dev/null)" = "$(stack_program "$1")" ]; }

stampd_listens() { [ -S "$STACK/run/stampd/worker-$((STACK_WORKERS - 1)).sock" ] && process_runs "$STACK/run/stampd.pid"; }
stampd_is_decided() { stampd_listens || ! process_runs "$STACK/run/stampd.pid"; }

# stampd_stop [now]: now does not wait until nginx has let its connections go.
stampd_stop() {
    local first=TERM # two of the same that come together are one
    [ "${1:-}" != now ] || first=QUIT
    process_stop "$STACK/run/stampd.pid" stampd "$first:20" TERM:20 || return 1
    rm -f "$STACK"/run/stampd/worker-*.sock
}

# --- nginx ---

# certificate_make: where there is none, or one that ends soon.
certificate_make() {
    if [ ! -e "$STACK/etc/certificate.pem" ] && [ -n "${STACK_SEED:-}" ]; then
        cp -p "$STACK_SEED"/etc/certificate.* "$STACK/etc"
    elif ! openssl x509 -in "$STACK/etc/certificate.pem" -noout -checkend 86400 >/dev/null 2>&1; then
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 825 -subj /CN=localhost \
            -addext 'subjectAltName=DNS:localhost,IP:127.0.0.1' -addext basicConstraints=critical,CA:FALSE \
            -keyout "$STACK/etc/certificate.key" -out "$STACK/etc/certificate.pem" 2>"$STACK/log/openssl.log" ||
            stack_why "$STACK/log/openssl.log" "the certificate could not be made"
        chmod 600 "$STACK/etc/certificate.key"
    fi
}

nginx_configure() {
    certificate_make
    set -- --listen "127.0.0.1:$STACK_PORT" --probe-listen "127.0.0.1:$STACK_PROBE_PORT" \
        --folder "$STACK/run/nginx" --access-log "${STACK_ACCESS_LOG:-off}" --error-log "$STACK/log/nginx.log" \
        --certificate "$STACK/etc/certificate.pem" --key "$STACK/etc/certificate.key" --output "$STACK/etc/nginx.conf"
    [ "$IS_ROOT" = no ] || set -- "$@" --user "$NGINX_USER"
    [ "${STACK_LOCAL_PORT:-0}" = 0 ] || set -- "$@" --local-port "$STACK_LOCAL_PORT"
    [ "${STACK_IN_TURN:-no}" = no ] || set -- "$@" --in-turn
    [ ! -e "$STACK/console/index.html" ] || set -- "$@" --console "$STACK/console"
    [ ! -e "$STACK/doc/index.html" ] || set -- "$@" --doc "$STACK/doc"
    [ ! -d "$STACK/www" ] || set -- "$@" --root "$STACK/www"
    STAMPD_NGINX=$SOURCE/nginx STAMPD_NGINX_MODULE=$STACK_BUILD/nginx/module/ngx_http_stampd_module.so stampctl nginx --config "$STACK/etc/stampd.conf" "$@" >"$STACK/log/nginx.configure.log" 2>&1 ||
        stack_why "$STACK/log/nginx.configure.log" "nginx's configuration could not be written"
}

# stack_ports_are_free: one clear line about a port that somebody else has.
stack_ports_are_free() {
    process_session_is_empty "$STACK/run/nginx.pid" nginx || return 0
    port_must_be_free STAMPD_PORT "$STACK_PORT"
    port_must_be_free STAMPD_PROBE_PORT "$STACK_PROBE_PORT"
    [ "${STACK_LOCAL_PORT:-0}" = 0 ] || port_must_be_free STAMPD_LOCAL_PORT "$STACK_LOCAL_PORT"
}

port_must_be_free() {
    ! port_is_taken "$2" || fail "port $2 of 127.0.0.1 is taken; choose another with $1=..."
}

nginx_start() {
    local file=$STACK/run/nginx.pid log=$STACK/log/nginx.log
    if process_runs "$file"; then return 0; fi
    process_stop "$file" nginx || fail "processes of a former nginx do not end: $(process_session "$file" nginx)"
    stack_ports_are_free
    : >>"$log"
    process_start "$file" "$log" "$STACK/run/nginx" "$ME" "$NGINX_BIN" -e "$log" -c "$STACK/etc/nginx.conf" -g 'daemon off;' || true
    wait_until 120 nginx_is_decided || true
    nginx_listens || stack_why "$log" "nginx does not start"
}

# nginx_refresh: writes its configuration again, and tells it when there is something new.
nginx_refresh() {
    local before
    before=$(cat "$STACK/etc/nginx.conf")
    stampctl_admin ns map >>"$STACK/log/namespaces.log" 2>&1 ||
        stack_why "$STACK/log/namespaces.log" "nginx's map of namespaces could not be written"
    nginx_configure
    [ "$before" = "$(cat "$STACK/etc/nginx.conf")" ] || kill -HUP "$(process_pid "$STACK/run/nginx.pid")"
}

# nginx takes its port before it handles signals: the SIGHUP of a reload that came between would end it.
nginx_handles_reload() { grep -q '^SigCgt:.*[13579bdf]$' "/proc/$(process_pid "$STACK/run/nginx.pid")/status" 2>/dev/null; }
nginx_listens() { port_is_taken "$STACK_PORT" && process_runs "$STACK/run/nginx.pid" && nginx_handles_reload; }
nginx_is_decided() { nginx_listens || ! process_runs "$STACK/run/nginx.pid"; }
nginx_stop() { process_stop "$STACK/run/nginx.pid" nginx QUIT:5 TERM:5; }

# --- stamp-queue, and stamp-journal, where a stack has it ---

# listener_start NAME PROGRAM SOCKET WORDS...: a program that listens on this socket of the folder of stampd.
listener_start() {
    local name=$1 program=$2 socket=$STACK/run/stampd/$3 file=$STACK/run/$1.pid log=$STACK/log/$1.log
    shift 3
    if process_runs "$file"; then return 0; fi
    process_stop "$file" "$program" || fail "a former $program does not end: $(process_session "$file" "$program")"
    rm -f "$socket"
    : >>"$log"
    stack_note_program "$program"
    process_start "$file" "$log" / "$ME" "$STACK_BUILD/src/$program" --config "$STACK/etc/stampd.conf" "$@" || true
    wait_until 120 listener_is_decided "$name" "$socket" || true
    listener_listens "$name" "$socket" || stack_why "$log" "$program does not start"
}

listener_listens() { [ -S "$2" ] && process_runs "$STACK/run/$1.pid"; }
listener_is_decided() { listener_listens "$@" || ! process_runs "$STACK/run/$1.pid"; }

queue_start() { listener_start queue stamp-queue qm.sock; }

# journal_start KEY_FILE NAMESPACE: its key, which is made when missing, may write all records of the namespace.
journal_start() {
    local key_hash
    stampd_hash "$1"
    (umask 077 && echo "$2 write $key_hash" >"$STACK/etc/journal.keys")
    listener_start journal stamp-journal journal.sock --keys "$STACK/etc/journal.keys"
}

journal_stop() {
    process_stop "$STACK/run/journal.pid" stamp-journal TERM:20 KILL:5 || return 1
    rm -f "$STACK/run/stampd/journal.sock"
}

# queue_stop [now|kill]: now does not wait for the tasks under way.
queue_stop() {
    case ${1:-} in
        now) process_stop "$STACK/run/queue.pid" stamp-queue QUIT:10 ;;
        kill) process_stop "$STACK/run/queue.pid" stamp-queue KILL:10 ;;
        *) process_stop "$STACK/run/queue.pid" stamp-queue TERM:20 QUIT:5 ;;
    esac || return 1
    [ "${1:-}" = kill ] || rm -f "$STACK/run/stampd/qm.sock"
}

# --- stampctl schema watch, where a stack has it ---

schema_start() {
    local file=$STACK/run/schema.pid log=$STACK/log/schema.log
    if process_runs "$file"; then return 0; fi
    process_stop "$file" stampctl || fail "a former stampctl schema watch does not end: $(process_session "$file" stampctl)"
    : >>"$log"
    process_start "$file" "$log" / "$ME" "$STACK_BUILD/src/stampctl" schema watch --config "$STACK/etc/stampd.conf" \
        --admin-conninfo "host=$STACK/run/postgres user=postgres" || stack_why "$log" "stampctl schema watch does not start"
}

schema_stop() { process_stop "$STACK/run/schema.pid" stampctl TERM:10; }

# --- all of it ---

# stack_start KEY_FILE [CODE=ACCESS...]: starts what does not run yet; the namespaces are made when missing.
stack_start() {
    local key=$1 namespace cluster=
    shift
    if [ -n "${STACK_SEED:-}" ] && [ ! -e "$STACK/pg" ]; then
        cluster=bare
        if stack_has_usual "$@"; then cluster=usual; fi
    fi
    postgres_create "${cluster:+$STACK_SEED/$cluster}"
    postgres_start
    if [ -n "$cluster" ]; then postgres_renew "$@"; fi
    stampd_configure "$key" # stampctl reads it too
    if [ "$cluster" != usual ]; then
        for namespace in "$@"; do
            namespace_create "${namespace%=*}" "${namespace#*=}"
        done
    fi
    stack_serve
}

# stack_instance KEY_FILE [CODE=ACCESS...]: stampd and nginx only; beside another stack the namespaces are those of its database.
# Those that are named are made when missing, in a database that no stack has.
stack_instance() {
    local namespace
    stampd_configure "$1"
    for namespace in "${@:2}"; do namespace_create "${namespace%=*}" "${namespace#*=}"; done
    stack_serve
}

stack_serve() {
    stampd_start
    # Written each time: which workers a namespace prefers follows from the settings.
    stampctl_admin ns map >>"$STACK/log/namespaces.log" 2>&1 ||
        stack_why "$STACK/log/namespaces.log" "nginx's map of namespaces could not be written"
    nginx_configure
    nginx_start
}

# stack_stop [HOW]: nothing of it is left running, PostgreSQL stopped as HOW says; false, with a line, when something does not end.
stack_stop() {
    local stop left=0
    for stop in schema_stop journal_stop queue_stop nginx_stop stampd_stop "postgres_stop ${1:-fast}"; do
        $stop || { echo "$SCRIPT_NAME: ${stop%%_*} does not end" >&2; left=1; }
    done
    return "$left"
}

stack_runs() {
    postgres_adopt
    process_runs "$STACK/run/postgres.pid" && process_runs "$STACK/run/stampd.pid" && process_runs "$STACK/run/nginx.pid"
}
