#!/bin/sh
# Guess:  an archive that bsdtar compresses with zstd can be verified later, like one from the program zstd, or from bsdtar with gzip or xz.
# Seen:   its frames have no checksum: the program zstd adds one unless told not to, libarchive adds none. So "zstd -t" of such
#         an archive only shows that it can be decoded.
# With:   libarchive-tools 3.6.2 and zstd 1.5.4 (Debian 12).
# Source: archive_compressor_zstd_open in libarchive/archive_write_add_filter_zstd.c never sets ZSTD_c_checksumFlag.
# So:     pipe a plain archive through zstd, or keep a digest of the file.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download libarchive-tools=3.6.2-1+deb12u5 libarchive13=3.6.2-1+deb12u5 zstd=1.5.4+dfsg2-5 >apt.log 2>&1 || { cat apt.log; exit 1; }
for package in *.deb; do dpkg -x "$package" root; done
LD_LIBRARY_PATH=$(dirname "$(find "$folder/root" -name libarchive.so.13)")
export LD_LIBRARY_PATH
seq 1000 >numbers
root/usr/bin/bsdtar --zstd -cf by-bsdtar.tar.zst numbers
root/usr/bin/bsdtar -cf - numbers | root/usr/bin/zstd -q -o by-zstd.tar.zst
for file in by-bsdtar by-zstd; do
    echo "$file: $(root/usr/bin/zstd -lv $file.tar.zst 2>/dev/null | sed -n 's/^Check: *//p' | cut -d ' ' -f 1)"
done | tee seen
cat >expected <<'END'
by-bsdtar: None
by-zstd: XXH64
END
cmp seen expected
