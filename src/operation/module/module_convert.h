/* module_convert: the types of stampd.h as ours, and back. */
#ifndef STAMPD_OPERATION_MODULE_MODULE_CONVERT_H
#define STAMPD_OPERATION_MODULE_MODULE_CONVERT_H

#include "edge/json.h"
#include "stampd.h"

/* JSON values are nodes of edge/json. */
static inline const struct json *json_of(const struct stampd_json *value)
{
    return (const struct json *)(const void *)value;
}
static inline const struct stampd_json *value_of(const struct json *json)
{
    return (const struct stampd_json *)(const void *)json;
}
static inline struct bytes bytes_from(struct stampd_bytes bytes)
{
    return (struct bytes){bytes.data, bytes.size};
}
static inline struct stampd_bytes bytes_to(struct bytes bytes)
{
    return (struct stampd_bytes){bytes.data, bytes.size};
}

#endif
