#!/bin/sh
# Guess:  a context of AES-256-SIV that keeps its key encrypts the next text after EVP_EncryptInit_ex2 without a key, as one of
#         AES-256-GCM does.
# Seen:   EVP_EncryptInit_ex2 returns 1, and EVP_EncryptUpdate of the next text returns 0. Only setting the key again, or a copy of a
#         context that has not encrypted yet, gives the next text; both cost a multiple of a short text.
# With:   OpenSSL 3.0.22 (Debian 12).
# Source: siv_init in providers/implementations/ciphers/cipher_aes_siv.c begins anew only where a key is given; crypto_ok in
#         crypto/modes/siv128.c counts down to 0 with the first text.
# So:     check what EVP_EncryptUpdate returns: a program that does not would store the bytes of the text before. For many short texts
#         copy a context that has its key and nothing else.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download libssl3=3.0.22-1~deb12u2 libssl-dev=3.0.22-1~deb12u2 >apt.log 2>&1 || { cat apt.log; exit 1; }
for package in *.deb; do dpkg -x "$package" root; done
cat >again.c <<'END'
#include <openssl/evp.h>
#include <stdio.h>

static void encrypt_twice(const char *name, int has_nonce)
{
    static const unsigned char key[64] = {1}, nonce[12] = {2}, text[] = "a short text";
    unsigned char out[sizeof text];
    int size;
    EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, name, NULL);
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    for (int i = 0; i < 2; i++) {
        int begun = EVP_EncryptInit_ex2(context, i ? NULL : cipher, i ? NULL : key, has_nonce ? nonce : NULL, NULL);
        int done = EVP_EncryptUpdate(context, out, &size, text, sizeof text);
        printf("%s, text %d: init %d, update %d\n", name, i + 1, begun, done);
        EVP_EncryptFinal_ex(context, out, &size);
    }
}

int main(void)
{
    encrypt_twice("AES-256-GCM", 1);
    encrypt_twice("AES-256-SIV", 0);
    return 0;
}
END
libraries=$(dirname "$(find root -name libcrypto.so.3)")
gcc -o again again.c -I root/usr/include -I "root/usr/include/$(gcc -dumpmachine)" -I root/usr/include/x86_64-linux-gnu -L "$libraries" -lcrypto
LD_LIBRARY_PATH=$libraries OPENSSL_CONF=/dev/null ./again | tee seen
cat >expected <<'END'
AES-256-GCM, text 1: init 1, update 1
AES-256-GCM, text 2: init 1, update 1
AES-256-SIV, text 1: init 1, update 1
AES-256-SIV, text 2: init 1, update 0
END
cmp seen expected
