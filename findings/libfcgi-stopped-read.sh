#!/bin/sh
# Guess:  a FastCGI program that is paused (SIGSTOP, a debugger, a stop by its terminal) and goes on reads the rest of the body.
# Seen:   if its connection has a receive timeout, however long, the body ends where it was: FCGX_GetStr returns fewer bytes
#         than were asked for, as at the end of a body, although the other half arrives at once. Only FCGX_GetError tells the
#         two apart: it has EINTR. Without the timeout the same program reads everything. No signal handler is installed.
# With:   libfcgi 2.4.2 (Debian 12), Linux 6.
# Source: FillBuffProc in fcgiapp.c takes each failed read for the end of the stream; signal(7), "Interruption of system calls
#         and library functions by stop signals": sockets with SO_RCVTIMEO fail with EINTR after SIGCONT.
# So:     ask FCGX_GetError after a short read, and answer what makes the client send again; the stream cannot be resumed.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download libfcgi0ldbl=2.4.2-2+deb12u1 libfcgi-dev=2.4.2-2+deb12u1 >apt.log 2>&1 || { cat apt.log; exit 1; }
for package in *.deb; do dpkg -x "$package" root; done
cat >program.c <<'C'
#include <errno.h>
#include <fcgiapp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>

int main(int count, char **words)
{
    FCGX_Request request;
    char body[8];
    struct timeval timeout = {count > 1 ? atoi(words[1]) : 0, 0}; /* 0: none */
    FCGX_Init();
    FCGX_InitRequest(&request, FCGX_OpenSocket("socket", 1), 0);
    puts("listens");
    fflush(stdout);
    if (FCGX_Accept_r(&request))
        return 1;
    setsockopt(request.ipcFd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    puts("reads");
    fflush(stdout);
    int got = FCGX_GetStr(body, sizeof body, request.in);
    int error = FCGX_GetError(request.in);
    printf("%d of 8 bytes, %s\n", got, error == EINTR ? "EINTR" : error ? "another error" : "no error");
}
C
libraries=$(dirname "$(find root -name 'libfcgi.so.0')")
gcc -I root/usr/include program.c -L "$libraries" -l:libfcgi.so.0 -o program
cat >client.py <<'PY'
import os, signal, socket, struct, subprocess, sys, time

def record(kind, content):
    return struct.pack('!BBHHBx', 1, kind, 1, len(content), 0) + content

def state(pid):
    return open(f'/proc/{pid}/stat').read().rsplit(')', 1)[1].split()[0]

def wait_for(pid, wanted):
    while state(pid) != wanted:
        time.sleep(0.01)

with subprocess.Popen(['./program', sys.argv[1]], stdout=subprocess.PIPE, text=True) as program:
    program.stdout.readline()
    with socket.socket(socket.AF_UNIX) as wire:
        wire.connect('socket')
        length = b'\x0e\x01CONTENT_LENGTH8'
        wire.sendall(record(1, struct.pack('!HB5x', 1, 0)) + record(4, length) + record(4, b'') + record(5, b'half'))
        program.stdout.readline()
        time.sleep(0.2)  # it has read the first half
        wait_for(program.pid, 'S')
        os.kill(program.pid, signal.SIGSTOP)
        wait_for(program.pid, 'T')
        os.kill(program.pid, signal.SIGCONT)
        wire.sendall(record(5, b'rest') + record(5, b''))
        print(f'timeout {sys.argv[1]} s:', program.stdout.readline().strip(), flush=True)
os.unlink('socket')
PY
for timeout in 0 3600; do
    LD_LIBRARY_PATH=$libraries python3 client.py $timeout
done | tee seen
cat >expected <<'END2'
timeout 0 s: 8 of 8 bytes, no error
timeout 3600 s: 4 of 8 bytes, EINTR
END2
cmp seen expected
