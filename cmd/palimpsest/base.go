package main

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"palimpsest/api"
	"palimpsest/cmd/palimpsest/setup"
	"palimpsest/pipeline/jobs/jobsdb"
	"palimpsest/tenants/tenantsdb"
	"palimpsest/tenants/vault"
)

// base holds the shared dependencies of the product's parts.
type base struct {
	setup.Inputs
	db       *tenantsdb.DB
	opening  *setup.Database // opens db
	away     error           // why db is not open yet; nil if it is
	vault    *vault.Vault
	redis    *redis.Client // shared counters of replicas; nil: each counts alone
	work     *jobsdb.Runner
	health   *health
	registry prometheus.Registerer
	metrics  *api.Metrics
}

// openBase opens the database and the other shared dependencies. With several databases, one that refuses
// connections is left to openLater; another is closed once another one is open.
func openBase(ctx context.Context, inputs setup.Inputs, after func(time.Duration) <-chan time.Time, registry prometheus.Registerer, another <-chan struct{}) (base, error) {
	b := base{Inputs: inputs, registry: registry, metrics: api.NewMetrics(registry)}
	var err error
	if b.vault, err = inputs.Config.OpenVault(); err != nil {
		return base{}, err
	}
	b.opening = &setup.Database{Inputs: inputs, After: after, Another: another}
	if b.db, err = b.opening.NewDatabase(ctx, b.vault); err != nil {
		return base{}, err
	}
	b.away = b.opening.Await(ctx, b.db, b.vault)
	if b.away != nil && (another == nil || !setup.Passes(b.away)) {
		return base{}, b.away
	}
	if b.redis, err = setup.OpenRedis(inputs); err != nil {
		return base{}, err
	}
	b.health, b.work = watch(b), newWork(b)
	return b, nil
}
