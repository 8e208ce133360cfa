#!/usr/bin/env bash
# build.sh FOLDER: makes the disk of the lab's machine there: Debian from its packages, its kernel and initrd next to it,
# and the keys of both ends of SSH. As any user: fakechroot mounts nothing, and the disk gets what is in the root. What
# is not finished is in FOLDER.new, which goes with this, whatever ends it.
set -euo pipefail

readonly here=${BASH_SOURCE[0]%/*} folder=$1 new=$1.new
readonly packages=linux-image-amd64,initramfs-tools,systemd-sysv,dbus,udev,kmod,procps,pciutils,openssh-server,sudo,\
openvswitch-switch-dpdk,librte-meta-net,librte-meta-mempool,driverctl,tuned,ethtool,iproute2,nftables,iptables,\
conntrack,chrony
readonly size=4G

for program in mmdebstrap fakechroot fakeroot mke2fs ssh-keygen; do
    PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null || {
        echo "the lab's disk needs $program: apt-get install mmdebstrap fakechroot fakeroot e2fsprogs openssh-client" >&2
        exit 6
    }
done
PATH=$PATH:/usr/sbin:/sbin

rm -rf "$new"
mkdir -p "$new"
trap 'rm -rf "$new"' EXIT
# To all of this process group, which tools/lab.py made for it: a shell that is told to end waits for its command.
trap 'trap "" TERM; kill -TERM 0; wait; exit 143' INT TERM
ssh-keygen -q -t ed25519 -N '' -C lab-in-a-box -f "$new/key"

# Its hooks run next to the new root, whose folder is their first argument.
export LAB_FILES=$here LAB_FOLDER=$new
mmdebstrap --quiet --mode=fakechroot --variant=minbase --include="$packages" --aptopt='Acquire::Languages "none"' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --essential-hook='bash "$LAB_FILES/guest.sh" before "$1"' \
    --customize-hook='bash "$LAB_FILES/guest.sh" after "$1"' \
    --customize-hook='mke2fs -q -t ext4 -d "$1" "$LAB_FOLDER/disk" '"$size >/dev/null" \
    --format=null bookworm - &
wait $!
rm -rf "$folder"
mv "$new" "$folder"
