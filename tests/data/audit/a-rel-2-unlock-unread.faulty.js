const { Client } = require("pg");

async function migrate(client = new Client()) {
  await client.query("SELECT pg_advisory_lock(42)");
  try {
    await client.query("ALTER TABLE t ADD COLUMN c int");
  } finally {
    await client.query("SELECT pg_advisory_unlock(42)");  // expect: A-REL-2 release_retry
  }
}
