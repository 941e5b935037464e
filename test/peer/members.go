package peer

import "kata-device-plugin/test/peer/wire"

func etcdArgs() []string {
	const peers = "http://127.0.0.1:2380"
	return []string{
		"--data-dir=" + wire.StateDir + "/lib/etcd",
		"--listen-client-urls=" + etcdURL, "--advertise-client-urls=" + etcdURL,
		"--listen-peer-urls=" + peers, "--initial-advertise-peer-urls=" + peers, "--initial-cluster=default=" + peers,
		"--unsafe-no-fsync", // nothing here outlives the test
		"--log-level=warn",
	}
}

func apiServerArgs() []string {
	return []string{
		"--etcd-servers=" + etcdURL,
		"--bind-address=0.0.0.0", "--secure-port=6443", "--advertise-address=" + wire.BridgeAddress,
		"--tls-cert-file=" + etc("api.crt"), "--tls-private-key-file=" + etc("api.key"), "--client-ca-file=" + etc(caFile),
		"--service-cluster-ip-range=" + serviceIPs,
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + etc("tokens.key"), "--service-account-signing-key-file=" + etc("tokens.key"),
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--kubelet-client-certificate=" + etc("kubelet.crt"), "--kubelet-client-key=" + etc("kubelet.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--endpoint-reconciler-type=none", // pods reach the API server by its own address: nobody here implements services
		"--profiling=false", "-v=1",
	}
}

func controllerArgs() []string {
	return []string{
		"--kubeconfig=" + etc(controllers), "--authentication-kubeconfig=" + etc(controllers), "--authorization-kubeconfig=" + etc(controllers),
		"--bind-address=127.0.0.1", "--leader-elect=false", "--use-service-account-credentials",
		"--service-account-private-key-file=" + etc("tokens.key"), "--root-ca-file=" + etc(caFile),
		"-v=1",
	}
}

func schedulerArgs() []string {
	return []string{
		"--kubeconfig=" + etc(scheduler), "--authentication-kubeconfig=" + etc(scheduler), "--authorization-kubeconfig=" + etc(scheduler),
		"--bind-address=127.0.0.1", "--leader-elect=false", "-v=3",
	}
}
