# packages.sh: what must be installed.  The lists are beside this file: packages.build, packages.run,
# packages.demo (for the demonstration as well), packages.test (to test as well), packages.bench (to measure as well), packages.web (to build
# pages); one Debian package a line.

PACKAGE_LISTS=${BASH_SOURCE[0]%/*}
SUDO=(sudo -n)
if [ -t 0 ]; then SUDO=(sudo); fi # it asks for the password at the terminal, wherever our streams lead

# packages_missing LIST...: names on these lists that are not installed.
packages_missing() {
    local list names
    names=$(for list in "$@"; do sed -e 's/#.*//' -e 's/[[:space:]]//g' -e '/^$/d' "$PACKAGE_LISTS/packages.$list"; done)
    [ -n "$names" ] || return 0
    # shellcheck disable=SC2086
    grep -vxF -f <(dpkg-query -W -f '${Package} ${db:Status-Status}\n' $names 2>/dev/null | sed -n 's/ installed$//p') <<<"$names" || true
}

# as_admin COMMAND...: as root, through sudo for others.
as_admin() {
    if [ "$IS_ROOT" = yes ]; then
        "$@"
    elif ! command -v sudo >/dev/null; then
        fail "this must be run as root or by a user with sudo: $*"
    else
        "${SUDO[@]}" "$@"
    fi
}

# apt WORDS...: apt-get that asks nothing; what it says goes to PACKAGE_LOG.
apt_get() {
    as_admin env DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l APT_LISTCHANGES_FRONTEND=none \
        apt-get -q -y -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 "$@" </dev/null >>"$PACKAGE_LOG" 2>&1
}

# While another program has the lists locked, apt-get does not wait by itself.
packages_update() {
    local end=$((EPOCHSECONDS + 300))
    until apt_get update; do
        tail -n 5 "$PACKAGE_LOG" | grep -q 'Could not get lock' && [ "$EPOCHSECONDS" -lt "$end" ] ||
            fail "apt-get update failed: $(package_problem) (all of it: $PACKAGE_LOG)"
        sleep 2
    done
}

# packages_lock: one of these scripts at a time: they write and remove the same two files.  Ends with the shell, or packages_unlock.
PACKAGES_LOCK=${PACKAGES_LOCK:-/var/lock/stampd-packages}
packages_lock() {
    [ -e "$PACKAGES_LOCK" ] || : >>"$PACKAGES_LOCK" 2>/dev/null || true
    exec 7<"$PACKAGES_LOCK" || fail "$PACKAGES_LOCK cannot be read"
    flock -n 7 || { say "Waiting for another installation of packages"; flock 7; }
}
packages_unlock() { exec 7<&-; }

package_problem() {
    local line
    line=$(grep -E '^(E|Err|W|sudo|dpkg)[: ]' "$PACKAGE_LOG" | tail -n 1) || true
    [ -n "$line" ] || line=$(tail -n 1 "$PACKAGE_LOG")
    echo "${line:-no word of explanation}"
}

# While packages are installed their own services must not start, and PostgreSQL's must make no cluster: both are
# said in files that are removed again.
SERVICES_POLICY=/usr/sbin/policy-rc.d
CLUSTER_FOLDER=/etc/postgresql-common/createcluster.d
CLUSTER_POLICY=$CLUSTER_FOLDER/stampd.conf

services_forbid() {
    if [ ! -e "$SERVICES_POLICY" ]; then
        policy_written=yes
        printf '#!/bin/sh\nexit 101\n' | as_admin tee "$SERVICES_POLICY" >/dev/null
        as_admin chmod 755 "$SERVICES_POLICY"
    fi
    as_admin mkdir -p "$CLUSTER_FOLDER"
    echo 'create_main_cluster = false' | as_admin tee "$CLUSTER_POLICY" >/dev/null
}

services_allow() {
    if [ "${policy_written:-no}" = yes ]; then as_admin rm -f "$SERVICES_POLICY"; fi
    as_admin rm -f "$CLUSTER_POLICY"
    as_admin rmdir --ignore-fail-on-non-empty "$CLUSTER_FOLDER" 2>/dev/null || true # somebody else may have been quicker
    policy_written=no
}

# packages_install LIST...: installs what is missing of these lists and nothing else.
packages_install() {
    local missing
    missing=$(packages_missing "$@")
    [ -n "$missing" ] || return 0
    packages_lock
    missing=$(packages_missing "$@") # the other may have installed them
    if [ -z "$missing" ]; then
        packages_unlock
        return 0
    fi
    say "Installing Debian packages: $(echo $missing)"
    packages_update
    trap services_allow EXIT
    services_forbid
    apt_get install --no-install-recommends -o DPkg::Options::=--force-unsafe-io $missing ||
        fail "the packages could not be installed: $(package_problem) (all of it: $PACKAGE_LOG)"
    as_admin sync -f /usr /var # once for all files: dpkg waits for the disk after each of some thousands, which takes as long as the rest
    services_allow
    trap - EXIT
    services_disable $missing
    packages_unlock
}

# services_disable PACKAGES...: those just installed do not start with the machine either.
services_disable() {
    local package
    command -v systemctl >/dev/null || return 0
    for package in "$@"; do
        case $package in
            nginx) as_admin systemctl disable nginx.service ;;
            redis-server) as_admin systemctl disable redis-server.service ;;
            postgresql-[0-9]*) as_admin systemctl disable postgresql.service ;;
        esac
    done >>"$PACKAGE_LOG" 2>&1 || true
}
