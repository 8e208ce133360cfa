# guest.sh before|after ROOT: sets the lab's machine up, before its packages are configured and after that.
set -euo pipefail

readonly root=$2

case $1 in
before)
    # An initrd with what the disk needs, and no more: it is read by an emulated CPU.
    mkdir -p "$root/etc/initramfs-tools/conf.d"
    echo 'MODULES=list' >"$root/etc/initramfs-tools/conf.d/lab"
    printf '%s\n' virtio_pci virtio_blk ext4 >"$root/etc/initramfs-tools/modules"
    ;;
after)
    cp "$root"/boot/vmlinuz-* "$LAB_FOLDER/kernel"
    cp "$root"/boot/initrd.img-* "$LAB_FOLDER/initrd"
    rm -f "$root"/boot/initrd.img-*
    echo lab >"$root/etc/hostname"
    echo '/dev/vda / ext4 defaults,noatime 0 1' >"$root/etc/fstab"
    printf '127.0.0.1 localhost lab\n' >"$root/etc/hosts"
    # The card for SSH, by its address, which says which machine of a pool this is; the others are the test's.
    addresses=
    for number in 0 1 2 3 4 5 6 7; do
        addresses+=${addresses:+,}192.0.2.$((4 * number + 2))
        printf '[Match]\nMACAddress=52:54:00:00:0%s:01\n[Network]\nAddress=192.0.2.%s/30\n' \
            $number $((4 * number + 2)) >"$root/etc/systemd/network/10-lab-$number.network"
    done
    # What the doctor would ask for: cards that DPDK drives.
    mkdir -p "$root/root/.ssh" "$root/etc/modules-load.d" "$root/etc/driverctl.d"
    for card in 0000:00:05.0 0000:00:06.0; do echo vfio-pci >"$root/etc/driverctl.d/pci-$card"; done
    cp "$LAB_FOLDER/key.pub" "$root/root/.ssh/authorized_keys"
    chmod 700 "$root/root/.ssh"
    echo vfio-pci >"$root/etc/modules-load.d/lab.conf"
    # One user besides root, for `sudo: true`.
    chroot "$root" useradd --create-home --shell /bin/bash qe
    mkdir -p "$root/home/qe/.ssh"
    cp "$LAB_FOLDER/key.pub" "$root/home/qe/.ssh/authorized_keys"
    chroot "$root" chown -R qe:qe /home/qe
    echo 'qe ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/qe"
    chroot "$root" systemctl --quiet enable systemd-networkd ssh 2>/dev/null
    chroot "$root" systemctl disable apt-daily.timer apt-daily-upgrade.timer e2scrub_all.timer fstrim.timer \
        dpkg-db-backup.timer tuned chrony systemd-timesyncd openvswitch-switch >/dev/null 2>&1 || true
    # Its own, for this machine alone: another build has others.
    rm -f "$root"/etc/ssh/ssh_host_*
    ssh-keygen -q -t ed25519 -N '' -C lab -f "$root/etc/ssh/ssh_host_ed25519_key"
    sed "s/^/$addresses /" "$root/etc/ssh/ssh_host_ed25519_key.pub" >"$LAB_FOLDER/known_hosts"
    # Where fakechroot(1) made the root, links have its path in front.
    find "$root" -type l -lname "$root/*" -printf '%p\t%l\n' |
        while IFS=$'\t' read -r link target; do ln -sfn "${target#"$root"}" "$link"; done
    rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
    ;;
esac
