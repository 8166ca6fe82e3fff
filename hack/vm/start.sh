#!/bin/sh
# Goes on in the host's root: mounts what an ordinary system has, and runs /vm/run.sh, under systemd if it is to.
echo > /vm/begun
mount --make-rshared /
mount -t tmpfs tmpfs /run
mkdir /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
ln -s /proc/self/fd /dev/fd
ln -s /proc/self/fd/0 /dev/stdin
ln -s /proc/self/fd/1 /dev/stdout
ln -s /proc/self/fd/2 /dev/stderr
mount -t cgroup2 cgroup2 /sys/fs/cgroup
ip link set lo up
hostname vm
if [ -d /vm/units ]; then
    mkdir -p /run/systemd /run/dbus
    cp -r /vm/units /run/systemd/system
    exec /lib/systemd/systemd --unit=berth.service --log-target=console --log-level=notice --show-status=no
fi
exec sh /vm/run.sh
