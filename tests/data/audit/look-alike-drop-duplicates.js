const Redis = require("ioredis");
const redis = new Redis();

async function firstTime(event) {
  return (await redis.set(`seen:${event}`, "1", "EX", 3600, "NX")) === "OK";
}

async function blocklist(address) {
  await redis.setnx(`blocked:${address}`, 1);
  await redis.expire(`blocked:${address}`, 60);
}

module.exports = { firstTime, blocklist };
