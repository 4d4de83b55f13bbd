const Redis = require("ioredis");
const { randomUUID } = require("crypto");

const redis = new Redis();

async function rebuild(name) {
  const key = `lock:${name}`;
  const token = randomUUID();
  const ok = await redis.set(key, token, "PX", 30000, "NX");
  if (!ok) return false;
  try {
    await build(name);
  } finally {
    await redis.del(key);  // expect: A-ID-1 release_retry
  }
  return true;
}
