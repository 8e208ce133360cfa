#!/usr/bin/dash
# The first process of an emulated machine: gets ready and waits for what it is given, settings and a topology. Sets that
# up, sends, counts, and ends the machine.
. /guest/library.sh
busybox sleep 12  # an Open vSwitch that starts within the first seconds gets no thread for what the kernel does not know
/guest/await >/guest/given || broken "$(busybox cat /guest/given)"
. /guest/given
measure
last
echo "done"
end
