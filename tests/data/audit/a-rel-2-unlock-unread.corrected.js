const { Client } = require("pg");

async function migrate(client = new Client()) {
  await client.query("SELECT pg_advisory_lock(42)");
  try {
    await client.query("ALTER TABLE t ADD COLUMN c int");
  } finally {
    const { rows } = await client.query("SELECT pg_advisory_unlock(42)");
    if (!rows[0].pg_advisory_unlock) throw new Error("the lock was lost");
  }
}
