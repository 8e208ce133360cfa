"""Instructions by function: which functions of the kernel and of Open vSwitch a packet's instructions are in.

`counting` starts an emulated machine with `plugin.c` in QEMU's translator, `symbols` says which function an address is
of, `growth` says which functions grew most between two machines.
"""
