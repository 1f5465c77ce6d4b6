# build.sh: out-of-tree builds.

SOURCE=$(cd "${BASH_SOURCE[0]%/*}/../.." && pwd)

# build_configure FOLDER OPTIONS...: makes configure when it is missing, and runs it in FOLDER when the options are new.
build_configure() {
    local folder=$1 wanted
    shift
    [ ! -e "$SOURCE/config.status" ] ||
        fail "the source folder itself is configured; run \"make distclean\" in $SOURCE first"
    case $SOURCE$folder in
        *[!A-Za-z0-9_./+-]*) fail "make cannot build in a folder with such a name: $SOURCE" ;;
    esac
    mkdir -p "$folder" "$SOURCE/build-aux" || fail "the program cannot be built: $folder cannot be written"
    if [ ! -x "$SOURCE/configure" ] || [ "$SOURCE/configure.ac" -nt "$SOURCE/configure" ]; then
        (cd "$SOURCE" && autoreconf -fi) >"$folder/autoreconf.log" 2>&1 ||
            fail "autoreconf failed: $(tail -n 1 "$folder/autoreconf.log") (all of it: $folder/autoreconf.log)"
    fi
    wanted="$SOURCE/configure $*"
    if [ "$(cat "$folder/configured" 2>/dev/null)" != "$wanted" ] || [ ! -e "$folder/Makefile" ]; then
        (cd "$folder" && "$SOURCE/configure" -q "$@") >"$folder/configure.log" 2>&1 ||
            fail "configure failed: $(grep -h error: "$folder/configure.log" | tail -n 1) (all of it: $folder/configure.log)"
        echo "$wanted" >"$folder/configured"
    fi
}

# build_make FOLDER TARGETS...
build_make() {
    local folder=$1
    shift
    make -C "$folder" -j"$(nproc)" "$@" >"$folder/make.log" 2>&1 ||
        fail "the build failed: $(grep -hE 'error:|\*\*\*|No space left' "$folder/make.log" | head -n 1) (all of it: $folder/make.log)"
}
