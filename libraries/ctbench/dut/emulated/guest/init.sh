#!/usr/bin/dash
# The first process of an emulated machine: sets a topology up, sends, counts, and ends the machine.
. /guest/library.sh
. /guest/settings
. /guest/topology.sh
measure
echo "done"
end
