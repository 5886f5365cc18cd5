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

// base holds the shared dependencies of the product's parts.
type base struct {
	setup
	db       *tenantsdb.DB
	opening  *databases // opens db
	away     error      // why db is not open yet; nil if it is
	vault    *vault.Vault
	redis    *redis.Client // shared counters of replicas; nil: each counts alone
	work     *jobsdb.Runner
	health   *health
	registry prometheus.Registerer
	metrics  *api.Metrics
}

// openBase opens the database and the other shared dependencies. With several databases, one that refuses
// connections is left to openLater; another is closed once another one is open.
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

// openVault creates the vault, which seals provider keys and derives other keys with the master key.
func (c Config) openVault() (*vault.Vault, error) {
	secrets, err := c.Secrets()
	if err != nil {
		return nil, err
	}
	return vault.New(secrets)
}

// openRedis opens the shared counters of replicas. It returns nil if each process counts alone.
func openRedis(setup setup) (*redis.Client, error) {
	if setup.config.RedisURL == "" {
		return nil, nil //nolint:nilnil // each process counts by itself
	}
	options, err := redis.ParseURL(setup.config.RedisURL)
	if err != nil {
		return nil, errors.New("REDIS_URL: is not a URL such as redis://host:6379/0")
	}
	options.ContextTimeoutEnabled = true // callers set the timeout
	client := redis.NewClient(options)
	setup.onClose(func() { _ = client.Close() })
	return client, nil
}

// defaults is the pipeline of a workspace without its own.
func (c Config) defaults() pipeline.Layer {
	return pipeline.Layer{Source: pipeline.FromDefault, Modules: c.Pipe}
}
