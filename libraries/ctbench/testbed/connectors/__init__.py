"""How a traffic generator is connected to the ports of a DUT: a module for each kind of source, which knows both."""
