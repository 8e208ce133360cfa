"""Facts of Ethernet (IEEE 802.3, 802.1Q) and the addresses that every testbed of ours uses."""

#: Bytes of the frame check sequence: frame sizes of profiles count it, as RFC 2544 does; throughput does not.
FCS_BYTES = 4
VLAN_TAG_BYTES = 4
#: Ethernet's least frame, and its largest without a VLAN tag; bytes with FCS. Larger ones are jumbo frames.
LEAST_FRAME, LARGEST_FRAME = 64, 1518
#: On the wire in addition to the frame: preamble, start delimiter and the least gap, bytes.
GAP_BYTES = 20

#: The VLAN of every topology and profile that has one.
VLAN_ID = 100
#: The traffic generator's own addresses where it has no network cards, locally administered: client end, server end.
CLIENT_MAC, SERVER_MAC = "02:00:00:00:00:01", "02:00:00:00:00:02"
