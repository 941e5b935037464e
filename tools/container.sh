#!/usr/bin/env bash
# Runs the image as the manifest does, in a containerd of its own: uid 0 without any capability, a
# read-only root, the default seccomp profile, three directories and the in-memory one. Asks the
# probe in the image, and stops it. Needs root, containerd and runc, and says SKIPPED without them.
# `make container` has built the image. There is no device here: it shows that the image starts.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ $(id -u) != 0 ]] || ! { command -v containerd && command -v ctr && command -v runc; } >/dev/null; then
  echo "SKIPPED: root, containerd and runc are needed to run the image; it was not run"
  exit 0
fi

dir=$(mktemp -d)
client() { ctr --address "$dir/socket" "$@"; }
cleanup() {
  client task kill --signal SIGKILL plugin 2>/dev/null || true
  [[ -z ${runner:-} ]] || wait "$runner" 2>/dev/null || true
  [[ -z ${daemon:-} ]] || kill "$daemon"
  wait
  rm -rf "$dir"
}
trap cleanup EXIT

cat >"$dir/config.toml" <<CONFIG
version = 2
root = "$dir/root"
state = "$dir/state"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
address = "$dir/socket"
CONFIG
containerd --config "$dir/config.toml" >"$dir/containerd.log" 2>&1 &
daemon=$!

# await COMMAND... waits until it succeeds, ten seconds at most.
await() {
  for _ in {1..100}; do
    if "$@" >"$dir/await.log" 2>&1; then return; fi
    sleep 0.1
  done
  echo "gave up waiting for: $*" >&2
  cat "$dir/await.log" >&2
  return 1
}

await client version || { cat "$dir/containerd.log"; exit 1; }
client images import dist/kata-device-plugin.oci.tar

mkdir -m 0750 "$dir/device-plugins"
mkdir "$dir/vfio" "$dir/cdi"
options=(--rm --read-only --seccomp --memory-limit $((64 << 20))
  --mount "type=bind,src=$dir/device-plugins,dst=/var/lib/kubelet/device-plugins,options=rbind:rw"
  --mount "type=bind,src=$dir/vfio,dst=/dev/vfio,options=rbind:ro"
  --mount "type=bind,src=$dir/cdi,dst=/var/run/cdi,options=rbind:rw"
  --mount "type=tmpfs,src=tmpfs,dst=/run/kata-device-plugin,options=rw:size=64k")
for capability in CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID SETUID SETFCAP SETPCAP \
  NET_BIND_SERVICE SYS_CHROOT KILL AUDIT_WRITE; do
  options+=(--cap-drop "CAP_$capability")
done
image=docker.io/library/kata-device-plugin:dev
probe() { client task exec --exec-id "probe-$RANDOM$RANDOM" plugin /grpc_health_probe -addr=unix:///run/kata-device-plugin/health.sock "$@"; }

client run "${options[@]}" "$image" plugin &
runner=$!
await probe -service=liveness
echo "alive: $(probe -service=liveness 2>&1)"
echo "ready: $(probe 2>&1)"
pid=$(client task ls | awk '$1 == "plugin" {print $2}')
for line in $'Uid:\t0\t0\t0\t0' $'CapEff:\t0000000000000000' $'CapBnd:\t0000000000000000' $'NoNewPrivs:\t1' $'Seccomp:\t2'; do
  grep -qxF "$line" "/proc/$pid/status" || { echo "the process does not have $line" >&2; exit 1; }
done
echo "resident: $(awk '$1 == "VmRSS:" {print $2, $3}' "/proc/$pid/status"), no capability, seccomp on"

client task kill --signal SIGTERM plugin
status=0
wait "$runner" || status=$?
runner=
((status == 0)) || { echo "SIGTERM ended it with status $status" >&2; exit 1; }
echo "SIGTERM: exit 0"

status=0
client run "${options[@]}" "$image" usage /kata-device-plugin --help || status=$?
((status == 2)) || { echo "an argument ended it with status $status, want 2" >&2; exit 1; }
echo "an argument: exit 2"
