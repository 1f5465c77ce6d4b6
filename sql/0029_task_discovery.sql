-- What operations declare is compared at each scan: all of it by one look at the table, not by one for each operation.

create or replace function stampd.task_operations(names text[], queues int[], batches int[], bytes int) returns void
  language plpgsql volatile set search_path = stampd, pg_temp
  set enable_seqscan = on set enable_sort = on set enable_hashagg = on set enable_indexscan = off set enable_indexonlyscan = off
  set enable_bitmapscan = off set jit = off as $$
declare
  declared constant text[] := array(
    select w.words from (
      select concat_ws(' ', d.name, d.qn, d.batch, bytes) as words from unnest(names, queues, batches) d(name, qn, batch)) w
      order by w.words collate "C");
begin
  -- Nearly always everything is as declared, and nothing is locked.
  if declared is distinct from array(
      select w.words from (select concat_ws(' ', o.opname, o.qn, o.batch, o.param_bytes) as words from task_operation o) w
        order by w.words collate "C") then
    lock table task_operation in share row exclusive mode;
    delete from task_operation o where o.opname <> all (names);
    insert into task_operation (opname, qn, batch, param_bytes)
      select d.name, d.qn, d.batch, bytes from unnest(names, queues, batches) d(name, qn, batch)
      on conflict (opname) do update set qn = excluded.qn, batch = excluded.batch, param_bytes = excluded.param_bytes;
  end if;
end $$;
