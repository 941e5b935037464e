#!/usr/bin/env bash
# Runs the images as the manifests do, in a containerd of its own: uid 0 without any capability, a
# read-only root, the default seccomp profile, the manifest's directories and the in-memory one, and
# for nic-device-plugin the host's network. Asks the probe in the image, and stops it. Needs root,
# containerd and runc, and says SKIPPED without them. `make container` has built the images. There is
# no device here, no configuration, no kubelet and no API server: it shows that the images start, and
# that kata-dra-driver is alive and not ready until somebody answers. The images come from the archive
# of all of them.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ $(id -u) != 0 ]] || ! { command -v containerd && command -v ctr && command -v runc; } >/dev/null; then
  echo "SKIPPED: root, containerd and runc are needed to run the images; they were not run"
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
mkdir -m 0750 "$dir/device-plugins"
mkdir -p "$dir/vfio" "$dir/cdi" "$dir/devinfo" "$dir/config/"{own,sriov,rdma} "$dir/"{registry,plugin,pod-resources,api}
common=(--rm --read-only --seccomp
  --mount "type=bind,src=$dir/cdi,dst=/var/run/cdi,options=rbind:rw")
plugins=(--mount "type=bind,src=$dir/device-plugins,dst=/var/lib/kubelet/device-plugins,options=rbind:rw")
for capability in CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID SETUID SETFCAP SETPCAP \
  NET_BIND_SERVICE SYS_CHROOT KILL AUDIT_WRITE; do
  common+=(--cap-drop "CAP_$capability")
done

# try PROGRAM ARGUMENT OPTION... runs a program's image with options and with the argument of its
# manifest, "" for none.
try() {
  local program=$1 argument=$2 image=docker.io/library/$1:dev pid status=0
  local command=("/$1" ${2:+"$2"})
  shift 2
  local options=("${common[@]}" "$@" --mount "type=tmpfs,src=tmpfs,dst=/run/$program,options=rw:size=64k")
  probe() { client task exec --exec-id "probe-$RANDOM$RANDOM" plugin /grpc_health_probe "-addr=unix:///run/$program/health.sock" "$@"; }

  echo "$program $argument"
  if [[ -z $argument ]]; then client run "${options[@]}" "$image" plugin & # by the entry point
  else client run "${options[@]}" "$image" plugin "${command[@]}" & fi
  runner=$!
  await probe -service=liveness
  echo "alive: $(probe -service=liveness 2>&1)"
  if [[ $program == kata-dra-driver ]]; then
    if probe; then echo "ready without a kubelet and an API server" >&2; exit 1; fi
  else
    await probe
    echo "ready: $(probe 2>&1)"
  fi
  pid=$(client task ls | awk '$1 == "plugin" {print $2}')
  for line in $'Uid:\t0\t0\t0\t0' $'CapEff:\t0000000000000000' $'CapBnd:\t0000000000000000' $'NoNewPrivs:\t1' $'Seccomp:\t2'; do
    grep -qxF "$line" "/proc/$pid/status" || { echo "the process does not have $line" >&2; exit 1; }
  done
  echo "resident: $(awk '$1 == "VmRSS:" {print $2, $3}' "/proc/$pid/status"), no capability, seccomp on"

  client task kill --signal SIGTERM plugin
  wait "$runner" || status=$?
  runner=
  ((status == 0)) || { echo "SIGTERM ended it with status $status" >&2; exit 1; }
  echo "SIGTERM: exit 0"

  client run "${options[@]}" "$image" usage "/$program" --no-such-flag || status=$?
  ((status == 2)) || { echo "a flag that it does not know ended it with status $status, want 2" >&2; exit 1; }
  echo "a flag that it does not know: exit 2"
}

# The archive names five images and nothing else: what is in it beside them, such as SBOMs, has no name.
client images import dist/images.oci.tar
diff <(client images ls -q) <(printf 'docker.io/library/%s:dev\n' device-exporter kata-device-plugin kata-dra-driver \
  kubectl-device nic-device-plugin) || { echo "these are not the images that dist/images.oci.tar should name" >&2; exit 1; }
echo "kubectl-device: $(client run --rm --read-only docker.io/library/kubectl-device:dev people /kubectl-device version)"

try kata-device-plugin "" "${plugins[@]}" --memory-limit $((64 << 20)) \
  --mount "type=bind,src=$dir/vfio,dst=/dev/vfio,options=rbind:ro"
try nic-device-plugin --dev-dir=/host/dev "${plugins[@]}" --memory-limit $((128 << 20)) --net-host \
  --mount "type=bind,src=/dev,dst=/host/dev,options=rbind:ro" \
  --mount "type=bind,src=$dir/devinfo,dst=/var/run/k8s.cni.cncf.io/devinfo/dp,options=rbind:rw" \
  --mount "type=bind,src=$dir/config/own,dst=/etc/nic-device-plugin,options=rbind:ro" \
  --mount "type=bind,src=$dir/config/sriov,dst=/etc/pcidp,options=rbind:ro" \
  --mount "type=bind,src=$dir/config/rdma,dst=/k8s-rdma-shared-dev-plugin,options=rbind:ro"

own=/var/lib/kubelet/plugins/vfio.katacontainers.io
try device-exporter "" --memory-limit $((192 << 20)) \
  --mount "type=bind,src=$dir/device-plugins,dst=/var/lib/kubelet/device-plugins,options=rbind:ro" \
  --mount "type=bind,src=$dir/plugin,dst=$own,options=rbind:ro" \
  --mount "type=bind,src=$dir/pod-resources,dst=/var/lib/kubelet/pod-resources,options=rbind:ro" \
  --mount "type=bind,src=$dir/vfio,dst=/dev/vfio,options=rbind:ro"

# Nobody listens on the port.
cat >"$dir/api/config" <<CONFIG
apiVersion: v1
kind: Config
clusters: [{name: nobody, cluster: {server: "https://127.0.0.1:9"}}]
contexts: [{name: nobody, context: {cluster: nobody}}]
current-context: nobody
CONFIG
try kata-dra-driver --kubeconfig=/api/config --memory-limit $((256 << 20)) --env NODE_NAME=node --env POD_UID=uid \
  --mount "type=bind,src=$dir/api,dst=/api,options=rbind:ro" \
  --mount "type=bind,src=$dir/registry,dst=/var/lib/kubelet/plugins_registry,options=rbind:rw" \
  --mount "type=bind,src=$dir/plugin,dst=$own,options=rbind:rw" \
  --mount "type=bind,src=$dir/pod-resources,dst=/var/lib/kubelet/pod-resources,options=rbind:ro" \
  --mount "type=bind,src=$dir/vfio,dst=/dev/vfio,options=rbind:ro"
