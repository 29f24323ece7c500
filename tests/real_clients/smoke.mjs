// What a program in Node does with a stream server; prints what it saw as one line of JSON.
import { createClient } from "redis";

const [port, resp] = process.argv.slice(2).map(Number);
const options = { url: `redis://127.0.0.1:${port}`, RESP: resp, unstableResp3: true };
const client = await createClient(options).connect();
const reader = await client.duplicate().connect();
const listener = await client.duplicate().connect();
const seen = {};

seen.ping = await client.ping();
seen.added = [await client.xAdd("s", "1-1", { temp: "21" }), await client.xAdd("s", "1-2", { temp: "22" })];
seen.range = await client.xRange("s", "-", "+");
seen.group = await client.xGroupCreate("s", "g", "0");
const taken = await client.xReadGroup("g", "me", { key: "s", id: ">" }, { COUNT: 1 });
seen.taken = JSON.stringify(taken).includes("1-1");
seen.acked = await client.xAck("s", "g", "1-1");
seen.pending = (await client.xPending("s", "g")).pending;
seen.length = (await client.xInfoStream("s")).length;

const waiting = reader.xRead({ key: "s", id: "$" }, { BLOCK: 0 });
while (!(await client.info("clients")).includes("blocked_clients:1"));
await client.xAdd("s", "2-1", { temp: "23" });
seen.waited = JSON.stringify(await waiting).includes("23");

seen.multi = await client.multi().set("a", "1").incr("a").xLen("s").exec();
const heard = new Promise((resolve) => listener.subscribe("news", resolve).then(() => client.publish("news", "rain")));
seen.heard = await heard;
try {
  await client.xAdd("s", "1-1", { late: "1" });
} catch (error) {
  seen.refused = error.message;
}
seen.many = (await Promise.all(Array.from({ length: 1000 }, (_, n) => client.incr("n")))).at(-1);
console.log(JSON.stringify(seen));
for (const one of [client, reader, listener]) one.destroy();
