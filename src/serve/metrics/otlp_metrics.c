/* otlp_metrics: line by line; the values of a metric follow its line of the type. */
#include "serve/metrics/otlp_metrics.h"

#include <stdio.h>
#include <string.h>

#include "serve/collector.h"

enum {
    CUMULATIVE = 2, /* aggregation temporality, by OTLP */
    BUCKETS_MOST = 64,
    TIMES_BYTES = 128,
};

/* A line of a value: name{label="value",…} number. */
struct sample {
    struct bytes name, labels, number;
};

struct translation {
    struct builder *out;
    char times[TIMES_BYTES];
    size_t begin;                  /* where the list begins in `out` */
    struct bytes name, help, type; /* of the present metric */
    bool is_open;                  /* its head has been written */
    size_t bounds;                 /* of the present point of a histogram */
    struct otlp_bucket {
        struct bytes bound, count;
    } buckets[BUCKETS_MOST];
    struct bytes sum;
};

/* --- lines --- */

static bool cut_prefix(struct bytes *line, const char *prefix)
{
    if (!bytes_has_prefix(*line, bytes_of(prefix)))
        return false;
    line->data += strlen(prefix);
    line->size -= strlen(prefix);
    return true;
}

static bool read_sample(struct bytes line, struct sample *sample_r)
{
    const char *blank = line.size ? memrchr(line.data, ' ', line.size) : NULL;
    if (!blank)
        return false;
    size_t size = (size_t)(blank - line.data);
    const char *brace = memchr(line.data, '{', size);
    *sample_r =
        (struct sample){.name = {line.data, brace ? (size_t)(brace - line.data) : size},
                        .labels = brace ? (struct bytes){brace + 1, (size_t)(blank - brace - 1)} : NO_BYTES,
                        .number = {blank + 1, line.size - size - 1}};
    return true;
}

/* The next label; the labels end with "}". */
static bool cut_label(struct bytes *labels, struct bytes *key_r, struct bytes *value_r)
{
    const char *equals = labels->size ? memchr(labels->data, '=', labels->size) : NULL;
    if (!equals)
        return false;
    *key_r = (struct bytes){labels->data, (size_t)(equals - labels->data)};
    struct bytes rest = {equals + 1, labels->size - key_r->size - 1};
    if (!cut_prefix(&rest, "\""))
        return false;
    const char *end = rest.size ? memchr(rest.data, '"', rest.size) : NULL;
    if (!end)
        return false;
    *value_r = (struct bytes){rest.data, (size_t)(end - rest.data)};
    *labels = (struct bytes){end + 1, rest.size - value_r->size - 1};
    (void)cut_prefix(labels, ",");
    return true;
}

/* --- points --- */

static bool is_kind(const struct translation *translation, const char *type)
{
    return bytes_are(translation->type, type);
}

/* The head of the metric, before its first point. */
static void open_metric(struct translation *translation)
{
    struct builder *out = translation->out;
    builder_printf(out, "%s{\"name\":", out->size == translation->begin ? "" : ",");
    collector_add_text(out, translation->name);
    builder_add_text(out, ",\"description\":");
    collector_add_text(out, translation->help);
    if (is_kind(translation, "counter"))
        builder_printf(out, ",\"sum\":{\"aggregationTemporality\":%d,\"isMonotonic\":true", CUMULATIVE);
    else if (is_kind(translation, "histogram"))
        builder_printf(out, ",\"histogram\":{\"aggregationTemporality\":%d", CUMULATIVE);
    else
        builder_add_text(out, ",\"gauge\":{");
    builder_printf(out, "%s\"dataPoints\":[", is_kind(translation, "gauge") ? "" : ",");
    translation->is_open = true;
}

static void close_metric(struct translation *translation)
{
    if (translation->is_open)
        builder_add_text(translation->out, "]}}");
    translation->is_open = false;
    translation->bounds = 0;
}

/* What each point begins with. */
static void begin_point(struct translation *translation, struct bytes labels)
{
    struct bytes key, value;
    if (translation->is_open)
        builder_add_text(translation->out, ",");
    else
        open_metric(translation);
    builder_add_text(translation->out, "{\"attributes\":[");
    while (cut_label(&labels, &key, &value))
        collector_add_word(translation->out, key, value);
    builder_printf(translation->out, "],%s", translation->times);
}

