const Redis = require("ioredis");
const { randomUUID } = require("crypto");

const redis = new Redis();
const RELEASE =
  "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end";

async function rebuild(name) {
  const key = `lock:${name}`;
  const token = randomUUID();
  const ok = await redis.set(key, token, "PX", 30000, "NX");
  if (!ok) return false;
  try {
    await build(name);
  } finally {
    await redis.eval(RELEASE, 1, key, token);
  }
  return true;
}
