-- What the server forgets by itself: the keeper, a process of each host, calls this again and again for each namespace.

create function stampd.keep(what text, batch int, age_s bigint) returns bigint
  language plpgsql volatile security definer set search_path = stampd, pg_temp as $$
declare
  before constant bigint := stamp_of(now() - make_interval(secs => age_s));
begin
  -- Somebody else's batch is under way, on another host or by `stampctl ns purge`: the next round is soon enough.
  if not pg_try_advisory_xact_lock(hashtextextended('stampd keeper', 0)) then
    return 0;
  end if;
  return case what
    when 'ended' then end_documents(batch)
    when 'departures' then purge_members(before, batch)
    when 'zombies' then purge_zombies(before, batch)
    when 'subscriptions' then purge_subs(batch)
    when 'answers' then purge_once(before, batch)
    when 'attempts' then task_purge_history(before, batch)
    when 'values' then purge_values(batch)
  end;
end $$;
comment on function stampd.keep(text, int, bigint) is
  'Deletes up to `batch` of what is too old: documents that have ended, departures from collections, zombies, subscriptions that have '
  'ended, answers under an Idempotency-Key, attempts at tasks, unique values of declarations that are no more.  Returns how many.';

revoke execute on function stampd.keep(text, int, bigint) from public;
grant execute on function stampd.keep(text, int, bigint) to stampd;
