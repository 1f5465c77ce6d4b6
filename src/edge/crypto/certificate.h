/* certificate: the expiry of a server's certificate. */
#ifndef STAMPD_EDGE_CRYPTO_CERTIFICATE_H
#define STAMPD_EDGE_CRYPTO_CERTIFICATE_H

#include "base/bytes.h"

/* Days until the first certificate of a PEM text expires, below 0 when it has expired; false: there is no
 * certificate. */
MUST_USE bool certificate_days_left(struct bytes pem, int *days_r);

#endif
