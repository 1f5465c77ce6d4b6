#!/bin/sh
# Guess:  a job that a worker gives back to the queue is behind those that wait there already.
# Seen:   it is before all that came later with the same priority. A job that fails each time, and is released each time, is
#         the only one that is ever reserved.
# With:   beanstalkd 1.12 (Debian 12).
# Source: job_pri_less in job.c: equal priorities are ordered by id, and a released job keeps its own.
# So:     release with a delay and another priority, or bury what has failed a few times.
set -eu
folder=$(mktemp -d)
pid=
trap 'kill "$pid" 2>/dev/null || true; wait; rm -rf "$folder"' EXIT
cd "$folder"
apt-get download beanstalkd=1.12-2+b1 >apt.log 2>&1 || { cat apt.log; exit 1; }
dpkg -x beanstalkd_*.deb root
root/usr/bin/beanstalkd -l "unix:$folder/socket" & pid=$!
while ! [ -S socket ]; do sleep 0.1; done
cat >ask.py <<'END'
import socket
peer = socket.socket(socket.AF_UNIX)
peer.connect('socket')
lines = peer.makefile('rb')

def ask(text):
    peer.sendall(text)
    return lines.readline().split()

for name in b'fails', b'second', b'third':
    ask(b'put 100 0 60 %d\r\n%s\r\n' % (len(name), name))
for _ in range(3):
    _, number, size = ask(b'reserve\r\n')
    print('reserved:', lines.read(int(size) + 2).decode().strip())
    ask(b'release %s 100 0\r\n' % number)
END
python3 ask.py | tee seen
cat >expected <<'END'
reserved: fails
reserved: fails
reserved: fails
END
cmp seen expected
