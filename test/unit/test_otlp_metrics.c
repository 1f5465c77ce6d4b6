/* otlp_metrics: a page of metrics in the format of Prometheus becomes metrics of OTLP, with the same names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "serve/metrics/otlp_metrics.h"

#define TIMES "\"startTimeUnixNano\":\"1000000000\",\"timeUnixNano\":\"2000000000\""

static void assert_becomes(const char *page, const char *wanted)
{
    struct builder out = {0};
    otlp_metrics_add(bytes_of(page), 1000, 2000, &out);
    builder_add(&out, "", 1);
    assert_string_equal(out.data, wanted);
    builder_free(&out);
}

static void kinds_and_labels(void **state UNUSED)
{
    assert_becomes(
        "# HELP a_total What \"a\" counts.\n# TYPE a_total counter\na_total 7\n"
        "# HELP b Of a namespace.\n# TYPE b gauge\nb{ns=\"x y\",state=\"due\"} -2\nb{ns=\"\"} 0.250\n",
        "{\"name\":\"a_total\",\"description\":\"What \\\"a\\\" "
        "counts.\",\"sum\":{\"aggregationTemporality\":2,"
        "\"isMonotonic\":true,\"dataPoints\":[{\"attributes\":[]," TIMES ",\"asInt\":\"7\"}]}},"
        "{\"name\":\"b\",\"description\":\"Of a namespace.\",\"gauge\":{\"dataPoints\":[{\"attributes\":["
        "{\"key\":\"ns\",\"value\":{\"stringValue\":\"x "
        "y\"}},{\"key\":\"state\",\"value\":{\"stringValue\":\"due\"}}]," TIMES
        ",\"asInt\":\"-2\"},{\"attributes\":[]," TIMES ",\"asDouble\":0.250}]}}");
}

static void a_histogram_has_counts_between_its_bounds(void **state UNUSED)
{
    assert_becomes(
        "# HELP h H.\n# TYPE h histogram\nh_bucket{le=\"0.5\"} 1\nh_bucket{le=\"1\"} "
        "4\nh_bucket{le=\"+Inf\"} 9\n"
        "h_sum 12.500000\nh_count 9\n",
        "{\"name\":\"h\",\"description\":\"H.\",\"histogram\":{\"aggregationTemporality\":2,\"dataPoints\":["
        "{\"attributes\":[]," TIMES ",\"count\":\"9\",\"sum\":12.500000,\"bucketCounts\":[\"1\",\"3\",\"5\"],"
        "\"explicitBounds\":[0.5,1]}]}}");
}

static void what_has_no_value_is_left_out(void **state UNUSED)
{
    assert_becomes("", "");
    assert_becomes(
        "# HELP a A.\n# TYPE a gauge\n# HELP b B.\n# TYPE b gauge\nb 1\n# HELP c C.\n# TYPE c counter\n",
        "{\"name\":\"b\",\"description\":\"B.\",\"gauge\":{\"dataPoints\":[{\"attributes\":[]," TIMES
        ",\"asInt\":\"1\"}]}}");
    assert_becomes("# HELP h H.\n# TYPE h histogram\nh_count 9\n", "");
}

static void lines_that_are_cut_do_no_harm(void **state UNUSED)
{
    static const char page[] =
        "# HELP a A.\n# TYPE a gauge\na{ns=\"x\",queue=\"1\"} 12\n# HELP h H.\n# TYPE h histogram\n"
        "h_bucket{le=\"0.5\"} 1\nh_bucket{le=\"+Inf\"} 2\nh_sum 1.5\nh_count 2\n";
    for (size_t size = 0; size < sizeof page; size++) {
        struct builder out = {0};
        char *cut = strndup(page, size);
        otlp_metrics_add(bytes_of(cut), 1000, 2000, &out);
        builder_free(&out);
        free(cut);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_and_labels),
        cmocka_unit_test(a_histogram_has_counts_between_its_bounds),
        cmocka_unit_test(what_has_no_value_is_left_out),
        cmocka_unit_test(lines_that_are_cut_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
