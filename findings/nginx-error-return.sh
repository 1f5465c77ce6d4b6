#!/bin/sh
# Guess:  "if ($wrong) { return 415; }" in a server of nginx, with an error_page for 415, answers 415 and that page.
# Seen:   500. The page is reached by an internal redirect, before which the rewrite rules of the server run again: they
#         return 415 again, and so on until nginx ends the cycle. In a location it works as guessed.
# With:   nginx 1.22.1 (Debian 12), recursive_error_pages on.
# Source: ngx_http_internal_redirect in src/http/ngx_http_core_module.c begins again at the phase server_rewrite.
# So:     in a server, rewrite to the location of the page, which returns the status with a text.
set -eu
folder=$(mktemp -d)
pid=
trap 'kill "$pid" 2>/dev/null || true; wait; rm -rf "$folder"' EXIT
chmod 755 "$folder"
cd "$folder"
apt-get download nginx >apt.log 2>&1 || { cat apt.log; exit 1; }
dpkg -x nginx_*.deb root
root/usr/sbin/nginx -v 2>&1 | grep -q "nginx/1.22.1$" || { echo "another version"; exit 1; }
cat >nginx.conf <<END
daemon off;
master_process off;
pid $folder/pid;
events { }
http {
    access_log off;
    client_body_temp_path $folder/t; proxy_temp_path $folder/t; fastcgi_temp_path $folder/t; uwsgi_temp_path $folder/t; scgi_temp_path $folder/t;
    recursive_error_pages on;
    error_page 415 /page;
    server {
        listen unix:$folder/one;
        if (\$http_content_encoding) { return 415; }
        location = /page { internal; return 415 "the page\n"; }
    }
    server {
        listen unix:$folder/two;
        location / { if (\$http_content_encoding) { return 415; } }
        location = /page { internal; return 415 "the page\n"; }
    }
    server {
        listen unix:$folder/three;
        if (\$http_content_encoding) { rewrite ^ /page last; }
        location = /page { internal; return 415 "the page\n"; }
    }
}
END
root/usr/sbin/nginx -e "$folder/error.log" -p "$folder" -c "$folder/nginx.conf" &
pid=$!
ask() { curl -s --retry 20 --retry-delay 1 --retry-connrefused -o body -w '%{http_code}' -H 'Content-Encoding: gzip' --unix-socket "$1" http://localhost/; }
while ! [ -S three ]; do sleep 0.1; done
{
    echo "return in the server:    $(ask one)"
    echo "return in a location:    $(ask two)"
    echo "rewrite in the server:   $(ask three)"
    grep -o "rewrite or internal redirection cycle" error.log | sort -u
} | tee seen
cat >expected <<'END'
return in the server:    500
return in a location:    415
rewrite in the server:   415
rewrite or internal redirection cycle
END
cmp seen expected
