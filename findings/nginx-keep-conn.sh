#!/bin/sh
# Guess:  when a FastCGI process dies in the middle of an answer, nginx ends the client's connection as broken.
# Seen:   with fastcgi_keep_conn off, the default, nginx takes the end of the connection for the end of the answer,
#         although the record that ends it never came: the client gets a whole 200 with half of the text.
#         With fastcgi_keep_conn on the same answer is broken off, as it should be.
# With:   nginx 1.22.1 (Debian 12), HTTP/1.1, an answer without Content-Length.
# Source: ngx_http_fastcgi_input_filter in src/http/modules/ngx_http_fastcgi_module.c.
# So:     set fastcgi_keep_conn on, also where connections are not kept.
set -eu
folder=$(mktemp -d)
pid= dying=
trap 'kill "$pid" "$dying" 2>/dev/null || true; wait; rm -rf "$folder"' EXIT
chmod 755 "$folder"
cd "$folder"
apt-get download nginx >apt.log 2>&1 || { cat apt.log; exit 1; }
dpkg -x nginx_*.deb root
root/usr/sbin/nginx -v 2>&1 | grep -q "nginx/1.22.1$" || { echo "another version"; exit 1; }
cat >dying.py <<'END'
import socket, struct
listener = socket.socket(socket.AF_UNIX)
listener.bind('process')
listener.listen()
while True:
    peer = listener.accept()[0]
    while True:  # records, until the empty one of the type STDIN
        kind, size, padding = struct.unpack('!xBxxHBx', peer.recv(8, socket.MSG_WAITALL))
        peer.recv(size + padding, socket.MSG_WAITALL)
        if kind == 5 and not size:
            break
    text = b'Content-Type: text/plain\r\n\r\nhalf of the text'
    peer.sendall(struct.pack('!BBHHBx', 1, 6, 1, len(text), 0) + text)
    peer.close()
END
cat >nginx.conf <<END
daemon off;
master_process off;
pid $folder/pid;
events { }
http {
    access_log off;
    client_body_temp_path $folder/t; proxy_temp_path $folder/t; fastcgi_temp_path $folder/t; uwsgi_temp_path $folder/t; scgi_temp_path $folder/t;
    server {
        listen unix:$folder/socket;
        location /off { fastcgi_pass unix:$folder/process; }
        location /on { fastcgi_keep_conn on; fastcgi_pass unix:$folder/process; }
    }
}
END
python3 dying.py & dying=$!
root/usr/sbin/nginx -e "$folder/error.log" -p "$folder" -c "$folder/nginx.conf" & pid=$!
while ! [ -S socket ] || ! [ -S process ]; do sleep 0.1; done
for place in off on; do
    status=0
    curl -s -o body -w "keep_conn $place: %{http_code}" --unix-socket socket "http://localhost/$place" || status=$?
    [ "$status" = 0 ] && echo ', whole for curl' || echo ', broken for curl'
done | tee seen
cat >expected <<'END'
keep_conn off: 200, whole for curl
keep_conn on: 200, broken for curl
END
cmp seen expected
