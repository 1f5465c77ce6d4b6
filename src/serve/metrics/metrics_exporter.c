/* metrics_exporter: a page of metrics, translated and sent. */
#include "serve/metrics/metrics_exporter.h"

#include <poll.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "base/stop.h"
#include "model/document/stamp.h"
#include "serve/collector.h"
#include "serve/metrics/otlp_metrics.h"
#include "serve/metrics/probe.h"
#include "serve/metrics/task_metrics.h"

enum { KEEP_BYTES = 64 * 1024 }; /* of the buffers between two messages */

struct metrics_exporter {
    struct worker_context context;
    struct collector *collector;
    struct builder page, message;
};

static void send_metrics(struct metrics_exporter *exporter)
{
    struct builder *out = &exporter->message;
    int64_t now_ms = stamp_to_epoch_ms(stamp_now());
    int64_t begin_ms = now_ms - (clock_monotonic_ms() - task_metrics_started_ms());
    probe_write_metrics(&exporter->context, &exporter->page);
    builder_add_text(out, "{\"resourceMetrics\":[{");
    collector_add_resource(exporter->collector, out);
    builder_add_text(out, ",\"scopeMetrics\":[{\"scope\":{\"name\":\"stampd\"},\"metrics\":[");
    otlp_metrics_add(builder_bytes(&exporter->page), begin_ms, now_ms, out);
    builder_add_text(out, "]}]}]}");
    (void)collector_send(exporter->collector, builder_bytes(out));
    builder_clear(&exporter->page, KEEP_BYTES);
    builder_clear(out, KEEP_BYTES);
}

/* Until the time, or a signal. */
static void rest_until(const struct metrics_exporter *exporter, int64_t due_ms)
{
    struct pollfd stop = {.fd = collector_stop_descriptor(exporter->collector), .events = POLLIN};
    for (int64_t left_ms; stop_requested() == STOP_NOT && (left_ms = due_ms - clock_monotonic_ms()) > 0;)
        (void)poll(&stop, 1, (int)left_ms);
}

int metrics_exporter_run(const struct heritage *heritage)
{
    const struct settings *settings = heritage->settings;
    struct metrics_exporter exporter = {
        .context = {.settings = settings, .segment = heritage->segment, .instance = heritage->instance},
        .collector = collector_open(settings, settings->metrics_url, "metrics"),
    };
    (void)prctl(PR_SET_NAME, "stampd-metrics"); /* for administrators */
    while (stop_requested() == STOP_NOT) {
        rest_until(&exporter, clock_monotonic_ms() + settings->metrics_interval_s * 1000);
        send_metrics(&exporter);
        log_flush(clock_monotonic_ms());
    }
    collector_close(exporter.collector);
    builder_free(&exporter.page);
    builder_free(&exporter.message);
    return 0;
}
