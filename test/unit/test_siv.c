/* test_siv: the same bytes as AES-256-SIV of OpenSSL, and that nothing else opens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "seal/siv_private.h"

enum { TEXT_MOST = 100, AAD_MOST = 50, SEALED_MOST = SIV_TAG + TEXT_MOST };

static void fill(unsigned char *bytes, size_t size, unsigned seed)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(seed = seed * 1103515245 + 12345, seed >> 16);
}

static struct bytes bytes_at(const void *data, size_t size)
{
    return (struct bytes){data, size};
}

static void encrypt_by_openssl(const unsigned char *key, struct bytes aad, struct bytes text,
                               unsigned char *sealed_r)
{
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, "AES-256-SIV", NULL);
    int done = 0, rest = 0;
    assert_int_equal(EVP_EncryptInit_ex2(context, cipher, key, NULL, NULL), 1);
    assert_int_equal(EVP_EncryptUpdate(context, NULL, &done, (const unsigned char *)aad.data, (int)aad.size),
                     1);
    assert_int_equal(EVP_EncryptUpdate(context, sealed_r + SIV_TAG, &done, (const unsigned char *)text.data,
                                       (int)text.size),
                     1);
    assert_int_equal(done, text.size);
    assert_int_equal(EVP_EncryptFinal_ex(context, sealed_r + SIV_TAG + done, &rest), 1);
    assert_int_equal(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, SIV_TAG, sealed_r), 1);
    EVP_CIPHER_free(cipher);
    EVP_CIPHER_CTX_free(context);
}

static void the_bytes_are_those_of_openssl(void **state UNUSED)
{
    unsigned char key[SIV_KEY], aad[AAD_MOST], text[TEXT_MOST], sealed[SEALED_MOST], other[SEALED_MOST];
    unsigned char opened[TEXT_MOST];
    struct siv siv = {0};
    for (size_t size = 1; size <= TEXT_MOST; size++) {
        fill(key, sizeof key, (unsigned)size);
        fill(text, sizeof text, (unsigned)size + 1);
        fill(aad, sizeof aad, (unsigned)size + 2);
        siv_set_key(&siv, key);
        for (size_t aad_size = 1; aad_size <= AAD_MOST; aad_size++) {
            const struct bytes place = bytes_at(aad, aad_size);
            siv_encrypt(&siv, place, bytes_at(text, size), sealed);
            encrypt_by_openssl(key, place, bytes_at(text, size), other);
            assert_memory_equal(sealed, other, SIV_TAG + size);
            assert_true(siv_decrypt(&siv, place, bytes_at(sealed, SIV_TAG + size), opened));
            assert_memory_equal(opened, text, size);
        }
    }
    siv_forget(&siv);
}

/* The carry of the counter goes over bytes: tags are random, so among these texts there are some with a
 * carry; one of 300 blocks has it for certain. */
static void a_long_text_counts_on(void **state UNUSED)
{
    enum { LONG = 300 * SIV_BLOCK + 5 };
    static unsigned char text[LONG], sealed[SIV_TAG + LONG], other[SIV_TAG + LONG];
    unsigned char key[SIV_KEY];
    struct siv siv = {0};
    fill(key, sizeof key, 7);
    fill(text, sizeof text, 8);
    siv_set_key(&siv, key);
    siv_encrypt(&siv, BYTES("place"), bytes_at(text, LONG), sealed);
    encrypt_by_openssl(key, BYTES("place"), bytes_at(text, LONG), other);
    assert_memory_equal(sealed, other, sizeof sealed);
    siv_forget(&siv);
}

static void nothing_else_opens(void **state UNUSED)
{
    static const unsigned char zeros[TEXT_MOST];
    unsigned char key[SIV_KEY], sealed[SEALED_MOST], opened[TEXT_MOST];
    struct siv siv = {0};
    fill(key, sizeof key, 9);
    siv_set_key(&siv, key);
    const struct bytes texts[] = {BYTES(""), BYTES("a name"), BYTES("a name of more than a block")};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        const size_t size = SIV_TAG + texts[i].size;
        siv_encrypt(&siv, BYTES("place"), texts[i], sealed);
        assert_true(siv_decrypt(&siv, BYTES("place"), bytes_at(sealed, size), opened));
        assert_memory_equal(opened, texts[i].data, texts[i].size);
        assert_false(siv_decrypt(&siv, BYTES("placf"), bytes_at(sealed, size), opened));
        assert_memory_equal(opened, zeros, texts[i].size);
        assert_false(siv_decrypt(&siv, BYTES(""), bytes_at(sealed, size), opened));
        assert_false(siv_decrypt(&siv, BYTES("place"), bytes_at(sealed, size - 1), opened));
        for (size_t at = 0; at < size; at++) {
            sealed[at] ^= 1;
            assert_false(siv_decrypt(&siv, BYTES("place"), bytes_at(sealed, size), opened));
            sealed[at] ^= 1;
        }
    }
    assert_false(siv_decrypt(&siv, BYTES("place"), bytes_at(sealed, SIV_TAG - 1), opened));
    for (size_t half = 0; half < 2; half++) {
        siv_encrypt(&siv, BYTES("place"), texts[1], sealed);
        key[half * (SIV_KEY / 2)] ^= 1;
        siv_set_key(&siv, key);
        assert_false(siv_decrypt(&siv, BYTES("place"), bytes_at(sealed, SIV_TAG + texts[1].size), opened));
    }
    siv_forget(&siv);
    assert_null(siv.mac.context);
    assert_memory_equal(siv.start, zeros, sizeof siv.start);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bytes_are_those_of_openssl),
        cmocka_unit_test(a_long_text_counts_on),
        cmocka_unit_test(nothing_else_opens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
