package main

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"palimpsest/api"
	"palimpsest/pipeline"
	"palimpsest/pipeline/jobs/jobsdb"
	"palimpsest/tenants/tenantsdb"
	"palimpsest/tenants/vault"
)

// base is what the parts of the running product are built on.
type base struct {
	setup
	db       *tenantsdb.DB
	opening  *databases // opens db
	away     error      // why db is not open yet; nil if it is
	vault    *vault.Vault
	redis    *redis.Client // what replicas count in together; nil: each counts by itself
	work     *jobsdb.Runner
	health   *health
	registry prometheus.Registerer
	metrics  *api.Metrics
}

// openBase opens the database and what else everything is built on. Of several databases one that
// takes no connections is left to openLater; another is closed once another one is open.
func openBase(ctx context.Context, setup setup, after func(time.Duration) <-chan time.Time, registry prometheus.Registerer, another <-chan struct{}) (base, error) {
	b := base{setup: setup, registry: registry, metrics: api.NewMetrics(registry)}
	var err error
	if b.vault, err = setup.config.openVault(); err != nil {
		return base{}, err
	}
	b.opening = &databases{setup: setup, after: after, another: another}
	if b.db, err = b.opening.newDatabase(ctx, b.vault); err != nil {
		return base{}, err
	}
	b.away = b.opening.await(ctx, b.db, b.vault)
	if b.away != nil && (another == nil || !passes(b.away)) {
		return base{}, b.away
	}
	if b.redis, err = openRedis(setup); err != nil {
		return base{}, err
	}
	b.health, b.work = watch(b), newWork(b)
	return b, nil
}

// openVault makes what seals provider keys, and derives keys, with the master key.
func (c Config) openVault() (*vault.Vault, error) {
	secrets, err := c.Secrets()
	if err != nil {
		return nil, err
	}
	return vault.New(secrets)
}

// openRedis opens what replicas count in together, and returns nil where each process counts by itself.
func openRedis(setup setup) (*redis.Client, error) {
	if setup.config.RedisURL == "" {
		return nil, nil //nolint:nilnil // each process counts by itself
	}
	options, err := redis.ParseURL(setup.config.RedisURL)
	if err != nil {
		return nil, errors.New("REDIS_URL: is not a URL such as redis://host:6379/0")
	}
	options.ContextTimeoutEnabled = true // who asks says how long it may take
	client := redis.NewClient(options)
	setup.onClose(func() { _ = client.Close() })
	return client, nil
}

// defaults is the pipeline of a workspace that has set none.
func (c Config) defaults() pipeline.Layer {
	return pipeline.Layer{Source: pipeline.FromDefault, Modules: c.Pipe}
}