static void add_number(struct translation *translation, const struct sample *sample)
{
    bool is_whole = !memchr(sample->number.data, '.', sample->number.size);
    begin_point(translation, sample->labels);
    if (is_whole) /* as a text: numbers of JSON are not exact */
        builder_printf(translation->out, ",\"asInt\":\"%.*s\"}", (int)sample->number.size,
                       sample->number.data);
    else
        builder_printf(translation->out, ",\"asDouble\":%.*s}", (int)sample->number.size,
                       sample->number.data);
}

/* --- histograms: lines of buckets, of the sum, and of the count, which ends a point --- */

static void keep_bucket(struct translation *translation, const struct sample *sample)
{
    struct bytes labels = sample->labels, key, value;
    while (cut_label(&labels, &key, &value))
        if (bytes_are(key, "le") && translation->bounds < BUCKETS_MOST)
            translation->buckets[translation->bounds++] = (struct otlp_bucket){value, sample->number};
}

/* Those of the page count all below their bound. */
static void add_counts(struct translation *translation)
{
    int64_t former = 0, count;
    builder_add_text(translation->out, ",\"bucketCounts\":[");
    for (size_t i = 0; i < translation->bounds; i++) {
        if (!bytes_to_i64(translation->buckets[i].count, &count))
            count = former;
        builder_printf(translation->out, "%s\"%lld\"", i ? "," : "", (long long)(count - former));
        former = count;
    }
    builder_add_text(translation->out, "]");
}

static void add_histogram(struct translation *translation, const struct sample *sample)
{
    struct builder *out = translation->out;
    struct bytes sum = translation->sum;
    begin_point(translation, sample->labels);
    builder_printf(out, ",\"count\":\"%.*s\",\"sum\":%.*s", (int)sample->number.size, sample->number.data,
                   (int)sum.size, sum.data);
    add_counts(translation);
    builder_add_text(out, ",\"explicitBounds\":[");
    for (size_t i = 0; i + 1 < translation->bounds; i++) /* the last one is infinite, and not named */
        builder_printf(out, "%s%.*s", i ? "," : "", (int)translation->buckets[i].bound.size,
                       translation->buckets[i].bound.data);
    builder_add_text(out, "]}");
    translation->bounds = 0;
}

static void otlp_metrics_add_part(struct translation *translation, const struct sample *sample)
{
    struct bytes part = {sample->name.data + translation->name.size,
                         sample->name.size - translation->name.size};
    if (bytes_are(part, "_bucket"))
        keep_bucket(translation, sample);
    else if (bytes_are(part, "_sum"))
        translation->sum = sample->number;
    else if (bytes_are(part, "_count") && translation->bounds && translation->sum.size)
        add_histogram(translation, sample);
}

/* --- a page --- */

static void translate_line(struct translation *translation, struct bytes line)
{
    struct sample sample;
    if (cut_prefix(&line, "# HELP ")) {
        close_metric(translation);
        translation->name = bytes_cut(&line, ' ');
        translation->help = line;
        translation->sum = NO_BYTES;
    } else if (cut_prefix(&line, "# TYPE ")) {
        (void)bytes_cut(&line, ' ');
        translation->type = line;
    } else if (read_sample(line, &sample) && bytes_has_prefix(sample.name, translation->name)) {
        if (is_kind(translation, "histogram"))
            otlp_metrics_add_part(translation, &sample);
        else
            add_number(translation, &sample);
    }
}

void otlp_metrics_add(struct bytes page, int64_t begin_ms, int64_t now_ms, struct builder *out)
{
    struct translation translation = {.out = out, .begin = out->size};
    snprintf(translation.times, sizeof translation.times,
             "\"startTimeUnixNano\":\"%lld000000\",\"timeUnixNano\":\"%lld000000\"", (long long)begin_ms,
             (long long)now_ms);
    while (page.size)
        translate_line(&translation, bytes_cut(&page, '\n'));
    close_metric(&translation);
}
