"""doc/how-to/operating.md typed line by line in a root of its own: an overlay over this one, with processes, network, /run and /tmp of its own.
The programs are installed from the build, and units are read and their ExecStart run by a few lines in place of systemctl."""
import os
import re
import subprocess

import pytest

from stack import BUILD, SOURCE

pytestmark = pytest.mark.plain  # it types a page: nothing new with another build

PAGE = (SOURCE / 'doc/how-to/operating.md').read_text()
INSTALL = PAGE[PAGE.index('## Install from the sources'):PAGE.index('## Namespaces\n')]
BLOCKS = re.findall(r'^```sh\n(.*?)^```$', INSTALL, re.M | re.S)
BUILT = re.compile(r'^(apt install .*(\n +.*)?|autoreconf .*|mkdir -p build.*|\.\./configure .*)\n', re.M)

SYSTEMCTL = r'''#!/bin/bash
# What the page asks of systemctl, without systemd.
start() {
    unit=/usr/local/lib/systemd/system/$1.service
    get() { sed -n "s/^$1=//p" "$unit"; }
    mkdir -p /run/stampd && chown stampd: /run/stampd
    setpriv --reuid "$(get User)" --regid "$(get Group)" --groups "$(getent group "$(get SupplementaryGroups)" | cut -d: -f3)" -- \
        $(get ExecStart) </dev/null >>"/var/log/$1.log" 2>&1 &
    for i in $(seq 1000); do
        [ ! -S "/run/stampd/$2" ] || return 0
        sleep 0.1
    done
    echo "$1 does not listen" >&2
    exit 1
}
case "$*" in
    daemon-reload) ;;
    'enable --now stampd stamp-queue') start stampd worker-0.sock; start stamp-queue qm.sock ;;
    'restart nginx') nginx ;;
    'reload nginx') [ ! -s /run/nginx.pid ] || nginx -s reload ;;
    *) echo "systemctl $*: not known here" >&2; exit 1 ;;
esac
'''

ROOT = r'''
set -e
mount -t tmpfs none "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
cd "$1/root"
mount -t proc proc proc
mount --rbind /dev dev
mount -t tmpfs none run
cp "$2" typed.sh
ip link set lo up
exec chroot . /bin/bash -e /typed.sh
'''

BEFORE = r'''
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
rm -rf /etc/stampd /usr/local/share/stampd /usr/local/sbin/stamp* /usr/local/bin/stampctl
make -s -C "$BUILD" install sysconfdir=/etc >/dev/null 2>&1
sed -i 's,/usr/local/etc,/etc,' /usr/local/lib/systemd/system/*.service
install -m 755 /dev/stdin /usr/local/bin/systemctl <<'SYSTEMCTL_END'
%s
SYSTEMCTL_END
# Debian's PostgreSQL and the certificate are there before.
mkdir -p /run/postgresql /srv/pg && chown postgres: /run/postgresql /srv/pg
runuser -u postgres -- /usr/lib/postgresql/15/bin/initdb -D /srv/pg >/dev/null
runuser -u postgres -- /usr/lib/postgresql/15/bin/pg_ctl -D /srv/pg -o '-k /run/postgresql -c listen_addresses=' -w start >/dev/null
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=www.example.org -addext subjectAltName=DNS:www.example.org \
    -keyout /etc/ssl/private/example.key -out /etc/ssl/example.pem 2>/dev/null
cat /etc/ssl/example.pem >>/etc/ssl/certs/ca-certificates.crt
echo '127.0.0.1 www.example.org' >>/etc/hosts
cd /
echo TYPED
''' % SYSTEMCTL

AFTER = r'''
echo AFTER
curl -sS -g -6 -k 'https://[::1]/demo/ping'; echo
for i in $(seq 500); do
    curl -sS http://127.0.0.1:8081/metrics | grep '^stampd_tasks_look_age_seconds{ns="demo"}' && break
    sleep 0.2
done
key=$(cat ~/stampd.key)
task=$(curl -sS https://www.example.org/demo/op/task -H "Authorization: Bearer $key" -H 'Content-Type: application/json' \
    -d '{"param":{"op":"put","param":{"docs":[{"c":"Note","id":"by-task","items":[{"c":"Title","j":"made by a task"}]}]}}}')
echo "$task"
for i in $(seq 500); do
    curl -sS https://www.example.org/demo/doc/Note/by-task | grep 'made by a task' && break
    sleep 0.2
done
curl -sS -o /dev/null -w '%{http_code} %{redirect_url}\n' http://www.example.org/demo/ping
echo LOG
for i in $(seq 500); do # nginx writes its lines together, once a second
    grep '"POST /demo/od" 200' /var/log/nginx/access.log && grep '"GET /demo/ping" 301' /var/log/nginx/access.log && break
    sleep 0.2
done > /dev/null
cat /var/log/nginx/access.log
'''


def may_mount():
    return os.geteuid() == 0 and subprocess.run(['unshare', '--mount', '--pid', '--net', '--fork', 'true'], capture_output=True).returncode == 0


@pytest.mark.skipif(not may_mount(), reason='only root with its own mounts makes a root of its own')
def test_the_page_typed_line_by_line(tmp_path):
    typed = BUILT.sub('', ''.join(BLOCKS))
    assert 'make install' not in typed and 'adduser' in typed and 'systemctl enable --now stampd stamp-queue' in typed
    script = tmp_path / 'typed.sh'
    script.write_text(BEFORE.replace('$BUILD', str(BUILD)) + typed + AFTER)
    room = tmp_path / 'room'
    room.mkdir()
    done = subprocess.run(['unshare', '--mount', '--pid', '--net', '--fork', '--kill-child', '--propagation', 'private', 'bash', '-c', ROOT,
                           'bare', room, script], capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-4000:]
    checks, after = done.stdout.split('AFTER\n')
    assert 'FAIL' not in checks, checks
    assert re.search(r'^OK +queue manager ', checks, re.M) and 'does not listen on IPv6' not in checks
    assert re.search(r'^WARN +mail_to is empty', checks, re.M) and 'in memory' not in checks
    assert '"db":"ok"' in checks.splitlines()[-1] and '"db":"ok"' in after.splitlines()[0]
    assert 'stampd_tasks_look_age_seconds{ns="demo"}' in after
    assert 'made by a task' in after.split('stampd_tasks_look_age_seconds')[1].split('"out"', 1)[1], 'the task has run to its end'
    assert '301 https://www.example.org/demo/ping' in after
    log = after.split('LOG\n')[1]
    assert '"GET /demo/ping" 200' in log and '"POST /demo/od" 200' in log
