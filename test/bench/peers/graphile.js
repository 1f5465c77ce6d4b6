// graphile: no-op jobs a second of graphile-worker.  node graphile.js JOBS CONCURRENCY LOCAL_QUEUE (0: unbatched)
'use strict';
const { run, makeWorkerUtils, Logger } = require('graphile-worker');
const { Pool } = require('pg');

const [jobs, concurrency, localQueue] = process.argv.slice(2).map(Number);
const logger = new Logger(() => () => {});

(async () => {
    const pool = new Pool({ max: concurrency + 2 });
    pool.on('error', () => {});
    pool.on('connect', (client) => client.on('error', () => {}));
    const utils = await makeWorkerUtils({ pgPool: pool, logger });
    await utils.migrate();
    for (let n = 0; n < jobs; n += 1000)
        await utils.addJobs(Array.from({ length: Math.min(1000, jobs - n) }, (_, i) => ({ identifier: 'noop', payload: { i: n + i } })));
    await pool.query('vacuum analyze graphile_worker._private_jobs');
    await pool.query('checkpoint');
    let left = jobs, finish;
    const end = new Promise((resolve) => { finish = resolve; });
    const begun = process.hrtime.bigint();
    const runner = await run({
        pgPool: pool, concurrency, logger, noHandleSignals: true,
        preset: { worker: localQueue ? { localQueue: { size: localQueue }, completeJobBatchDelay: 0, failJobBatchDelay: 0 } : {} },
        taskList: { noop: async () => { if (--left === 0) finish(); } },
    });
    await end;
    console.log(jobs / (Number(process.hrtime.bigint() - begun) / 1e9));
    await runner.stop();
    process.exit(0);
})().catch((error) => { console.error(error); process.exit(1); });
