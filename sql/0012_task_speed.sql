-- Tasks cost less.
--
-- Every statement that writes a row of a table reads the table's checks from their texts anew, which took a fifth of the time
-- of an insert of a task, and as much of a claim.  Workers keep what they said by themselves, and task_create for
-- administrators, who write the table by functions only.

alter table stampd.taskqueue
  drop constraint taskqueue_taskid_check, drop constraint taskqueue_qn_check, drop constraint taskqueue_priority_check,
  drop constraint taskqueue_batch_check, drop constraint taskqueue_check, drop constraint taskqueue_plan;

create or replace function stampd.task_create(opname text, param text default '{}', startat bigint default null, info text default '',
                                   qn int default 0, priority int default 20, resource text default null,
                                   domain text default null, batch int default 1) returns text
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  made constant bigint := stamp_now();
  kept text;
begin
  if json_typeof(task_create.param::json) <> 'object' then
    raise exception 'param is a JSON object' using errcode = '22023';
  elsif task_create.opname !~ '^[A-Za-z][A-Za-z0-9_.-]{0,31}$' then
    raise exception 'not a name of an operation: %', task_create.opname using errcode = '22023';
  elsif task_create.qn not between 0 and 15 or task_create.priority not between 0 and 255
        or task_create.batch not between 1 and 1000 then
    raise exception 'qn is 0 to 15, priority 0 to 255, batch 1 to 1000' using errcode = '22023';
  end if;
  insert into taskqueue as t (taskid, opname, param, info, startat, qn, priority, resource, domain, batch, created)
    values (substr(translate(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 1, 40), task_create.opname,
            task_create.param, coalesce(task_create.info, ''), coalesce(task_create.startat, made), task_create.qn,
            task_create.priority, task_create.resource, task_create.domain,
            case when task_create.domain is null then task_create.batch else 1 end, made)
    on conflict (opname, resource) where starttime is null and resource is not null do update
      set param = excluded.param, info = excluded.info, priority = least(t.priority, excluded.priority),
          startat = case when t.startat < 991231235959999 or t.exc = 'HELD' then greatest(t.startat, excluded.startat)
                         else excluded.startat end,
          retry = case when t.startat = 991231235959999 and t.exc is distinct from 'HELD' then 0 else t.retry end,
          exc = case when t.startat < 991231235959999 or t.exc = 'HELD' then t.exc end,
          report = case when t.startat < 991231235959999 or t.exc = 'HELD' then t.report end
    returning t.taskid into kept;
  return kept;
end $$;
