/* test_object_signature: the examples that Amazon publishes for Signature Version 4 of S3. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "blob/object_signature.h"

enum { MAY_24_2013 = 1369353600 };

static void assert_signature(const char *query, const char *expected)
{
    struct object_signature signature = {
        .method = "GET",
        .host = "examplebucket.s3.amazonaws.com",
        .path = "/",
        .query = query,
        .region = "us-east-1",
        .key_id = "AKIAIOSFODNN7EXAMPLE",
        .secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        .time_s = MAY_24_2013,
    };
    struct builder text = {0};
    crypto_sha256_hex(BYTES(""), signature.body_sha256);
    object_signature_add(&text, &signature);
    builder_add(&text, "", 1);
    assert_string_equal(strrchr(text.data, '=') + 1, expected);
    assert_non_null(strstr(text.data, "Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"));
    builder_free(&text);
}

static void published_examples(void **state UNUSED)
{
    assert_signature("lifecycle=", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    assert_signature("max-keys=2&prefix=J",
                     "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

static void dates(void **state UNUSED)
{
    char date[OBJECT_SIGNATURE_DATE + 1];
    object_signature_date(MAY_24_2013, date);
    assert_string_equal(date, "20130524T000000Z");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(published_examples), cmocka_unit_test(dates)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
