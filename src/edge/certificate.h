/* certificate: what a certificate of a server says of its time. */
#ifndef STAMPD_EDGE_CERTIFICATE_H
#define STAMPD_EDGE_CERTIFICATE_H

#include "base/bytes.h"

/* Days until the first certificate of a PEM text ends, below 0 when it has; false: there is none. */
MUST_USE bool certificate_days_left(struct bytes pem, int *days_r);

#endif
