#!/bin/sh
# Goes on in the host's root: mounts what an ordinary system has, runs /vm/command.sh and cuts the power.
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
sh /vm/command.sh
echo $? > /vm/exit-status
# What is not on the disk by now is lost: nothing is synchronised and nothing unmounted.
echo b > /proc/sysrq-trigger
