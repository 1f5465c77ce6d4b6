/* certificate: OpenSSL's X.509 functions. */
#include "edge/crypto/certificate.h"

#include "edge/crypto/crypto_private.h"

bool certificate_days_left(struct bytes pem, int *days_r)
{
    BIO *memory = BIO_new_mem_buf(pem.data, (int)pem.size);
    X509 *certificate = memory ? PEM_read_bio_X509(memory, NULL, NULL, NULL) : NULL;
    int seconds;
    bool is_read = certificate && ASN1_TIME_diff(days_r, &seconds, NULL, X509_get0_notAfter(certificate));
    if (is_read && seconds < 0 && *days_r == 0)
        *days_r = -1;
    X509_free(certificate);
    BIO_free(memory);
    return is_read;
}
