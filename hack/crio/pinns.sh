#!/bin/sh
# Makes namespaces that outlive whoever made them, each a file below a directory: what CRI-O's own pinns does, which is
# a program in C. CRI-O calls it with: -d DIRECTORY -f NAME [-s SYSCTL=VALUE]... [--net|--ipc|--uts[=host]]...
set -eu
options='' settings=''
while [ $# -gt 0 ]; do
  case $1 in
    -d) directory=$2; shift 2;;
    -f) name=$2; shift 2;;
    -s) settings="$settings $2"; shift 2;;
    --net|--ipc|--uts|--net=host|--ipc=host|--uts=host)
      kind=${1#--}; kind=${kind%=host}
      file="$directory/${kind}ns/$name"
      mkdir -p "${file%/*}"
      : > "$file"
      case $1 in
        *=host) mount --bind "/proc/self/ns/$kind" "$file";;
        *) options="$options --$kind=$file";;
      esac
      shift;;
    *) echo "pinns: $1 is not known here" >&2; exit 2;;
  esac
done
# Its words have no blanks.
# shellcheck disable=SC2086
exec unshare $options sh -c 'test $# -eq 0 || exec sysctl --quiet -w "$@"' pinns $settings
