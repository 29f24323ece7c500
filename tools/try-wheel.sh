#!/bin/sh
# Installs a wheel into an empty environment, where no compiler is on PATH, and tries it:
# first without any dependency (embedded, and on a socket with asyncio's own event loop), then with the command line.
#
#     tools/try-wheel.sh PYTHON WHEEL
set -eu
python=$1
wheel=$2
place=$(mktemp -d)
trap '/bin/rm -rf "$place"' EXIT

"$python" -m venv "$place/venv"
PATH="$place/venv/bin"
export PATH
pip="python -m pip --quiet --disable-pip-version-check install"

$pip --no-deps "$wheel"
/bin/cat > "$place/smoke.py" <<'PROGRAM'
import socket
import sys

import penstock
from penstock.build import KIND

assert KIND == sys.argv[2], KIND
with penstock.open(sys.argv[1]) as database:
    first = database.xadd("orders", {"item": "tea"})
    with database.serve(port=0) as serving:
        with socket.create_connection(("127.0.0.1", serving.port)) as client:
            client.sendall(b"XLEN orders\r\n")
            assert client.recv(100) == b":1\r\n"
assert "uvloop" not in sys.modules
with penstock.open(sys.argv[1]) as database:
    assert database.xrange("orders")[0][0] == first
print("wheel: embedded and served without any dependency")
PROGRAM
case $wheel in
    *none-any.whl) kind=interpreted ;;
    *) kind=compiled ;;
esac
python -I "$place/smoke.py" "$place/data" $kind

$pip -c constraints.txt "$wheel"
penstock --version
penstock check "$place/data" > "$place/report"
echo "wheel: the command line reads what the database wrote"
