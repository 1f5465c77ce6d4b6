/* module_convert: the types of stampd.h as ours, and back. */
#ifndef STAMPD_OPERATION_MODULE_MODULE_CONVERT_H
#define STAMPD_OPERATION_MODULE_MODULE_CONVERT_H

#include "base/arena.h"
#include "edge/json/json.h"
#include "model/document/item.h"
#include "stampd.h"

/* JSON values are nodes of edge/json/json. */
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
/* Class and key are copied into the arena, the content is not. */
static inline struct stampd_item item_to(struct arena *arena, const struct item *item)
{
    return (struct stampd_item){
        .item_class = arena_copy(arena, item->iclass.data, item->iclass.size),
        .key = arena_copy(arena, item->key.data, item->key.size),
        .version = item->version,
        .vop = item->vop,
        .content = bytes_to(item->content),
        .is_raw = item->raw,
    };
}

#endif
