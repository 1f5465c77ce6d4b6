/* blob_store_private: what the files of this folder about the store share: names, folders, sweeps. */
#ifndef STAMPD_BLOB_BLOB_STORE_PRIVATE_H
#define STAMPD_BLOB_BLOB_STORE_PRIVATE_H

#include "blob/blob_store.h"

enum { BLOB_PATH = 4096, BLOB_NAME = 32 /* digits of a name that cannot be guessed */ };

struct blob_store {
    char *directory;
    int64_t group;
};

/* Logs the cause, which errno has, and returns the fault. */
enum fault blob_store_report(const char *what, const char *path);

/* The folder of a database, or `inside` it. */
enum fault blob_store_name_folder(const struct blob_store *store, struct bytes database, const char *inside,
                                  char path_r[BLOB_PATH]);
void blob_store_make_name(char name_r[BLOB_NAME + 1]);
enum fault blob_store_make_way(const struct blob_store *store, const char *path);

/* Called for an entry of a folder. */
typedef enum fault blob_store_visitor(int folder, const char *name, void *context);
enum fault blob_store_walk(const char *path, blob_store_visitor *found, void *context);

/* A sweep over a folder of a database, such as "new": `clear`, whose context is a blob_clearing, removes
 * what is old enough, and counts it. */
struct blob_clearing {
    int64_t age_s, removed;
};
enum fault blob_store_clear_folder(const struct blob_store *store, struct bytes database, const char *inside,
                                   int64_t age_s, blob_store_visitor *clear, int64_t *removed_r);

/* As blob_store_finish, but the sealed file takes the place of the one that is there. */
MUST_USE enum fault blob_store_replace(struct blob_upload *upload);

struct stat;
int64_t blob_store_age(const struct stat *status);

bool blob_store_is_staying(const struct stat *status);
enum fault blob_store_name_file(const struct blob_store *store, struct bytes database,
                                const struct blob_digest *digest, char path_r[BLOB_PATH]);

/* An upload into an open file that has `size` bytes, which it takes over; with keys in frames of the upload
 * `part` (sealed_frames.h). */
struct blob_upload *blob_store_continue(struct blob_store *store, struct bytes database, const char *path,
                                        int fd, int64_t size, struct bytes part,
                                        const struct sealed_file_keys *keys) __attribute__((returns_nonnull));

#endif
