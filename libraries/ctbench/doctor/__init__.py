"""The examination of `./run doctor`: whether the hosts of a testbed are set up to measure, and the commands that fix
them. Only `frames` changes anything on a host."""
