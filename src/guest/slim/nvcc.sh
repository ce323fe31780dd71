#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sh nvcc.sh NVCC ARGUMENT...  as nvcc itself, with the host's front end beside the device's passes.
#
# nvcc runs its passes one after the other. Each of the two front ends reads all headers, which for
# torch's is nearly all of the time. Where the passes are not the usual ones (several architectures,
# relocatable device code), nvcc goes its own way.
nvcc=$1
shift
folder=$(mktemp -d) || exit
"$nvcc" --dryrun "$@" 2>"$folder/plan" || exec "$nvcc" "$@"

count=0
while IFS= read -r line; do
  line=${line#'#$ '}
  case $line in
    PATH=*) export PATH="${line#*=}" ;;
    CICC_PATH=*) CICC_PATH=${line#*=} ;;
    LD_LIBRARY_PATH=*) export LD_LIBRARY_PATH="${line#*=}" ;;
    [A-Z_]*=*) ;; # in the commands already
    *)
      count=$((count + 1))
      case "$count $line" in
        '1 gcc '*' -E '*) host_headers=$line ;;
        '2 cudafe++ '*' --gen_module_id_file '*) host_front=$line ;;
        '3 gcc '*' -E '*) device_headers=$line ;;
        '4 "$CICC_PATH/cicc" '*) device_front=$line ;;
        '5 ptxas '*) ptxas=$line ;;
        '6 fatbinary '*) fatbinary=$line ;;
        '7 rm '*) ;;
        '8 gcc '*' -c '*) host_back=$line ;;
        *) exec "$nvcc" "$@" ;;
      esac
      ;;
  esac
done <"$folder/plan"
[ "$count" = 8 ] || exec "$nvcc" "$@"

# A name for this source's own symbols, which the host's front end would make and the device's needs.
id_file=${host_front##*--module_id_file_name \"}
id_file=${id_file%%\"*}
printf '_%s' "$(printf '%s' "$*" | cksum | tr ' ' _)" >"$id_file"
host_front="${host_front%%--gen_module_id_file*}${host_front#*--gen_module_id_file}"

(eval "$device_headers" && eval "$device_front" && eval "$ptxas" && eval "$fatbinary") \
  >"$folder/device" 2>&1 &
device=$!
(eval "$host_headers" && eval "$host_front") >"$folder/host" 2>&1
code=$?
wait $device
device_code=$?
cat "$folder/host"
[ $code = 0 ] || exit $code
cat "$folder/device"
[ $device_code = 0 ] || exit $device_code
eval "$host_back"
