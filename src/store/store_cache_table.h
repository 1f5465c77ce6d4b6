/* What a session caches beside its connection: CACHE(NAME). */
/* clang-format off */
CACHE(schema)
CACHE(searches)
/* clang-format on */
