/* rules_reader: what the readers of rules share: values with their paths, and the first problem. */
#ifndef STAMPD_MODEL_RULES_RULES_READER_H
#define STAMPD_MODEL_RULES_RULES_READER_H

#include "model/rules/rules_private.h"

struct rules_reader {
    struct arena *arena;
    struct rules_problem *problem;
    const struct json *root; /* NULL: not read yet */
    size_t condition_nodes;  /* of the condition that is read */
};

/* A value and its path. */
struct rules_node {
    const char *path;
    const struct json *value;
};

/* Records the problem and returns false. */
bool rules_reader_refuse(struct rules_reader *reader, struct rules_node node, const char *expected);
/* Refuses a name that is none of `known`, with the nearest of them. */
bool rules_reader_refuse_name(struct rules_reader *reader, struct rules_node node, const char *known,
                              const char *kind, struct bytes name);
struct rules_node rules_reader_member(struct rules_reader *reader, struct rules_node object,
                                      const struct json *member);
struct rules_node rules_reader_element(struct rules_reader *reader, struct rules_node array, size_t number,
                                       const struct json *element);

/* Each refuses what is not as wanted. */
bool rules_reader_is_object(struct rules_reader *reader, struct rules_node node, size_t most,
                            const char *expected);
/* An object with only these members. */
bool rules_reader_is_object_of(struct rules_reader *reader, struct rules_node node, const char *known,
                               const char *expected);
bool rules_reader_is_item_class(struct rules_reader *reader, struct rules_node node, struct bytes name);
/* "Item.member". */
bool rules_reader_read_place(struct rules_reader *reader, struct rules_node node,
                             struct rules_place *place_r);

/* Names of members and roles: letters, digits and these signs. */
bool rules_reader_is_name(struct bytes name, size_t most, const char *signs);

/* --- rules read condition: reads conditions of grants --- */
/* False: refused. */
bool rules_read_condition(struct rules_reader *reader, struct rules_node node,
                          const struct rules_condition **condition_r);

#endif
