"""Workers: run a function for every entry of a stream, and do the right thing when something breaks.

app         App: handlers, sending, running, testing
handler     Handler: a function with its stream and its options
options     the options of a handler, checked; rate limits
payload     payloads to fields and back, by the type of the handler's parameter
message     Message: what a handler knows about its entry; Dead
tracing     spans of sends and attempts, with OpenTelemetry
inbox       Message.once: effects in a database, once for each entry
names       the keys beside a stream, and a worker's name
backend     the work commands on an embedded database, a penstock server, Redis or Valkey
cluster     the nodes of a Redis Cluster
scripts     the work commands as scripts
patience    how long others stand still for something that needs a quiet moment
settlement  outcomes of attempts, and the words that settle them
feed        the entries of one stream: take, renew, settle
keyed       the same for a keyed stream: order per key
running/    a worker process: threads, child processes, schedules
testing     app.test(): in memory, with a clock set by hand

`docs/work.md` is the guide, `docs/work-promises.md` states what is promised.
"""

from penstock.work.app import App
from penstock.work.handler import Handler
from penstock.work.message import Dead, Message
from penstock.work.options import per_second

__all__ = ["App", "Dead", "Handler", "Message", "per_second"]
