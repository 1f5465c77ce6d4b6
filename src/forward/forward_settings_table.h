/* Every setting of stamp-forward once: TEXT(name, default, description), NUMBER(name, default, least, most,
 * unit, description).  stamp-forward(8) describes the file. */
/* clang-format off */
NUMBER(backoff_s, 60, 1, 3600, "s", "Longest pause after a request that has failed.")
NUMBER(batch_bytes, 1048576, 4096, 67108864, "bytes", "A batch ends when it is larger; at most limit_body_bytes of the server.")
NUMBER(batch_records, 500, 1, 10000, "records", "Most records of a batch; at most limit_spool_records of the server.")
TEXT(ca_file, "", "PEM file of the authorities of the server's certificate; empty: those of the system.")
NUMBER(dead_in_a_row, 20, 1, 1000000, "records", "After so many dead letters of a namespace in a row its records wait until one is stored.")
TEXT(key_file, "", "File with the key of the forwarder, a service key or the administrator's key; needed.")
TEXT(log_format, "text", "How lines of the log are written: text or json.")
TEXT(spool, "/var/spool/stampd", "Folder of the spool.")
NUMBER(timeout_s, 60, 1, 3600, "s", "A request that takes longer has failed.")
TEXT(url, "", "Address of the server, https://host:port; needed.")
NUMBER(window_records, 10000, 1, 1000000, "records", "So many records are read ahead of those that wait for their namespace.")
