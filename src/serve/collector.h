/* collector: a collector of OpenTelemetry, which takes spans and metrics by OTLP over HTTP with JSON
 * (opentelemetry.io, OTLP specification: JSON Protobuf encoding).
 *
 * A message that it does not accept is dropped, and so is everything of the next seconds: nothing is kept for
 * a collector that is away.  A message takes a few seconds at most, and one second when the process is about
 * to end. */
#ifndef STAMPD_SERVE_COLLECTOR_H
#define STAMPD_SERVE_COLLECTOR_H

#include "base/builder.h"
#include "base/settings.h"

struct collector;

/* For one process: opens its descriptor of signals, too.  `what` it gets, for the log: "spans". */
struct collector *collector_open(const struct settings *settings, const char *url, const char *what);
void collector_close(struct collector *collector);
/* Readable when a signal is pending. */
int collector_stop_descriptor(const struct collector *collector);

/* Begins a message: the resource, which names this server. */
void collector_add_resource(const struct collector *collector, struct builder *out);
/* An attribute of a list that has begun with "["; an empty word is left out. */
void collector_add_word(struct builder *out, struct bytes key, struct bytes word);
void collector_add_number(struct builder *out, struct bytes key, int64_t number);
/* A JSON string; a text that is not UTF-8, as it may have been cut within a character, becomes "?". */
void collector_add_text(struct builder *out, struct bytes text);

/* False: it was not accepted, or not even sent, since the collector is left alone for some seconds. */
bool collector_send(struct collector *collector, struct bytes message);

#endif
