//go:build !kubernetes134

package plane

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
)

// startStore starts etcd on ports of its own choice. Nobody needs its data after a crash
// of the test, so it does not wait for the disk.
func startStore(dir, log string) (*embed.Etcd, error) {
	config := embed.NewConfig()
	config.Dir = dir
	config.UnsafeNoFsync = true
	config.LogLevel, config.LogOutputs = "error", []string{log}
	loopback := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	config.ListenClientUrls, config.AdvertiseClientUrls = loopback, loopback
	config.ListenPeerUrls, config.AdvertisePeerUrls = loopback, loopback
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	store, err := embed.StartEtcd(config)
	if err != nil {
		return nil, fmt.Errorf("start etcd in %s: %w", dir, err)
	}
	select {
	case <-store.Server.ReadyNotify():
		return store, nil
	case err = <-store.Err():
	case <-time.After(deadline):
		err = context.DeadlineExceeded
	}
	store.Close()
	return nil, fmt.Errorf("wait for etcd in %s: %w", dir, err)
}

// endpoint is where etcd serves.
func endpoint(store *embed.Etcd) string { return "http://" + store.Clients[0].Addr().String() }

// entry is a key of etcd and its value.
type entry struct{ key, value string }

func dial(store *embed.Etcd) (*clientv3.Client, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint(store)}, DialTimeout: deadline})
	if err != nil {
		return nil, fmt.Errorf("connect to etcd: %w", err)
	}
	return client, nil
}

// dump reads what the cluster stores, all of it as of one moment.
func dump(ctx context.Context, store *embed.Etcd) ([]entry, error) {
	client, err := dial(store)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	answer, err := client.Get(ctx, registry+"/", clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("read etcd: %w", err)
	}
	entries := make([]entry, 0, len(answer.Kvs))
	for _, kv := range answer.Kvs {
		entries = append(entries, entry{string(kv.Key), string(kv.Value)})
	}
	return entries, nil
}

// fill writes what dump has read.
func fill(store *embed.Etcd, entries []entry) error {
	if len(entries) == 0 {
		return nil
	}
	client, err := dial(store)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	for _, e := range entries {
		if _, err := client.Put(ctx, e.key, e.value); err != nil {
			return fmt.Errorf("write %s to etcd: %w", e.key, err)
		}
	}
	return nil
}
