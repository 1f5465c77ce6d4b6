/* object_signature: AWS Signature Version 4 (service s3) in the header Authorization, of a request whose body
 * is known.  libcurl's own (CURLOPT_AWS_SIGV4) signs queries wrongly before release 8.  Pure. */
#ifndef STAMPD_BLOB_OBJECT_SIGNATURE_H
#define STAMPD_BLOB_OBJECT_SIGNATURE_H

#include "base/builder.h"
#include "edge/crypto/crypto.h"

struct object_signature {
    const char *method;
    const char *host;  /* as the header Host has it */
    const char *path;  /* encoded, as it is sent */
    const char *query; /* encoded, its members in the order of their names, each with its =; "": none */
    char body_sha256[CRYPTO_SHA256_HEX + 1];
    const char *region, *key_id, *secret_key;
    int64_t time_s; /* since 1970 */
};

enum { OBJECT_SIGNATURE_DATE = 16 }; /* 20261123T031500Z */
/* The value of x-amz-date. */
void object_signature_date(int64_t time_s, char date_r[OBJECT_SIGNATURE_DATE + 1]);
/* Appends the value of Authorization.  The headers Host, x-amz-content-sha256 and x-amz-date are signed. */
void object_signature_add(struct builder *builder, const struct object_signature *signature);

#endif
