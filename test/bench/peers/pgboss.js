// pgboss: no-op jobs a second of pg-boss, fetched and completed one by one.  node pgboss.js JOBS WORKERS
'use strict';
const PgBoss = require('pg-boss');

const [jobs, workers] = process.argv.slice(2).map(Number);

(async () => {
    const boss = new PgBoss({ host: process.env.PGHOST, user: process.env.PGUSER, database: process.env.PGDATABASE, max: workers + 2,
        supervise: false, schedule: false });
    boss.on('error', (error) => console.error(error.message));
    await boss.start();
    await boss.createQueue('noop');
    for (let n = 0; n < jobs; n += 1000)
        await boss.insert(Array.from({ length: Math.min(1000, jobs - n) }, (_, i) => ({ name: 'noop', data: { i: n + i } })));
    let done = 0;
    const begun = process.hrtime.bigint();
    await Promise.all(Array.from({ length: workers }, async () => {
        for (let found; (found = await boss.fetch('noop', { batchSize: 1 })).length; done++)
            await boss.complete('noop', found[0].id);
    }));
    console.log(done / (Number(process.hrtime.bigint() - begun) / 1e9));
    process.exit(0);
})().catch((error) => { console.error(error); process.exit(1); });
