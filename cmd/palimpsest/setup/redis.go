package setup

import (
	"errors"

	"github.com/redis/go-redis/v9"
)

// OpenRedis opens the shared counters of replicas. It returns nil if each process counts alone.
func OpenRedis(setup Inputs) (*redis.Client, error) {
	if setup.Config.Storage.RedisURL == "" {
		return nil, nil //nolint:nilnil // each process counts by itself
	}
	options, err := redis.ParseURL(setup.Config.Storage.RedisURL)
	if err != nil {
		return nil, errors.New("REDIS_URL: is not a URL such as redis://host:6379/0")
	}
	options.ContextTimeoutEnabled = true // callers set the timeout
	client := redis.NewClient(options)
	setup.OnClose(func() { _ = client.Close() })
	return client, nil
}
