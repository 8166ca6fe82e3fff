#!/bin/busybox sh
# The first process of the virtual machine: loads modules, puts a layer in memory over the host's root, and goes there.
box=/bin/busybox
end() {
    echo "the virtual machine stops: $1"
    echo b > /proc/sysrq-trigger
}
$box mount -t proc proc /proc
$box mount -t sysfs sysfs /sys
$box mount -t devtmpfs devtmpfs /dev
for module in /modules/*; do
    $box insmod "$module" || end "no module $module"
done
shared=trans=virtio,version=9p2000.L,msize=524288
$box mount -t 9p -o $shared,ro,cache=loose root /lower || end "the host's root is not there"
$box mount -t tmpfs -o mode=755 tmpfs /layer
$box mkdir /layer/upper /layer/work
$box mount -t overlay -o lowerdir=/lower,upperdir=/layer/upper,workdir=/layer/work overlay /merged || end "no overlay"
$box mkdir -p /merged/proc /merged/sys /merged/dev /merged/run /merged/vm /merged/disk
$box mount -t 9p -o $shared vm /merged/vm || end "the directory of results is not there"
$box mount -t ext4 /dev/vda /merged/disk || end "the disk is not there"
for directory in proc sys dev; do
    $box mount --move /$directory /merged/$directory
done
exec $box switch_root /merged /bin/sh /vm/start.sh
