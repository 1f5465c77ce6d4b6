/* gcm: the additional data, the text, the tag. */
#include "edge/crypto/gcm_private.h"

#include <limits.h>
#include <string.h>

void gcm_encrypt(EVP_CIPHER_CTX *context, const EVP_CIPHER *cipher, const unsigned char *key,
                 const unsigned char nonce[GCM_NONCE], struct bytes aad, struct bytes text,
                 unsigned char *sealed_r)
{
    int size = 0, rest = 0;
    assert(text.size <= INT_MAX - GCM_TAG && aad.size <= INT_MAX);
    crypto_must(
        context && EVP_EncryptInit_ex2(context, cipher, key, nonce, NULL) == 1 &&
        (!aad.size ||
         EVP_EncryptUpdate(context, NULL, &size, (const unsigned char *)aad.data, (int)aad.size) == 1) &&
        EVP_EncryptUpdate(context, sealed_r, &size, (const unsigned char *)text.data, (int)text.size) == 1 &&
        EVP_EncryptFinal_ex(context, sealed_r + size, &rest) == 1 && (size_t)(size + rest) == text.size &&
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, GCM_TAG, sealed_r + text.size) == 1);
}

bool gcm_decrypt(EVP_CIPHER_CTX *context, const EVP_CIPHER *cipher, const unsigned char *key,
                 const unsigned char nonce[GCM_NONCE], struct bytes aad, struct bytes sealed,
                 unsigned char *text_r)
{
    unsigned char tag[GCM_TAG];
    int size = 0, rest = 0;
    if (sealed.size < GCM_TAG || sealed.size > INT_MAX || aad.size > INT_MAX)
        return false;
    size_t text_size = sealed.size - GCM_TAG;
    memcpy(tag, sealed.data + text_size, sizeof tag);
    crypto_must(
        context && EVP_DecryptInit_ex2(context, cipher, key, nonce, NULL) == 1 &&
        (!aad.size ||
         EVP_DecryptUpdate(context, NULL, &size, (const unsigned char *)aad.data, (int)aad.size) == 1) &&
        EVP_DecryptUpdate(context, text_r, &size, (const unsigned char *)sealed.data, (int)text_size) == 1 &&
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, GCM_TAG, tag) == 1);
    return EVP_DecryptFinal_ex(context, text_r + size, &rest) == 1;
}
