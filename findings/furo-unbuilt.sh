#!/bin/sh
# Guess:  pages that Debian's Furo makes have its button for light and dark, and look the same from a file as from a server.
# Seen:   its script is the source before the bundler: pages load it as a classic script, where its first line, an import, is a
#         syntax error, so that nothing of it runs. Its style sheet imports another by a path of the host's root, which is there
#         under a web server that serves /javascript/ only.
# With:   furo 2022.12.07+dfsg-1 (Debian 12).
# Source: theme/furo/static/scripts/furo.js and styles/furo.css of the package; setup in furo/__init__.py names the script.
# So:     leave the script out and take one of your own; take the import out of the style sheet.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download furo=2022.12.07+dfsg-1 >apt.log 2>&1 || { cat apt.log; exit 1; }
dpkg -x furo_*.deb root
furo=root/usr/lib/python3/dist-packages/furo
{
    node -e 'try { new (require("vm").Script)(require("fs").readFileSync(process.argv[1], "utf8")); console.log("runs") } catch (error) { console.log(String(error)) }' \
        $furo/theme/furo/static/scripts/furo.js
    grep -c 'type="module"\|"type": "module"' $furo/__init__.py || true
    grep -o '^@import .*' $furo/theme/furo/static/styles/furo.css
} | tee seen
cat >expected <<'END'
SyntaxError: Cannot use import statement outside a module
0
@import url(/javascript/normalize.css/normalize.css);
END
cmp seen expected
