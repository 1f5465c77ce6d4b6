#!/bin/sh
# Guess:  If-None-Match may come on two lines: it is a list, and HTTP lets each list be parted so.
# Seen:   nginx answers 400 Bad Request, before any location is chosen. The same two tags on one line give 304.
# With:   nginx 1.22.1 (Debian 12).
# Source: ngx_http_headers_in in src/http/ngx_http_request.c: the header is read by ngx_http_process_unique_header_line.
# So:     a proxy or client that collects tags joins them by commas.
set -eu
folder=$(mktemp -d)
pid=
trap 'kill "$pid" 2>/dev/null || true; wait; rm -rf "$folder"' EXIT
chmod 755 "$folder"
cd "$folder"
apt-get download nginx >apt.log 2>&1 || { cat apt.log; exit 1; }
dpkg -x nginx_*.deb root
root/usr/sbin/nginx -v 2>&1 | grep -q "nginx/1.22.1$" || { echo "another version"; exit 1; }
mkdir files
echo text >files/one
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
        root $folder/files;
    }
}
END
root/usr/sbin/nginx -e "$folder/error.log" -p "$folder" -c "$folder/nginx.conf" & pid=$!
while ! [ -S socket ]; do sleep 0.1; done
ask() { curl -s -o body -w '%{http_code}\n' --unix-socket socket "$@" http://localhost/one; }
tag=$(curl -s -I --unix-socket socket http://localhost/one | sed -n 's/^ETag: //p' | tr -d '\r')
{
    echo "one line:  $(ask -H "If-None-Match: \"other\", $tag")"
    echo "two lines: $(ask -H 'If-None-Match: "other"' -H "If-None-Match: $tag")"
} | tee seen
cat >expected <<'END'
one line:  304
two lines: 400
END
cmp seen expected
