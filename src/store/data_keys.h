/* data_keys: the keys of an encrypted namespace, and what is sealed by them: contents and keys of items,
 * arguments of tasks, kept answers (doc/explanation/encryption.md).  For workers and stampctl alike. */
#ifndef STAMPD_STORE_DATA_KEYS_H
#define STAMPD_STORE_DATA_KEYS_H

#include "edge/pg/pg.h"
#include "seal/sealed_file.h"
#include "seal/sealing.h"
#include "model/document/item.h"

struct data_keys {
    struct sealing_keys *keys; /* the first seals the keys of items, the last what is written now */
    size_t count;              /* 0: the namespace is not encrypted */
    char *id_classes;          /* whose ids are encrypted, separated by blanks; NULL or "": none */
};

/* Reads the keys of a database. */
const struct pg_statement *data_keys_statement(void);
/* What it has found, in place of the former keys; these stay when it is false: no site key of ours unwraps
 * them, and it was logged. */
MUST_USE bool data_keys_take(struct data_keys *keys, const struct pg_result *rows, const char **problem_r);
/* The same where ids are encrypted; elsewhere it takes none. */
MUST_USE bool data_keys_take_of_ids(struct data_keys *keys, const struct pg_result *rows,
                                    const char **problem_r);
void data_keys_free(struct data_keys *keys);
bool data_keys_has(const struct data_keys *keys, int64_t id);

/* Of an item of the document: its content and key as they are stored.  The item itself stays. */
struct item_place {
    struct bytes class, id, iclass, key;
    bool is_raw;
    struct bytes shown; /* of what is sealed: stands behind it in clear (shown.h); empty: nothing */
};
struct bytes data_keys_seal_key(const struct data_keys *keys, struct arena *arena,
                                const struct item_place *place);
struct bytes data_keys_seal_content(const struct data_keys *keys, struct arena *arena,
                                    const struct item_place *place, struct bytes content);
/* Opens both: `place` has the stored key and gets the real one.  False: altered, or of another place. */
MUST_USE bool data_keys_open_item(const struct data_keys *keys, struct arena *arena, struct item_place *place,
                                  struct bytes *content);

/* Those of files; borrows them. */
struct sealed_file_keys data_keys_of_files(const struct data_keys *keys);
/* The media type of an attachment, as it is shown; `place` has its key. */
struct bytes data_keys_seal_mime(const struct data_keys *keys, struct arena *arena,
                                 const struct item_place *place, struct bytes mime);
MUST_USE bool data_keys_open_mime(const struct data_keys *keys, struct arena *arena,
                                  const struct item_place *place, struct bytes *mime);

/* The hash under which the database compares a value of documents of a class (shown_hash). */
struct bytes data_keys_hash(const struct data_keys *keys, struct arena *arena, struct bytes class,
                            struct bytes field, struct bytes value);

/* The digest of a text of a kind that the database stores and compares, 64 hexadecimal digits, in the arena:
 * under the first key, or under `secret` where the namespace is not encrypted. */
struct bytes data_keys_digest(const struct data_keys *keys, struct arena *arena, struct bytes secret,
                              struct bytes kind, struct bytes text);

/* A text that the database compares with another of the same place: the same text is sealed as the same.  One
 * without data stays so. */
struct bytes data_keys_seal_name(const struct data_keys *keys, struct arena *arena,
                                 struct sealing_place place, struct bytes name);
MUST_USE bool data_keys_open_name(const struct data_keys *keys, struct arena *arena,
                                  struct sealing_place place, struct bytes *name);

/* Ids of documents as they are stored.  Of a class whose ids are encrypted: under the first key, the same id
 * as the same text; of others, and an empty one: as they are.  False: no server has stored it so. */
bool data_keys_has_ids(const struct data_keys *keys); /* of any class */
bool data_keys_encrypts_ids(const struct data_keys *keys, struct bytes class);
struct bytes data_keys_seal_id(const struct data_keys *keys, struct arena *arena, struct bytes class,
                               struct bytes id);
MUST_USE bool data_keys_open_id(const struct data_keys *keys, struct arena *arena, struct bytes class,
                                struct bytes *id);

/* Another text; the first part of its place is its kind.  One without data stays so, an empty one is sealed.
 */
struct bytes data_keys_seal_text(const struct data_keys *keys, struct arena *arena,
                                 struct sealing_place place, struct bytes text);
MUST_USE bool data_keys_open_text(const struct data_keys *keys, struct arena *arena,
                                  struct sealing_place place, struct bytes *text);

#endif
