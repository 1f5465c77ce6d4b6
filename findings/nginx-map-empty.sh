#!/bin/sh
# Guess:  in a map of nginx the regular expression ^$, or one with everything optional, matches an absent header.
# Seen:   no regular expression is tried on an empty value, not even ^.*$: the value is that of "" or of default.
# With:   nginx 1.22.1 (Debian 12).
# Source: ngx_http_map_find in src/http/ngx_http_variables.c: "if (len && map->nregex)".
# So:     name the empty value: "" value;
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
    map \$http_x_word \$kind {
        "~^.*\$" "matched";
        default "not matched";
    }
    server {
        listen unix:$folder/socket;
        location / { return 200 "\$kind\n"; }
    }
}
END
root/usr/sbin/nginx -e "$folder/error.log" -p "$folder" -c "$folder/nginx.conf" &
pid=$!
ask() { curl -s --retry 20 --retry-delay 1 --retry-all-errors --unix-socket socket "$@" http://localhost/; }
{
    printf 'X-Word: a   '; ask -H 'X-Word: a'
    printf 'X-Word:     '; ask -H 'X-Word;'
    printf 'none        '; ask
} | tee seen
cat >expected <<'END'
X-Word: a   matched
X-Word:     not matched
none        not matched
END
cmp seen expected
