/* content_format: the formats that are checked: date-time, date, time, email, uri, uuid, ipv4, ipv6. */
#ifndef STAMPD_MODEL_CONTENT_CONTENT_FORMAT_H
#define STAMPD_MODEL_CONTENT_CONTENT_FORMAT_H

#include "base/bytes.h"

#define CONTENT_FORMATS "date-time date time email uri uuid ipv4 ipv6"

typedef bool content_format(struct bytes text);

/* NULL: there is no such format. */
content_format *content_format_find(struct bytes name);

#endif
